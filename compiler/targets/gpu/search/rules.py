"""Sketches for a GPU, from an expression's own structure, and from the default schedule.

Rules (after Ansor, Zheng et al., OSDI'20, for GPUs):

- ``tile``: a reduction that reads its inputs more than once is computed in tiles of the result's
  last two dimensions. A group has a tile, each of its threads a part, or several parts that lie
  apart (virtual threads). What is read again comes through shared memory, which all threads of the
  group load, one step ahead or not.
- ``flat tile``: the same, where all dimensions behind the channels count as one.
- ``tree``: a long reduction to few results is done in parts by a group of threads.
- ``elements``: each element by a thread, or several by one.

A rule tries its primitives on a schedule; where one doesn't apply there is no such sketch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from vdla.compiler import te
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.schedule.trace import Json, Step
from vdla.compiler.targets.gpu.search.function import GpuFunction
from vdla.compiler.targets.search.draft import Draft, reuses, volume
from vdla.compiler.targets.search.sketch import Knob, Limit, Sketch
from vdla.compiler.te.tensor import ComputeOp, Tensor
from vdla.compiler.tir.ir import BLOCK_TAGS, SHARED, THREAD_TAGS, Var
from vdla.compiler.tir.visitor import loads
from vdla.support.numbers import divisors

COPIES = 64  # of an unrolled tile, at most
APART = (1, 2, 4)  # parts of a thread along one dimension
SEVERAL = (1, 2, 4, 8)  # elements of a thread that are computed one after the other
LONG = 64  # steps of a reduction from which on several threads share it
_Draft = Draft[GpuFunction]


def derive(function: GpuFunction) -> list[Sketch]:
    """The sketches of a function; none of one that has nothing to schedule."""
    rules: tuple[Callable[[_Draft], None], ...] = (_tile, _flat_tile, _tree, _elements)
    result: list[Sketch] = []
    for rule in rules:
        draft = Draft(function)
        try:
            rule(draft)
        except ScheduleError:
            continue
        result.append(draft.sketch(rule.__name__.strip("_").replace("_", " ")))
    return [sketch for sketch in result if sketch.knobs]


# The default schedule as a template -----------------------------------------------------------


def template(function: GpuFunction) -> list[Sketch]:
    """The default schedule with the factors of its splits as knobs; nothing without splits.

    Splits for threads of one dimension share their factor, so that a group that computes loads
    with all of its threads. What is loaded to shared memory may be loaded a step ahead.
    """
    draft = _Template(function)
    for step in function.default:
        draft.add(step)
    return [draft.sketch()] if draft.chains else []


@dataclass
class _Template:
    """The default schedule, step by step.

    ``tags`` are the threads that loops are bound to, ``threads`` the splits for threads of one
    dimension, each a step's position and the extent of the loop that it splits, and ``chains`` the
    positions of the splits of each loop, and of their outer loops.
    """

    function: GpuFunction
    steps: list[Step] = field(default_factory=list)
    knobs: dict[int, Knob] = field(default_factory=dict)
    threads: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    chains: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    roots: dict[str, tuple[str, int]] = field(default_factory=dict)
    ahead: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        trace = self.function.default
        self.s = self.function.schedule()
        self.tags = {
            step.args["axis"]: step.args["thread"] for step in trace if step.primitive == "bind"
        }
        self.shared = {
            step.stage
            for step in trace
            if step.primitive == "set_scope" and step.args["scope"] == SHARED
        }

    def add(self, step: Step) -> None:
        """Adds a step of the default schedule."""
        known = len(self.s.axes)
        axis = self.s.axes[step.args["axis"]] if step.primitive == "split" else None
        extent = self.s[step.stage].extent(axis) if axis is not None else 0
        self.s.replay([step])
        self.steps.append(step)
        if axis is not None:
            outer, inner = list(self.s.axes)[known:]
            self.split(step.args["axis"], outer, self.tags.get(inner, ""), extent)
        if self.is_load(step):
            self.ahead.append(len(self.steps))
            self.steps.append(Step("double_buffer", step.stage, {"copies": 2}))

    def is_load(self, step: Step) -> bool:
        """Whether a step has what a sum reads loaded to shared memory, for some of its steps."""
        if step.primitive != "compute_at" or step.stage not in self.shared:
            return False
        sums = self.s[step.args["parent"]].reduce_axis
        return bool(sums) and not self.s[step.stage].reduce_axis

    def split(self, axis: str, outer: str, tag: str, extent: int) -> None:
        """Opens the factor of the last step, a split of a loop of some steps, whose inner loop is
        bound to threads of a tag."""
        position = len(self.steps) - 1
        self.roots[outer] = root, size = self.roots.get(axis, (axis, extent))
        self.roots.setdefault(root, (root, size))
        self.chains[root].append(position)
        if tag in THREAD_TAGS:
            self.threads[tag].append((position, extent))
        else:
            self.knobs[position] = Knob(position, "factor", divisors(extent))

    def sketch(self) -> Sketch:
        """Sketch of all that was added."""
        gpu, group = self.function.gpu, list[int]()
        for tag, splits in self.threads.items():
            lead, extent = max(splits, key=lambda split: split[1])
            values = thread_counts(extent, gpu.sides[THREAD_TAGS.index(tag)])
            others = [(p, "factor", _at_most(values, n)) for p, n in splits if p != lead]
            self.knobs[lead] = Knob(lead, "factor", values, tuple(others))
            group.append(lead)
        if self.ahead:
            first, *rest = self.ahead
            follows = tuple((position, "", (False, True)) for position in rest)
            self.knobs[first] = Knob(first, "", (False, True), follows)
        numbers = {position: number for number, position in enumerate(self.knobs)}
        limits = [Limit(tuple(numbers[p] for p in group), gpu.group, at_most=True)]
        for root, chain in self.chains.items():
            own = tuple(numbers[p] for p in chain if p in numbers)
            limits.append(Limit(own, _power(self.roots[root][1]), at_most=True))
        return Sketch("template", tuple(self.steps), tuple(self.knobs.values()), tuple(limits))


def _at_most(values: Sequence[Json], most: int) -> tuple[Json, ...]:
    """Numbers, and a limit in the place of greater ones."""
    return tuple(min(value, most) for value in values)


# The rules ----------------------------------------------------------------------------------------


def _tile(draft: _Draft) -> None:
    """Tiles of the result's last two dimensions."""
    out = draft.result
    axes = [axis for axis in out.axis if out.extent(axis) > 1] or list(out.axis[-1:])
    _tiles(draft, axes[:-2], axes[-2:-1], axes[-1:])


def _flat_tile(draft: _Draft) -> None:
    """Tiles of channels, and of all that is behind them."""
    out = draft.result
    if len(out.axis) < 3:
        raise ScheduleError("sketch: expected channels with something behind them")
    stack, channels, *images = out.axis
    _tiles(draft, [], [channels], [stack, *images])


@dataclass
class _Threads:
    """The loops of a tile, by dimension, and the knobs of its threads."""

    blocks: list[Var] = field(default_factory=list)
    apart: list[Var] = field(default_factory=list)
    threads: list[Var] = field(default_factory=list)
    parts: list[Var] = field(default_factory=list)
    part_knobs: list[int] = field(default_factory=list)
    thread_knobs: list[int] = field(default_factory=list)


def _tiles(
    draft: _Draft, stack: Sequence[Var], rows: Sequence[Var], columns: Sequence[Var]
) -> None:
    """Tiles of rows and columns, for each place of a stack."""
    s, out, acc = draft.s, draft.result, draft.anchor()
    if not reuses(acc):
        raise ScheduleError("sketch: expected a reduction that reads something again")
    if out is acc:
        acc = s[s.cache_write(out.tensor, "local")]
    elif out.reduce_axis:
        raise ScheduleError("sketch: expected a result that only moves sums, found a reduction")
    else:
        acc.set_scope("local")
    out.reorder(*stack, *rows, *columns)
    tile = _Threads()
    for axes, side in ((rows, 1), (columns, 0)):
        if axes:
            _divide(draft, out, axes, draft.function.gpu.sides[side], tile)
    block = [out.fuse(*stack) if len(stack) > 1 else stack[0]] if stack else []
    out.reorder(*block, *tile.blocks, *tile.apart, *tile.threads, *tile.parts)
    for loops, tags in (
        ([*block, *tile.blocks][::-1], BLOCK_TAGS),
        (tile.apart, ("vthread",) * 2),
        (tile.threads[::-1], THREAD_TAGS),
    ):
        for loop, tag in zip(loops, tags, strict=False):
            out.bind(loop, te.thread_axis(tag))
    group = draft.function.gpu.group
    draft.limits.append(Limit(tuple(tile.thread_knobs), group, at_most=True))
    draft.limits.append(Limit(tuple(tile.part_knobs), COPIES, at_most=True))
    acc.compute_at(out, tile.threads[-1])
    step = _reduce(draft, acc)
    _load(draft, acc, step, tile)


def _divide(draft: _Draft, out: Stage, axes: Sequence[Var], side: int, tile: _Threads) -> None:
    """A dimension's loops: groups, parts that lie apart, threads, and a part's own."""
    axis = out.fuse(*axes) if len(axes) > 1 else axes[0]
    extent = out.extent(axis)
    rest, part, size = draft.split(out, axis, divisors(extent, COPIES))
    rest, thread, threads = draft.split(out, rest, thread_counts(extent, side))
    block, apart, times = draft.split(out, rest, APART)
    draft.limits.append(Limit((size, threads, times), _power(extent), at_most=True))
    tile.blocks.append(block)
    tile.apart.append(apart)
    tile.threads.append(thread)
    tile.parts.append(part)
    tile.part_knobs += [size, times]
    tile.thread_knobs.append(threads)


def _reduce(draft: _Draft, acc: Stage) -> Var:
    """The sums' loops: the longest reduction in steps, outside of a thread's part; the loop over
    the steps."""
    reduced = list(acc.reduce_axis)
    longest = max(reduced, key=acc.extent)
    outer, inner, _ = draft.split(acc, longest, divisors(acc.extent(longest), COPIES))
    others = [axis for axis in reduced if axis is not longest]
    acc.reorder(outer, *others, inner, *acc.axis)
    for axis in acc.axis:
        acc.unroll(axis)
        draft.open("", (True, False))
    return outer


def _load(draft: _Draft, acc: Stage, step: Var, tile: _Threads) -> None:
    """Loads through shared memory of what the sums read again."""
    s = draft.s
    assert isinstance(acc.op, ComputeOp)
    assert acc.op.reduce is not None
    size = prod(axis.extent for axis in acc.op.axes)
    ahead: list[int] = []
    reads = (load.buffer for value in acc.op.reduce.source for load in loads(value))
    for tensor in [each for each in dict.fromkeys(reads) if isinstance(each, Tensor)]:
        stages = [stage for stage in s.stages.values() if tensor.name == stage.name]
        if stages and isinstance(stages[0].op, ComputeOp):
            if stages[0].reduce_axis:
                continue
            stage = stages[0]
            stage.set_scope(SHARED)
        elif 2 * prod(tensor.shape) <= size:
            stage = s[s.cache_read(tensor, SHARED, [acc.tensor])]
        else:
            continue
        stage.compute_at(acc, step)
        stage.double_buffer()
        position = len(s.trace) - 1 - draft.begin
        if ahead:
            knob = draft.knobs[ahead[0]]
            setting = (position, "", knob.values)
            draft.knobs[ahead[0]] = replace(knob, follows=(*knob.follows, setting))
        else:
            ahead.append(draft.open("", (False, True)))
        _deal(draft, stage, tile)


def _deal(draft: _Draft, stage: Stage, tile: _Threads) -> None:
    """Has all threads of a group share the steps of a load."""
    rest = stage.fuse(*stage.axis) if len(stage.axis) > 1 else stage.axis[0]
    for number, tag in zip(tile.thread_knobs[::-1], THREAD_TAGS, strict=False):
        values = draft.knobs[number].values
        rest, inner = stage.split(rest, factor=values[0])
        draft.follow(number, "factor", values)
        stage.bind(inner, te.thread_axis(tag))


def _tree(draft: _Draft) -> None:
    """Parts of a reduction by the threads of a group; one of them adds them up."""
    s, acc = draft.s, draft.anchor()
    if acc is not draft.result or volume(acc, acc.reduce_axis) < LONG:
        raise ScheduleError("sketch: expected a long reduction and nothing behind it")
    loops = acc.reduce_axis
    axis = acc.fuse(*loops) if len(loops) > 1 else loops[0]
    counts = thread_counts(acc.extent(axis), draft.function.gpu.group)
    _, inner, _ = draft.split(acc, axis, counts)
    parts = s.rfactor(acc.tensor, inner)
    if not isinstance(parts, Tensor):
        raise ScheduleError("sketch: expected a reduction to one tensor")
    row = acc.fuse(*acc.axis) if len(acc.axis) > 1 else acc.axis[0]
    acc.bind(row, te.thread_axis("blockIdx.x"))
    stage = s[parts]
    stage.set_scope(SHARED)
    stage.compute_at(acc, row)
    stage.bind(stage.axis[0], te.thread_axis("threadIdx.x"))


def _elements(draft: _Draft) -> None:
    """Each element by a thread, or several by one."""
    s, out = draft.s, draft.result
    if len(s.stages) > 1:
        raise ScheduleError("sketch: expected one stage")
    sums = s.cache_write(out.tensor, "local") if out.reduce_axis else None
    fused = out.fuse(*out.axis) if len(out.axis) > 1 else out.axis[0]
    extent = out.extent(fused)
    rest, thread, threads = draft.split(out, fused, thread_counts(extent, draft.function.gpu.group))
    block, several, times = draft.split(out, rest, SEVERAL)
    out.reorder(block, thread, several)
    draft.limits.append(Limit((threads, times), _power(extent), at_most=True))
    out.bind(block, te.thread_axis("blockIdx.x"))
    out.bind(thread, te.thread_axis("threadIdx.x"))
    out.unroll(several)
    if sums is not None:
        s[sums].compute_at(out, several)


def thread_counts(extent: int, most: int) -> tuple[Json, ...]:
    """Numbers of threads that may share the steps of a loop: divisors, and powers of two."""
    most = min(most, extent)
    powers = {1 << n for n in range(most.bit_length())}
    return tuple(sorted(powers | set(divisors(extent, most))))


def _power(size: int) -> int:
    """The least power of two from ``size`` on."""
    return 1 << (size - 1).bit_length()
