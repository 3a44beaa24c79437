"""Integers that are put behind a tensor of floats, for those that read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.ops.wide import BYTE_BITS, MOST, Dequantize16, Quantize16
from vdla.compiler.graph.ranges import MOVES
from vdla.compiler.graph.types import TensorType

LEAST = 1e-30  # of a range


@dataclass
class Behind:
    """Nodes behind the one that makes a tensor, or before all others of an input; ``made`` are
    those that were put there."""

    name: str
    editor: Editor
    made: list[Node] = field(default_factory=list)

    def narrow(self, ends: tuple[float, float], readers: Sequence[Node]) -> None:
        """Gives some readers the tensor by way of int8 of a range."""
        if not readers:
            return
        low, high = min(ends[0], 0.0), max(ends[1], 0.0)
        scale = float(np.float32(max((high - low) / 255, LEAST)))
        real = self.integers(self.name, scale, round(-128 - low / scale), wide=False)
        self.give(real, readers)

    def alike(self, end: ops.Quantize, readers: Sequence[Node]) -> None:
        """Gives some readers the tensor by way of int8 with an end's scale and zero point."""
        self.give(self.integers(self.name, end.scale[0], end.zero_point[0], wide=False), readers)

    def wide(self, scale: float, readers: Sequence[Node], is_function: bool) -> None:
        """Gives some readers the tensor by way of 16 bits; a function of int8 as the sum of its two
        bytes, which are functions, too."""
        if not readers:
            return
        if not is_function:
            self.give(self.integers(self.name, scale, 0), readers)
            return
        high = self.integers(self.name, scale * (1 << BYTE_BITS), 0, wide=False)
        rest = self.editor.like(f"{self.name}.rest", self.editor.shape(self.name), self.name)
        self.put(ops.Binary(name=rest, output=rest, a=self.name, b=high, function="sub"))
        self.joined((high, self.integers(rest, scale, 0, wide=False)), self.name, scale, readers)

    def joined(
        self, parts: tuple[str, str], name: str, scale: float, readers: Sequence[Node]
    ) -> None:
        """Gives some readers of a tensor the sum of its parts, behind all that moves elements."""
        moves = [r for r in readers if isinstance(r, MOVES)]
        for move in moves:
            moved = []
            for part in parts:
                output = self.editor.like(f"{part}.moved", self.editor.shape(move.output), part)
                self.put(replace(move.renamed({name: part}), name=output, output=output))
                moved.append(output)
            self.joined((moved[0], moved[1]), move.output, scale, self.editor.readers(move.output))
        rest = [r for r in readers if r not in moves]
        if rest:
            total = self.editor.like(f"{name}.sum", self.editor.shape(name), name)
            self.put(ops.Add(name=total, output=total, a=parts[0], b=parts[1]))
            self.give(self.integers(total, scale, 0), rest, name)

    def integers(self, name: str, scale: float, zero: int, wide: bool = True) -> str:
        """The real numbers of a tensor's integers."""
        numbers: _Numbers = {"scale": (float(np.float32(scale)),), "zero_point": (zero,)}
        kind = TensorType(self.editor.shape(name), "int32" if wide else "int8")
        bits = self.editor.tensor(f"{name}.integers", kind)
        real = self.editor.like(f"{name}.real", kind.shape, name)
        if wide:
            self.put(
                Quantize16(name=bits, output=bits, data=name, low=-MOST, high=MOST, **numbers),
                Dequantize16(name=real, output=real, data=bits, **numbers),
            )
        else:
            self.put(
                ops.Quantize(name=bits, output=bits, data=name, **numbers),
                ops.Dequantize(name=real, output=real, data=bits, **numbers),
            )
        return real

    def put(self, *nodes: Node) -> None:
        """Puts nodes behind all that are there."""
        last = self.made[-1] if self.made else self.editor.maker(self.name, Node)
        if last is None:  # of an input
            first = next(self.editor.nodes())
            self.editor.replace(first, *nodes, first)
        else:
            self.editor.replace(last, last, *nodes)
        self.made += nodes

    def give(self, real: str, readers: Sequence[Node], name: str | None = None) -> None:
        """Has nodes read real numbers of integers in a tensor's place."""
        for reader in {each.name: each for each in readers}.values():
            self.editor.replace(reader, reader.renamed({name or self.name: real}))


class _Numbers(TypedDict):
    """The scale and the zero point of integers."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
