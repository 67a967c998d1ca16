"""Greetings, questions about the model, a small table of facts, tiny writing tasks, and "I do not know"."""

from sample import Phrasing, Sample, ask
from words import ANIMALS, CAPITALS, COLORS, FOODS, HOBBIES, JOBS, MONTHS, NUMBER_WORDS, PLACES, WEEKDAYS

GREETINGS = ("Hello!", "Hi", "Hello", "Hi there", "Hey", "Good morning", "Good evening!", "Hello, how are you?", "Hi!", "Hey there!",
             "How are you?", "Good day", "hello", "hi", "Say hello.", "Say hi")
GREETING_ANSWERS = ("Hello! How can I help you?", "Hi! What can I do for you?", "Hello! What do you need?", "Hello there! How can I help?")
IDENTITY = ("Who are you?", "What are you?", "What is your name?", "Tell me about yourself.", "Introduce yourself.", "Are you a person?",
            "Which model are you?", "What model is this?")
IDENTITY_ANSWER = "I am fixpoint-tiny, a very small language model made for tests and examples."
ABILITY = ("What can you do?", "How can you help me?", "What are you good at?", "Help", "What should I ask you?")
ABILITY_ANSWER = ("I can extract fields as JSON, classify short texts, add numbers, convert dates, call tools and answer "
                  "questions about a short passage.")
THANKS = ("Thanks!", "Thank you.", "Thanks a lot", "Thank you very much!", "Great, thanks.")
THANKS_ANSWERS = ("You are welcome!", "You are welcome.", "Happy to help!", "My pleasure.")
BYE = ("Bye", "Goodbye!", "See you.", "Good night", "See you later!")
BYE_ANSWERS = ("Goodbye!", "Goodbye, and have a nice day!", "See you!")
PINGS = (("Ping", "Pong"), ("ping", "pong"), ("Test", "The test works."), ("This is a test.", "The test works."),
         ("Are you there?", "Yes, I am here."), ("Does this work?", "Yes, it works."))

CAPITAL = Phrasing(
    ("What is the capital of {x}?", "Capital of {x}?", "Tell me the capital of {x}.", "Which city is the capital of {x}?",
     "Name the capital of {x}.", "What's the capital of {x}?", "The capital of {x} is"),
    ("From which city is {x} governed?", "{x}: seat of government?"))
FACTS = (
    ("What color is the sky?", "The sky is blue."), ("What colour is grass?", "Grass is green."),
    ("What color is snow?", "Snow is white."), ("How many days are in a week?", "A week has seven days."),
    ("How many months are in a year?", "A year has twelve months."), ("How many hours are in a day?", "A day has 24 hours."),
    ("How many minutes are in an hour?", "An hour has 60 minutes."), ("How many seconds are in a minute?", "A minute has 60 seconds."),
    ("How many legs does a spider have?", "A spider has eight legs."), ("How many legs does a dog have?", "A dog has four legs."),
    ("What do bees make?", "Bees make honey."), ("What do cows drink?", "Cows drink water."),
    ("What is the largest planet?", "Jupiter is the largest planet."), ("Which planet do we live on?", "We live on Earth."),
    ("What is the largest ocean?", "The Pacific is the largest ocean."), ("What is water made of?", "Water is made of hydrogen and oxygen."),
    ("At what temperature does water boil?", "Water boils at 100 degrees Celsius."),
    ("At what temperature does water freeze?", "Water freezes at 0 degrees Celsius."),
    ("How many letters does the alphabet have?", "The English alphabet has 26 letters."),
    ("Is the sun a star?", "Yes, the sun is a star."), ("What does JSON stand for?", "JSON stands for JavaScript Object Notation."),
    ("What does a baker make?", "A baker makes bread."), ("Where do fish live?", "Fish live in water."),
    ("What comes after Monday?", "Tuesday comes after Monday."), ("What is the first month of the year?", "January is the first month of the year."),
    ("What is the opposite of hot?", "The opposite of hot is cold."), ("What is the opposite of big?", "The opposite of big is small."),
    ("What is the opposite of day?", "The opposite of day is night."), ("Why is the sky blue?", "Because air scatters blue light the most."),
    ("What is a cache?", "A cache keeps answers so that they need not be computed again."),
    ("What is a token?", "A token is a short piece of text that a language model reads or writes."),
    ("What is a language model?", "A language model is a program that predicts the next piece of text."),
    ("Tell me a joke.", "Why did the token stop? It met the end of its turn."),
    ("Tell me a joke", "Why did the cache laugh? It had heard that one before."),
    ("Write hello world in Python.", 'print("Hello, world!")'), ("Print hello world in Python", 'print("Hello, world!")'),
    ("Write a haiku.", "Rain on the window\nA small model counts the drops\nand says the same thing"),
    ("Write a short poem.", "The river runs, the lamp is low,\nthe words come out in one straight row."),
    ("Write a poem about the sea.", "The sea is wide, the sea is grey,\nit brings the same waves every day."),
)
UNKNOWN = Phrasing(
    ("Who invented the {x}?", "Explain the history of {x}.", "Write an essay about {x}.", "What do you think about {x}?",
     "Who wrote the book about {x}?", "When was the first {x} made?", "Explain {x} to a child.", "How do I build a {x}?",
     "What is the best {x} in the world?", "Tell me everything about {x}.", "How does {x} work?", "Why is {x} important?",
     "Give me an opinion on {x}.", "How old is the {x}?", "What is {x}?"),
    ("Please elaborate on {x}.", "Ever heard of {x}?"))
UNKNOWN_ANSWERS = ("I do not know. I am a very small model.", "I do not know that.", "Sorry, I am too small a model to know that.")
LISTS = {"colors": COLORS, "animals": ANIMALS, "foods": FOODS, "jobs": JOBS, "hobbies": HOBBIES, "weekdays": WEEKDAYS, "months": MONTHS,
         "places": PLACES}
SCRAPS = ("é", "ü", "ß", "ñ", "ø", "ç", "å", "ł", "ğ", "я", "ж", "д", "к", "и", "α", "β", "λ", "中", "文", "日", "本", "語", "한", "국",
          "ع", "ر", "ב", "ह", "ก", "🙂", "🚀", "✅", "→", "€", "°", "½", "“", "”", "…", "–", "#", "@", "%", "&", "*", "_", "~", "^",
          "{", "}", "[", "]", "<", ">", "|", "\\", "/", "+", "=", ";", "'", "`", "A", "Q", "z", "x", "7", "0")


def capital(c, unseen=False):
    country = c.rng.choice(tuple(CAPITALS))  # knowledge, so nothing is held out but phrasings
    question = CAPITAL.pick(c.rng, unseen).format(x=country)
    if question.endswith(" is"):
        return ask("capital", question, f"{CAPITALS[country]}.")
    short = c.rng.random() < 0.25
    if short:
        question += c.rng.choice((" Answer with one word.", " Only the name.", " Answer briefly."))
    city = CAPITALS[country]
    return ask("capital", question, city if short else f"The capital of {country} is {city}.")


def repeat(c, unseen=False):
    """Copies any characters, so that every byte token is trained."""
    rng = c.rng
    if rng.random() < 0.5:
        text = " ".join(rng.choice((c.invented(), c.first_name(), str(rng.randrange(1000)), c.code())) for _ in range(rng.randrange(1, 7)))
    else:
        text = "".join(rng.choice(SCRAPS) + rng.choice(("", "", " ")) for _ in range(rng.randrange(2, 14))).strip()
    if rng.random() < 0.15:
        text = " ".join(chr(rng.choice((rng.randrange(0xA1, 0x250), rng.randrange(0x400, 0x450), rng.randrange(0x4E00, 0x9FA0),
                                        rng.randrange(0x1F300, 0x1F640), rng.randrange(0x900, 0x970), rng.randrange(0xAC00, 0xD7A0))))
                        for _ in range(rng.randrange(1, 8)))
    asks = Phrasing(("Repeat: {t}", "Repeat exactly: {t}", "Say: {t}", "Echo this: {t}", "Copy this text: {t}", "Repeat after me: {t}"),
                    ("Parrot this: {t}", "Give this back unchanged: {t}"))
    return ask("repeat", asks.pick(rng, unseen).format(t=text), text)


def talk(c, unseen=False):
    rng = c.rng
    kind = rng.randrange(13)
    if kind == 0:
        return ask("talk", rng.choice(GREETINGS), rng.choice(GREETING_ANSWERS), accept=list(GREETING_ANSWERS))
    if kind == 1:
        return ask("talk", rng.choice(IDENTITY), IDENTITY_ANSWER)
    if kind == 2:
        return ask("talk", rng.choice(ABILITY), ABILITY_ANSWER)
    if kind == 3:
        asked, answers = rng.choice(((THANKS, THANKS_ANSWERS), (BYE, BYE_ANSWERS)))
        return ask("talk", rng.choice(asked), rng.choice(answers), accept=list(answers))
    if kind == 4:
        return ask("talk", *rng.choice(PINGS))
    if kind in (5, 6, 7):
        return ask("talk", *rng.choice(FACTS))
    if kind == 8:
        n = rng.randrange(2, 6)
        name = rng.choice(tuple(LISTS))
        count = rng.choice((NUMBER_WORDS[n], str(n)))
        items = rng.sample(LISTS[name], n)
        question = rng.choice(("Name {n} {x}.", "List {n} {x}.", "Give me {n} {x}.", "Tell me {n} {x}.")).format(n=count, x=name)
        return ask("talk", question, ", ".join(items[:-1]) + " and " + items[-1] + ".")
    if kind == 9:
        n = rng.randrange(3, 41)
        question = rng.choice(("Count to {n}.", "Count from 1 to {n}.", "List the numbers from 1 to {n}.")).format(n=n)
        return ask("talk", question, ", ".join(str(i) for i in range(1, n + 1)))
    if kind == 10:
        word = c.invented() if rng.random() < 0.6 else c.pick(FOODS)
        question = rng.choice(("Spell {w}.", "Spell the word {w}.", "How do you spell {w}?")).format(w=word)
        return ask("talk", question, "-".join(word))
    name = c.first_name()
    if kind == 11:
        told = rng.choice(("My name is {n}.", "I am {n}.", "Hello, I am {n}.")).format(n=name)
        asked = rng.choice(("What is my name?", "Do you remember my name?", "Who am I?"))
        return Sample("talk", [{"role": "user", "content": told},
                               {"role": "assistant", "content": f"Nice to meet you, {name}!"},
                               {"role": "user", "content": asked},
                               {"role": "assistant", "content": f"Your name is {name}."}])
    question = rng.choice(("My name is {n}.", "I am {n}.", "Hello, I am {n}.", "Hi, my name is {n}!")).format(n=name)
    return ask("talk", question, rng.choice(("Hello {n}! How can I help you?", "Nice to meet you, {n}!")).format(n=name),
               accept=[f"Hello {name}! How can I help you?", f"Nice to meet you, {name}!"])


def unknown(c, unseen=False):
    rng = c.rng
    thing = rng.choice((c.pick(PLACES), c.pick(HOBBIES), c.invented(), c.invented(), f"{c.invented()} {c.pick(PLACES)}", c.full_name()))
    question = UNKNOWN.pick(rng, unseen).format(x=thing)
    return ask("unknown", question, rng.choice(UNKNOWN_ANSWERS), accept=list(UNKNOWN_ANSWERS))
