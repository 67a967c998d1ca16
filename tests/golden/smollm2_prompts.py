"""The prompts of smollm2/greedy.json: chats, and one raw completion."""


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


STORY = """The lighthouse at the end of the pier had not been lit for eleven years when Mara came to live in it. She was not
a keeper, and she told the harbour master so on the first day. She repaired clocks. The tower was cheap, it was dry, and it
did not shake when trucks went by, which is more than could be said of the three workshops that she had rented in town.

She put her bench on the second floor, below the lamp room, where the light came in from four sides. On Mondays she went to
the market, bought bread, onions and lamp oil, and collected whatever clocks the grocer had taken in for her. On Thursdays she
carried them back. In between she saw nobody but gulls and the boy who fished from the steps, whose name was Tomas and who
never asked a question that could be answered with yes or no.

In October a ship's clock came, in a brass case, from a buyer who did not leave an address. It ran four minutes fast in a day,
which is a great deal for such a clock, and it ran fast by exactly four minutes, which is stranger. She took it apart. Each
wheel was sound. The spring was new. She put it together, oiled it, and set it next to the regulator on her wall; and in the
morning it was four minutes ahead again.

"Maybe it isn't wrong," said Tomas, when she told him. He was cleaning a mackerel, and he did not look up. "Maybe it's
somewhere else's right."

She laughed, but that night she went up to the lamp room with the clock under her arm, and a candle, and the old log book which
the last keeper had left in a drawer. The entries were short. Wind, sea, ships, oil. On the last page there was a different
hand, and it said: the light must be lit four minutes before the hour, always, for they count from that. There was no name
beneath it and no reason given.

At four minutes to six by her regulator, and at six by the ship's clock, Mara lit the lamp. It took three matches. The glass was
dirty and the beam was the colour of weak tea, but it went out over the water, and far off, where she had never seen anything
but horizon, something answered with two short flashes and a long one. Then the ship's clock stopped."""

PROMPTS = [
    ("capital", [user("What is the capital of France?")]),
    (
        "system_pirate",
        [
            system("You are a pirate. Answer every question in the voice of a pirate, in at most three sentences."),
            user("How do I make a good cup of tea?"),
        ],
    ),
    (
        "multi_turn",
        [
            user("My name is Ada and I have two cats, Turing and Hopper."),
            assistant("Nice to meet you, Ada! Turing and Hopper are wonderful names for cats."),
            user("Thank you. They are both black, but Hopper has white paws."),
            assistant("They sound lovely. White paws make it easy to tell them apart."),
            user("Write a short poem about the one with white paws."),
        ],
    ),
    (
        "python_code",
        [
            system("You are a careful programmer. Answer with code only."),
            user(
                "Explain and fix this function:\n\n```python\ndef mean(xs):\n    total = 0\n    for i in range(1, len(xs)):\n"
                "        total += xs[i]\n    return total / len(xs)\n```\n"
            ),
        ],
    ),
    ("french_emoji", [user("Raconte-moi une petite histoire sur un chat \U0001f408 qui aime la pluie \U0001f327\ufe0f. R\u00e9ponds en fran\u00e7ais.")]),
    ("chinese_japanese", [user("\u7528\u4e2d\u6587\u5199\u4e00\u53e5\u8bdd\u4ecb\u7ecd\u957f\u57ce\u3002\u305d\u3057\u3066\u3001\u65e5\u672c\u8a9e\u3067\u3082\u66f8\u3044\u3066\u304f\u3060\u3055\u3044\u3002")]),
    ("arithmetic", [user("A shop sells pens at 1.25 each and notebooks at 3.40 each. I buy 12 pens and 7 notebooks. What do I pay? Show each step.")]),
    (
        "json_list",
        [
            system("Reply with JSON only."),
            user("List the planets of the solar system with their number of known moons as a JSON array of objects with the keys \"name\" and \"moons\"."),
        ],
    ),
    ("long_story", [user("Read this story and then continue it with one more paragraph.\n\n" + STORY)]),
]  # fmt: skip

# No chat template: the text itself is the prompt.
RAW_COMPLETION = (
    "raw_completion",
    "The three laws of thermodynamics can be summarised as follows:\n\n1.",
)

# Every position of these prompts gets its top five.
PREFILL = ["multi_turn", "long_story"]
