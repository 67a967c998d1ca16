"""A Llama in PyTorch whose parameter names are those of the Hugging Face checkpoint."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import flex_attention


@dataclass(frozen=True)
class Shape:
    """3.54 million parameters: 7.1 MB in bf16, which with the tokenizer stays under 8 MB."""

    vocabulary: int = 2048
    hidden: int = 192
    layers: int = 8
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 32
    feed_forward: int = 512
    context: int = 2048
    rope_theta: float = 10000.0
    epsilon: float = 1e-5


class RmsNorm(nn.Module):
    def __init__(self, size, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return (self.weight * wide).to(x.dtype)


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
        self.q_proj = nn.Linear(s.hidden, s.heads * s.head_dim, bias=False)
        self.k_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.v_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.o_proj = nn.Linear(s.heads * s.head_dim, s.hidden, bias=False)

    def forward(self, x, cos, sin, block_mask):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.s.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.s.kv_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.s.kv_heads, -1).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = flex_attention(q, k, v.to(q.dtype), block_mask=block_mask, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden, s.feed_forward, bias=False)
        self.up_proj = nn.Linear(s.hidden, s.feed_forward, bias=False)
        self.down_proj = nn.Linear(s.feed_forward, s.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn = Attention(s)
        self.mlp = FeedForward(s)
        self.input_layernorm = RmsNorm(s.hidden, s.epsilon)
        self.post_attention_layernorm = RmsNorm(s.hidden, s.epsilon)

    def forward(self, x, cos, sin, block_mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, block_mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed_tokens = nn.Embedding(s.vocabulary, s.hidden)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = RmsNorm(s.hidden, s.epsilon)


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # 0.02 as usual; what ends a residual branch starts smaller, by the depth.
                scale = (2 * shape.layers) ** -0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                nn.init.normal_(parameter, std=0.02 * scale)

    def hidden(self, ids, positions, block_mask):
        """ids, positions: [batch, length] -> normed hidden states [batch, length, hidden]."""
        s = self.shape
        inverse = s.rope_theta ** (-torch.arange(0, s.head_dim, 2, device=ids.device, dtype=torch.float32) / s.head_dim)
        angles = positions[:, None, :, None].float() * inverse
        cos, sin = angles.cos(), angles.sin()
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin, block_mask)
        return self.model.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.model.embed_tokens.weight)  # tied
