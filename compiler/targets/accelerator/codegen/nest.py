"""The loop nest of a GEMM or ALU instruction: three loops, and micro-ops inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from vdla.compiler.targets.accelerator.codegen.axes import Axis, Iteration, Unroll, merge
from vdla.compiler.targets.accelerator.codegen.leaf import AffineExpr
from vdla.compiler.targets.accelerator.codegen.op import UopRow
from vdla.compiler.tir.ir import Var

MAX_UOPS = 1024

Place = tuple[str, int]  # an operand, and what one of its entries counts: 1, or bytes in DRAM


class Nest:
    """Axes split into three loops and the micro-ops inside them.

    A reduction's loops become micro-ops, because only a micro-op can be marked first. With ``row``
    the third loop is the one along a row, where a window slides, and there is one micro-op.
    """

    def __init__(self, f: Iteration, operands: Mapping[str, str], *, row: bool = False) -> None:
        self.folder, self.operands = f, operands
        forms = [form.at(f.env) for form in f.leaf.first or ()]
        lows = {a.var: a.low for a in f.axes}
        f.normalize()
        forms = [_shifted(form, lows) for form in forms]
        reducing = [i for i, a in enumerate(f.axes) if any(form.step(a.var) for form in forms)]
        split = min(reducing, default=len(f.axes))
        self.loops = merge(f.axes[:split])
        self.inner = list(f.axes[split:])
        if row:
            self._keep_row()
        while len(self.loops) > 3:
            self.inner.insert(0, self.loops.pop())
        most = min(MAX_UOPS, f.config.uop_depth)
        if prod(a.extent for a in self.inner) > most or _negative(f.axes):
            raise Unroll
        self.uops, first = self._micro_ops(self.inner, forms)
        self.first = None if f.leaf.first is None else first
        self.starts = self.first is not None and any(self.first)

    def _keep_row(self) -> None:
        """Makes the loop along a row the third one, or one of a single step where there is none.

        Raises:
            Unroll: there are more loops than two around it, or a reduction's.
        """
        axes = self.folder.axes
        along = axes[-1:] if axes and self._is_row(axes[-1]) else []
        outer = merge(axes[: len(axes) - len(along)])
        if self.inner or len(outer) > 2:
            raise Unroll
        row = along or [self._single("dst", "src")]
        self.loops = [*(self._single() for _ in range(2 - len(outer))), *outer, *row]

    def _is_row(self, axis: Axis) -> bool:
        """Whether an axis steps from entry to entry, as pixels of a row follow one another."""
        return all(axis.steps[self.operands[role]] == 1 for role in ("dst", "src"))

    def _single(self, *moving: str) -> Axis:
        """An axis of one step, from one entry of some operands to the next."""
        steps = dict.fromkeys(self.folder.start, 0)
        steps.update((self.operands[role], 1) for role in moving)
        return Axis(Var("one"), 0, 1, steps, (0, 1))

    @property
    def bases(self) -> dict[str, Place]:
        """The fields that say where the operands lie."""
        return {f"{role}_base": (operand, 1) for role, operand in self.operands.items()}

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
        self, inner: list[Axis], forms: list[AffineExpr]
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


def _shifted(form: AffineExpr, lows: Mapping[Var, int]) -> AffineExpr:
    """A form over axes that now start at 0."""
    constant = form.constant + sum(step * lows.get(v, 0) for v, step in form.terms.items())
    return AffineExpr(constant, form.terms)


def _negative(axes: Sequence[Axis]) -> bool:
    return any(step < 0 for axis in axes for step in axis.steps.values())
