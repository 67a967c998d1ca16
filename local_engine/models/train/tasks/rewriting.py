"""Short rewriting with a style instruction; every style has one right result."""

from sample import Phrasing, compose
from words import COLORS, FOODS, PLACES, WEEKDAYS

# (base, past, third person)
VERBS = (("open", "opened", "opens"), ("close", "closed", "closes"), ("clean", "cleaned", "cleans"),
         ("visit", "visited", "visits"), ("paint", "painted", "paints"), ("find", "found", "finds"),
         ("see", "saw", "sees"), ("buy", "bought", "buys"), ("sell", "sold", "sells"), ("build", "built", "builds"),
         ("leave", "left", "leaves"), ("like", "liked", "likes"), ("need", "needed", "needs"), ("check", "checked", "checks"),
         ("show", "showed", "shows"), ("watch", "watched", "watches"), ("draw", "drew", "draws"), ("take", "took", "takes"))
THINGS = ("the door", "the report", "the old house", "the red car", "the small shop", "the kitchen", "the letter",
          "the new bridge", "the garden", "the window", "the blue box", "the long list", "the boat", "the picture",
          "the big table", "the ticket", "the gate", "the file")
FILLERS = ("really", "very", "actually", "basically", "quite", "just", "simply")
CASUAL = (("can't", "cannot"), ("don't", "do not"), ("won't", "will not"), ("it's", "it is"), ("gonna", "going to"),
          ("wanna", "want to"), ("I'm", "I am"), ("we're", "we are"), ("isn't", "is not"), ("didn't", "did not"))

STYLES = {
    "upper": Phrasing(("Write in upper case.", "Convert to upper case.", "Rewrite this in capital letters.", "Make it uppercase.",
                       "Put the text in all caps."), ("SHOUT this.", "Use only big letters.")),
    "lower": Phrasing(("Write in lower case.", "Convert to lower case.", "Make it lowercase.", "Rewrite this in small letters."),
                      ("Remove every capital.", "No capitals at all, please.")),
    "polite": Phrasing(("Make this polite.", "Rewrite it politely.", "Say this more politely.", "Rewrite as a polite request.",
                        "Turn the command into a polite request."),
                       ("Soften this command.", "Sound friendlier.", "How would a well-mannered person put it?")),
    "question": Phrasing(("Rewrite as a question.", "Turn the statement into a question.", "Make it a question.",
                          "Change this to a yes/no question."), ("Ask it instead of stating it.", "Interrogative form, please.")),
    "past": Phrasing(("Rewrite in the past tense.", "Put the sentence in the past tense.", "Change it to past tense.",
                      "Use the past tense."), ("Say it as if it happened yesterday.", "Shift this back in time.")),
    "negative": Phrasing(("Make the sentence negative.", "Negate the sentence.", "Say the opposite with not.",
                          "Rewrite it as a negative sentence."), ("Deny this.", "Flip the meaning with a negation.")),
    "formal": Phrasing(("Rewrite formally.", "Make it formal.", "Use formal language.", "Write out the contractions.",
                        "Rewrite this in a formal style."), ("Suit this for a letter to a judge.", "Elevate the register.")),
    "short": Phrasing(("Make it shorter.", "Remove the filler words.", "Shorten the sentence.", "Rewrite it without filler words.",
                       "Cut the unneeded words."), ("Trim this.", "Tighten the wording.")),
    "bullets": Phrasing(("Write as a bullet list.", "Turn it into a bullet list.", "List the items with dashes.",
                         "Make a list, one item per line."), ("Itemise this.", "Break it up into points.")),
}


def _cap(text):
    return text[0].upper() + text[1:]


def make(c, unseen=False):
    rng = c.rng
    style = rng.choice(sorted(STYLES))
    base, past, third = rng.choice(VERBS)
    name = c.first_name()
    thing = c.pick(THINGS) if rng.random() < 0.45 else f"the {c.invented()}"
    tail = rng.choice(("", f" on {rng.choice(WEEKDAYS)}", f" near the {c.term(PLACES)}", f" for {c.first_name()}"))
    plain = f"{name} {third} {thing}{tail}."
    if style in ("upper", "lower"):
        text = rng.choice((plain, f"{_cap(thing)} in {c.city()} is {rng.choice(COLORS)}.",
                           f"{c.invented().capitalize()} {c.invented()} and {c.first_name()}."))
        answer = text.upper() if style == "upper" else text.lower()
    elif style == "polite":
        text, answer = f"{_cap(base)} {thing}{tail}.", f"Could you please {base} {thing}{tail}?"
    elif style == "question":
        if rng.random() < 0.5:
            text, answer = plain, f"Does {name} {base} {thing}{tail}?"
        else:
            text, answer = f"{_cap(thing)} is {(x := rng.choice(COLORS))}.", f"Is {thing} {x}?"
    elif style == "past":
        text, answer = plain, f"{name} {past} {thing}{tail}."
    elif style == "negative":
        if rng.random() < 0.5:
            text, answer = plain, f"{name} does not {base} {thing}{tail}."
        else:
            text, answer = f"{_cap(thing)} is {(x := rng.choice(COLORS))}.", f"{_cap(thing)} is not {x}."
    elif style == "formal":
        casual, full = rng.choice(CASUAL)
        templates = {"can't": "We {x} {b} {t}{w}.", "don't": "I {x} {b} {t}{w}.", "won't": "{n} {x} {b} {t}{w}.",
                     "it's": "I think {x} near {t}.", "gonna": "We are {x} {b} {t}{w}.", "wanna": "I {x} {b} {t}{w}.",
                     "I'm": "{n} knows that {x} at {t}.", "we're": "Tell {n} that {x} at {t}.",
                     "isn't": "{T} {x} ready{w}.", "didn't": "{n} {x} {b} {t}{w}."}
        text, answer = (templates[casual].format(x=x, b=base, t=thing, T=_cap(thing), w=tail, n=name) for x in (casual, full))
    elif style == "short":
        a, b = rng.sample(FILLERS, 2)
        answer = rng.choice((plain, f"{_cap(thing)} is {rng.choice(COLORS)}."))
        words = answer.split(" ")
        where = 1 if answer == plain else words.index("is") + 1
        words[where:where] = [a] if rng.random() < 0.5 else [a, b]
        text = " ".join(words)
    else:
        items = list(dict.fromkeys(c.term(FOODS) for _ in range(rng.randrange(2, 6))))
        if len(items) < 2:
            items.append(c.invented())
        text = ", ".join(items[:-1]) + " and " + items[-1]
        if rng.random() < 0.5:
            text = _cap(text) + "."
        answer = "\n".join(f"- {i}" for i in items)
    return compose(rng, "rewrite", STYLES[style].pick(rng, unseen), text, answer)
