"""Tensor intrinsics: an instruction's effect on whole vectors, declared by runnable behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vdla.compiler.tir.ir.buffer import Buffer
from vdla.compiler.tir.ir.error import TermError
from vdla.compiler.tir.ir.expr import Expr, Var


@dataclass(frozen=True, slots=True, eq=False)
class Param(Var):
    """A hole in a behaviour: matches a constant, or (kind ``"expr"``) any loop-invariant value."""

    kind: str = "const"

    def __post_init__(self) -> None:
        if self.kind not in ("const", "expr"):
            raise TermError(f"param {self.name}: expected kind const or expr, found {self.kind!r}")


@dataclass(frozen=True, slots=True)
class Laws:
    """Laws that a behaviour's expression leaves unsaid: for which values it holds, and what
    commutes.

    Attributes:
        ranges: by name, which values (both ends included) an operand, a param or a sum of params
            (``"a + b"``) may have for the behaviour to hold.
        swaps: pairs of names that may change places together without changing the result.
    """

    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    swaps: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrin:
    """An instruction's effect on one vector, as a behaviour that can be matched and run.

    The axes run over the vector; every step is ``output[indices] = update``. In a reduction
    (``init`` isn't None) the update reads ``output[indices]`` too, and the first step is preceded
    by the init.

    Attributes:
        name: as it is printed, and named in errors.
        operands: the output first, then the inputs in their order of appearance.
        params: the holes that take constants or expressions of the matched code.
        axes: variable, extent and kind (``"spatial"`` or ``"reduce"``) of each loop over the
            vector.
        indices: where in the output a step writes.
        update: what a step writes.
        init: what a reduction starts from; None where it is none.
        scopes: by name, in which memory an operand must lie.
        laws: what else the behaviour keeps to.
        cost: cycles per call.
        lowering: the target's: how a call becomes instructions.
    """

    name: str
    operands: tuple[Buffer, ...]
    params: tuple[Param, ...]
    axes: tuple[tuple[Var, int, str], ...]
    indices: tuple[Expr, ...]
    update: Expr
    init: Expr | None
    scopes: Mapping[str, str] = field(default_factory=dict)
    laws: Laws = field(default_factory=Laws)
    cost: int = 1
    lowering: object = None

    @property
    def output(self) -> Buffer:
        """The operand that the intrinsic writes."""
        return self.operands[0]

    @property
    def is_reduction(self) -> bool:
        """Whether steps add to what is there, from an init on."""
        return self.init is not None
