"""The published model in plain numpy, fp32: what evaluation and the golden file are computed with.

It shares no line with the PyTorch model that training uses, so each checks the other.
"""

import json
import pathlib

import numpy as np

import chat


def read_safetensors(path):
    """bf16 tensors as fp32 arrays (exact: bf16 is the upper half of an fp32)."""
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "BF16":
            raise ValueError(f"{name} is {entry['dtype']}, not BF16")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        halves = np.frombuffer(raw[begin:end], dtype="<u2").astype(np.uint32)
        tensors[name] = (halves << 16).view(np.float32).reshape(entry["shape"])
    return tensors


class Model:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        config = json.loads((folder / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.kv_heads, self.head_dim = config["num_key_value_heads"], config["head_dim"]
        self.epsilon = np.float32(config["rms_norm_eps"])
        self.w = read_safetensors(folder / "model.safetensors")
        half = self.head_dim // 2
        frequencies = config["rope_theta"] ** (-np.arange(half) / half)
        angles = np.arange(config["max_position_embeddings"])[:, None] * frequencies
        self.cos, self.sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def _norm(self, x, name):
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + self.epsilon) * self.w[name]

    def _linear(self, x, name):
        return x @ self.w[name].T

    def _rotate(self, x, positions):
        cos, sin = self.cos[positions][:, :, None], self.sin[positions][:, :, None]
        half = self.head_dim // 2
        a, b = x[..., :half], x[..., half:]
        return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)

    def hidden(self, ids, positions, cache):
        """ids, positions [batch, length] -> normed states [batch, length, hidden]; appends to the cache."""
        batch, length = ids.shape
        start, end = cache.length, cache.length + length
        query, key = np.arange(start, end)[:, None], np.arange(end)[None]
        # A padding position sees itself, so that its softmax is a number; nobody reads it.
        allowed = ((key <= query) & cache.keep[:, None, :end]) | (key == query)
        bias = np.where(allowed, np.float32(0), np.float32(-np.inf))[:, None, None]
        x = self.w["model.embed_tokens.weight"][ids]
        for i in range(self.layers):
            layer = f"model.layers.{i}."
            y = self._norm(x, layer + "input_layernorm.weight")
            q, k, v = (self._linear(y, f"{layer}self_attn.{n}_proj.weight").reshape(batch, length, -1, self.head_dim)
                       for n in "qkv")
            cache.data[i, 0, :, :, start:end] = self._rotate(k, positions).transpose(0, 2, 1, 3)
            cache.data[i, 1, :, :, start:end] = v.transpose(0, 2, 1, 3)
            keys, values = cache.data[i, :, :, :, :end]
            q = self._rotate(q, positions).transpose(0, 2, 1, 3).reshape(batch, self.kv_heads, -1, length, self.head_dim)
            scores = q @ keys[:, :, None].swapaxes(-1, -2) * np.float32(self.head_dim ** -0.5) + bias
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out = (p / p.sum(-1, keepdims=True)) @ values[:, :, None]
            out = out.reshape(batch, self.heads, length, self.head_dim).transpose(0, 2, 1, 3).reshape(batch, length, -1)
            x = x + self._linear(out, layer + "self_attn.o_proj.weight")
            y = self._norm(x, layer + "post_attention_layernorm.weight")
            gate = self._linear(y, layer + "mlp.gate_proj.weight")
            y = gate / (1 + np.exp(-gate)) * self._linear(y, layer + "mlp.up_proj.weight")
            x = x + self._linear(y, layer + "mlp.down_proj.weight")
        cache.length = end
        return self._norm(x, "model.norm.weight")

    def logits(self, hidden):
        return self._linear(hidden, "model.embed_tokens.weight")  # tied


class Cache:
    """Keys and values of one batch; `keep` [batch, capacity] is false where a row has padding."""

    def __init__(self, model, batch, capacity):
        self.data = np.zeros((model.layers, 2, batch, model.kv_heads, capacity, model.head_dim), dtype=np.float32)
        self.keep = np.ones((batch, capacity), dtype=bool)
        self.length = 0

    def select(self, rows):
        self.data, self.keep = np.ascontiguousarray(self.data[:, :, rows]), self.keep[rows]


def generate(model, prompts, longest):
    """Greedy answers to a batch of prompts. Returns (ids, margins) per prompt: the tokens up to and with the end of the
    turn, and for each the log-probability of the first choice minus that of the second."""
    width = max(len(p) for p in prompts)
    pad = np.array([width - len(p) for p in prompts])
    ids = np.array([[chat.END_OF_TEXT] * (width - len(p)) + p for p in prompts])
    cache = Cache(model, len(prompts), width + longest)
    cache.keep = np.arange(width + longest)[None] >= pad[:, None]
    positions = np.maximum(np.arange(width)[None] - pad[:, None], 0)
    results = [([], []) for _ in prompts]
    running = np.arange(len(prompts))  # the rows that have not ended
    for step in range(longest):
        logits = model.logits(model.hidden(ids, positions, cache)[:, -1])
        best = logits.argmax(-1)
        first_two = np.partition(logits, -2, axis=-1)[:, -2:]
        for row, token, margin in zip(running, best.tolist(), (first_two[:, 1] - first_two[:, 0]).tolist()):
            results[row][0].append(token)
            results[row][1].append(margin)
        going = best != chat.TURN_END
        if not going.any():
            break
        if not going.all():
            running, best = running[going], best[going]
            cache.select(going)
        ids, positions = best[:, None], (width + step - pad[running])[:, None]
    return results
