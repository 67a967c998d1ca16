"""Draws samples of all tasks and joins them into conversations.

`python3 generate.py [--unseen] [--held-out] [--count N]` prints conversations as JSON lines. The result depends on
nothing but the seed and the shard number.
"""

import argparse
import json
import random

import sample as sample_module
from sample import Sample
from tasks import classification, extraction, numbers_dates, passages, rewriting, smalltalk, tools
from words import Content

# (weight, maker): the share of each task in training.
MIXTURE = (
    (24, extraction.make), (18, classification.make), (12, numbers_dates.arithmetic), (5, numbers_dates.dates),
    (10, tools.call), (2, tools.result), (2, tools.no_tool), (8, passages.yes_no), (7, passages.answerable),
    (4, passages.refusal), (7, rewriting.make), (2, smalltalk.capital), (2, smalltalk.repeat), (3, smalltalk.talk),
    (1, smalltalk.unknown),
)
_WEIGHTS, _MAKERS = zip(*MIXTURE)

# Makers of the evaluation, by the name that the results use.
EVALUATION = {
    **{f"extract_{d}": (lambda c, u, d=d: extraction.make(c, u, d)) for d in extraction.DOCUMENTS},
    **{f"classify_{w}": (lambda c, u, w=w: classification.make(c, u, w)) for w in classification.INSTRUCTIONS},
    "arithmetic": numbers_dates.arithmetic, "dates": numbers_dates.dates, "tool_call": tools.call,
    "tool_result": tools.result, "tool_none": tools.no_tool, "yes_no": passages.yes_no,
    "passage_answer": passages.answerable, "passage_refusal": passages.refusal, "rewrite": rewriting.make,
    "capital": smalltalk.capital, "repeat": smalltalk.repeat, "unknown": smalltalk.unknown,
}


def with_system_prompt(rng, sample):
    """Some samples that have no system message get a general one."""
    if not sample.standalone and rng.random() < 0.3:
        sample.messages.insert(0, {"role": "system", "content": rng.choice(sample_module.SYSTEM_PROMPTS)})
    return sample


def draw(content):
    return content.rng.choices(_MAKERS, _WEIGHTS)[0](content)


def conversation(content, longest=24):
    """One sample, or several as the turns of one conversation. Long ones train the far positions."""
    rng = content.rng
    first = draw(content)
    if first.standalone or rng.random() < 0.7:
        return with_system_prompt(rng, first)
    turns = rng.choice((2, 2, 2, 3, 3, 4, 6, 10, longest))
    messages = list(first.messages)
    while turns > 1:
        more = draw(content)
        if not more.standalone:
            messages += more.messages
            turns -= 1
    return with_system_prompt(rng, Sample("conversation", messages))


def shard(seed, number, count, held_out=False):
    """The conversations of one shard: independent of all other shards."""
    content = Content(random.Random(f"fixpoint-tiny/{seed}/{number}"), held_out)
    for _ in range(count):
        yield conversation(content)


def evaluation_set(seed, task, unseen, count):
    """Held-out content, one exchange each, in seen or in unseen phrasings; no prompt twice."""
    rng = random.Random(f"fixpoint-tiny/evaluation/{seed}/{task}/{unseen}")
    content = Content(rng, held_out=True)
    samples, prompts, tries = [], set(), 0
    while len(samples) < count and tries < 20 * count:
        tries += 1
        made = with_system_prompt(rng, EVALUATION[task](content, unseen))
        key = json.dumps([made.messages[:-1], made.tools])
        if key not in prompts:
            prompts.add(key)
            samples.append(made)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--held-out", action="store_true", help="draw the content that training never sees")
    parser.add_argument("--task", choices=sorted(EVALUATION), help="print an evaluation set instead")
    parser.add_argument("--unseen", action="store_true", help="with --task: unseen phrasings")
    args = parser.parse_args()
    samples = (evaluation_set(args.seed, args.task, args.unseen, args.count) if args.task
               else shard(args.seed, args.shard, args.count, args.held_out))
    for made in samples:
        print(json.dumps({"task": made.task, "messages": made.messages, "tools": made.tools}, ensure_ascii=False))


if __name__ == "__main__":
    main()
