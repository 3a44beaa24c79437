"""Folding: a leaf, with the loops outside it known, becomes one instruction.

Each rule takes the leaf's loops outermost first as axes, merges neighbours that step as one, and
fits the rest into what the instruction has: three loops and micro-ops (GEMM, ALU), or planes, rows
and entries (LOAD, STORE). A leaf that doesn't fit raises ``Unroll``: its outermost loop is then
unrolled and each iteration folded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from vdla.compiler.codegen.vdla.leaf import CodegenError, Env, Form, Leaf
from vdla.compiler.target.lowering import Emit, lowering_of
from vdla.compiler.target.memory import BUFFER_OF_SCOPE
from vdla.compiler.tir.ir import Buffer, Var
from vdla.isa.config import Config
from vdla.isa.instructions import PAD_BITS, Alu, AluOp, Gemm, Init, Instruction, Load, Mem, Store

Bases = Mapping[Buffer, int]
UopRow = tuple[int, int, int]  # dst, src, wgt

MAX_PAD = (1 << PAD_BITS) - 1
MAX_UOPS = 1024


class Unroll(Exception):
    """The leaf doesn't fit one instruction with the loops it still has."""


@dataclass(frozen=True)
class Touch:
    """Entries an instruction reads or writes: ``start + Σ i·step`` over ``dims``.

    ``space`` is a buffer ("inp", "wgt", "acc", "uop") in entries, or a DRAM tensor in bytes.
    """

    space: str
    start: int
    dims: tuple[tuple[int, int], ...]
    write: bool


@dataclass(frozen=True)
class Op:
    """An instruction before linking: without tokens, and with addresses that are relative.

    Attributes:
        instruction: its micro-ops have no place yet; a DRAM address counts from the tensor's start.
        touches: what it reads and writes.
        name: of the stage that it does a part of.
        tensor: the DRAM tensor of a LOAD or STORE.
        uops: its micro-ops, as (dst, src, wgt).
        first: per micro-op, whether it starts a reduction; None: any marks will do.
    """

    instruction: Instruction
    touches: tuple[Touch, ...]
    name: str
    tensor: str = ""
    uops: tuple[UopRow, ...] = ()
    first: tuple[bool, ...] | None = None  # per micro-op; None: any marks will do


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
        """How many steps the loop has."""
        return self.high - self.low

    @property
    def padded(self) -> bool:
        """Whether some steps lie outside of the tensor, where a LOAD fills in padding."""
        return self.inside != (self.low, self.high)


def fold(leaf: Leaf, env: Env, bases: Bases, config: Config) -> list[Op]:
    """The instructions of a leaf for known outer loops; none when a guard leaves nothing to do.

    Raises:
        Unroll: the leaf needs its outermost loop unrolled first.
        CodegenError: no amount of unrolling will make it fit.
    """
    folder = _Folder(leaf, env, bases, config)
    if folder.empty:
        return []
    if folder.recurrent:
        raise Unroll
    emits = lowering_of(leaf.call.intrin).emits
    ops = [op for emit in emits for op in _RULES[emit.instruction](folder, emit)]
    if not all(_encodes(op.instruction, config) for op in ops):
        raise Unroll
    return ops


def _encodes(instruction: Instruction, config: Config) -> bool:
    """Whether every field holds its value; a DRAM address is known only after linking."""
    values = instruction.__dict__
    return all(f.holds(values[f.name], width) for f, _, width in instruction.layout(config))


class _Folder:
    """A leaf with known outer loops: start and axes of every operand, in entries."""

    def __init__(self, leaf: Leaf, env: Env, bases: Bases, config: Config) -> None:
        self.leaf, self.env, self.config = leaf, env, config
        self.start: dict[str, int] = {}
        self.space: dict[str, str] = {}
        self.loading = lowering_of(leaf.call.intrin).emits[0].instruction is Load
        forms = {}
        for buffer in leaf.call.intrin.operands:
            name, lanes = buffer.name, prod(buffer.shape)
            position = leaf.operands[name]
            form = position.offset.at(env)
            self.start[name], steps = _in_entries(leaf, name, form, lanes)
            scope = position.buffer.scope
            self.space[name] = BUFFER_OF_SCOPE.get(scope, position.buffer.name)
            if scope in BUFFER_OF_SCOPE:
                self.start[name] += bases[position.buffer]
            forms[name] = steps
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
                apart = abs(self.start[name] - self.start[output])
                alike = all(axis.steps[name] == axis.steps[output] for axis in axes)
                if not alike or 0 < apart <= span:
                    return True
        return False

    def entry_bytes(self, memory: Mem) -> int:
        """Bytes that an entry of a memory takes in DRAM."""
        return self.config.entry(memory.name.lower())

    def fields(self, emit: Emit) -> dict[str, int]:
        """The instruction's fields that are fixed, and those that parameters give."""
        known = {
            field: parameter.sign * sum(self.leaf.params[name] for name in parameter.names)
            for field, parameter in emit.parameters.items()
        }
        return {**emit.fields, **known}

    def same_place(self, a: str, b: str) -> bool:
        """Whether two operands lie in one place at every step."""
        return (self.space[a], self.start[a]) == (self.space[b], self.start[b]) and all(
            axis.steps[a] == axis.steps[b] for axis in self.axes
        )

    def touch(self, operand: str, axes: Sequence[Axis], *, write: bool = False) -> Touch:
        """What the operand touches over some axes."""
        dims = tuple((a.extent, a.steps[operand]) for a in axes if a.steps[operand])
        return Touch(self.space[operand], self.start[operand], dims, write)

    def normalize(self) -> None:
        """Starts every axis at 0 and drops those of one iteration."""
        for axis in self.axes:
            for name, step in axis.steps.items():
                self.start[name] += step * axis.low
            axis.inside = (axis.inside[0] - axis.low, axis.inside[1] - axis.low)
            axis.low, axis.high = 0, axis.extent
        self.axes = [a for a in self.axes if a.extent > 1 or a.padded]

    def _axis(self, form: Form) -> tuple[Axis, int]:
        """The one axis that a condition speaks of, and its coefficient."""
        found = [a for a in self.axes if form.step(a.var)]
        if len(found) > 1:
            raise Unroll
        return found[0], form.step(found[0].var)

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
            else:  # a tile lies densely in its buffer: what nobody needs of it is padding
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


def _merge(axes: list[Axis]) -> list[Axis]:
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


# Rules: the instructions of one ``Emit`` over the leaf's axes ------------------------------------


def _load(f: _Folder, emit: Emit) -> list[Op]:
    memory, dst, src = Mem(emit.fields["memory"]), emit.roles["dst"], emit.roles["src"]
    f.normalize()
    axes = _merge(f.axes)
    if len(axes) > 3 or any(a.padded for a in axes[:-2]):
        raise Unroll
    _check_dense(dst, axes)
    z, y, x = _aligned(axes, 3)
    values = {"sram_base": f.start[dst], **f.fields(emit)}
    source = f.start[src]
    for letter, axis in (("z", z), ("y", y), ("x", x)):
        low, high = axis.inside if axis else (0, 1)
        step = axis.steps[src] if axis else 1
        values[f"{letter}_size"] = high - low
        values[f"{letter}_stride"] = step
        source += low * step if axis and high > low else 0
        if axis and letter != "z":
            values[f"pad_{letter}0"], values[f"pad_{letter}1"] = low, axis.extent - high
            if max(low, axis.extent - high) > MAX_PAD:
                raise Unroll
    empty = any(a.inside[0] >= a.inside[1] for a in axes)
    size = f.entry_bytes(memory)
    values["dram_base"] = 0 if empty else source * size
    reads: tuple[Touch, ...] = ()
    if not empty:
        dims = [(a.inside[1] - a.inside[0], a.steps[src] * size) for a in axes]
        reads = (Touch(f.space[src], source * size, (*dims, (size, 1)), False),)
    touches = (f.touch(dst, axes, write=True), *reads)
    return [Op(Load(**values), touches, f.leaf.name, tensor=f.space[src])]


def _store(f: _Folder, emit: Emit) -> list[Op]:
    memory, acc, out = Mem(emit.fields["memory"]), emit.roles["acc"], emit.roles["out"]
    scale = emit.roles.get("scale", "")
    f.normalize()
    axes = _merge(f.axes)
    scaled = [a for a in axes if a.steps.get(scale)]
    plain = [a for a in axes if not a.steps.get(scale)]
    if not scale and len(plain) == 3:
        scaled, plain = plain[:1], plain[1:]
    if plain and plain[-1].steps[acc] != 1:
        plain.append(Axis(Var("one"), 0, 1, dict.fromkeys(f.start, 1), (0, 1)))
    if len(scaled) > 1 or len(plain) > 2 or any(a.steps.get(scale, 0) > 1 for a in scaled):
        raise Unroll
    z = scaled[0] if scaled else None
    y, x = _aligned(plain, 2)
    size = f.entry_bytes(memory)
    values = {
        "sram_base": f.start[acc],
        "dram_base": f.start[out] * size,
        "scale_base": f.start.get(scale, 0),
        **f.fields(emit),
    }
    for letter, axis in (("z", z), ("y", y), ("x", x)):
        values[f"{letter}_size"] = axis.extent if axis else 1
        values[f"{letter}_stride"] = axis.steps[out] if axis else 1
        if letter != "x":
            values[f"{letter}_pitch"] = axis.steps[acc] if axis else 0
    dims = [(a.extent, a.steps[out] * size) for a in axes]
    touches = [
        Touch(f.space[out], f.start[out] * size, (*dims, (size, 1)), True),
        f.touch(acc, axes),
    ]
    if scale:
        touches.append(f.touch(scale, axes))
    return [Op(Store(**values), tuple(touches), f.leaf.name, tensor=f.space[out])]


def _gemm(f: _Folder, emit: Emit) -> list[Op]:
    acc, inp, wgt = (emit.roles[role] for role in ("acc", "inp", "wgt"))
    bias = emit.roles.get("bias", "")
    nest = _Nest(f, {"dst": acc, "src": inp, "wgt": wgt})
    values = {**nest.values(), **f.fields(emit)}
    biased = nest.starts and bias and not f.same_place(bias, acc)
    if not nest.starts or (bias and not biased):
        values["init"] = Init.ACC
    if bias:
        if any(axis.steps[bias] for axis in nest.inner):
            raise Unroll  # a micro-op has no step for the bias
        values["bias_base"] = f.start[bias]
        for i, axis in enumerate(nest.loops):
            values[f"bias_{i}"] = axis.steps[bias]
    touches = [f.touch(acc, f.axes, write=True), f.touch(inp, f.axes), f.touch(wgt, f.axes)]
    if biased:
        touches.append(f.touch(bias, f.axes))
    return [Op(Gemm(**values), tuple(touches), f.leaf.name, uops=nest.uops, first=nest.first)]


def _alu(f: _Folder, emit: Emit) -> list[Op]:
    dst, x, y = emit.roles["dst"], emit.roles.get("x", ""), emit.roles.get("y", "")
    fixed = f.fields(emit)
    if not x or f.same_place(x, dst):
        return [_alu_op(f, dst, y, fixed)]
    if y and y != x and f.same_place(y, dst):
        raise CodegenError(f"{f.leaf.name}: expected {x} and the result in one place, found {y}")
    copied = _alu_op(f, dst, x, {"alu_op": AluOp.ADD, "init": 1})
    return [copied, _alu_op(f, dst, y, fixed)]


def _alu_op(f: _Folder, dst: str, y: str, fixed: Mapping[str, int]) -> Op:
    """One ALU instruction; with ``init`` fixed, every micro-op gives y itself."""
    nest = _Nest(f, {"dst": dst, "src": y} if y else {"dst": dst})
    first = (True,) * len(nest.uops) if fixed.get("init") else nest.first
    values = {**nest.values(), "init": nest.starts, **fixed}
    touches = [f.touch(dst, f.axes, write=True)]
    if y:
        touches.append(f.touch(y, f.axes))
    return Op(Alu(**values), tuple(touches), f.leaf.name, uops=nest.uops, first=first)


_RULES: Mapping[type[Instruction], Callable[[_Folder, Emit], list[Op]]] = {
    Load: _load,
    Store: _store,
    Gemm: _gemm,
    Alu: _alu,
}


class _Nest:
    """Axes split into three loops and the micro-ops inside them.

    A reduction's loops become micro-ops, because only a micro-op can be marked first.
    """

    def __init__(self, f: _Folder, operands: Mapping[str, str]) -> None:
        self.folder, self.operands = f, operands
        forms = [form.at(f.env) for form in f.leaf.first or ()]
        lows = {a.var: a.low for a in f.axes}
        f.normalize()
        forms = [_shifted(form, lows) for form in forms]
        reducing = [i for i, a in enumerate(f.axes) if any(form.step(a.var) for form in forms)]
        split = min(reducing, default=len(f.axes))
        self.loops = _merge(f.axes[:split])
        self.inner = list(f.axes[split:])
        while len(self.loops) > 3:
            self.inner.insert(0, self.loops.pop())
        most = min(MAX_UOPS, f.config.uop_depth)
        if prod(a.extent for a in self.inner) > most or _negative(f.axes):
            raise Unroll
        self.uops, first = self._micro_ops(self.inner, forms)
        self.first = None if f.leaf.first is None else first
        self.starts = self.first is not None and any(self.first)

    def values(self) -> dict[str, int]:
        """The fields of the loop nest."""
        values = {"uop_count": len(self.uops)}
        for role, operand in self.operands.items():
            values[f"{role}_base"] = self.folder.start[operand]
        for i, axis in enumerate(self.loops):
            values[f"extent_{i}"] = axis.extent
            for role, operand in self.operands.items():
                values[f"{role}_{i}"] = axis.steps[operand]
        return values

    def _micro_ops(
        self, inner: list[Axis], forms: list[Form]
    ) -> tuple[tuple[UopRow, ...], tuple[bool, ...]]:
        rows, first = [], []
        names = [self.operands.get(role) for role in ("dst", "src", "wgt")]
        for index in product(*(range(a.extent) for a in inner)):
            at = {a.var: i for a, i in zip(inner, index, strict=True)}
            dst, src, wgt = (
                sum(i * a.steps[name] for a, i in zip(inner, index, strict=True)) if name else 0
                for name in names
            )
            rows.append((dst, src, wgt))
            first.append(all(form.at(at).constant == 0 for form in forms))
        return tuple(rows), tuple(first)


def _aligned(axes: Sequence[Axis], count: int) -> list[Axis | None]:
    """Exactly ``count`` axes: the outermost that are missing are None."""
    return [None] * (count - len(axes)) + list(axes)


# Arithmetic -------------------------------------------------------------------------------------


def _in_entries(leaf: Leaf, name: str, form: Form, lanes: int) -> tuple[int, dict[Var, int]]:
    numbers = [form.constant, *form.terms.values()]
    if any(n % lanes for n in numbers):
        raise CodegenError(f"{leaf.name}: expected {name} to step by whole vectors of {lanes}")
    return form.constant // lanes, {v: step // lanes for v, step in form.terms.items()}


def _satisfying(constant: int, step: int, low: int, high: int) -> tuple[int, int]:
    """The part of [low, high) where constant + step · i ≥ 0."""
    if step > 0:
        return max(low, -(constant // step)), high
    return low, min(high, constant // -step + 1)


def _shifted(form: Form, lows: Mapping[Var, int]) -> Form:
    """A form over axes that now start at 0."""
    constant = form.constant + sum(step * lows.get(v, 0) for v, step in form.terms.items())
    return Form(constant, form.terms)


def _negative(axes: Sequence[Axis]) -> bool:
    return any(step < 0 for axis in axes for step in axis.steps.values())


def _check_dense(dst: str, axes: Sequence[Axis]) -> None:
    expected = 1
    for axis in reversed(axes):
        if axis.steps[dst] != expected:
            raise Unroll
        expected *= axis.extent
