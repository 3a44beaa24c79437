"""Instruction selection: a leaf, with the loops outside it known, becomes one instruction.

Each rule takes the leaf's loops outermost first as axes, merges neighbours that step as one, and
fits the rest into what the instruction has: three loops and micro-ops (GEMM, ALU), or planes, rows
and entries (LOAD, STORE). A leaf that doesn't fit raises ``Unroll``: its outermost loop is then
unrolled and each iteration selected by itself.

From one iteration of the outer loops to the next, mostly nothing changes but where the operands
lie. A ``Site`` selects once for all iterations whose conditions hold in the same way, and then only
moves the bases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from vdla.compiler.targets.accelerator.codegen.axes import (
    MAX_PAD,
    Axis,
    Bases,
    Iteration,
    Unroll,
    merge,
)
from vdla.compiler.targets.accelerator.codegen.leaf import AffineExpr, CodegenError, Env, Leaf
from vdla.compiler.targets.accelerator.codegen.nest import Nest, Place
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.description.lowering import Emit, lowering_of
from vdla.compiler.targets.accelerator.description.memory import (
    BUFFER_OF_SCOPE,
    vector_elements,
)
from vdla.compiler.tir.ir import Buffer, Var
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Gemm, Init, Instruction, Load, Mem, Store


class Site:
    """A leaf with some of its outermost loops unrolled: its instructions for known outer loops."""

    def __init__(self, leaf: Leaf, unrolled: int, config: Config) -> None:
        self.leaf, self.config = leaf, config
        self.own = {var for var, _ in leaf.loops[unrolled:]}
        self.conditions = [
            self._outer(form) for form in (*leaf.guards, *leaf.inside, *(leaf.first or ()))
        ]
        held = {name: position.buffer for name, position in leaf.operands.items()}
        self.operands = [
            (b.name, vector_elements(b, held[b.name].scope, config), held[b.name])
            for b in leaf.call.intrin.operands
        ]
        self.offsets = {
            name: self._outer(leaf.operands[name].offset) for name, _, _ in self.operands
        }
        self.pairs = self._pairs()
        self.selected: dict[tuple[int, ...], list[Selected]] = {}

    def ops(self, env: Env, bases: Bases) -> list[Op]:
        """The instructions for one iteration; none when a guard leaves nothing to do.

        Raises:
            Unroll: the leaf needs its outermost loop unrolled first.
            CodegenError: no amount of unrolling will make it fit.
        """
        first = self._first(env, bases)
        key = (
            *(_value(form, env) for form in self.conditions),
            *(first[a] - first[b] if near else first[a] == first[b] for a, b, near in self.pairs),
        )
        if key not in self.selected:
            self.selected[key] = select(Iteration(self.leaf, env, first, self.config))
        return [each.at(first) for each in self.selected[key]]

    def _outer(self, form: AffineExpr) -> AffineExpr:
        """The part of a form that the loops outside decide."""
        terms = {var: step for var, step in form.terms.items() if var not in self.own}
        return AffineExpr(form.constant, terms)

    def _pairs(self) -> list[tuple[str, str, bool]]:
        """Operands that may lie in one place, and whether how far apart they are matters."""
        output = self.leaf.operands[self.leaf.call.intrin.output.name].buffer
        return [
            (a, b, held is other is output)
            for i, (a, _, held) in enumerate(self.operands)
            for b, _, other in self.operands[:i]
            if _space(held) == _space(other)
        ]

    def _first(self, env: Env, bases: Bases) -> dict[str, int]:
        """The entry of each operand's first vector; in DRAM, where it may begin at any beat, its
        first element."""
        first = {}
        for name, lanes, buffer in self.operands:
            if buffer.scope not in BUFFER_OF_SCOPE:
                first[name] = _value(self.offsets[name], env) + bases.get(buffer, 0)
                continue
            entry, rest = divmod(_value(self.offsets[name], env), lanes)
            if rest:
                raise CodegenError(
                    f"{self.leaf.name}: expected {name} to step by whole vectors of {lanes}"
                )
            first[name] = entry + bases[buffer]
        return first


@dataclass(frozen=True)
class Selected:
    """An instruction of which all is known but where its operands lie.

    Attributes:
        op: bases and accesses count from each operand's first entry.
        bases: the fields that an operand's place is added to.
        places: the same for each access.
        bounds: the least and greatest value that each field holds.
    """

    op: Op
    bases: Mapping[str, Place]
    places: tuple[Place, ...]
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def at(self, first: Mapping[str, int]) -> Op:
        """The instruction with its operands in place.

        Raises:
            Unroll: a base doesn't fit its field.
        """
        instruction = self.op.instruction.copy()
        values = instruction.__dict__
        for name, (operand, unit) in self.bases.items():
            values[name] = value = values[name] + first[operand] * unit
            low, high = self.bounds[name]
            if not low <= value <= high:
                raise Unroll
        accesses = tuple(
            Access(t.space, t.start + first[operand] * unit, t.dims, t.write)
            for t, (operand, unit) in zip(self.op.accesses, self.places, strict=True)
        )
        op = self.op
        return Op(instruction, accesses, op.name, op.tensor, op.uops, op.first)


def select(f: Iteration) -> list[Selected]:
    """The instructions of a leaf; none when a guard leaves nothing to do.

    Raises:
        Unroll: the leaf needs its outermost loop unrolled first.
        CodegenError: no amount of unrolling will make it fit.
    """
    if f.empty:
        return []
    if f.recurrent:
        raise Unroll
    emits = lowering_of(f.leaf.call.intrin).emits
    result = [each for emit in emits for each in _RULES[emit.instruction](f, emit)]
    return [_bounded(each, f.config) for each in result]


def _bounded(selected: Selected, config: Config) -> Selected:
    """An instruction whose fields hold their values, as far as these are known."""
    values, bounds = selected.op.instruction.__dict__, selected.op.instruction.bounds(config)
    for name in values.keys() - selected.bases:
        low, high = bounds[name]
        if not low <= values[name] <= high:
            raise Unroll
    return replace(selected, bounds=bounds)


def _value(form: AffineExpr, env: Env) -> int:
    value = form.constant
    for var, step in form.terms.items():
        value += step * env[var]
    return value


def _space(buffer: Buffer) -> str:
    """The memory that a buffer lies in; in DRAM, the buffer."""
    return BUFFER_OF_SCOPE.get(buffer.scope, buffer.name)


def _load(f: Iteration, emit: Emit) -> list[Selected]:
    if "src" not in emit.roles:
        return _fill(f, emit)
    memory, dst, src = Mem(emit.fields["memory"]), emit.roles["dst"], emit.roles["src"]
    f.normalize()
    entries, words = merge(f.axes), f.entry_words(memory)
    axes = entries if words == 1 else _by_words(entries, words, f.start)
    if len(axes) > 3 or any(a.padded for a in axes[:-2]):
        raise Unroll
    _check_dense(dst, axes)
    z, y, x = _aligned(axes, 3)
    values = {"sram_base": f.start[dst] * words, **f.fields(emit)}
    source = f.start[src] * words
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
    bases, accesses = {"sram_base": (dst, words)}, [(f.access(dst, entries, write=True), (dst, 1))]
    if not empty:
        unit = f.element_bytes(src)
        bases["dram_base"] = src, unit
        dims = [(a.inside[1] - a.inside[0], a.steps[src] * size) for a in axes]
        read = Access(f.space[src], source * size, (*dims, (size, 1)), False)
        accesses.append((read, (src, unit)))
    return [_selected(Load(**values), bases, accesses, f.leaf.name, tensor=f.space[src])]


def _fill(f: Iteration, emit: Emit) -> list[Selected]:
    """A LOAD of padding alone, over all of a tile some of which lies outside of its tensor."""
    f.normalize()
    if not any(axis.padded for axis in f.axes):
        return []
    dst, axes = emit.roles["dst"], f.axes
    _check_dense(dst, axes)
    planes, (rows, cols) = axes[:-2], ([1, 1, *(a.extent for a in axes)])[-2:]
    if max(rows, cols) > 2 * MAX_PAD:
        raise Unroll
    values = {"z_size": prod(a.extent for a in planes), "sram_base": f.start[dst]}
    for letter, size in (("y", rows), ("x", cols)):
        values[f"pad_{letter}0"] = min(size, MAX_PAD)
        values[f"pad_{letter}1"] = size - values[f"pad_{letter}0"]
    written = f.access(dst, axes, write=True), (dst, 1)
    load = Load(**values, **f.fields(emit))
    return [_selected(load, {"sram_base": (dst, 1)}, [written], f.leaf.name)]


def _by_words(axes: Sequence[Axis], words: int, operands: Iterable[str]) -> list[Axis]:
    """Axes over entries as axes over the port words that they consist of."""
    whole = [replace(a, steps={n: step * words for n, step in a.steps.items()}) for a in axes]
    return merge([*whole, Axis(Var("word"), 0, words, dict.fromkeys(operands, 1), (0, words))])


def _store(f: Iteration, emit: Emit) -> list[Selected]:
    memory, acc, out = Mem(emit.fields["memory"]), emit.roles["acc"], emit.roles["out"]
    scale = emit.roles.get("scale", "")
    f.normalize()
    if memory == Mem.INP:
        f.leave_padding()
    axes = merge(f.axes)
    if any(a.extent == 0 for a in axes):
        return []
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
    if memory == Mem.INP:
        unit, tensor = size, ""
        written = f.access(out, axes, write=True), (out, 1)
    else:
        unit, tensor = f.element_bytes(out), f.space[out]
        place = Access(tensor, f.start[out] * size, (*dims, (size, 1)), True)
        written = place, (out, unit)
    bases = {"sram_base": (acc, 1), "dram_base": (out, unit)}
    accesses = [written, (f.access(acc, axes), (acc, 1))]
    if scale:
        bases["scale_base"] = scale, 1
        accesses.append((f.access(scale, axes), (scale, 1)))
    return [_selected(Store(**values), bases, accesses, f.leaf.name, tensor=tensor)]


def _gemm(f: Iteration, emit: Emit) -> list[Selected]:
    acc, inp, wgt = (emit.roles[role] for role in ("acc", "inp", "wgt"))
    bias, fills = emit.roles.get("bias", ""), lowering_of(f.leaf.call.intrin).fills
    nest = Nest(f, {"dst": acc, "src": inp, "wgt": wgt}, row=fills > 0)
    values = {**nest.values(), **f.fields(emit)}
    biased = nest.starts and bias and not f.same_place(bias, acc)
    if not nest.starts or (bias and not biased):
        values["init"] = Init.ACC
    bases = nest.bases
    if bias:
        if any(axis.steps[bias] for axis in nest.inner):
            raise Unroll  # a micro-op has no step for the bias
        values["bias_base"], bases["bias_base"] = f.start[bias], (bias, 1)
        for i, axis in enumerate(nest.loops):
            values[f"bias_{i}"] = axis.steps[bias]
    accesses = [(f.access(acc, f.axes, write=True), (acc, 1))]
    read = [inp]
    if second := emit.roles.get("second"):
        values["pitch"] = _pitch(f, inp, second)
        read.append(second)
    accesses += [(f.access(name, f.axes), (name, 1)) for name in read]
    if fills:
        accesses = _fill_window(fills, values, accesses)
    accesses.append((f.access(wgt, f.axes), (wgt, 1)))
    if biased:
        accesses.append((f.access(bias, f.axes), (bias, 1)))
    uops = {"uops": nest.uops, "first": nest.first}
    return [_selected(Gemm(**values), bases, accesses, f.leaf.name, **uops)]


def _pitch(f: Iteration, inp: str, second: str) -> int:
    """Distance in entries from a window's first row to the second, at every step."""
    if any(axis.steps[inp] != axis.steps[second] for axis in f.axes):
        raise Unroll
    return f.first[second] + f.start[second] - f.first[inp] - f.start[inp]


def _fill_window(
    fills: int, values: dict[str, int], accesses: Sequence[tuple[Access, Place]]
) -> list[tuple[Access, Place]]:
    """Begins each row ``fills`` micro-ops earlier: they fill the window, and their sums go where
    ``widen_rows`` has left room. The first access is what is written, the others what is read."""
    values["extent_2"] += fills
    values["dst_base"] -= fills
    (written, at), *read = accesses
    longer = (fills + 1, 1)
    first = written._replace(start=written.start - fills, dims=(*written.dims, longer))
    rows = [(access._replace(dims=(*access.dims, longer)), place) for access, place in read]
    return [(first, at), *rows]


def _alu(f: Iteration, emit: Emit) -> list[Selected]:
    dst, x, y = emit.roles["dst"], emit.roles.get("x", ""), emit.roles.get("y", "")
    fixed, named = f.fields(emit), emit.roles.get("imm", "")
    if named:
        return [_naming(f, _alu_op(f, dst, y, fixed), named)]
    if not x or f.same_place(x, dst):
        return [_alu_op(f, dst, y, fixed)]
    if y and y != x and f.same_place(y, dst):
        raise CodegenError(f"{f.leaf.name}: expected {x} and the result in one place, found {y}")
    copied = _alu_op(f, dst, x, {"alu_op": AluOp.ADD, "init": 1})
    return [copied, _alu_op(f, dst, y, fixed)]


def _alu_op(f: Iteration, dst: str, y: str, fixed: Mapping[str, int]) -> Selected:
    """One ALU instruction; with ``init`` fixed, every micro-op gives y itself."""
    nest = Nest(f, {"dst": dst, "src": y} if y else {"dst": dst})
    first = (True,) * len(nest.uops) if fixed.get("init") else nest.first
    values = {**nest.values(), "init": nest.starts, **fixed}
    accesses = [(f.access(dst, f.axes, write=True), (dst, 1))]
    if y:
        accesses.append((f.access(y, f.axes), (y, 1)))
    alu, uops = Alu(**values), {"uops": nest.uops, "first": first}
    return _selected(alu, nest.bases, accesses, f.leaf.name, **uops)


def _naming(f: Iteration, selected: Selected, operand: str) -> Selected:
    """An ALU instruction that reads one entry of a memory, whose number is the immediate."""
    if any(axis.steps[operand] for axis in f.axes):
        raise Unroll
    op = selected.op
    instruction = op.instruction.replace(imm=f.start[operand])
    op = op._replace(instruction=instruction, accesses=(*op.accesses, f.access(operand, ())))
    bases = {**selected.bases, "imm": (operand, 1)}
    return Selected(op, bases, (*selected.places, (operand, 1)))


def _selected(
    instruction: Instruction,
    bases: Mapping[str, Place],
    accesses: Sequence[tuple[Access, Place]],
    name: str,
    **rest: Any,
) -> Selected:
    op = Op(instruction, tuple(access for access, _ in accesses), name, **rest)
    return Selected(op, bases, tuple(place for _, place in accesses))


# A rule gives the instructions of one ``Emit`` over the leaf's axes.
_RULES: Mapping[type[Instruction], Callable[[Iteration, Emit], list[Selected]]] = {
    Load: _load,
    Store: _store,
    Gemm: _gemm,
    Alu: _alu,
}


def _aligned(axes: Sequence[Axis], count: int) -> list[Axis | None]:
    """Exactly ``count`` axes: the outermost that are missing are None."""
    return [None] * (count - len(axes)) + list(axes)


def _check_dense(dst: str, axes: Sequence[Axis]) -> None:
    expected = 1
    for axis in reversed(axes):
        if axis.steps[dst] != expected:
            raise Unroll
        expected *= axis.extent
