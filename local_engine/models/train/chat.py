"""The chat template and the tokenizer: from messages to token ids."""

import json
import pathlib

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

# Ids 0, 1, 2. The first one pads and separates, the last one ends a turn and with it a generation.
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, TURN_START, TURN_END = range(3)
TEMPLATE = pathlib.Path(__file__).with_name("chat_template.jinja")


def load_template():
    """The template in the environment that transformers gives it."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(TEMPLATE.read_text())


def train_tokenizer(texts, vocabulary):
    """Byte-level BPE with single digits: the pre-tokenizer that SmolLM2 has."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=list(SPECIAL_TOKENS), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def without_specials(rendered):
    """The plain pieces between the special tokens: what the tokenizer is trained on."""
    for special in SPECIAL_TOKENS:
        rendered = rendered.replace(special, "\0")
    return [piece for piece in rendered.split("\0") if piece.strip()]


def answer_mask(ids, header):
    """1 for the tokens of assistant turns, the end of the turn included: what training learns.

    `header` is the ids of "assistant\\n" as they follow <|im_start|>.
    """
    mask = bytearray(len(ids))
    inside, i, n = False, 0, len(ids)
    while i < n:
        if inside:
            mask[i] = 1
            inside = ids[i] != TURN_END
        elif ids[i] == TURN_START and ids[i + 1:i + 1 + len(header)] == header:
            i += len(header)
            inside = True
        i += 1
    return mask
