"""Folding: a leaf, with the loops outside it known, becomes one instruction.

Each rule takes the leaf's loops outermost first as axes, merges neighbours that step as one, and
fits the rest into what the instruction has: three loops and micro-ops (GEMM, ALU), or planes, rows
and entries (LOAD, STORE). A leaf that doesn't fit raises ``Unroll``: its outermost loop is then
unrolled and each iteration folded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

from vdla.compiler.codegen.vdla.axes import MAX_PAD, Axis, Bases, Folder, Unroll, merge
from vdla.compiler.codegen.vdla.leaf import CodegenError, Env, Form, Leaf
from vdla.compiler.codegen.vdla.op import Op, Touch, UopRow
from vdla.compiler.target.lowering import Emit, lowering_of
from vdla.compiler.tir.ir import Var
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Gemm, Init, Instruction, Load, Mem, Store

MAX_UOPS = 1024


def fold(leaf: Leaf, env: Env, bases: Bases, config: Config) -> list[Op]:
    """The instructions of a leaf for known outer loops; none when a guard leaves nothing to do.

    Raises:
        Unroll: the leaf needs its outermost loop unrolled first.
        CodegenError: no amount of unrolling will make it fit.
    """
    folder = Folder(leaf, env, bases, config)
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


def _load(f: Folder, emit: Emit) -> list[Op]:
    memory, dst, src = Mem(emit.fields["memory"]), emit.roles["dst"], emit.roles["src"]
    f.normalize()
    axes = merge(f.axes)
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


def _store(f: Folder, emit: Emit) -> list[Op]:
    memory, acc, out = Mem(emit.fields["memory"]), emit.roles["acc"], emit.roles["out"]
    scale = emit.roles.get("scale", "")
    f.normalize()
    axes = merge(f.axes)
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


def _gemm(f: Folder, emit: Emit) -> list[Op]:
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


def _alu(f: Folder, emit: Emit) -> list[Op]:
    dst, x, y = emit.roles["dst"], emit.roles.get("x", ""), emit.roles.get("y", "")
    fixed = f.fields(emit)
    if not x or f.same_place(x, dst):
        return [_alu_op(f, dst, y, fixed)]
    if y and y != x and f.same_place(y, dst):
        raise CodegenError(f"{f.leaf.name}: expected {x} and the result in one place, found {y}")
    copied = _alu_op(f, dst, x, {"alu_op": AluOp.ADD, "init": 1})
    return [copied, _alu_op(f, dst, y, fixed)]


def _alu_op(f: Folder, dst: str, y: str, fixed: Mapping[str, int]) -> Op:
    """One ALU instruction; with ``init`` fixed, every micro-op gives y itself."""
    nest = _Nest(f, {"dst": dst, "src": y} if y else {"dst": dst})
    first = (True,) * len(nest.uops) if fixed.get("init") else nest.first
    values = {**nest.values(), "init": nest.starts, **fixed}
    touches = [f.touch(dst, f.axes, write=True)]
    if y:
        touches.append(f.touch(y, f.axes))
    return Op(Alu(**values), tuple(touches), f.leaf.name, uops=nest.uops, first=first)


# A rule gives the instructions of one ``Emit`` over the leaf's axes.
_RULES: Mapping[type[Instruction], Callable[[Folder, Emit], list[Op]]] = {
    Load: _load,
    Store: _store,
    Gemm: _gemm,
    Alu: _alu,
}


class _Nest:
    """Axes split into three loops and the micro-ops inside them.

    A reduction's loops become micro-ops, because only a micro-op can be marked first.
    """

    def __init__(self, f: Folder, operands: Mapping[str, str]) -> None:
        self.folder, self.operands = f, operands
        forms = [form.at(f.env) for form in f.leaf.first or ()]
        lows = {a.var: a.low for a in f.axes}
        f.normalize()
        forms = [_shifted(form, lows) for form in forms]
        reducing = [i for i, a in enumerate(f.axes) if any(form.step(a.var) for form in forms)]
        split = min(reducing, default=len(f.axes))
        self.loops = merge(f.axes[:split])
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
