"""Sentiment, topic and urgency of a short text, from the labels that the prompt lists."""

import json

from sample import Phrasing, compose, listing
from words import PLACES, PRODUCTS, SOFTWARE, WEEKDAYS, article

_GENERAL = (
    "Classify the {what} of the text: {labels}.",
    "Classify the {what}. Labels: {labels}.",
    "Classify this message by {what} ({labels}).",
    "What is the {what} of this text? Choose from {labels}.",
    "Which {what} fits: {labels}?",
    "Label the text with its {what}. Allowed labels: {labels}. Answer with one label.",
    "You classify messages by {what}. Answer with exactly one of {labels}.",
    "Answer with one word: is the {what} {labels}?",
    "Determine the {what}: {labels}.",
    "Decide which {what} the message has. Options: {labels}.",
    "{what_cap}? Options: {labels}.",
    "Choose the {what} of the text from {labels}. Only output the label.",
    "Give the {what} of the following text. Use one of {labels}.",
    "Assign a {what}: {labels}",
    "Read the text and pick its {what} from {labels}.",
)
_GENERAL_UNSEEN = (
    "Sort this into one of these buckets: {labels}.",
    "Tag what follows using {labels}.",
    "Judge the {what} and say nothing besides {labels}.",
    "Of {labels}, which suits best?",
    "Rate it. Scale: {labels}.",
    "Please categorise the {what}, selecting among {labels}.",
)
INSTRUCTIONS = {
    "sentiment": Phrasing(_GENERAL + (
        "Is this review {labels}?", "How does the writer feel: {labels}?",
        "Is the text {labels}? Answer with one word."),
        _GENERAL_UNSEEN + ("What mood is the author in, {labels}?", "Would you call the tone {labels}?")),
    "topic": Phrasing(_GENERAL + (
        "What is this message about: {labels}?", "Which team should handle this: {labels}?",
        "Route the message to one of {labels}."),
        _GENERAL_UNSEEN + ("Whose desk does this belong on: {labels}?", "What subject area is that, {labels}?")),
    "urgency": Phrasing(_GENERAL + (
        "How urgent is this: {labels}?", "Set the priority of the message: {labels}.",
        "Is the urgency {labels}?"),
        _GENERAL_UNSEEN + ("How fast must somebody react, {labels}?", "How pressing does this sound: {labels}?")),
}

GOOD = ("great", "excellent", "lovely", "wonderful", "perfect", "fantastic", "very good", "superb", "brilliant", "amazing",
        "a pleasure", "better than expected", "beautiful", "outstanding", "impressive", "really nice", "reliable",
        "comfortable", "worth the money", "not bad at all")
BAD = ("terrible", "awful", "bad", "horrible", "poor", "disappointing", "useless", "broken", "very bad", "dreadful",
       "a waste of money", "worse than expected", "ugly", "unreliable", "not good", "annoying", "cheap and weak",
       "uncomfortable", "a mess", "far too expensive")
PLAIN = ("ordinary", "average", "as described", "the same as before", "okay", "made of metal", "blue", "two years old",
         "neither good nor bad", "what the page says", "of medium size", "acceptable", "normal")
ASPECTS = ("battery", "screen", "sound", "delivery", "service", "staff", "food", "room", "price", "quality", "design",
           "support", "manual", "packaging", "colour", "material", "breakfast", "view", "app", "handle")
GOOD_CLAUSES = ("I love it.", "I would buy it again.", "Five stars.", "It made my day.", "I am very happy with it.",
                "Highly recommended.", "Everyone here enjoys it.", "It works like a charm.", "We will come back.",
                "I recommend it to everybody.", "Thank you for this.", "My family loves it.")
BAD_CLAUSES = ("I hate it.", "I want my money back.", "One star.", "It ruined my day.", "I am very unhappy with it.",
               "Stay away.", "Nobody here likes it.", "It broke after a week.", "Never again.", "I regret buying it.",
               "It does not work.", "I sent it back.")
PLAIN_CLAUSES = ("It arrived on {day}.", "I bought it for the {place}.", "It comes in a box.", "We used it on {day}.",
                 "It has two parts.", "The manual has ten pages.", "It is next to the {place}.", "I have not tried it yet.",
                 "It weighs one kilogram.", "They open at nine on {day}.", "It was ordered in May.")

TOPICS = {
    "billing": ("my invoice shows the wrong amount", "I was charged twice", "I want a refund for last month",
                "my credit card was declined", "please send me the receipt", "why did the monthly price go up",
                "the discount was not applied", "I paid but the bill is still open", "the tax on my invoice is wrong",
                "I need a copy of the bill"),
    "shipping": ("my parcel has not arrived", "the tracking number does not work", "where is my package",
                 "the box came damaged", "can you deliver to another address", "the courier left it with a neighbour",
                 "delivery is a week late", "I would like express shipping", "the wrong item was in the box",
                 "when will my order be sent"),
    "technical": ("the app crashes when I open it", "the page shows error 500", "the export button does nothing",
                  "syncing stopped after the update", "the search returns no results", "the site is very slow today",
                  "I cannot upload a file", "the screen stays black", "the sound cuts out in calls",
                  "the installer fails on my laptop"),
    "account": ("I forgot my password", "please change my user name", "I cannot log in", "how do I delete my account",
                "my profile picture is wrong", "I want to change my email address", "my account is locked",
                "the two-factor code never comes", "please merge my two accounts", "someone else used my login"),
    "sales": ("do you have a plan for ten people", "I would like a quote", "can we get a demo next week",
              "what does the large package include", "is there a discount for schools", "which model do you recommend",
              "do you sell spare parts", "we are interested in buying forty licences", "can I try it before I buy",
              "is the new version on sale yet"),
    "sports": ("the team won the final two to one", "the striker scored in the last minute", "the runner broke the record",
               "the coach changed the line-up", "the match was moved because of rain", "she won the tennis cup",
               "the league starts in August", "the goalkeeper is injured", "the cyclists climbed the pass",
               "fans filled the stadium"),
    "politics": ("the parliament passed the new law", "the minister resigned", "the mayor won the election",
                 "voters go to the polls on Sunday", "the government plans a tax reform", "the senate rejected the bill",
                 "both parties agreed on a coalition", "the president met her counterpart", "the council debates the budget",
                 "the opposition asks for a new vote"),
    "science": ("researchers found a new planet", "the telescope took a sharp picture", "a study explains how cells age",
                "the probe landed on the moon", "chemists made a stronger glass", "the experiment confirmed the theory",
                "biologists counted the whales", "a vaccine passed its trial", "the fossil is a million years old",
                "physicists measured the particle"),
    "food": ("the soup needs more salt", "bake the bread for forty minutes", "the new restaurant serves noodles",
             "add two eggs and some flour", "the cheese comes from the mountains", "this recipe uses fresh basil",
             "the chef won a prize for his dessert", "stir the sauce slowly", "the market sells ripe tomatoes",
             "we had pancakes for breakfast"),
    "travel": ("the flight to the islands was delayed", "the hotel is close to the beach", "we took the night train",
               "you need a visa for the trip", "the guide showed us the old town", "pack a light suitcase",
               "the ferry leaves at noon", "our tour ends at the castle", "the airport is an hour away",
               "we rented a car at the coast"),
    "music": ("the band released a new album", "the concert sold out", "she plays the violin", "the singer lost her voice",
              "the orchestra rehearses on Monday", "this song has a slow rhythm", "the festival opens with jazz",
              "he wrote the melody in an hour", "the choir needs more voices", "the guitar is out of tune"),
}
# Things and what happened to them: a topic is told by the thing, and the pairs are held out, not the words.
TOPIC_PAIRS = {
    "billing": (("my invoice", "the last bill", "the monthly fee", "my refund", "the card payment", "my receipt", "the bank charge"),
                ("is wrong", "is too high", "is missing", "came twice", "is not what we agreed", "needs a correction")),
    "shipping": (("my parcel", "the package", "the delivery", "the courier", "the tracking page", "the shipment"),
                 ("is late", "has not come", "went to the wrong house", "is stuck since Monday", "is missing", "came to a neighbour")),
    "technical": (("the app", "the update", "the search page", "the export", "the upload", "the installer", "the server"),
                  ("crashes", "shows an error", "is very slow", "does not start", "stops halfway", "hangs on my laptop")),
    "account": (("my password", "my login", "my user name", "my profile", "the sign-in code", "my account"),
                ("does not work", "has to be changed", "is locked", "was lost", "is wrong", "should be removed")),
    "sales": (("a quote", "a demo", "the price list", "an offer for our school", "a trial version", "a plan for thirty seats"),
              ("would help us", "is what we look for", "is needed before we buy", "would be nice this week", "interests us")),
    "sports": (("the striker", "the home team", "the tennis player", "the coach", "the goalkeeper", "the runner", "the cyclist"),
               ("won the match", "lost the final", "scored again", "trains for the cup", "is injured", "set a record")),
    "politics": (("the minister", "the parliament", "the mayor", "the senate", "the government", "the opposition", "the council"),
                 ("plans a reform", "voted on the law", "rejects the budget", "won the election", "spoke about taxes")),
    "science": (("the researchers", "the telescope", "the probe", "the chemists", "the biologists", "the physicists", "the study"),
                ("found something new", "measured the effect", "confirmed the theory", "explained the result", "surprised the lab")),
    "food": (("the soup", "the bread", "the sauce", "the recipe", "the dessert", "the salad", "the chef's menu"),
             ("needs more salt", "tastes of lemon", "is baked for an hour", "goes well with cheese", "is served warm")),
    "travel": (("the flight", "the hotel", "the night train", "the ferry", "our tour", "the beach resort", "the trip"),
               ("was delayed", "starts at the coast", "is fully booked", "takes two days", "was worth the journey")),
    "music": (("the band", "the singer", "the orchestra", "the choir", "the concert", "the new album", "the violinist"),
              ("sounds wonderful", "plays jazz tonight", "sold out", "opens the festival", "was recorded in May")),
}
HIGH = ("production is down", "nobody can log in", "we are losing orders every minute", "customer data is leaking",
        "the whole site is offline", "the payment system stopped", "the server room is on fire",
        "we need this fixed right now", "this is an emergency", "all users are affected", "our launch is in an hour",
        "the alarm does not stop", "the brakes failed on the machine", "patients cannot be admitted")
MEDIUM = ("some users see slow pages", "the report is needed by the end of the week", "the export fails now and then",
          "one printer is out of order", "a few mails arrive late", "please look at it in the next days",
          "the search sometimes misses results", "two of ten seats cannot connect", "there is a workaround but it is slow",
          "we would like an answer this week", "the backup took longer than usual", "the discount is off for one product")
# What happened to a product, and for whom or when: again the pairs are held out.
URGENCY_PAIRS = {
    "high": (("is down for everyone", "stopped completely", "lost customer data", "is under attack", "blocks all orders",
              "deleted our files", "sends bills to the wrong people"),
             ("and we need help right now", "and every minute costs money", "and our launch is today", "and nobody can work",
              "so please act at once", "and this cannot wait")),
    "medium": (("is slow for some users", "fails now and then", "loses a mail every day", "shows old numbers",
                "needs a restart each morning", "prints only half of the pages"),
               ("so please look at it this week", "but there is a workaround", "and we need it by Friday",
                "but most things work", "and it costs us some time")),
    "low": (("has a typo", "could look nicer", "shows a blurry icon", "could use a dark theme", "has an old year in the footer",
             "could have a shortcut"),
            ("but there is no rush", "whenever you have time", "and it is just a small wish", "for some later version",
             "but nobody minds", "so it can wait")),
}
LOW = ("there is a typo on the help page", "no rush at all", "whenever you have time", "a darker green would look nicer",
       "it would be nice to have a shortcut", "just a small idea for the future", "the icon is a little blurry",
       "this can wait until next month", "only a question out of curiosity", "could you some day add a dark theme",
       "the footer still shows last year", "nothing urgent")


def _cap(text):
    return text[0].upper() + text[1:]


def _sentence(c, aspect, words):
    word = c.rng.choice(words)
    return c.rng.choice(("The {a} is {w}.", "The {a} was {w}.", "I find the {a} {w}.", "{A}: {w}.", "The {a} of it is {w}.",
                         "To me the {a} seems {w}.")).format(a=aspect, A=_cap(aspect), w=word)


def _sentiment(c, labels):
    rng = c.rng
    opening = rng.choice(("I bought {p} last week. ", "We tried {p}. ", "My {q} arrived. ", "", "", "", "About the {q}: "))
    thing = c.term(PRODUCTS)
    opening = opening.format(p=article(thing), q=thing)
    words = {"positive": (GOOD, GOOD_CLAUSES), "negative": (BAD, BAD_CLAUSES), "neutral": (PLAIN, PLAIN_CLAUSES)}
    first = c.pick(ASPECTS)
    if rng.random() < 0.18:  # two sides: "mixed" where the labels have it, else the main clause decides
        one, other = rng.sample(("positive", "negative"), 2)
        second = c.pick(ASPECTS)
        a, b = rng.choice(words[one][0]), rng.choice(words[other][0])
        text = rng.choice((f"The {first} is {a}, but the {second} is {b}.",
                           f"Although the {first} is {a}, the {second} is {b}.",
                           f"The {first} was {a}. However, the {second} was {b}."))
        return opening + text, "mixed" if "mixed" in labels else other
    label = rng.choice([n for n in labels if n in words])
    adjectives, clauses = words[label]
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        if rng.random() < 0.55:
            parts.append(_sentence(c, c.pick(ASPECTS), adjectives))
        else:
            parts.append(rng.choice(clauses).format(day=rng.choice(WEEKDAYS), place=c.pick(PLACES)))
    return opening + " ".join(parts), label


def _topic_phrase(c, label):
    if c.rng.random() < 0.3:
        return c.rng.choice(TOPICS[label])
    while True:
        pair = " ".join(c.rng.choice(part) for part in TOPIC_PAIRS[label])
        if c.allowed(pair):
            return pair


def _topic(c, labels):
    rng = c.rng
    label = rng.choice(labels)
    first = _topic_phrase(c, label)
    text = rng.choice(("{s}.", "{s}.", "Hello, {l}.", "Hi, {l}. Thanks!", "Dear team, {l}.", "{s}. Regards, {n}",
                       "Good morning. {s}.", "Today: {l}.", "{n} says: {l}.")).format(
        s=_cap(first), l=first, n=c.first_name())
    if rng.random() < 0.35:
        text += " " + _cap(_topic_phrase(c, label)) + "."
    return text, label


def _urgency(c, labels):
    rng = c.rng
    levels = {"high": HIGH, "medium": MEDIUM, "low": LOW}
    label = rng.choice([n for n in labels if n in levels])
    product = c.pick(SOFTWARE) if rng.random() < 0.7 else c.invented_name()
    first = rng.choice(levels[label])
    while rng.random() < 0.7:
        pair = " ".join(rng.choice(part) for part in URGENCY_PAIRS[label])
        if c.allowed(pair):
            first = f"the {product} {pair}"
            break
    text = rng.choice(("{s}.", "{p}: {l}.", "Hello, {l}.", "This is about {p}. {s}.", "{n} wrote: {l}.",
                       "Hi, I use {p}. {s}. Thanks!", "Subject: {p}. {s}.")).format(
        s=_cap(first), l=first, p=product, n=c.first_name())
    if rng.random() < 0.4:
        text += " " + _cap(rng.choice(levels[label])) + "."
    if label == "medium" and rng.random() < 0.15:  # people do say this about small things
        text += " " + rng.choice(("Please hurry.", "No rush."))
    return text, label


def make(c, unseen=False, what=None):
    rng = c.rng
    what = what or rng.choice(tuple(INSTRUCTIONS))
    if what == "sentiment":
        labels = rng.choice((["positive", "negative"], ["positive", "negative", "neutral"],
                             ["positive", "negative", "neutral"], ["positive", "negative", "neutral", "mixed"]))
        text, label = _sentiment(c, labels)
    elif what == "topic":
        labels = rng.sample(tuple(TOPICS), rng.randrange(3, 7))
        text, label = _topic(c, labels)
    else:
        labels = ["low", "medium", "high"] if rng.random() < 0.8 else ["low", "high"]
        text, label = _urgency(c, labels)
    shown = list(labels)
    rng.shuffle(shown)
    case = rng.choice((str, str, str, str.capitalize, str.upper))
    phrasing = INSTRUCTIONS[what].pick(rng, unseen)
    instruction = phrasing.format(
        what=what, what_cap=what.capitalize(), labels=listing(rng, [case(n) for n in shown], "or"))
    answer, grade = case(label), "text"
    if rng.random() < 0.12:
        instruction += rng.choice((f' Answer as JSON: {{"{what}": ...}}', f' Reply in JSON with the key "{what}".'))
        answer, grade = json.dumps({what: answer}), "json"
    return compose(rng, f"classify_{what}", instruction, text, answer, grade=grade, phrasing=phrasing)
