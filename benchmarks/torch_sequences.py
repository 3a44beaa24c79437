"""Networks of sequences for ``torch_modules.py``: attention, recurrent and temporal ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CLASSES = 10
VOCABULARY = 50
WINDOW = 4  # patches along the side of a window of Swin's


class Encoder(nn.Module):
    """ViT's block, with PyTorch's own attention."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.attention = nn.MultiheadAttention(features, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(features, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, features)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Fused(nn.Module):
    """timm's attention: queries, keys and values by one layer, and the fused operator."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(features)
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, features = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, length, 3, self.heads, features // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).reshape(batch, length, features))


class Vit(nn.Module):
    def __init__(self, block: type[nn.Module]) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32) / 8)
        self.blocks = nn.Sequential(block(32, 4), block(32, 4))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Windowed(nn.Module):
    """Swin's block: attention in windows that are shifted by ``shift``, with the bias of places."""

    def __init__(self, features: int, heads: int, side: int, shift: int) -> None:
        super().__init__()
        self.heads, self.shift = heads, shift
        self.norm, self.qkv = nn.LayerNorm(features), nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)
        self.table = nn.Parameter(torch.randn((2 * WINDOW - 1) ** 2, heads) / 4)
        self.register_buffer("index", relative_places(WINDOW))
        self.register_buffer("mask", shifted_mask(side, shift) if shift else None)

    def forward(self, x: Tensor) -> Tensor:  # [batch, height, width, features]
        batch, height, width, features = x.shape
        y = self.norm(x)
        if self.shift:
            y = torch.roll(y, shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = self.attend(windows(y))
        y = y.view(batch, height // WINDOW, width // WINDOW, WINDOW, WINDOW, features)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, features)
        if self.shift:
            y = torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
        return x + y

    def attend(self, x: Tensor) -> Tensor:  # [windows, tokens, features]
        count, tokens, features = x.shape
        qkv = self.qkv(x).reshape(count, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = q * (features // self.heads) ** -0.5 @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(tokens, tokens, -1).permute(2, 0, 1)
        scores = scores + bias.contiguous().unsqueeze(0)
        if self.mask is not None:
            each = len(self.mask)
            scores = scores.view(count // each, each, self.heads, tokens, tokens)
            scores = scores + self.mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, tokens, tokens)
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(count, tokens, features))


def windows(x: Tensor) -> Tensor:
    """The windows of an image, [batch × windows, tokens, features]."""
    batch, height, width, features = x.shape
    x = x.view(batch, height // WINDOW, WINDOW, width // WINDOW, WINDOW, features)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, WINDOW * WINDOW, features)


def relative_places(side: int) -> Tensor:
    """For each pair of tokens of a window the row of the table of biases."""
    grid = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij"))
    flat = grid.flatten(1)
    difference = (flat[:, :, None] - flat[:, None, :]).permute(1, 2, 0) + side - 1
    return difference[..., 0] * (2 * side - 1) + difference[..., 1]


def shifted_mask(side: int, shift: int) -> Tensor:
    """-100 between tokens that are neighbours only because the image was rolled."""
    image = torch.zeros(1, side, side, 1)
    parts = (slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None))
    for n, (rows, columns) in enumerate((r, c) for r in parts for c in parts):
        image[:, rows, columns] = n
    flat = windows(image).squeeze(-1)
    return (flat[:, None] != flat[:, :, None]).float() * -100


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.blocks = nn.Sequential(Windowed(16, 2, 8, 0), Windowed(16, 2, 8, 2))
        self.merge = nn.Linear(64, 32, bias=False)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.patches(x).permute(0, 2, 3, 1))
        quarters = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.head(self.merge(torch.cat(quarters, -1)).mean((1, 2)))


class Recurrent(nn.Module):
    """A classifier by a recurrent network's states at both ends."""

    def __init__(self, kind: type[nn.RNNBase], layers: int, bidirectional: bool) -> None:
        super().__init__()
        self.cell = kind(12, 16, layers, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(16 * (1 + bidirectional), CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


class Tagger(nn.Module):
    """A GRU that takes and returns its state, time first."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(12, 16, 2), nn.Linear(16, 5)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.gru(x, state)
        return F.log_softmax(self.head(y), -1), state


class Decoder(nn.Module):
    """PyTorch's own decoder over tokens, which sees those before each."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, 32), nn.Embedding(16, 32)
        layer = nn.TransformerDecoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.layers = nn.TransformerDecoder(layer, 2)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, tokens: Tensor, memory: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.places(torch.arange(length, device=tokens.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.layers(x, memory, tgt_mask=mask, tgt_is_causal=True))


class RmsNorm(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A rotary embedding: each half of the features turns against the other."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Llama(nn.Module):
    """A block of a language model: RMSNorm, rotary embedding, grouped heads, SwiGLU."""

    def __init__(self, features: int = 32, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, features // heads
        self.norm1, self.norm2 = RmsNorm(features), nn.RMSNorm(features)
        self.q = nn.Linear(features, features, bias=False)
        self.kv = nn.Linear(features, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(features, features, bias=False)
        self.gate, self.up = (nn.Linear(features, 48, bias=False) for _ in range(2))
        self.down = nn.Linear(48, features, bias=False)
        rates = 1 / 10000 ** (torch.arange(0, self.size, 2) / self.size)
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, features = x.shape
        angles = torch.outer(torch.arange(length, dtype=torch.float32), self.rates)
        angles = torch.cat([angles, angles], -1)
        cos, sin = angles.cos(), angles.sin()
        y = self.norm1(x)
        q = self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        k, v = (
            self.kv(y).view(batch, length, 2 * self.groups, self.size).transpose(1, 2).chunk(2, 1)
        )
        share = self.heads // self.groups
        k, v = (each.repeat_interleave(share, 1) for each in (rotated(k, cos, sin), v))
        y = F.scaled_dot_product_attention(rotated(q, cos, sin), k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, features))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.blocks = nn.Embedding(VOCABULARY, 32), nn.Sequential(Llama(), Llama())
        self.norm = RmsNorm(32)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.norm(self.blocks(self.tokens(tokens))) @ self.tokens.weight.T


class Temporal(nn.Module):
    """A temporal convolution: dilated, padded on the left, with gates and weight norm."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 16, 3, dilation=2**n))
            for n in range(3)
        )
        self.out = nn.Conv1d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        for n, layer in enumerate(self.layers):
            x = x + F.glu(layer(F.pad(x, (2 * 2**n, 0))), dim=1)
        return self.out(F.softplus(x)).amax(-1)


# Arguments and results of other kinds ----------------------------------------------------------


class Pair(NamedTuple):
    logits: Tensor
    features: Tensor


@dataclass
class Output:
    """A result as the networks of transformers have it."""

    logits: Tensor
    hidden: tuple[Tensor, ...]


torch.export.register_dataclass(Output, serialized_type_name="benchmarks.Output")


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Pair:
        y = torch.relu(self.dense(x))
        return Pair(logits=y.sum(-1), features=y)


class Held(Named):
    def forward(self, x: Tensor) -> Output:
        y = torch.relu(self.dense(x))
        return Output(y.sum(-1), (x, y))


class Optional(nn.Module):
    """A mask that may be absent, a switch, a number, keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(8, 8)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, *, scale: float = 1.0, both: bool = False,
        bias: Tensor | None = None,
    ) -> dict[str, Tensor | None]:  # fmt: skip
        y = self.dense(x) * scale
        if mask is not None:
            y = y.masked_fill(mask, 0)
        if bias is not None:
            y = y + bias
        return {"y": y, "x": x if both else None}


class Nested(nn.Module):
    """Arguments in tuples, lists and dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 4), nn.Bilinear(8, 6, 4)

    def forward(
        self, pair: tuple[Tensor, tuple[Tensor, Tensor]], more: Mapping[str, Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        x, (y, z) = pair
        return self.a(x) + self.b(x, y), [z * more["by"], torch.where(z > 0, z, more["by"])]
