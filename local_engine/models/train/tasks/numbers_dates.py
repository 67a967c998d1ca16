"""Arithmetic with two- and three-digit numbers, and dates to ISO 8601."""

from sample import Phrasing, ask, compose
from words import FOODS, MONTHS, WEEKDAYS

EXPRESSIONS = Phrasing(
    seen=("What is {e}?", "Calculate {e}.", "Compute {e}", "{e} = ?", "{e} =", "How much is {e}?", "{e}",
          "Work out {e}. Answer with the number only.", "Give me the result of {e}.", "Solve: {e}", "Please calculate {e}.",
          "What does {e} equal?", "Evaluate {e}.", "Tell me what {e} is."),
    unseen=("Could you figure out {e} for me?", "I am stuck on my homework: {e}", "Quick maths, {e}",
            "Reckon {e} in your head.", "The value of {e}, please.", "{e} makes how many?"))
IN_WORDS = {
    "+": Phrasing(("{a} plus {b}", "the sum of {a} and {b}", "{a} + {b}", "{a} + {b}", "{a}+{b}"),
                  ("the total when {b} joins {a}", "{a} increased by {b}")),
    "-": Phrasing(("{a} minus {b}", "the difference of {a} and {b}", "{a} - {b}", "{a} - {b}", "{a}-{b}"),
                  ("{a} decreased by {b}", "{a} less {b}")),
    "*": Phrasing(("{a} times {b}", "the product of {a} and {b}", "{a} * {b}", "{a} x {b}", "{a} × {b}"),
                  ("{b} lots of {a}", "{a} multiplied with {b}")),
}
STORIES = {
    "+": ("{n} has {a} {f} and gets {b} more. How many {f} does {n} have now?",
          "A shop sold {a} {f} on {d} and {b} the day after. How many in all?",
          "There are {a} {f} in one box and {b} in another. How many together?",
          "{n} drives {a} km, then another {b} km. How far is that in km?"),
    "-": ("{n} has {a} {f} and gives away {b}. How many are left?",
          "A shop had {a} {f} and sold {b}. How many remain?",
          "{n} needs {a} points and has {b}. How many are missing?",
          "A book has {a} pages. {n} read {b} of them. How many pages are left?"),
    "*": ("{n} buys {b} boxes with {a} {f} each. How many {f} is that?",
          "One ticket costs {a} euros. What do {b} tickets cost?"),
}


def arithmetic(c, unseen=False):
    """Sums and differences of numbers below 1000, products of a two-digit and a one-digit number."""
    rng = c.rng
    op = rng.choice("++++---**")
    while True:
        if op == "*":
            a, b = rng.randrange(2, 100), rng.randrange(2, 10)
        else:
            top = rng.choice((100, 100, 1000))
            a, b = rng.randrange(top), rng.randrange(rng.choice((top, min(top, 100))))
            if op == "-" and a < b:
                a, b = b, a
        if c.allowed(f"{a}{op}{b}"):
            break
    answer = str(a + b if op == "+" else a - b if op == "-" else a * b)
    if rng.random() < 0.2 and not unseen:
        question = rng.choice(STORIES[op]).format(n=c.first_name(), f=c.term(FOODS), a=a, b=b, d=rng.choice(WEEKDAYS))
        if rng.random() < 0.3:
            question += " Answer with the number only."
    else:
        expression = IN_WORDS[op].pick(rng, unseen and rng.random() < 0.5).format(a=a, b=b)
        question = EXPRESSIONS.pick(rng, unseen).format(e=expression)
        question = question[0].upper() + question[1:]
    return ask("arithmetic", question, answer)


DATES = Phrasing(
    seen=("Convert the date to ISO format.", "Write this date in ISO 8601.", "Convert to YYYY-MM-DD.",
          "Rewrite the date as YYYY-MM-DD.", "What is this date in ISO format?", "ISO date, please.",
          "Give the date in the form YYYY-MM-DD.", "Normalize the date to ISO 8601. Only output the date.",
          "You convert dates to YYYY-MM-DD.", "Format the date as year-month-day.", "Turn the date into ISO format.",
          "Find the date in the text and write it as YYYY-MM-DD.", "Which date is meant? Answer in ISO format."),
    unseen=("Express that day the ISO way.", "Put the following into year, month and day with dashes.",
            "I need a sortable timestamp (day precision) for this.", "Standardise the calendar day.",
            "Reformat: four-digit year first, then month, then day.", "Machine-readable date wanted."))


def _ordinal(day):
    return f"{day}" + ("th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th"))


def _written(rng, date):
    """The date in words or figures, and a remark on the order of the figures where that is needed."""
    year, month, day = date
    name = MONTHS[month - 1]
    style = rng.randrange(12)
    if style < 8:
        return (f"{day} {name} {year}", f"{name} {day}, {year}", f"{_ordinal(day)} of {name} {year}",
                f"{name} {_ordinal(day)}, {year}", f"{day} {name[:3]} {year}", f"the {_ordinal(day)} of {name}, {year}",
                f"{rng.choice(WEEKDAYS)}, {day} {name} {year}", f"{name[:3]}. {day}, {year}")[style], ""
    if style == 8:
        return f"{day:02d}.{month:02d}.{year}" if rng.random() < 0.5 else f"{day}.{month}.{year}", ""
    if style == 9:
        return f"{year}/{month:02d}/{day:02d}", ""
    if style == 10:
        return f"{day:02d}/{month:02d}/{year}", " The day comes first."
    return f"{month:02d}/{day:02d}/{year}", " The month comes first."


def dates(c, unseen=False):
    rng = c.rng
    date = c.date()
    text, remark = _written(rng, date)
    instruction = DATES.pick(rng, unseen) + remark
    if rng.random() < 0.3:
        text = rng.choice(("The meeting is on {t}.", "She was born on {t}.", "Due date: {t}", "We met on {t} in {city}.",
                           "The contract ends on {t}.", "Signed on {t} by {name}.")).format(
            t=text, city=c.city(), name=c.full_name())
    return compose(rng, "dates", instruction, text, "%04d-%02d-%02d" % date)
