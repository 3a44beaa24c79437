"""``scan``: a recurrence over the leading axis, such as a cumulative sum or a recurrent network."""

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
    """The operation of ``te.scan``: first rows from ``init``, later ones from ``body``.

    Updates, inits and states have no buffers of their own: they lie in the outputs'.

    Attributes:
        name: the stage's name.
        scan_axis: the loop over the rows that are computed by steps.
        init: the first rows, one tensor per output.
        update: row ``t`` from rows before it, one tensor per output.
        state: the placeholders through which the updates read the outputs.
        body: the tensors that one step computes, in order, the updates among them.
        outputs: the whole results.
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
        """Number of leading rows that ``init`` gives."""
        return self.init[0].shape[0]

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """The one loop of the scan itself; its steps' other loops belong to their own stages."""
        return (self.scan_axis,)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that inits and steps read from outside the scan, in order of appearance."""
        own = {*self.members, *self.state}
        result = (x for t in self.members for x in t.compute_op.inputs if x not in own)
        return tuple(dict.fromkeys(result))

    @property
    def members(self) -> tuple[Tensor, ...]:
        """The tensors that are computed inside the scan alone: inits, then the steps' in order."""
        return (*self.init, *self.body)

    @property
    def places(self) -> Mapping[Tensor, Tensor]:
        """The output in whose buffer each init, update and state lies."""
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
    """A recurrence over the leading axis; a cumulative sum is::

        state = te.placeholder((m, n), "float32", "state")
        init = te.compute((1, n), lambda _, i: X[0, i], "init")
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], "update")
        S = te.scan(init, update, state)

    which becomes::

        for i in n: S[0, i] = X[0, i]
        for t in m-1: for i in n: S[t+1, i] = S[t, i] + X[t+1, i]

    Updates may be computed by way of other tensors, which are then a part of the step. ``init`` and
    ``update`` are stages of their own, of which each loop but the leading one can be scheduled.

    Args:
        init: the first rows; with several states, a list, as the next two.
        update: row ``t``, from rows before it.
        state_placeholder: what the update reads; it stands for the result.
        inputs: ignored; TVM takes it, here what the steps read is found without.
        name: the result's; several are ``name_v0``, ``name_v1`` …

    Returns:
        The tensor of all rows; of lists, a tuple of them.

    Raises:
        TEError: shapes or dtypes differ, or a step reads a row that isn't there yet.
    """
    del inputs
    several = not isinstance(update, Tensor)
    inits, updates, states = (
        (t,) if isinstance(t, Tensor) else tuple(t) for t in (init, update, state_placeholder)
    )
    _check_tensors(name, inits, updates, states)
    body = _step_tensors(name, updates, states)
    first = updates[0]
    length = first.shape[0] - inits[0].shape[0]
    op = ScanOp(name, IterVar(first.axis[0].name, "int32", length), inits, updates, states, body)
    _check_reads(op)
    for n, t in enumerate(updates):
        title = f"{name}_v{n}" if several else name
        op.outputs.append(Tensor(title, t.shape, t.dtype, op=op, value_index=n))
    return tuple(op.outputs) if several else op.outputs[0]


def _check_tensors(
    name: str, inits: Sequence[Tensor], updates: Sequence[Tensor], states: Sequence[Tensor]
) -> None:
    """Raises where inits, updates and states don't fit each other in number, shape or dtype."""
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
                f"else alike, found {_shown(init)}, {_shown(update)} and {_shown(state)}"
            )


def _shown(tensor: Tensor) -> str:
    """A tensor's name, dtype and shape, for messages."""
    return f"{tensor.name} {tensor.dtype}{list(tensor.shape)}"


def _step_tensors(
    name: str, updates: Sequence[Tensor], states: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Tensors that depend on a state, and the updates, in the order in which a step
    computes them.
    """
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


def _check_reads(op: ScanOp) -> None:
    """Raises where row ``t`` is made of something that isn't computed when its turn comes."""
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
            _check_row(op, tensor, load)


def _check_row(op: ScanOp, reader: Tensor, load: Load) -> None:
    """Raises where the state, or a part of the step, is read at a row that isn't there yet."""
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
