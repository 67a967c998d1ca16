#!/usr/bin/env python3
"""Writes smollm2/greedy.json: what an fp32 forward over the default model says to ten prompts.

    make_smollm2.py --model SmolLM2-135M-Instruct.Q4_1.gguf --f32 F32.gguf [--out DIR]

The reference is llama.cpp on an F32 copy of the file (written to --f32), with an F32 KV cache and
no flash attention. On the Q4_1 file itself llama.cpp rounds activations to int8, which changes the
text. Templates are rendered by real Jinja, ids come from `tokenizers` and are checked against
llama.cpp's tokenizer. A newer package changes the last digits at most.

Made with llama-cpp-python 0.3.36 (its bundled llama.cpp), gguf 0.19.0, tokenizers 0.23.3, jinja2
3.1.6, numpy 2.4.6.
"""

import argparse
import hashlib
import importlib.metadata
import json
import pathlib

import gguf
import llama_cpp
import numpy as np

import chat_env
import make_tokens
from smollm2_prompts import PREFILL, PROMPTS, RAW_COMPLETION

TOKENS = 64  # generated per prompt, also past the end-of-turn token
NEAR_TIE = 1e-3  # a margin below this may flip between two right fp32 forwards


def write_f32(source, target):
    """Copies a GGUF with every tensor dequantised to fp32.

    Q4_1 is d * q + m and Q8_0 is d * q; both round at most once.
    """
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = int(gguf.LlamaFileType.ALL_F32) if name == "general.file_type" else field.contents()
        sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, field.types[0], sub_type=sub_type)
    for tensor in reader.tensors:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, np.ascontiguousarray(weights, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def number(value):
    return float(f"{value:.8g}")


def top(logprobs, count=5):
    """[[id, logprob], ...], best first; equal ones by id."""
    best = np.lexsort((np.arange(len(logprobs)), -logprobs))[:count]
    return [[int(i), number(logprobs[i])] for i in best]


class Reference:
    """llama.cpp, one sequence at a time."""

    def __init__(self, path):
        self.llama = llama_cpp.Llama(
            str(path), n_ctx=1024, n_batch=1024, n_ubatch=1024, n_threads=2, n_threads_batch=2,
            type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32, flash_attn=False,
            logits_all=True, verbose=False,
        )  # fmt: skip

    def start(self, ids):
        self.llama.reset()
        return self.more(ids)

    def more(self, ids):
        """Logits of every position of `ids`, [len(ids), vocabulary]."""
        before = self.llama.n_tokens
        self.llama.eval(ids)
        return self.llama.scores[before : self.llama.n_tokens].copy()


def prefill_rows(ids, logits):
    """Per position: top five, and the log-probability of the next id (null at the last)."""
    rows = []
    for position, row in enumerate(logits):
        logprobs = log_softmax(row)
        following = number(logprobs[ids[position + 1]]) if position + 1 < len(ids) else None
        rows.append({"next": following, "top": top(logprobs)})
    return rows


def generate(reference, ids, eos):
    """Greedy; returns the golden entry and the logits of the prompt."""
    prompt_logits = reference.start(ids)
    tokens = []
    last = prompt_logits[-1]
    for _ in range(TOKENS):
        best = top(log_softmax(last))
        margin = best[0][1] - best[1][1]
        tokens.append(
            {"id": best[0][0], "logprob": best[0][1], "margin": number(margin), "top": best}
        )
        last = reference.more([best[0][0]])[-1]
    ids = [token["id"] for token in tokens]
    entry = {
        "greedy": ids,
        "end_of_turn_at": ids.index(eos) if eos in ids else None,
        "smallest_margin": min(token["margin"] for token in tokens),
        "near_ties": [i for i, token in enumerate(tokens) if token["margin"] < NEAR_TIE],
        "tokens": tokens,
    }
    return entry, prompt_logits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", type=pathlib.Path, required=True, help="SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    parser.add_argument(
        "--f32",
        type=pathlib.Path,
        required=True,
        help="F32 copy; written when it does not exist (540 MB)",
    )
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "smollm2"
    )
    args = parser.parse_args()

    if not args.f32.exists():
        write_f32(args.model, args.f32)
    fields = {name: field.contents() for name, field in gguf.GGUFReader(args.model).fields.items()}
    types = fields["tokenizer.ggml.token_type"]
    special = [
        i
        for i, kind in enumerate(types)
        if kind in (gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED)
    ]
    tokens = fields["tokenizer.ggml.tokens"]
    tokenizer = make_tokens.build("smollm", tokens, fields["tokenizer.ggml.merges"], special)
    bos, eos = fields["tokenizer.ggml.bos_token_id"], fields["tokenizer.ggml.eos_token_id"]
    template = fields["tokenizer.chat_template"]
    reference = Reference(args.f32)

    prompts = [(name, messages, None) for name, messages in PROMPTS] + [
        (RAW_COMPLETION[0], None, RAW_COMPLETION[1])
    ]
    cases = []
    for name, messages, raw in prompts:
        text = raw or chat_env.render(
            template,
            messages,
            add_generation_prompt=True,
            bos_token=tokens[bos],
            eos_token=tokens[eos],
        )
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if ids != reference.llama.tokenize(text.encode(), add_bos=False, special=True):
            raise SystemExit(f"{name}: tokenizers and llama.cpp give different ids")
        entry, logits = generate(reference, ids, eos)
        case = {"name": name, "messages": messages, "text": text, "ids": ids, **entry}
        case["answer"] = tokenizer.decode(entry["greedy"], skip_special_tokens=False)
        if name in PREFILL:
            case["prefill"] = prefill_rows(ids, logits)
        cases.append(case)
        print(
            f"{name}: {len(ids)} tokens, smallest margin {entry['smallest_margin']}, "
            f"{case['answer']!r}"
        )

    about = {
        "made_by": "tests/golden/make_smollm2.py",
        "packages": {
            p: importlib.metadata.version(p)
            for p in ("llama-cpp-python", "gguf", "tokenizers", "jinja2", "numpy")
        },
        "model_sha256": hashlib.sha256(args.model.read_bytes()).hexdigest(),
        "forward": "llama.cpp on an F32 copy, F32 KV cache, no flash attention",
        "greedy": f"{TOKENS} ids, also past the end-of-turn token (at end_of_turn_at)",
        "answer": "the greedy ids as text; a character cut at the end shows as U+FFFD",
        "margin": "best minus second log-probability, in nats",
        "near_ties": f"indices of generated tokens whose margin is below {NEAR_TIE}",
        "prefill": "per prompt position: logprob of the next id (null at the last), top five",
    }
    args.out.mkdir(exist_ok=True, parents=True)
    path = args.out / "greedy.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text('{"about":' + json.dumps(about, indent=1) + ',\n"cases":[\n' + lines + "\n]}\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
