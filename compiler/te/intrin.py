"""Tensor intrinsics declared by what they compute: TVM's ``te.decl_tensor_intrin``.

The behaviour is an ordinary ``te.compute``. ``tensorize`` finds by matching it, and the
interpreter runs it, so that one declaration is all there is to keep right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vdla.compiler.te.tensor import TEError, Tensor
from vdla.compiler.tir.ir import Expr, Load
from vdla.compiler.tir.ir.intrin import Laws, Param, TensorIntrin
from vdla.compiler.tir.visitor import walk_expr


def param(name: str, dtype: str = "int32", kind: str = "const") -> Param:
    """A parameter of an intrinsic's behaviour, which takes its value from the code that is matched.

    In ``te.compute((16,), lambda l: X[l] + imm)`` with ``imm = te.param("imm")``, the behaviour
    matches ``A[y, l] + 3`` with ``imm = 3``.

    Args:
        name: the instruction field or operand that it becomes, as ``lowering`` calls it.
        dtype: of its values.
        kind: ``"const"`` matches a constant; ``"expr"`` any expression that doesn't use the
            intrinsic's own loops.
    """
    return Param(name, dtype, kind)


def decl_intrin(
    name: str,
    output: Tensor,
    params: Sequence[Param] = (),
    scopes: Mapping[Tensor, str] | None = None,
    laws: Laws | None = None,
    lowering: object = None,
    cost: int = 1,
) -> TensorIntrin:
    """An intrinsic that does to one vector what the compute of ``output`` says.

    The compute must read placeholders only. A reduction becomes an accumulation in place: its init
    runs on the first step, later steps update what is there. With ``axis=[]`` one step is
    ``dst = op(dst, src)``.

    Args:
        name: as it is printed, and named in errors.
        output: what the instruction writes; its compute is the behaviour.
        params: the parameters that the behaviour uses, all of them.
        scopes: in which memory each tensor must lie; any, where it isn't named.
        laws: for which values the behaviour holds, and which names may change places; by default
            it holds for all, and none may.
        lowering: how a call becomes instructions; for the target's code generator alone.
        cost: cycles per call; of several intrinsics that match, ``tensorize`` takes the cheapest.

    Raises:
        TEError: the compute reads computed tensors or has several values, its parameters and
            ``params`` differ, or ``scopes`` names a tensor that it doesn't touch.
    """
    op = output.compute_op
    for tensor in op.inputs:
        if tensor.op is not None:
            raise TEError(f"{name}: expected placeholders as inputs, found computed {tensor.name}")
    if len(op.body) > 1:
        raise TEError(f"{name}: expected one output, found {len(op.body)} computed together")
    axes = tuple((a, a.extent, a.kind) for a in op.axes)
    update: Expr = op.body[0]
    init: Expr | None = None
    if op.reduce is not None:
        (init,) = op.reduce.init
        (update,) = op.reduce.reducer.combine([Load(output, op.axis)], op.reduce.source)
    _check_params(name, output, params)
    where = {t.name: scope for t, scope in (scopes or {}).items()}
    operands = (output, *op.inputs)
    unknown = set(where) - {t.name for t in operands}
    if unknown:
        raise TEError(f"{name}: scopes name {', '.join(sorted(unknown))}, which it doesn't touch")
    return TensorIntrin(
        name,
        operands,
        tuple(params),
        axes,
        op.axis,
        update,
        init,
        where,
        laws or Laws(),
        cost,
        lowering,
    )


def _check_params(name: str, output: Tensor, params: Sequence[Param]) -> None:
    """Raises where ``params`` aren't exactly the parameters that the behaviour uses."""
    op = output.compute_op
    parts = op.body if op.reduce is None else (*op.reduce.init, *op.reduce.source)
    used = {e for part in parts for e in walk_expr(part) if isinstance(e, Param)}
    for p in params:
        if p not in used:
            raise TEError(f"{name}: param {p.name} isn't used by the behaviour")
    for p in used:
        if p not in params:
            raise TEError(f"{name}: param {p.name} is used but not declared")
