"""``assemble``: a tensor whose parts are computed by themselves, each at its own place in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vdla.compiler.te.tensor import ComputeOp, Operation, Shape, TEError, Tensor, as_shape
from vdla.compiler.tir.ir import Expr, ExprLike, as_expr

Place = Callable[..., tuple[ExprLike, ...]]  # from a part's indices to the assembled tensor's


@dataclass(frozen=True, slots=True, eq=False)
class AssembleOp(Operation):
    """The operation of ``te.assemble``: parts that lie in the output's buffer.

    Attributes:
        name: the stage's name.
        parts: the tensors that are computed at their places.
        where: by part, the output's indices of its element at its own axes.
        outputs: the assembled tensor.
    """

    kind = "assemble"
    name: str
    parts: tuple[Tensor, ...]
    where: tuple[tuple[Expr, ...], ...]
    outputs: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the parts read, in order of appearance."""
        return tuple(dict.fromkeys(x for part in self.parts for x in part.compute_op.inputs))

    @property
    def members(self) -> tuple[Tensor, ...]:
        """The parts, which are stages of their own."""
        return self.parts

    @property
    def places(self) -> Mapping[Tensor, Tensor]:
        """The output, in whose buffer each part lies."""
        return dict.fromkeys(self.parts, self.outputs[0])


def assemble(
    shape: Shape, parts: Sequence[tuple[Tensor, Place]], name: str = "assembled"
) -> Tensor:
    """A tensor of parts; two rows behind each other are::

        C = te.assemble((2, n), [(A, lambda i: (0, i)), (B, lambda i: (1, i))], "C")

    which becomes::

        for i in n: C[0, i] = …  # what A is computed as
        for i in n: C[1, i] = …

    Each part is a stage of its own, whose loops can be scheduled; it has no buffer of its own. An
    element that no part has a place for isn't written.

    Args:
        shape: the result's.
        parts: tensors by ``te.compute``, each with a function from its indices to the result's.
        name: of the result.

    Raises:
        TEError: a part isn't one tensor by ``te.compute``, or reads another one; or its dtype or
            the number of its indices isn't the result's.
    """
    dims = as_shape(shape, name)
    tensors = tuple(part for part, _ in parts)
    if not tensors:
        raise TEError(f"{name}: expected at least one part, found none")
    where = []
    for part, place in parts:
        _check(name, part, tensors)
        indices = tuple(as_expr(i, "int32") for i in place(*part.axis))
        if len(indices) != len(dims):
            raise TEError(
                f"{name}: expected {len(dims)} indices for {part.name}, found {len(indices)}"
            )
        where.append(indices)
    op = AssembleOp(name, tensors, tuple(where))
    op.outputs.append(Tensor(name, dims, tensors[0].dtype, op=op))
    return op.outputs[0]


def _check(name: str, part: Tensor, parts: Sequence[Tensor]) -> None:
    """Raises where a tensor can't be a part."""
    if not isinstance(part.op, ComputeOp) or len(part.op.outputs) > 1:
        raise TEError(f"{name}: expected parts by te.compute of one value, found {part.name}")
    if part.dtype != parts[0].dtype:
        raise TEError(
            f"{name}: expected parts of {parts[0].dtype}, found {part.name} of {part.dtype}"
        )
    for source in part.op.inputs:
        if source in parts:
            raise TEError(
                f"{name}: expected parts that don't read each other, found that {part.name} reads "
                f"{source.name}"
            )
