"""A leaf's loops as axes, once the loops outside it are known.

Guards and padding conditions become ranges of the axes, operands' positions a start and a step per
axis, both in entries. ``merge`` joins neighbours that step as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vdla.compiler.targets.accelerator.codegen.leaf import AffineExpr, CodegenError, Env, Leaf
from vdla.compiler.targets.accelerator.codegen.op import Access
from vdla.compiler.targets.accelerator.description.lowering import Emit, lowering_of
from vdla.compiler.targets.accelerator.description.memory import (
    BUFFER_OF_SCOPE,
    vector_elements,
    words_per_entry,
)
from vdla.compiler.tir.ir import Buffer, Var
from vdla.isa.config import Config
from vdla.isa.instructions import PAD_BITS, Load, Mem

Bases = Mapping[Buffer, int]

MAX_PAD = (1 << PAD_BITS) - 1


class Unroll(Exception):
    """The leaf doesn't fit one instruction with the loops it still has."""


@dataclass
class Axis:
    """A loop of a leaf: its range, the part of it inside a padded tensor, a step per operand."""

    var: Var
    low: int
    high: int
    steps: dict[str, int]
    inside: tuple[int, int] = field(default=(0, 0))

    @property
    def extent(self) -> int:
        """Number of steps of the loop."""
        return self.high - self.low

    @property
    def padded(self) -> bool:
        """Whether some steps lie outside of the tensor, where a LOAD fills in padding."""
        return self.inside != (self.low, self.high)


class Iteration:
    """A leaf with known outer loops: axes and space of every operand, in entries.

    ``first`` is where each operand's first vector lies, ``start`` how far behind it the axes begin.
    """

    def __init__(self, leaf: Leaf, env: Env, first: Mapping[str, int], config: Config) -> None:
        self.leaf, self.env, self.first, self.config = leaf, env, first, config
        self.start = dict.fromkeys(first, 0)
        self.space: dict[str, str] = {}
        self.loading = lowering_of(leaf.call.intrin).emits[0].instruction is Load
        forms = {}
        for buffer in leaf.call.intrin.operands:
            name, position = buffer.name, leaf.operands[buffer.name]
            scope = position.buffer.scope
            step = vector_elements(buffer, scope, config)
            forms[name] = _in_entries(leaf, name, position.offset.at(env), step)
            self.space[name] = BUFFER_OF_SCOPE.get(scope, position.buffer.name)
        self.axes = [
            Axis(var, 0, extent, {name: steps.get(var, 0) for name, steps in forms.items()})
            for var, extent in leaf.loops
            if var not in env
        ]
        for axis in self.axes:
            axis.inside = (axis.low, axis.high)
        self.empty = not self._guard()
        self._pad()

    @property
    def recurrent(self) -> bool:
        """Whether a step may read what another one writes; each is then an instruction."""
        output = self.leaf.call.intrin.output.name
        axes = [axis for axis in self.axes if axis.extent > 1]
        span = sum(abs(axis.steps[output]) * (axis.extent - 1) for axis in axes)
        for name, position in self.leaf.operands.items():
            if position.buffer is self.leaf.operands[output].buffer:
                apart = abs(self.first[name] - self.first[output])
                alike = all(axis.steps[name] == axis.steps[output] for axis in axes)
                if not alike or 0 < apart <= span:
                    return True
        return False

    def entry_bytes(self, memory: Mem) -> int:
        """Bytes that an entry of a memory takes in DRAM."""
        return self.config.entry(memory.name.lower())

    def element_bytes(self, operand: str) -> int:
        """Bytes of an operand's elements."""
        return np.dtype(self.leaf.operands[operand].buffer.dtype).itemsize

    def entry_words(self, memory: Mem) -> int:
        """Entries of the instruction in one of the memory's scope."""
        return words_per_entry(memory, self.config)

    def fields(self, emit: Emit) -> dict[str, int]:
        """The instruction's fields that are fixed, and those that parameters give."""
        known = {
            field: parameter.sign * sum(self.leaf.params[name] for name in parameter.names)
            for field, parameter in emit.parameters.items()
        }
        return {**emit.fields, **known}

    def same_place(self, a: str, b: str) -> bool:
        """Whether two operands lie in one place at every step."""
        place_a, place_b = ((self.first[o] + self.start[o], self.space[o]) for o in (a, b))
        return place_a == place_b and all(axis.steps[a] == axis.steps[b] for axis in self.axes)

    def access(self, operand: str, axes: Sequence[Axis], *, write: bool = False) -> Access:
        """Access of the operand over some axes."""
        dims = tuple((a.extent, a.steps[operand]) for a in axes if a.steps[operand])
        return Access(self.space[operand], self.start[operand], dims, write)

    def normalize(self) -> None:
        """Starts every axis at 0 and drops those of one iteration."""
        for axis in self.axes:
            for name, step in axis.steps.items():
                self.start[name] += step * axis.low
            axis.inside = (axis.inside[0] - axis.low, axis.inside[1] - axis.low)
            axis.low, axis.high = 0, axis.extent
        self.axes = [a for a in self.axes if a.extent > 1 or a.padded]

    def leave_padding(self) -> None:
        """Narrows every axis to what lies inside the tensor."""
        for axis in self.axes:
            low, high = axis.inside
            for name, step in axis.steps.items():
                self.start[name] += step * low
            axis.low, axis.high = 0, max(high - low, 0)
            axis.inside = (axis.low, axis.high)

    def _axis(self, form: AffineExpr) -> tuple[Axis, int]:
        """The one axis that a condition speaks of, and its coefficient."""
        result = [a for a in self.axes if form.step(a.var)]
        if len(result) > 1:
            raise Unroll
        return result[0], form.step(result[0].var)

    def _guard(self) -> bool:
        for form in (f.at(self.env) for f in self.leaf.guards):
            if not any(form.step(a.var) for a in self.axes):
                if form.constant < 0:
                    return False
                continue
            axis, step = self._axis(form)
            low, high = _satisfying(form.constant, step, axis.low, axis.high)
            if low >= high:
                return False
            if not self.loading or axis is self.axes[0]:
                axis.low, axis.high = low, high
                axis.inside = (max(axis.inside[0], low), min(axis.inside[1], high))
            else:  # a tile has no gaps in its buffer, so elements that no reader needs are padding
                axis.inside = (max(axis.inside[0], low), min(axis.inside[1], high))
        return True

    def _pad(self) -> None:
        for form in (f.at(self.env) for f in self.leaf.inside):
            if not any(form.step(a.var) for a in self.axes):
                if form.constant < 0:
                    self._all_padding()
                continue
            axis, step = self._axis(form)
            low, high = _satisfying(form.constant, step, *axis.inside)
            axis.inside = (min(low, axis.high), max(high, min(low, axis.high)))

    def _all_padding(self) -> None:
        """Nothing of what is left lies inside the tensor."""
        if not self.axes:
            self.axes.append(Axis(Var("one"), 0, 1, dict.fromkeys(self.start, 1)))
        axis = self.axes[-1]
        middle = min(axis.low + MAX_PAD, axis.high)
        axis.inside = (middle, middle)


def merge(axes: list[Axis]) -> list[Axis]:
    """Joins neighbours that step as one longer loop in every operand; all start at 0."""
    merged: list[Axis] = []
    for axis in axes:
        joined = _joined(merged[-1], axis) if merged else None
        if joined is None:
            merged.append(replace(axis))
        else:
            merged[-1] = joined
    return merged


def _joined(outer: Axis, inner: Axis) -> Axis | None:
    """Two loops as one. The outer may be padded, if the padding of the longer loop fits a field."""
    n = inner.extent
    low, high = outer.inside[0] * n, outer.inside[1] * n
    if inner.padded or any(outer.steps[name] != step * n for name, step in inner.steps.items()):
        return None
    if outer.padded and max(low, outer.extent * n - high) > MAX_PAD:
        return None
    return replace(inner, high=outer.extent * n, inside=(low, high))


def _in_entries(leaf: Leaf, name: str, form: AffineExpr, lanes: int) -> dict[Var, int]:
    """Number of entries that each loop steps by."""
    if any(step % lanes for step in form.terms.values()):
        raise CodegenError(f"{leaf.name}: expected {name} to step by whole vectors of {lanes}")
    return {v: step // lanes for v, step in form.terms.items()}


def _satisfying(constant: int, step: int, low: int, high: int) -> tuple[int, int]:
    """The part of [low, high) where constant + step · i ≥ 0."""
    if step > 0:
        return max(low, -(constant // step)), high
    return low, min(high, constant // -step + 1)
