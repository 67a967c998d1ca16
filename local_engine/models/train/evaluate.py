"""Held-out accuracy of the published (bf16-rounded) weights, in fp32, greedy.

    python3 evaluate.py --model DIR --out results.json [--count 500]
"""

import argparse
import collections
import json
import math
import multiprocessing
import os
import pathlib
import time

from tokenizers import Tokenizer

import chat
import generate
import reference

MARGIN_EDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # in nats
KINDS = ("seen", "unseen")
LONGEST = 160  # tokens of an answer; the longest right one has about 130
BATCH = 64


def wilson(right, n, z=1.959964):
    """95 % interval of a proportion."""
    p = right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def right(sample, answer):
    expected = sample.messages[-1]["content"]
    answer = answer.strip()
    if sample.grade == "text":
        return answer in (expected, *sample.accept)
    if sample.grade == "tool":
        opening, closing = "<tool_call>", "</tool_call>"
        if not (answer.startswith(opening) and answer.endswith(closing)):
            return False
        expected, answer = (t[len(opening):-len(closing)] for t in (expected, answer))
    return _parsed(answer) == json.loads(expected)


def answers(model, tokenizer, template, samples):
    """[(answer, margins)] in the order of the samples."""
    prompts = [tokenizer.encode(template.render(messages=s.messages[:-1], tools=s.tools, add_generation_prompt=True)).ids
               for s in samples]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))  # next to no padding in a batch
    results = [None] * len(prompts)
    for start in range(0, len(order), BATCH):
        rows = order[start:start + BATCH]
        for i, (ids, margins) in zip(rows, reference.generate(model, [prompts[i] for i in rows], LONGEST)):
            ended = ids[-1] == chat.TURN_END
            results[i] = (tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=False), margins)
    return results


def evaluate(folder, seed, task, kind, count):
    """One task in one kind of phrasing: [(sample, answer, margins)]. Runs in a worker process."""
    model = reference.Model(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    samples = generate.evaluation_set(seed, task, kind == "unseen", count)
    return [(s, *a) for s, a in zip(samples, answers(model, tokenizer, chat.load_template(), samples))]


def proportion(hits, n):
    low, high = wilson(hits, n)
    return {"right": hits, "n": n, "accuracy": round(hits / n, 4), "interval": [round(low, 4), round(high, 4)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers: one task each
    started = time.time()
    tasks, phrasings, wrong = collections.defaultdict(dict), collections.defaultdict(dict), []
    histogram = {kind: [0] * (len(MARGIN_EDGES) + 1) for kind in KINDS}
    pool = multiprocessing.get_context("spawn").Pool(args.workers)
    jobs = [(task, kind, pool.apply_async(evaluate, (args.model, args.seed, task, kind, args.count)))
            for task in generate.EVALUATION for kind in KINDS]
    for task, kind, job in jobs:
        results, hits = job.get(), 0
        for sample, answer, margins in results:
            ok = right(sample, answer)
            hits += ok
            if sample.phrasing:
                total = phrasings[task.split("_")[0]].setdefault(sample.phrasing, {"kind": kind, "right": 0, "n": 0})
                total["right"] += ok
                total["n"] += 1
            if not ok:
                wrong.append({"task": task, "phrasing": kind, "prompt": sample.messages[-2]["content"],
                              "expected": sample.messages[-1]["content"], "answer": answer})
            for margin in margins:
                histogram[kind][sum(margin >= edge for edge in MARGIN_EDGES)] += 1
        tasks[task][kind] = proportion(hits, len(results))
        print(f"{time.time() - started:.0f} s  {task} {kind} {tasks[task][kind]}", flush=True)
    pool.terminate()
    for group in ("extract", "classify"):
        total = {}
        for kind in KINDS:
            members = [t[kind] for name, t in tasks.items() if name.startswith(group)]
            total[kind] = proportion(sum(m["right"] for m in members), sum(m["n"] for m in members))
        tasks[f"all_{group}"] = total
        print(f"all_{group}", *(f"{k} {t['accuracy']:.3f} {t['interval']}" for k, t in total.items()), flush=True)
    for kind, counts in histogram.items():
        print(f"margins {kind}:", dict(zip([f"<{e}" for e in MARGIN_EDGES] + ["more"], counts)), flush=True)
    sampled = [w for i, w in enumerate(wrong) if i % max(1, len(wrong) // 400) == 0]
    args.out.write_text(json.dumps({
        "tasks": tasks, "phrasings": phrasings, "margin_edges": MARGIN_EDGES, "margins": histogram,
        "some_wrong_answers": sampled}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
