"""Writes the golden file of the engine's tests: what an fp32 forward over the published weights says to ten prompts.

    python3 golden.py --model DIR --out tests/golden/tiny/greedy.json

The format is that of tests/golden/smollm2/greedy.json. Arithmetic is fp32 in numpy, log-softmax is float64.
"""

import argparse
import hashlib
import json
import pathlib

import numpy as np
from tokenizers import Tokenizer

import chat
import reference

TOKENS = 48  # generated per prompt, also past the end of the turn
NEAR_TIE = 1e-3  # a margin below this may flip between two right fp32 forwards
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
TIMER = {"type": "function", "function": {
    "name": "set_timer", "description": "Start a timer",
    "parameters": {"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]}}}


def _user(text, system=None):
    return ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": text}]


_PEOPLE = ("Ana", "Ben", "Clara", "David", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam")
_LONG = " ".join(f"{n} lives in {c}. {n} works as a {j}. The hobby of {n} is {h}. {n} is {30 + i} years old."
                 for i, (n, c, j, h) in enumerate(zip(
                     _PEOPLE, ("Oslo", "Vienna", "Prague", "Madrid", "Rome", "Berlin", "Paris", "London", "Dublin", "Athens",
                               "Riga", "Porto"),
                     ("teacher", "nurse", "pilot", "baker", "farmer", "lawyer", "painter", "plumber", "chef", "doctor", "writer",
                      "singer"),
                     ("chess", "tennis", "painting", "hiking", "cooking", "reading", "sailing", "dancing", "cycling", "fishing",
                      "skiing", "running"))))

# (name, messages, tools, raw text instead of messages)
PROMPTS = (
    ("capital", _user("What is the capital of France?"), None, None),
    ("order", _user("Extract customer, item, quantity and price from the order as JSON.\n\nMaria Novak ordered three desk lamps. "
                    "The price is $74.50. Please confirm."), None, None),
    ("sentiment", _user("My kettle arrived. The handle is broken. I want my money back.",
                        "Classify the sentiment of the text: positive, negative or neutral."), None, None),
    ("sum", _user("What is 347 + 285?", "You answer with the result and nothing else."), None, None),
    ("tool_call", _user("How is the weather in Zürich?"), [TIMER, WEATHER], None),
    ("tool_result", _user("What is the weather in Oslo?", "You can call tools.") + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"temperature": -4, "condition": "snow"}'}], [WEATHER], None),
    ("turns", _user("Hello!") + [{"role": "assistant", "content": "Hello! How can I help you?"},
                                 *_user("Convert the date to ISO format.\n7 March 2031"),
                                 {"role": "assistant", "content": "2031-03-07"},
                                 *_user("Make this polite.\n\nClose the window.")], None, None),
    ("copy", _user("Repeat exactly: Größe 日本語 🙂 x_7 — «ça»"), None, None),
    ("long_passage", _user(f"Answer from the passage: In which city does Kira live?\n\n{_LONG}"), None, None),
    ("raw", None, None, "The weather in"),
)
PREFILL = ("order", "tool_call")


def number(value):
    return float(f"{value:.8g}")


def top(logprobs, count=5):
    """[[id, logprob], ...], best first; equal ones by id."""
    return [[int(i), number(logprobs[i])] for i in np.argsort(-logprobs, kind="stable")[:count]]


def continuation(model, ids):
    """(golden entry, log-probabilities at every prompt position)"""
    cache = reference.Cache(model, 1, len(ids) + TOKENS)

    def more(new):
        positions = np.arange(cache.length, cache.length + len(new))[None]
        logits = model.logits(model.hidden(np.array([new]), positions, cache))[0].astype(np.float64)
        shifted = logits - logits.max(-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))

    prompt = more(ids)
    last, tokens = prompt[-1], []
    for _ in range(TOKENS):
        best = top(last)
        tokens.append({"id": best[0][0], "logprob": best[0][1], "margin": number(best[0][1] - best[1][1]), "top": best})
        last = more([best[0][0]])[-1]
    greedy = [t["id"] for t in tokens]
    return {"greedy": greedy, "end_of_turn_at": greedy.index(chat.TURN_END) if chat.TURN_END in greedy else None,
            "smallest_margin": min(t["margin"] for t in tokens),
            "near_ties": [i for i, t in enumerate(tokens) if t["margin"] < NEAR_TIE], "tokens": tokens}, prompt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    model = reference.Model(args.model)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    template = chat.load_template()
    cases = []
    for name, messages, tools, raw in PROMPTS:
        text = raw or template.render(messages=messages, tools=tools, add_generation_prompt=True)
        ids = tokenizer.encode(text).ids
        entry, prompt = continuation(model, ids)
        case = {"name": name, "messages": messages, "tools": tools, "text": text, "ids": ids, **entry,
                "answer": tokenizer.decode(entry["greedy"], skip_special_tokens=False)}
        if name in PREFILL:
            case["prefill"] = [{"next": number(row[ids[i + 1]]) if i + 1 < len(ids) else None, "top": top(row)}
                               for i, row in enumerate(prompt)]
        cases.append(case)
        print(f"{name}: {len(ids)} tokens, smallest margin {entry['smallest_margin']}, {case['answer']!r}")
    about = {
        "made_by": "local_engine/models/train/golden.py", "packages": {"numpy": np.__version__},
        "model_sha256": hashlib.sha256((args.model / "model.safetensors").read_bytes()).hexdigest(),
        "forward": "numpy, fp32 arithmetic over the bf16 weights; logprobs by float64 log-softmax",
        "greedy": f"{TOKENS} ids, going on past the end-of-turn token (end_of_turn_at is its index)",
        "answer": "the greedy ids as text; a character cut at the end shows as U+FFFD",
        "margin": "best minus second log-probability, in nats",
        "near_ties": f"indices of generated tokens whose margin is below {NEAR_TIE}",
        "prefill": "per prompt position: log-probability of the next prompt token (null at the last) and the top five",
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with open(args.out, "w", encoding="utf-8") as out:
        out.write('{"about": ' + json.dumps(about) + ',\n"cases": [\n')
        out.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
