"""`scan`: a recurrence over the leading axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from vdla.compiler.te.tensor import ComputeOp, IterVar, Operation, TEError, Tensor, producers
from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.ir import Binary, Const, Load
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import loads


@dataclass(frozen=True, slots=True, eq=False)
class ScanOp(Operation):
    """The rows of the outputs: the first from `init`, each later one from `body`.

    `body` are the tensors that one step computes, in order, the updates among them. Updates, inits
    and states lie in the outputs' buffers.
    """

    kind = "scan"
    name: str
    scan_axis: IterVar
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    body: tuple[Tensor, ...]
    outputs: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def rows(self) -> int:
        """How many rows are given by init."""
        return self.init[0].shape[0]

    @property
    def axes(self) -> tuple[IterVar, ...]:
        return (self.scan_axis,)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        own = {*self.members, *self.state}
        found = (x for t in self.members for x in t.compute_op.inputs if x not in own)
        return tuple(dict.fromkeys(found))

    @property
    def members(self) -> tuple[Tensor, ...]:
        return (*self.init, *self.body)

    @property
    def places(self) -> Mapping[Tensor, Tensor]:
        groups = (self.init, self.update, self.state)
        return {t: out for group in groups for t, out in zip(group, self.outputs, strict=True)}


@overload
def scan(
    init: Tensor,
    update: Tensor,
    state_placeholder: Tensor,
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
) -> Tensor: ...


@overload
def scan(
    init: Sequence[Tensor],
    update: Sequence[Tensor],
    state_placeholder: Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
) -> tuple[Tensor, ...]: ...


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
) -> Tensor | tuple[Tensor, ...]:
    """A recurrence over the leading axis, as TVM's: a cumulative sum is::

        state = te.placeholder((m, n), "float32", "state")
        init = te.compute((1, n), lambda _, i: X[0, i], "init")
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], "update")
        S = te.scan(init, update, state)

    which becomes `S[0, i] = X[0, i]`, `for t in m-1: S[t+1, i] = S[t, i] + X[t+1, i]`. Updates may
    be computed by way of other tensors, which are then a part of the step. `init` and `update` are
    stages of their own, of which each loop but the leading one can be scheduled.

    Args:
        init: the first rows; with several states, a list, as the next two.
        update: row `t`, from rows before it.
        state_placeholder: what the update reads; it stands for the result.
        inputs: as TVM takes them; what the steps read is found without.
        name: the result's; several are `name_v0`, `name_v1` …

    Raises:
        TEError: shapes or dtypes differ, or a step reads a row that isn't there yet.
    """
    del inputs
    several = not isinstance(update, Tensor)
    inits, updates, states = (
        (t,) if isinstance(t, Tensor) else tuple(t) for t in (init, update, state_placeholder)
    )
    check_tensors(name, inits, updates, states)
    body = step_tensors(name, updates, states)
    first = updates[0]
    length = first.shape[0] - inits[0].shape[0]
    op = ScanOp(name, IterVar(first.axis[0].name, "int32", length), inits, updates, states, body)
    check_reads(op)
    for n, t in enumerate(updates):
        title = f"{name}_v{n}" if several else name
        op.outputs.append(Tensor(title, t.shape, t.dtype, op=op, value_index=n))
    return tuple(op.outputs) if several else op.outputs[0]


def check_tensors(
    name: str, inits: Sequence[Tensor], updates: Sequence[Tensor], states: Sequence[Tensor]
) -> None:
    if not len(inits) == len(updates) == len(states) > 0:
        raise TEError(
            f"{name}: expected as many inits as updates and states, found {len(inits)}, "
            f"{len(updates)} and {len(states)}"
        )
    for init, update, state in zip(inits, updates, states, strict=True):
        if state.op is not None:
            raise TEError(f"{name}: expected a placeholder as state, found computed {state.name}")
        for tensor in (init, update):
            if not isinstance(tensor.op, ComputeOp) or len(tensor.op.outputs) > 1:
                raise TEError(
                    f"{name}: expected an init and an update by te.compute of one value, "
                    f"found {tensor.name}"
                )
        same = (
            update.shape == state.shape
            and init.shape[1:] == state.shape[1:]
            and init.dtype == update.dtype == state.dtype
            and state.shape
        )
        if (
            not same
            or not init.shape[0] == inits[0].shape[0] < updates[0].shape[0]
            or update.shape[0] != updates[0].shape[0]
        ):
            raise TEError(
                f"{name}: expected an init of fewer rows than the update and the state have, all "
                f"else alike, found {shown(init)}, {shown(update)} and {shown(state)}"
            )


def shown(tensor: Tensor) -> str:
    return f"{tensor.name} {tensor.dtype}{list(tensor.shape)}"


def step_tensors(
    name: str, updates: Sequence[Tensor], states: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """What depends on a state, and the updates, in the order in which a step computes them."""
    inside: set[Tensor] = set(states)
    body: list[Tensor] = []
    for tensor in producers(updates):
        op = tensor.op
        if op is None or not (inside & {*op.inputs} or tensor in updates):
            continue
        if not isinstance(op, ComputeOp) or len(op.outputs) > 1:
            raise TEError(f"{name}: expected steps by te.compute of one value, found {tensor.name}")
        if not tensor.shape or tensor.shape[0] != updates[0].shape[0]:
            raise TEError(
                f"{name}: expected {tensor.name}, which depends on the state, to have "
                f"its {updates[0].shape[0]} rows, found {list(tensor.shape)}"
            )
        inside.add(tensor)
        body.append(tensor)
    return tuple(body)


def check_reads(op: ScanOp) -> None:
    """That row `t` is made of what stands when its turn comes."""
    for tensor in op.init:
        for source in tensor.compute_op.inputs:
            if source in (*op.state, *op.body):
                raise TEError(
                    f"{op.name}: expected an init that doesn't depend on the state, "
                    f"found that {tensor.name} reads {source.name}"
                )
    for tensor in op.body:
        recipe = tensor.compute_op
        parts = (
            recipe.body if recipe.reduce is None else (*recipe.reduce.init, *recipe.reduce.source)
        )
        for load in (x for part in parts for x in loads(part)):
            check_row(op, tensor, load)


def check_row(op: ScanOp, reader: Tensor, load: Load) -> None:
    t = reader.axis[0]
    if load.buffer not in (*op.state, *op.body):
        return
    back = simplify(Binary("sub", t, load.indices[0]), {t: (0, t.extent - 1)})
    low, high = (1, op.rows) if load.buffer in op.state else (0, 0)
    if not isinstance(back, Const) or not low <= back.value <= high:
        rows = (
            t.name
            if not high
            else f"{t.name} - 1"
            if high == 1
            else f"{t.name} - 1 to {t.name} - {high}"
        )
        raise TEError(
            f"{op.name}: {reader.name}: expected to read {load.buffer.name} at row "
            f"{rows}, found {show(load)}"
        )
