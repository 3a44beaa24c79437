"""Schedules for an expression of te on the accelerator, derived from the expression alone.

    for tiles of the result, in some order, shared by virtual threads or not:
        load what a tile needs                  at one of these loops, or at the reduction's
        for parts of the reduction: accumulate
        what stands between, step by step
        store

Which stage is in which memory says ``roles``. What is open are knobs: the tile's size along each
axis, as long as ACC holds it; the order of the loops over tiles; the reduction's part; where each
operand is loaded, and in how many copies; virtual threads; whether the reduction's parts are
instructions of their own. What the memories can't hold is no schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
from vdla.compiler.targets.accelerator.description.memory import BUFFER_OF_SCOPE, depth, entry_shape
from vdla.compiler.targets.accelerator.operators.cost import parts
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.roles import (
    Placed,
    lanes,
    place,
    product,
    roles_of,
    settle,
)
from vdla.compiler.targets.search.draft import orders
from vdla.compiler.targets.search.knobs import Knobs
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Alloc, PrimFunc, Var
from vdla.compiler.tir.visitor import walk
from vdla.isa.config import Config

COPIES = (1, 2, 4, 8, 16)  # of what is loaded, in turn
Derived = Callable[[Schedule, Knobs], None]


def derive(function: AcceleratorFunction) -> Derived:
    """The schedules of an expression, as a function of knobs.

    Raises:
        ScheduleError: no rule knows its stages.
    """
    roles = roles_of(function)

    def schedule(s: Schedule, knobs: Knobs) -> None:
        _Rule(s, knobs, place(s, function, roles), function.config).apply()

    return schedule


class _Rule:
    """The schedules of one expression; ``tile`` is the loop over tiles within which one is made."""

    def __init__(self, s: Schedule, knobs: Knobs, placed: Placed, config: Config) -> None:
        self.s, self.knobs, self.placed, self.config = s, knobs, placed, config
        self.result = s[placed.result]

    def apply(self) -> None:
        """Schedules the stages from the result to what is loaded."""
        outer, lane = self.tiles()
        tile = outer[-1]
        if self.result.extent(tile) > 1 and self.knobs.knob("threads", [1, 2]) == 2:
            self.result.bind(tile, te.thread_axis("vthread", threads=2))
        for name in reversed(self.topological(self.placed.steps)):
            self.s[name].compute_at(self.result, tile)
        parts = {n: self.reduction(self.s[n]) for n in self.placed.steps if self.s[n].reduce_axis}
        for name in self.placed.loads:
            self.load(name, outer, parts)
        check_room(self.s.mod, self.config)
        ins = intrinsics(self.config)
        for name, scope in self.placed.scopes.items():
            settle(self.s[name], scope, ins)
        self.result.tensorize(lane, ins)

    def topological(self, names: Sequence[str]) -> list[str]:
        """Stages, each behind those that it reads."""
        return [name for name in self.s.stages if name in names]

    def tiles(self) -> tuple[list[Var], Var]:
        """The loops over tiles, outermost first, and the lanes of the result."""
        axes, lane = list(self.result.axis), self.result.axis[-1]
        axes.pop()
        if self.result.extent(lane) > self.config.block_out:
            across, lane = self.result.split(lane, factor=self.config.block_out)
            axes.append(across)
        room = depth(ACC, self.config)
        outer, inner = list[Var](), list[Var]()
        for axis in axes:
            if self.result.extent(axis) == 1:
                outer.append(axis)
                continue
            limit = room // prod(self.result.extent(each) for each in inner)
            across, within = self.knobs.split(
                f"tile {axis.name}",
                self.result,
                axis,
                factors=parts(self.result.extent(axis)),
                filter=_at_most(limit),
            )
            outer.append(across)
            inner.append(within)
        many = [axis for axis in outer if self.result.extent(axis) > 1]
        single = [axis for axis in outer if axis not in many]
        if len(many) > 1:
            named = {" ".join(v.name for v in order): order for order in orders(many)}
            many = list(self.knobs.choice("order", named))
        self.result.reorder(*single, *many, *inner, lane)
        if not single and not many:
            raise ScheduleError("sketch: expected a result of several vectors, found one")
        return [*single, *many], lane

    def reduction(self, stage: Stage) -> Var | None:
        """Puts a reduction's loops in order; the loop over its parts, where it has several."""
        around = list(stage.axis)
        *axes, inside = stage.reduce_axis
        lane = lanes(stage, ACC, self.config)
        if lane is not around.pop():
            around.append(stage.leaf_iter_vars[stage.leaf_iter_vars.index(lane) - 1])
        if not (isinstance(stage.op, ComputeOp) and product(stage.op)):
            stage.reorder(*around, *axes, inside, lane)
            return None
        if stage.extent(inside) > self.config.block_in:
            more, inside = stage.split(inside, factor=self.config.block_in)
            axes.append(more)
        long = next((axis for axis in axes if stage.extent(axis) > 1), None)
        if long is None:
            stage.reorder(*around, *axes, lane, inside)
            return None
        part, inner = self.knobs.split(f"part {stage.name}", stage, long)
        axes[axes.index(long)] = inner
        if stage.extent(part) > 1 and self.knobs.knob(f"unrolled {stage.name}", [False, True]):
            stage.unroll(part)
        stage.reorder(part, *around, *axes, lane, inside)
        return part if stage.extent(part) > 1 else None

    def load(self, name: str, outer: Sequence[Var], parts: dict[str, Var | None]) -> None:
        """Places a load: outside of all loops, at one over tiles, or at a part of the reduction
        that alone reads it."""
        stage = self.s[name]
        if self.placed.scopes[name] == ACC:
            if self.knobs.knob(f"load {name}", ["once", "tile"]) == "tile":
                stage.compute_at(self.result, outer[-1])
            return
        readers = [n for n in parts if self.reads(n, name)]
        places: dict[str, tuple[Stage, Var]] = {
            axis.name: (self.result, axis) for axis in outer if self.result.extent(axis) > 1
        }
        places = places or {outer[-1].name: (self.result, outer[-1])}
        if len(readers) == 1 and (part := parts[readers[0]]) is not None:
            places["part"] = self.s[readers[0]], part
        where, loop = self.knobs.choice(f"load {name}", places)
        stage.compute_at(where, loop)
        stage.double_buffer(self.knobs.knob(f"copies {name}", COPIES))
        long = [axis for axis in stage.leaf_iter_vars[:-2] if stage.extent(axis) > 1]
        streamed = bool(long) and self.knobs.knob(f"streamed {name}", [False, True])
        if streamed:
            stage.unroll(long[0])

    def reads(self, reader: str, name: str) -> bool:
        """Whether a stage reads another one."""
        op = self.s[reader].op
        own = isinstance(op, ComputeOp) and any(t.name == name for t in op.inputs)
        return own or any(name.startswith(f"{t.name}_") for t in op.inputs)


def _at_most(limit: int) -> Callable[[tuple[int, ...]], bool]:
    """Whether the inner loop of a split has at most so many steps."""
    return lambda sizes: sizes[-1] <= limit


def check_room(func: PrimFunc, config: Config) -> None:
    """Raises ScheduleError where a function's buffers exceed a memory of the config."""
    taken: dict[str, int] = {}
    for stmt in walk(func.body):
        if isinstance(stmt, Alloc) and stmt.buffer.scope in BUFFER_OF_SCOPE:
            scope = stmt.buffer.scope
            entry = prod(entry_shape(scope, config))
            size = -(-stmt.buffer.size // entry) * stmt.buffer.copies
            taken[scope] = taken.get(scope, 0) + size
    for scope, entries in taken.items():
        if entries > depth(scope, config):
            raise ScheduleError(
                f"sketch: expected at most {depth(scope, config)} entries of {scope}, "
                f"found {entries}"
            )
