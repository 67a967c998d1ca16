#!/usr/bin/env python3
"""Tokens per second of llama.cpp (llama-cpp-python) on a GGUF file: the engine's measure.

    llama_cpp_baseline.py --model SmolLM2-135M-Instruct.Q4_1.gguf [--threads 1 2] [--json]

Medians of --runs runs after one unmeasured run. The library's defaults are kept (F16 KV cache, no
flash attention); it has to be built for this machine to be a fair peer:
CMAKE_ARGS="-DGGML_NATIVE=ON" pip install llama-cpp-python. On a shared machine read ratios between
programs that ran side by side, not absolute numbers. Made with llama-cpp-python 0.3.36.
"""

import argparse
import json
import pathlib
import statistics
import time

import llama_cpp

DECODE_CONTEXTS = (128, 1024)  # tokens in the KV cache before the measured tokens
PREFILL_LENGTHS = (128, 512)  # tokens in the prompt
DECODE_TOKENS = 32  # measured per run
BATCH = 512  # most tokens in one call, as llama.cpp's default micro-batch


def summary(rates):
    return {"median": statistics.median(rates), "best": max(rates)}


class Runner:
    """One llama.cpp context with a fixed number of threads. Time does not depend on the ids."""

    def __init__(self, path, threads):
        self.llama = llama_cpp.Llama(
            str(path),
            n_ctx=2048,
            n_batch=BATCH,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
        self.context = self.llama.ctx
        self.memory = llama_cpp.llama_get_memory(self.context)

    def keep(self, tokens):
        """Cuts the KV cache back to its first `tokens`."""
        if not llama_cpp.llama_memory_seq_rm(self.memory, 0, tokens, -1):
            raise RuntimeError(f"llama.cpp cannot cut its KV cache back to {tokens} tokens")

    def decode(self, ids):
        array = (llama_cpp.llama_token * len(ids))(*ids)
        status = llama_cpp.llama_decode(
            self.context, llama_cpp.llama_batch_get_one(array, len(ids))
        )
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status}")
        llama_cpp.llama_get_logits_ith(self.context, -1)  # waits for the result, as a sampler does

    def prefill(self, tokens):
        for start in range(0, tokens, BATCH):
            self.decode([1000 + i for i in range(start, min(start + BATCH, tokens))])

    def decode_rate(self, context, runs):
        self.keep(0)
        self.prefill(context)
        rates = []
        for _ in range(runs + 1):
            self.keep(context)
            start = time.perf_counter()
            for i in range(DECODE_TOKENS):
                self.decode([2000 + i])
            rates.append(DECODE_TOKENS / (time.perf_counter() - start))
        return summary(rates[1:])

    def prefill_rate(self, tokens, runs):
        rates = []
        for _ in range(runs + 1):
            self.keep(0)
            start = time.perf_counter()
            self.prefill(tokens)
            rates.append(tokens / (time.perf_counter() - start))
        return summary(rates[1:])


def measure(path, threads, runs):
    runner = Runner(path, threads)
    rates = {f"decode, batch 1, context {c}": runner.decode_rate(c, runs) for c in DECODE_CONTEXTS}
    rates |= {f"prefill {n}": runner.prefill_rate(n, runs) for n in PREFILL_LENGTHS}
    runner.llama.close()
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    args = parser.parse_args()

    results = {threads: measure(args.model, threads, args.runs) for threads in args.threads}
    if args.json:
        print(json.dumps({"version": llama_cpp.__version__, "tokens_per_second": results}))
        return
    print(
        f"llama-cpp-python {llama_cpp.__version__}, {args.model.name}, "
        f"tokens/s, median of {args.runs} (best)"
    )
    print(llama_cpp.llama_print_system_info().decode())
    print(f"{'threads':32s}" + "".join(f"{threads:>20d}" for threads in args.threads))
    for name in results[args.threads[0]]:
        cells = (results[threads][name] for threads in args.threads)
        print(f"{name:32s}" + "".join(f"{c['median']:11.1f} ({c['best']:6.1f})" for c in cells))


if __name__ == "__main__":
    main()
