#!/usr/bin/env python3
"""Writes the tokenizer golden files: smollm2/tokens.json and tiny_bpe/.

    make_tokens.py --model SmolLM2-135M-Instruct.Q4_1.gguf [--out tests/golden] [--check-llama-cpp]

The ids come from Hugging Face's `tokenizers`, set up by hand as the published tokenizer.json of
each model family says. Made with tokenizers 0.23.3 and gguf 0.19.0; --check-llama-cpp compares with
llama-cpp-python and lists what differs.
"""

import argparse
import hashlib
import json
import pathlib
import random

import gguf
import tokenizers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from token_texts import TEXTS

# Pre-tokenizer patterns as published in the tokenizer.json of Llama 3 and of Qwen2. They differ in
# the digits only.
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(pattern):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level(False)]
    )


# name in the GGUF -> (pre-tokenizer, normalizer, ignore_merges), from the tokenizer.json of
# SmolLM2, GPT-2, Llama 3, Qwen2.
FAMILIES = {
    "smollm": (
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)]),
        None,
        False,
    ),
    "gpt-2": (byte_level(True), None, False),
    "llama-bpe": (split(LLAMA3_PATTERN), None, True),
    "qwen2": (split(QWEN2_PATTERN), normalizers.NFC(), False),
}


def build(family, tokens, merges, special):
    """A `tokenizers` tokenizer; without `special` those spellings are ordinary text."""
    pre_tokenizer, normalizer, ignore_merges = FAMILIES[family]
    vocab = {token: i for i, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens(
        [AddedToken(tokens[i], special=True, normalized=False) for i in special]
    )
    return tokenizer


def make_cases(tokens, merges, special):
    """Per text the ids by family: specials as text, and where that differs, parsed."""
    plain = {family: build(family, tokens, merges, []) for family in FAMILIES}
    parsed = {family: build(family, tokens, merges, special) for family in FAMILIES}
    cases = []
    for name, text in TEXTS:
        case = {"name": name, "text": text, "ids": {}}
        for family in FAMILIES:
            case["ids"][family] = plain[family].encode(text, add_special_tokens=False).ids
            with_special = parsed[family].encode(text, add_special_tokens=False).ids
            if with_special != case["ids"][family]:
                case.setdefault("ids_parse_special", {})[family] = with_special
        cases.append(case)
    return cases


def about(extra):
    return {
        "made_by": "tests/golden/make_tokens.py",
        "tokenizers": tokenizers.__version__,
        "ids": "special tokens in the text are ordinary text; no BOS is added",
        "ids_parse_special": "special tokens in the text become ids; absent where equal to ids",
        "families": {
            "smollm": "digits one by one, then the GPT-2 pattern on each piece",
            "gpt-2": "the GPT-2 pattern",
            "llama-bpe": "pattern "
            + LLAMA3_PATTERN
            + "; a piece that is a token is taken whole (ignore_merges)",
            "qwen2": "text between special tokens is NFC-normalised first; pattern "
            + QWEN2_PATTERN,
        },
        **extra,
    }


def write_cases(path, header, cases):
    """One case a line, so that a change shows in a diff."""
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text(
        '{"about":' + json.dumps(header, indent=1) + ',\n"cases":[\n' + lines + "\n]}\n"
    )
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


def byte_alphabet():
    """GPT-2's spelling of bytes: printable Latin-1 as itself, the rest from U+0100 on, in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}


def tiny_corpus():
    """Thousands of made-up English sentences, and the test texts for the other scripts."""
    rng = random.Random(600)
    nouns = (
        "gateway model token cache stream request answer kernel router worker queue ledger "
        "window garden"
    ).split()
    verbs = (
        "keeps reads writes sends splits counts merges holds drops finds returns replays checks"
    ).split()
    adjectives = (
        "small quick quiet same other early late steady broken honest second first empty".split()
    )
    tails = [
        "",
        " again",
        ", isn't it",
        " and they're done",
        " because we've seen it",
        " at 10:45",
        " 123 times",
    ]
    ends = [".\n", ". ", "!\n\n", "? ", ";\r\n", ":\n    ", ".\n\n"]
    lines = []
    for _ in range(4000):
        noun, other = rng.choice(nouns), rng.choice(nouns)
        first, verb, second = rng.choice(adjectives), rng.choice(verbs), rng.choice(adjectives)
        line = f"The {first} {noun} {verb} the {second} {other}"
        lines.append(line + rng.choice(tails) + rng.choice(ends))
        if rng.random() < 0.2:
            lines.append(f"{noun}_{other} = {rng.randrange(10000)};\n")
        if rng.random() < 0.05:
            lines.append(line.upper() + " IT'S 'TIS\n")
    # The vocabulary group is left out: nothing may learn to merge its words.
    return ["".join(lines)] + [
        text for name, text in TEXTS if not name.startswith("vocabulary/")
    ] * 12


def make_tiny(merge_count=600):
    """Vocabulary of tiny_bpe: specials, bytes, merges, then tokens that no merge makes."""
    special = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<file_sep>",
        "<filename>",
        "<|end|>",
        "<|end|>+",
    ]
    alphabet = byte_alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + merge_count, initial_alphabet=list(alphabet.values()), show_progress=False
    )
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = split(
        LLAMA3_PATTERN
    )  # the widest pieces: numbers of three digits, runs of newlines
    trained.train_from_iterator(tiny_corpus(), trainer)
    pairs = json.loads(trained.to_str())["model"]["merges"]
    missing = {alphabet[b] for b in (0x04, 0x16)}  # as in SmolLM2, bytes that have no token
    merges = [f"{a} {b}" for a, b in pairs if not missing & set(a + b)]
    tokens = special + [c for b, c in sorted(alphabet.items()) if c not in missing]
    tokens += [merge.replace(" ", "") for merge in merges] + [
        "\u0120zyxwv",
        "zyxwv",
        "qjqjq",
        "\u0120qjqjq",
    ]
    assert len(tokens) == len(set(tokens))
    return tokens, merges, list(range(len(special)))


def check_llama_cpp(path, cases):
    import llama_cpp

    llama = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    for case in cases:
        for key, parse in (("ids", False), ("ids_parse_special", True)):
            expected = case.get(key, case["ids"])
            expected = expected.get("smollm", case["ids"]["smollm"])
            got = llama.tokenize(case["text"].encode(), add_bos=False, special=parse)
            if got != expected:
                print(
                    f"llama.cpp differs: {case['name']} {key}\n"
                    f"  tokenizers {expected}\n  llama.cpp  {got}"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", type=pathlib.Path, required=True, help="SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--check-llama-cpp", action="store_true")
    args = parser.parse_args()

    tokens, merges, special = make_tiny()
    (args.out / "tiny_bpe").mkdir(exist_ok=True, parents=True)
    vocabulary = args.out / "tiny_bpe" / "vocabulary.json"
    vocabulary.write_text(
        json.dumps({"tokens": tokens, "merges": merges, "special": special}, indent=0) + "\n"
    )
    write_cases(
        args.out / "tiny_bpe" / "tokens.json", about({}), make_cases(tokens, merges, special)
    )

    fields = gguf.GGUFReader(args.model).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    special = [
        i
        for i, kind in enumerate(types)
        if kind in (gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED)
    ]
    digest = hashlib.sha256(args.model.read_bytes()).hexdigest()
    cases = make_cases(tokens, merges, special)
    (args.out / "smollm2").mkdir(exist_ok=True, parents=True)
    write_cases(args.out / "smollm2" / "tokens.json", about({"model_sha256": digest}), cases)
    if args.check_llama_cpp:
        check_llama_cpp(args.model, cases)


if __name__ == "__main__":
    main()
