"""Questions on a short passage: yes or no, a fact, or the refusal when the passage lacks the answer."""

from sample import Phrasing, compose
from words import ANIMALS, COLORS, FOODS, HOBBIES, JOBS, PLACES, WEEKDAYS, article

REFUSAL = "The passage does not say."
# attribute: (statements, questions for the value, yes/no questions)
FACTS = {
    "city": (("{n} lives in {v}.", "{n} moved to {v} last year.", "The home of {n} is in {v}."),
             ("Where does {n} live?", "In which city does {n} live?"),
             ("Does {n} live in {v}?", "Is {n}'s home in {v}?")),
    "job": (("{n} works as {a}.", "{n} is {a}.", "{n} has been {a} for years."),
            ("What is {n}'s job?", "What does {n} do for work?"), ("Is {n} {a}?", "Does {n} work as {a}?")),
    "pet": (("{n} has {a}.", "{n} owns {a}.", "The pet of {n} is {a}."),
            ("Which pet does {n} have?", "What animal does {n} own?"), ("Does {n} have {a}?", "Does {n} own {a}?")),
    "hobby": (("{n} likes {v}.", "In the evening {n} enjoys {v}.", "The hobby of {n} is {v}."),
              ("What is {n}'s hobby?", "What does {n} like?"), ("Does {n} like {v}?", "Is {v} the hobby of {n}?")),
    "age": (("{n} is {v} years old.", "{n} turned {v} in spring."), ("How old is {n}?", "What is {n}'s age?"),
            ("Is {n} {v} years old?",)),
    "color": (("{n} drives {a} car.", "The car of {n} is {v}."), ("What colour is {n}'s car?", "Which colour has {n}'s car?"),
              ("Is {n}'s car {v}?", "Does {n} drive {a} car?")),
    "food": (("{n} never eats {v}.", "{n} does not eat {v}."), ("What does {n} never eat?", "Which food does {n} avoid?"),
             ("Does {n} avoid {v}?", "Does {n} refuse to eat {v}?")),
    "day": (("{n} visits the {p} every {v}.", "Every {v} {n} goes to the {p}."),
            ("On which day does {n} go to the {p}?", "When does {n} visit the {p}?"),
            ("Does {n} go to the {p} on {v}?", "Is {v} the day when {n} visits the {p}?")),
}
YES_NO = Phrasing(
    seen=("{q} Answer yes or no.", "Answer the question with yes or no: {q}", "{q} (yes/no)", "Yes or no: {q}", "{q}",
          "Read the passage. {q}", "Question: {q} Answer with Yes or No.", "According to the passage, {q_low}",
          "Use the passage to answer yes or no. {q}", "{q} Reply with one word."),
    unseen=("Check this claim for me: {q}", "True? {q}", "{q} Nod or shake your head.", "Can one conclude this? {q}",
            "Confirm or deny: {q}", "Given the lines, {q_low}"))
OPEN = Phrasing(
    seen=("{q}", "Answer from the passage: {q}", "Question: {q}", "Read the passage and answer. {q}",
          "{q} If the passage does not say, say so.", "Use only the passage. {q}", "According to the passage, {q_low}",
          "Answer the question with the passage only: {q}", "{q} Answer briefly."),
    unseen=("Somebody asks: {q}", "Look it up in the notes: {q}", "{q} Do not guess.", "Tell me, {q_low}",
            "Based on these lines, {q_low}", "Is it stated anywhere, and if so: {q}"))


def _value(c, kind):
    rng = c.rng
    if kind == "city":
        return c.city()
    if kind == "age":
        return str(rng.randrange(18, 95))
    if kind == "day":
        return rng.choice(WEEKDAYS)
    if kind == "color":
        return rng.choice(COLORS)
    return c.term({"job": JOBS, "pet": ANIMALS, "hobby": HOBBIES, "food": FOODS}[kind])


def _passage(c):
    """(text, facts {(name, kind): (value, place)}, names)"""
    rng = c.rng
    names, wanted = [], rng.choice((1, 2, 2, 3, 3, 4, 7))
    while len(names) < wanted:
        name = c.first_name()
        if name not in names:
            names.append(name)
    facts, sentences = {}, []
    for name in names:
        for kind in rng.sample(sorted(FACTS), rng.choice((1, 2, 2, 3, 4))):
            value, place = _value(c, kind), c.term(PLACES)
            facts[name, kind] = (value, place)
            sentences.append(_fill(rng.choice(FACTS[kind][0]), name, value, place))
    if rng.random() < 0.6:
        rng.shuffle(sentences)
    return rng.choice((" ", " ", "\n")).join(sentences), facts, names


def _fill(template, name, value, place):
    return template.format(n=name, v=value, a=article(value), p=place)


def _ask(rng, phrasing, unseen, question):
    low = question[0].lower() + question[1:] if question.split()[0] in (
        "Does", "Is", "Where", "In", "What", "Which", "How", "On", "When") else question
    return phrasing.pick(rng, unseen).format(q=question, q_low=low)


def yes_no(c, unseen=False):
    rng = c.rng
    text, facts, _ = _passage(c)
    (name, kind), (value, place) = rng.choice(sorted(facts.items()))
    truth = rng.random() < 0.5
    asked = value
    if not truth:
        # Prefer a value that the passage gives to somebody else: the question cannot be answered by spotting a word.
        others = [v for (n, k), (v, _) in sorted(facts.items()) if k == kind and v != value]
        while asked == value:
            asked = rng.choice(others) if others and rng.random() < 0.7 else _value(c, kind)
    question = _fill(rng.choice(FACTS[kind][2]), name, asked, place)
    return compose(rng, "yes_no", _ask(rng, YES_NO, unseen, question), text, "Yes" if truth else "No")


def _open(c, unseen, answerable):
    rng = c.rng
    text, facts, names = _passage(c)
    if answerable:
        (name, kind), (value, place) = rng.choice(sorted(facts.items()))
        answer = value
    else:
        answer = REFUSAL
        absent = [(n, k) for n in names for k in sorted(FACTS) if (n, k) not in facts]
        name, kind = rng.choice(absent)
        if rng.random() < 0.3:  # somebody whom the passage does not mention
            name, kind = c.first_name(), rng.choice(sorted(FACTS))
            while name in names:
                name = c.first_name()
        place = c.term(PLACES)
    question = _fill(rng.choice(FACTS[kind][1]), name, "x", place)
    return compose(rng, "passage_answer" if answerable else "passage_refusal", _ask(rng, OPEN, unseen, question), text,
                   answer)


def answerable(c, unseen=False):
    return _open(c, unseen, True)


def refusal(c, unseen=False):
    return _open(c, unseen, False)
