"""Packed training sequences, made by worker processes while the GPU trains."""

import multiprocessing
import os

import numpy

import chat
import generate

_worker = {}


def _start(tokenizer_file, seed, context, per_shard):
    from tokenizers import Tokenizer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(tokenizer_file)
    header = tokenizer.encode("assistant\n").ids
    _worker.update(tokenizer=tokenizer, header=header, template=chat.load_template(), seed=seed, context=context,
                   per_shard=per_shard)


def _shard(number):
    """One shard as arrays [sequences, context]: token ids, document number in the sequence (0 = padding), loss mask.

    First fit, longest first: next to no padding, and no document is cut unless it is longer than the context.
    """
    context = _worker["context"]
    rendered = [_worker["template"].render(messages=s.messages, tools=s.tools)
                for s in generate.shard(_worker["seed"], number, _worker["per_shard"])]
    documents = sorted((e.ids[:context] for e in _worker["tokenizer"].encode_batch_fast(rendered)), key=len, reverse=True)
    free, rows, first = [], [], 0
    for ids in documents:
        while first < len(free) and free[first] < 16:
            first += 1
        for row in range(first, len(free)):
            if free[row] >= len(ids):
                break
        else:
            row = len(free)
            free.append(context)
            rows.append([])
        free[row] -= len(ids)
        rows[row].append(ids)
    tokens = numpy.zeros((len(rows), context), dtype=numpy.uint16)
    document = numpy.zeros((len(rows), context), dtype=numpy.uint8)
    learn = numpy.zeros((len(rows), context), dtype=numpy.uint8)
    for row, members in enumerate(rows):
        at = 0
        for number_in_row, ids in enumerate(members, start=1):
            tokens[row, at:at + len(ids)] = ids
            document[row, at:at + len(ids)] = number_in_row
            learn[row, at:at + len(ids)] = numpy.frombuffer(chat.answer_mask(ids, _worker["header"]), dtype=numpy.uint8)
            at += len(ids)
    order = numpy.random.default_rng(number).permutation(len(rows))
    return tokens[order], document[order], learn[order]


RESERVOIR = 16_384  # sequences, 134 MB; a multiple of half a batch


def batches(tokenizer_file, seed, context, batch, workers, per_shard=2000):
    """Endless batches in a fixed order, whatever the number of workers.

    Half of a batch is new and half is drawn from the recent past, because workers make half of what a GPU eats.
    """
    fresh = batch // 2
    random = numpy.random.default_rng(seed)
    reservoir, filled, at = None, 0, 0
    pool = multiprocessing.get_context("spawn").Pool(workers, _start, (tokenizer_file, seed, context, per_shard))
    pending, following, kept = [], 0, None
    try:
        while True:
            while len(pending) < 4 * workers:
                pending.append(pool.apply_async(_shard, (following,)))
                following += 1
            arrays = pending.pop(0).get()
            kept = arrays if kept is None else tuple(numpy.concatenate(pair) for pair in zip(kept, arrays))
            if reservoir is None:
                reservoir = tuple(numpy.zeros((RESERVOIR, context), dtype=a.dtype) for a in kept)
            while len(kept[0]) >= fresh:
                for store, a in zip(reservoir, kept):
                    store[at:at + fresh] = a[:fresh]
                filled, at = max(filled, at + fresh), (at + fresh) % RESERVOIR
                again = random.integers(filled, size=batch - fresh)
                yield tuple(numpy.concatenate((a[:fresh], store[again])) for a, store in zip(kept, reservoir))
                kept = tuple(a[fresh:] for a in kept)
    finally:
        pool.terminate()
