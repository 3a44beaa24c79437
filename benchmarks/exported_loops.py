"""Networks with loops as PyTorch's exporter writes them, for ``benchmarks/loops.py``.

    python benchmarks/exported_loops.py FOLDER

needs the package torch, and nothing of vdla. The networks are small, with random weights: a greedy
decoder, a decoder like Whisper's with a cache and an end token, a synthesizer like Kokoro's whose
durations become frames, and a beam search.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import List  # noqa: UP035, TorchScript reads annotations

import torch
from torch import Tensor, nn

OPSET = 17


class Cell(nn.Module):
    """A gated recurrent unit."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(inputs, 3 * hidden), nn.Linear(hidden, 3 * hidden)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state, [N, hidden]."""
        r, z, n = self.a(x).chunk(3, -1)
        r2, z2, n2 = self.b(h).chunk(3, -1)
        z = torch.sigmoid(z + z2)
        return (1 - z) * torch.tanh(n + torch.sigmoid(r + r2) * n2) + z * h


class Greedy(nn.Module):
    """Tokens one after another, in a list that grows."""

    def __init__(self, words: int = 50, hidden: int = 32) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(words, hidden), Cell(hidden, hidden)
        self.out = nn.Linear(hidden, words)

    def forward(self, h: Tensor, token: Tensor, count: Tensor):
        """``count`` tokens, and the last state."""
        tokens: List[Tensor] = []  # noqa: UP006
        for _ in range(int(count)):
            h = self.cell(self.words(token), h)
            token = self.out(h).argmax(-1)
            tokens.append(token)
        return torch.stack(tokens), h


class Decoder(nn.Module):
    """A layer of a transformer's decoder with caches of fixed length, until the end token."""

    def __init__(self, size: int = 64, words: int = 100, most: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.size, self.most, self.heads = size, most, heads
        self.words, self.positions = nn.Embedding(words, size), nn.Embedding(most, size)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.cq, self.ck, self.cv, self.co = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.n1, self.n2, self.n3, self.n4 = (nn.LayerNorm(size) for _ in range(4))
        self.register_buffer("places", torch.arange(most))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Attention of one query, [1, 1, size]."""
        each = self.size // self.heads
        q = q.view(1, 1, self.heads, each).transpose(1, 2)
        k = k.view(1, -1, self.heads, each).transpose(1, 2)
        v = v.view(1, -1, self.heads, each).transpose(1, 2)
        weights = torch.softmax(q @ k.transpose(2, 3) / 8.0 + mask, -1)
        return (weights @ v).transpose(1, 2).reshape(1, 1, self.size)

    def forward(self, sound: Tensor, start: Tensor, limit: Tensor):
        """Tokens, as many as ``most``, and how many of them are some."""
        ck, cv, none = self.ck(sound), self.cv(sound), torch.zeros(1, 1, 1, 1)
        keys, values = torch.zeros(1, self.most, self.size), torch.zeros(1, self.most, self.size)
        token, n, done = start, 0, False
        tokens = torch.zeros(self.most, dtype=torch.long)
        while n < int(limit) and not done:
            place = torch.full((1,), n, dtype=torch.long)
            x = (self.words(token) + self.positions(place)).view(1, 1, self.size)
            y, here = self.n1(x), (self.places == n).to(x.dtype).view(1, self.most, 1)
            keys = keys * (1 - here) + self.k(y) * here
            values = values * (1 - here) + self.v(y) * here
            later = torch.where(self.places > n, torch.tensor(-1e9), torch.tensor(0.0))
            x = x + self.o(self.attend(self.q(y), keys, values, later.view(1, 1, 1, self.most)))
            x = x + self.co(self.attend(self.cq(self.n2(x)), ck, cv, none))
            x = x + self.down(nn.functional.gelu(self.up(self.n3(x))))
            logits = self.n4(x).view(1, self.size) @ self.words.weight.t()
            token = logits.argmax(-1)
            tokens = torch.where(self.places == n, token, tokens)
            done = bool(token[0] == 3)
            n = n + 1
        return tokens, torch.tensor(n)


class Synthesizer(nn.Module):
    """Durations of phonemes become frames, and a cell runs over as many as there are."""

    def __init__(self, phonemes: int = 12, frames: int = 100, size: int = 32) -> None:
        super().__init__()
        self.count, self.size = phonemes, size
        self.words, self.duration = nn.Embedding(40, size), nn.Linear(size, 1)
        self.cell, self.out = Cell(size, size), nn.Linear(size, 8)
        self.register_buffer("frames", torch.arange(frames))

    def forward(self, phonemes: Tensor):
        """Frames, as many as the durations are together, and that number."""
        words = self.words(phonemes)[0]
        seconds = torch.round(torch.sigmoid(self.duration(words)).view(-1) * 8)
        lengths = torch.clamp(seconds, min=1.0).to(torch.long)
        rows: List[Tensor] = []  # noqa: UP006
        begin = torch.zeros(1, dtype=torch.long)
        for n in range(self.count):
            end = begin + lengths[n]
            rows.append(((self.frames >= begin) & (self.frames < end)).to(words.dtype))
            begin = end
        spread = torch.stack(rows).t() @ words
        h, result = torch.zeros(1, self.size), []
        for n in range(int(begin[0])):
            h = self.cell(spread[n].view(1, self.size), h)
            result.append(self.out(h))
        return torch.cat(result, 0), begin


class Beam(nn.Module):
    """A beam search over a recurrent language model."""

    def __init__(self, beams: int = 4, words: int = 30, size: int = 24, most: int = 32) -> None:
        super().__init__()
        self.beams, self.count, self.size, self.most = beams, words, size, most
        self.words, self.cell = nn.Embedding(words, size), Cell(size, size)
        self.out = nn.Linear(size, words)
        self.register_buffer("places", torch.arange(most))

    def forward(self, state: Tensor, count: Tensor):
        """The sequences, and their scores."""
        h = state.expand(self.beams, self.size)
        token = torch.zeros(self.beams, dtype=torch.long)
        score = torch.full((self.beams,), -1e9)
        score[0] = 0.0
        sequences = torch.zeros(self.beams, self.most, dtype=torch.long)
        for n in range(int(count)):
            h = self.cell(self.words(token), h)
            each = torch.log_softmax(self.out(h), -1) + score.view(-1, 1)
            score, best = each.view(-1).topk(self.beams)
            beam = torch.div(best, self.count, rounding_mode="floor")
            token = best - beam * self.count
            h, sequences = h[beam], sequences[beam]
            sequences = torch.where(self.places.view(1, -1) == n, token.view(-1, 1), sequences)
        return sequences, score


NETWORKS = {
    "greedy": (Greedy, (torch.zeros(1, 32), torch.zeros(1, dtype=torch.long), torch.tensor(7))),
    "decoder": (
        Decoder, (torch.randn(1, 20, 64), torch.zeros(1, dtype=torch.long), torch.tensor(16)),
    ),
    "synthesizer": (Synthesizer, (torch.zeros(1, 12, dtype=torch.long),)),
    "beam": (Beam, (torch.randn(1, 24), torch.tensor(10))),
}  # fmt: skip


def main() -> None:
    """Writes a file for each network."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, (kind, example) in NETWORKS.items():
        torch.manual_seed(0)
        scripted = torch.jit.script(kind().eval())
        path = folder / f"{name}.onnx"
        with torch.no_grad():
            torch.onnx.export(scripted, example, str(path), dynamo=False, opset_version=OPSET)
        print(path)


if __name__ == "__main__":
    main()
