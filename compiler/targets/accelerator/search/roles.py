"""Roles of an expression's stages on the accelerator: which memory holds one, and what is loaded.

All follows from the expression. Of a product of int8 numbers, the operand that changes with the
lanes of the result is the weights, the other one the data. What else is computed is in ACC. A stage
is a load where one instruction makes it of what DRAM holds; what another stage reads of DRAM has a
copy in the memory that it is read from. A result that no STORE makes is computed in ACC, and
stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Binary, Cast, Load, Var
from vdla.compiler.tir.visitor import uses
from vdla.isa.config import Config


@dataclass(frozen=True)
class Copy:
    """A copy of what DRAM holds, in a memory, for some stages."""

    tensor: str
    scope: str
    readers: tuple[str, ...]


@dataclass(frozen=True)
class Roles:
    """Memories of stages by name, copies, and whether the result is computed in ACC first."""

    scopes: Mapping[str, str]
    copies: Sequence[Copy]
    written: bool


@dataclass
class Placed:
    """Stages of a schedule whose memories are set: those that load, those that compute, in order,
    and the memory of each."""

    result: str
    loads: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    scopes: dict[str, str] = field(default_factory=dict)

    @property
    def constants(self) -> list[str]:
        """Loads into ACC that are copies."""
        return [name for name in self.loads if self.scopes[name] == ACC]


def roles_of(function: AcceleratorFunction) -> Roles:
    """The roles of a function's stages.

    Raises:
        ScheduleError: a stage isn't one of one tensor by ``te.compute``, or a tensor is both data
            and weights.
    """
    made = None
    for written in (False, True):
        made = _Finder(function, written).roles()
        try:
            s = function.schedule()
            placed = place(s, function, made)
            settle(s[placed.result], ACC, intrinsics(function.config))
        except ScheduleError:
            continue
        return made
    assert made is not None
    return made


def place(s: Schedule, function: AcceleratorFunction, roles: Roles) -> Placed:
    """Sets the memories of a schedule's stages, and makes its copies."""
    result = function.layers[0]
    placed = Placed(result)
    renamed = {result: result}
    if roles.written:
        renamed[result] = s.cache_write(result, ACC).name
        placed.scopes[renamed[result]] = ACC
        placed.steps.append(renamed[result])
    for name, scope in roles.scopes.items():
        s[name].set_scope(scope)
        placed.scopes[name] = scope
        kind = placed.loads if scope != ACC else placed.steps
        kind.append(name)
    for copy in roles.copies:
        readers = [renamed.get(name, name) for name in copy.readers]
        name = s.cache_read(copy.tensor, copy.scope, readers).name
        placed.scopes[name] = copy.scope
        placed.loads.append(name)
    return placed


def settle(stage: Stage, scope: str, ins: Intrinsics) -> None:
    """Makes the innermost loops of a stage one instruction.

    Raises:
        ScheduleError: no instruction does what the stage does.
    """
    stage.tensorize(lanes(stage, scope, ins.config), ins)


def lanes(stage: Stage, scope: str, config: Config) -> Var:
    """The loop of a stage that becomes one instruction, split off where it is longer."""
    if scope == WGT:
        return stage.axis[-2]
    *_, last = stage.leaf_iter_vars if not stage.reduce_axis else stage.axis
    if stage.reduce_axis and last not in stage.leaf_iter_vars:
        return stage.leaf_iter_vars[-2]  # split off before
    size = config.block_in if scope == INP else config.block_out
    return stage.split(last, factor=size)[1] if stage.extent(last) > size else last


@dataclass
class _Finder:
    """Finds roles, with the result computed in ACC first (``written``) or not."""

    function: AcceleratorFunction
    written: bool

    @property
    def ops(self) -> dict[str, ComputeOp]:
        """The operations by name."""
        result: dict[str, ComputeOp] = {}
        for name, op in self.function.built.stages.items():
            if not isinstance(op, ComputeOp) or len(op.outputs) > 1:
                raise ScheduleError(
                    f"sketch {name}: expected a stage of one tensor by te.compute, found another"
                )
            result[name] = op
        return result

    def roles(self) -> Roles:
        result, read_as = self.function.layers[0], dict[tuple[str, str], str]()
        for name, op in self.ops.items():
            operands = product(op)
            for tensor in op.inputs:
                scope = operands.get(tensor.name, ACC)
                read_as[name, tensor.name] = scope
        scopes: dict[str, str] = {}
        for name in self.ops:
            if name != result:
                memories = {scope for (_, read), scope in read_as.items() if read == name} or {ACC}
                if len(memories) > 1:
                    raise ScheduleError(
                        f"sketch {name}: expected data or weights of products, found a tensor "
                        f"that is read from {' and '.join(sorted(memories))}"
                    )
                (scopes[name],) = memories
        copies: dict[tuple[str, str], list[str]] = {}
        for name, op in self.ops.items():
            inputs = [t for t in op.inputs if t.op is None]
            if name in scopes and len(inputs) == len(op.inputs) and self._loads(name, scopes[name]):
                continue
            for tensor in inputs:
                copies.setdefault((tensor.name, read_as[name, tensor.name]), []).append(name)
        listed = [Copy(tensor, scope, tuple(names)) for (tensor, scope), names in copies.items()]
        return Roles(scopes, listed, self.written)

    def _loads(self, name: str, scope: str) -> bool:
        """Whether one instruction makes a stage of what DRAM holds."""
        s = self.function.schedule()
        try:
            s[name].set_scope(scope)
            settle(s[name], scope, intrinsics(self.function.config))
        except ScheduleError:
            return False
        return True


def product(op: ComputeOp) -> dict[str, str]:
    """The memories of a product's operands, by name; of another operation, nothing."""
    if op.reduce is None or not op.axis:
        return {}
    match op.reduce.source[0]:
        case Binary("mul", Cast(Load() as a, "int32"), Cast(Load() as b, "int32")):
            pair = (a, b)
        case _:
            return {}
    if any(load.buffer.dtype != "int8" for load in pair):
        return {}
    lane: set[Var] = {op.axis[-1]}
    varying = [any(uses(index, lane) for index in load.indices) for load in pair]
    if varying[0] == varying[1]:
        return {}
    return {
        load.buffer.name: WGT if each else INP for load, each in zip(pair, varying, strict=True)
    }
