"""Trains fixpoint-tiny on one GPU and writes it in Hugging Face form.

    python3 train.py --out DIR [--steps N]
"""

import argparse
import json
import math
import os
import pathlib
import time

import numpy
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask

import chat
import data
import export
import generate
from model import Llama, Shape

BATCH = 128  # sequences of one context each: 262,144 tokens a step, of which a fifth are answers
WARMUP = 200
PEAK_RATE, LAST_RATE = 4e-3, 4e-5
TOKENIZER_TEXTS = 25_000  # conversations that the vocabulary is counted on
IGNORED = -100  # the target of a token that is not learned
TOKENIZER_SHARD = 1_000_000_000  # a shard that training never reaches


def make_tokenizer(seed, path):
    template = chat.load_template()
    texts = (piece for s in generate.shard(seed, TOKENIZER_SHARD, TOKENIZER_TEXTS)
             for piece in chat.without_specials(template.render(messages=s.messages, tools=s.tools)))
    tokenizer = chat.train_tokenizer(texts, Shape().vocabulary)
    if tokenizer.get_vocab_size() != Shape().vocabulary:
        raise SystemExit(f"the tokenizer has {tokenizer.get_vocab_size()} tokens instead of {Shape().vocabulary}")
    tokenizer.save(str(path))


def rate(step, steps):
    if step < WARMUP:
        return PEAK_RATE * (step + 1) / WARMUP
    progress = (step - WARMUP) / max(1, steps - WARMUP)
    return LAST_RATE + (PEAK_RATE - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * progress))


def document_mask(document):
    """Causal attention inside each document of a packed sequence."""
    def visible(b, h, query, key):
        return (query >= key) & (document[b, query] == document[b, key])
    return create_block_mask(visible, document.shape[0], None, document.shape[1], document.shape[1], device=document.device)


def targets_of(tokens, learn):
    """The following token where that is part of an answer."""
    targets = numpy.full(tokens.shape, IGNORED, dtype=numpy.int64)
    targets[:, :-1] = numpy.where(learn[:, 1:] == 1, tokens[:, 1:].astype(numpy.int64), IGNORED)
    return targets


def train(args, folder):
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    model = Llama(Shape()).cuda()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=PEAK_RATE, betas=(0.9, 0.95), fused=True)

    @torch.compile
    def loss_of(ids, positions, mask, targets):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model.logits(model.hidden(ids, positions, mask))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED)

    block_mask = torch.compile(document_mask)
    positions = torch.arange(Shape().context, device="cuda")[None, :].expand(BATCH, -1)
    log, tokens_seen, answers_seen = [], 0, 0
    started = waited = time.time()
    waiting = 0.0
    stream = data.batches(str(folder / "tokenizer.json"), args.seed, Shape().context, BATCH, max(1, (os.cpu_count() or 2) - 1))
    for step in range(args.steps):
        waited = time.time()
        arrays = next(stream)
        waiting += time.time() - waited
        tokens, document, learn = arrays
        ids, document, targets = (torch.from_numpy(a).pin_memory().cuda(non_blocking=True) for a in (
            tokens.astype(numpy.int32), document.astype(numpy.int32), targets_of(tokens, learn)))
        for group in optimizer.param_groups:
            group["lr"] = rate(step, args.steps)
        loss = loss_of(ids, positions, block_mask(document), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens_seen += int((arrays[1] > 0).sum())
        answers_seen += int(learn.sum())
        if step == 20:
            torch.cuda.synchronize()
            steady, steady_tokens, waiting = time.time(), tokens_seen, 0.0
        if step % 200 == 0 or step == args.steps - 1:
            value = loss.item()
            log.append({"step": step, "loss": round(value, 5), "seconds": round(time.time() - started, 1)})
            print(f"step {step}  loss {value:.4f}  {time.time() - started:.0f} s  waited for data {waiting:.0f} s", flush=True)
    torch.cuda.synchronize()
    stream.close()
    print(f"{(tokens_seen - steady_tokens) / (time.time() - steady):.0f} tokens/s after the first 20 steps", flush=True)
    export.write(model, folder)
    return {"steps": args.steps, "seed": args.seed, "tokens": tokens_seen, "answer_tokens": answers_seen,
            "seconds": round(time.time() - started, 1), "torch": torch.__version__,
            "device": torch.cuda.get_device_name(), "parameters": sum(p.numel() for p in model.parameters()),
            "loss": log}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=1750)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    started = time.time()
    make_tokenizer(args.seed, args.out / "tokenizer.json")
    print(f"tokenizer: {time.time() - started:.0f} s", flush=True)
    report = train(args, args.out)
    (args.out.parent / "training.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
