"""Loads the published files with `transformers` and compares: rendered prompts, ids, logits, greedy tokens.

    python3 check_transformers.py --model DIR --golden greedy.json
"""

import argparse
import json
import pathlib

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

import chat
import generate
import reference


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--golden", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    ours = reference.Model(args.model)
    template = chat.load_template()
    cases = json.loads(args.golden.read_text())["cases"]

    prompts = [(c["messages"], c["tools"], c["text"], c["ids"]) for c in cases if c["messages"]]
    plain = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    for task in generate.EVALUATION:
        for s in generate.evaluation_set(1, task, True, 20):
            text = template.render(messages=s.messages[:-1], tools=s.tools, add_generation_prompt=True)
            prompts.append((s.messages[:-1], s.tools, text, plain.encode(text).ids))
    for messages, tools, text, ids in prompts:
        if tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False) != text:
            raise SystemExit(f"transformers renders another prompt than {text!r}")
        if tokenizer(text, add_special_tokens=True)["input_ids"] != ids:
            raise SystemExit(f"transformers gives other ids for {text!r}")
    print(f"{len(prompts)} rendered prompts and their ids agree with transformers {transformers.__version__}")

    largest = 0.0
    for _, _, _, ids in prompts:
        batch = np.array([ids])
        mine = ours.logits(ours.hidden(batch, np.arange(len(ids))[None], reference.Cache(ours, 1, len(ids))))
        largest = max(largest, np.abs(theirs(torch.from_numpy(batch)).logits.numpy() - mine).max().item())
    print(f"largest difference of a logit, all positions: {largest:.2e}")
    if largest > 1e-3:
        raise SystemExit("the logits differ")

    for case in cases:
        out = theirs.generate(torch.tensor([case["ids"]]), max_new_tokens=len(case["greedy"]), do_sample=False,
                              eos_token_id=None, pad_token_id=chat.END_OF_TEXT)[0, len(case["ids"]):].tolist()
        if out != case["greedy"]:
            at = next(i for i, (a, b) in enumerate(zip(out, case["greedy"])) if a != b)
            margin = case["tokens"][at]["margin"]
            if margin > 1e-3:
                raise SystemExit(f"{case['name']}: greedy token {at} differs at a margin of {margin}")
            print(f"{case['name']}: differs from token {at} on, a near-tie of {margin}")
    print(f"greedy tokens of {len(cases)} golden prompts compared")


if __name__ == "__main__":
    main()
