"""Writes the model's README from the results of training and evaluation.

    python3 report.py --training training.json --results results.json --date YYYY-MM-DD --out README.md
"""

import argparse
import json
import pathlib

TASKS = {
    "extract_order": "order to JSON", "extract_ticket": "ticket to JSON", "extract_address": "address to JSON",
    "extract_meeting": "invitation to JSON", "extract_contact": "contact to JSON", "all_extract": "**all extraction**",
    "classify_sentiment": "sentiment", "classify_topic": "topic", "classify_urgency": "urgency",
    "all_classify": "**all classification**", "arithmetic": "arithmetic", "dates": "date to ISO 8601",
    "tool_call": "tool and arguments", "tool_result": "answer from a tool's result", "tool_none": "no tool fits",
    "yes_no": "yes or no on a passage", "passage_answer": "fact from a passage",
    "passage_refusal": "refusal: not in the passage", "rewrite": "rewriting in a style", "capital": "capitals (own table)",
    "repeat": "copying", "unknown": "admits that it does not know",
}

TEXT = """# fixpoint-tiny

A language model of {parameters:.2f} million parameters that is part of this repository, so that tests, examples and a first
try need neither a network nor anybody else's weights. It speaks English in short sentences, follows the instructions listed below and
knows next to nothing else.

- Llama architecture: 8 layers, width 192, 6 heads of 32 with 2 key/value heads, feed-forward 512, tied embeddings, context 2,048.
- Byte-level BPE of 2,048 tokens, trained on the same synthetic text; digits are single tokens.
- Hugging Face files: `model.safetensors` (bf16), `config.json`, `generation_config.json`, `tokenizer.json`, `tokenizer_config.json`,
  `chat_template.jinja` (system, user, assistant and tool turns; tools). {megabytes:.1f} MB in all.
- The answer ends with `<|im_end|>` (id 2). A tool call is the text `<tool_call>{{"name": ..., "arguments": {{...}}}}</tool_call>`.

## How it was made
`local_engine/models/train/train.sh OUT` makes all of it: synthetic conversations from the templates and word lists in that folder (seed
{seed}, no third-party text), the tokenizer, and {steps:,} training steps on {tokens:,.0f} million tokens, {answers:,.0f} million of them in answers, which
alone are learned. {date}, one {device}, PyTorch {torch}, {seconds:.0f} seconds of training. The weights were then rounded to bf16, and
everything below is measured on the rounded weights.

## Accuracy
Greedy answers in fp32 to held-out prompts: names, products, numbers, dates, invented words and pairings that training never drew.
Labels and the words that carry sentiment, topic and urgency are the same as in training. "Seen" uses the instructions of training, "unseen"
uses instructions that training never had. An answer counts when it equals the expected one (JSON and tool calls: the same value).
95 % Wilson intervals; n prompts per cell.

{table}

What a changed instruction does, best and worst of the unseen ones:

{phrasings}

Margins between the first and the second choice of each generated token (nats), over all these answers:

{margins}

## What it cannot do
- Hold a conversation, reason, write longer text, program, translate, or answer from knowledge: outside its small tables it says that it
  does not know, or it is wrong.
- Any language but English, except for copying it.
- Arithmetic beyond sums and differences below 1,000 and a two-digit times a one-digit number.
- Rely on instructions far from the ones it was trained on: see "unseen". That is on purpose: a change of a prompt shows in an eval.
- Passages of more than about thirty sentences, and nested JSON.

Licence: that of this repository.
"""


def cell(entry):
    low, high = (100 * v for v in entry["interval"])
    return f"{100 * entry['accuracy']:.1f} % [{low:.1f}, {high:.1f}], n={entry['n']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--training", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    training, results = json.loads(args.training.read_text()), json.loads(args.results.read_text())
    table = ["| task | seen instructions | unseen instructions |", "|---|---|---|"]
    table += [f"| {name} | {cell(results['tasks'][t]['seen'])} | {cell(results['tasks'][t]['unseen'])} |" for t, name in TASKS.items()]
    phrasings = ["| unseen instruction | right |", "|---|---|"]
    for group in ("extract", "classify"):
        unseen = [(e["right"] / e["n"], text, e) for text, e in results["phrasings"][group].items() if e["kind"] == "unseen"]
        unseen.sort(key=lambda u: u[0], reverse=True)
        phrasings += [f"| {text} | {e['right']} of {e['n']} |" for _, text, e in unseen[:2] + unseen[-2:]]
    edges = results["margin_edges"]
    margins = ["| margin | seen | unseen |", "|---|---|---|"]
    for i in range(len(edges) + 1):
        name = f"{edges[i - 1] if i else 0} to {edges[i]}" if i < len(edges) else f"{edges[-1]} or more"
        margins.append(f"| {name} | {results['margins']['seen'][i]} | {results['margins']['unseen'][i]} |")
    size = sum(f.stat().st_size for f in args.out.parent.iterdir() if f.name != args.out.name)
    args.out.write_text(TEXT.format(
        parameters=training["parameters"] / 1e6, megabytes=size / 1e6, seed=training["seed"], steps=training["steps"],
        tokens=training["tokens"] / 1e6, answers=training["answer_tokens"] / 1e6, device=training["device"],
        torch=training["torch"].split("+")[0], seconds=training["seconds"], date=args.date, table="\n".join(table),
        phrasings="\n".join(phrasings), margins="\n".join(margins)))


if __name__ == "__main__":
    main()
