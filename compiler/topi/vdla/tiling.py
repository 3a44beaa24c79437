"""Default schedules: an analytic model of the machine over the legal tilings.

A candidate's tiles run through a max-plus recurrence of the engines: LOAD, COMPUTE and STORE each
take their turn when they are free, when what they need is there and when what they overwrite is no
longer needed. That is the machine's own rule (docs/timing.md) at the grain of tiles, so the model
ranks schedules with one virtual thread and with several by the same measure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import ceil, prod
from typing import Any, Protocol

from vdla.compiler.codegen.vdla.fold import MAX_PAD, MAX_UOPS
from vdla.compiler.topi.vdla.conv2d import ConvShape, ConvTile, Residual, kept_copies
from vdla.compiler.topi.vdla.elementwise import AddShape, AddTile
from vdla.compiler.topi.vdla.pool import PoolShape, PoolTile
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes
from vdla.support.errors import UserError

Shape = ConvShape | PoolShape | AddShape  # what has a space of tiles
Tile = Any  # ConvTile, PoolTile or AddTile: whatever the shape asks for

STARTUP = 12  # cycles from a token to the first result: issue, pipeline, hand-over
TURN = 8  # cycles from a token to the first beat, besides memory's: start, request, buffer
FINALISTS = 64  # candidates that get the recurrence, after the bound has ranked them
CHUNKS = 600  # portions that the recurrence follows before it extrapolates
ANY_RESIDUAL = Residual(1, 1, 0, 0, 0, 0)
MOST_STAGES = 16  # copies of what streams by: more hide nothing more


# The fields of shapes that change results and no cycle: zero points, clipping bounds, factors.
NUMBERS = {"in_zero", "zero", "low", "high", "weight", "imm", "a_zero", "b_zero"}


def geometry(shape: Shape) -> Shape:
    """A shape without its numbers: what tiles and cycles depend on."""
    changes: dict[str, Any] = {f.name: 0 for f in fields(shape) if f.name in NUMBERS}
    if getattr(shape, "residual", None) is not None:
        changes["residual"] = ANY_RESIDUAL
    return replace(shape, **changes)


class TilingError(UserError):
    """No tile is legal: not even the smallest fits the buffers."""


@dataclass(frozen=True)
class Steps:
    """The work of one tile: what the recurrence needs of a candidate, in cycles.

    A tile reduces in ``steps`` steps; each loads ``inp`` once and then, ``parts`` times, loads
    ``wgt`` and runs ``gemm``. ``side`` is loaded for the ALU (a residual) or for the tile alone
    (its biases), ``alu`` runs after the reduction and ``store`` writes the tile.

    With ``shared`` virtual threads take turns step by step: ``pairs`` counts the groups of tiles
    that all threads share, ``singles`` the tiles left for one thread alone. Otherwise they take
    turns tile by tile, ``stages`` copies of what streams by are on chip, and ``inp`` is loaded for
    the first of every ``inp_every`` tiles, ``wgt`` for the first of every ``wgt_every``.
    """

    pairs: int
    singles: int
    threads: int
    steps: int
    parts: int
    inp: float
    wgt: float
    gemm: float
    side: float
    alu: float
    store: float
    shared: bool = True
    stages: int = 1
    inp_every: int = 1
    wgt_every: int = 1

    @property
    def tiles(self) -> int:
        """All tiles."""
        return self.pairs * self.threads + self.singles

    @property
    def compute(self) -> float:
        """Cycles of COMPUTE alone."""
        return self.tiles * (self.steps * self.parts * self.gemm + self.alu)

    @property
    def traffic(self) -> float:
        """Cycles of the memory bus alone."""
        inp = ceil(self.tiles / self.inp_every) * self.steps * self.inp
        wgt = ceil(self.tiles / self.wgt_every) * self.steps * self.parts * self.wgt
        return inp + wgt + self.tiles * (self.side + self.store)


def divisors(n: int) -> list[int]:
    """Every divisor, ascending."""
    return [d for d in range(1, n + 1) if n % d == 0]


def parts(n: int) -> list[int]:
    """The tile sizes that cut ``n`` into 1, 2, 3 … nearly equal tiles, ascending."""
    return sorted({ceil(n / k) for k in range(1, n + 1)})


def shares(tiles: int, along: int, threads: int) -> tuple[int, int, int]:
    """(pairs, singles, threads) when ``along`` of ``tiles`` tiles are shared out at a time."""
    rest = tiles // along
    return rest * (along // threads), rest * (along % threads), threads


def estimate(work: Steps, config: Config) -> float:
    """Cycles of a candidate by the recurrence, and a little for every step: fewer are better."""
    if work.shared:
        cycles = _groups(work, work.threads, work.pairs, config)
        cycles += _groups(work, 1, work.singles, config)
    else:
        cycles = _in_turn(work, config)
    return max(cycles, work.traffic) + work.tiles * work.steps * work.parts


def _in_turn(work: Steps, config: Config) -> float:
    """Cycles when tiles follow one another; long runs are extrapolated from their second half."""
    tiles = min(work.tiles, max(4, ceil(CHUNKS / (work.steps * work.parts))))
    run = _Run(work, config)
    marks = [run.tile(index) for index in range(tiles)]
    half = len(marks) // 2
    period = (marks[-1] - marks[half]) / max(len(marks) - 1 - half, 1)
    return marks[-1] + (work.tiles - tiles) * period


class _Run:
    """The engines' clocks while tiles go by in turn."""

    def __init__(self, work: Steps, config: Config) -> None:
        self.work, self.latency = work, config.memory.latency + TURN
        self.load = float(2 * self.latency + STARTUP)  # the stream's first beats come first
        self.compute = self.store = self.store_from = 0.0
        self.inp_free = deque([0.0] * work.stages, work.stages)
        self.wgt_free = deque([0.0] * work.stages, work.stages)
        self.acc_free = deque([0.0] * work.threads, work.threads)

    def tile(self, index: int) -> float:
        """Runs a tile; the time at which it has been stored."""
        work = self.work
        new_inp, new_wgt = index % work.inp_every == 0, index % work.wgt_every == 0
        ready, free = 0.0, self.acc_free[0]
        if work.side:
            ready = self.loaded(free, work.side)
        for _ in range(work.steps):
            if new_inp:
                ready = self.loaded(self.inp_free[0], work.inp)
            for _ in range(work.parts):
                if new_wgt:
                    ready = self.loaded(self.wgt_free[0], work.wgt)
                self.compute = max(self.compute, ready, free) + work.gemm
                if new_wgt:
                    self.wgt_free.append(self.compute + STARTUP)
            if new_inp:
                self.inp_free.append(self.compute + STARTUP)
        self.compute += work.alu
        part = self.work.store / work.parts
        self.store_from = max(self.store, self.compute - (work.parts - 1) * work.gemm + STARTUP)
        self.store = max(self.store_from + work.store, self.compute + STARTUP + part)
        self.acc_free.append(self.store + self.latency)
        return self.store + self.latency

    def loaded(self, free: float, cycles: float) -> float:
        """Loads a portion into a place that is free from some time on; when it may be read."""
        start = max(self.load, free + self.latency if free > self.load - self.latency else 0.0)
        delay = 0.0
        if start < self.store and start + cycles > self.store_from:  # the bus is shared
            delay = min(cycles, self.store - max(start, self.store_from))
            self.store += delay
        self.load = start + cycles + delay
        return self.load + 4


def _groups(work: Steps, threads: int, groups: int, config: Config) -> float:
    """Cycles of some groups of tiles; long runs are extrapolated from their period."""
    if groups == 0:
        return 0.0
    marks = _recurrence(work, threads, min(groups, 5), config)
    period = (marks[-1] - marks[1]) / (len(marks) - 2) if groups > 5 else 0.0
    return marks[-1] + (groups - len(marks)) * period


def _recurrence(work: Steps, threads: int, groups: int, config: Config) -> list[float]:
    """The time at which each group of tiles (one per thread) has been stored."""
    latency = config.memory.latency + STARTUP
    load = compute = store = 0.0
    inp_free, wgt_free = [0.0] * threads, [0.0] * threads
    acc_free, side_free = [0.0] * threads, [0.0] * threads
    marks = []
    for _ in range(groups):
        done, first = [0.0] * threads, [True] * threads
        for _ in range(work.steps):
            for part in range(work.parts):
                for v in range(threads):
                    if part == 0:
                        load = max(load, inp_free[v]) + work.inp
                    load = max(load, wgt_free[v]) + work.wgt
                    ready = load + latency
                    compute = max(compute, ready, acc_free[v] if first[v] else 0.0) + work.gemm
                    first[v] = False
                    wgt_free[v] = done[v] = compute + STARTUP
            inp_free = list(done)
        for v in range(threads):
            if work.side:
                load = max(load, side_free[v]) + work.side
                compute = max(compute, load + latency)
            compute += work.alu
            side_free[v] = compute + STARTUP
            store = max(store, max(done[v], side_free[v] if work.alu else 0.0)) + work.store
            acc_free[v] = store + latency
        marks.append(max(acc_free))
    return marks


def best(shape: Shape, config: Config, vthreads: int) -> Tile:
    """The legal tile with the least estimate.

    Raises:
        TilingError: there is none.
    """
    model = _model(shape, config)
    ranked = [(work, t) for t in model.candidates(vthreads) if (work := model.steps(t)).tiles]
    if not ranked:
        raise TilingError(
            f"config {config.name}: expected buffers that hold one tile of {model.what}, "
            f"found inp {config.depth('inp')}, wgt {config.depth('wgt')}, "
            f"acc {config.depth('acc')} entries"
        )
    ranked.sort(key=lambda r: _rough(r[0], config))
    return min(ranked[:FINALISTS], key=lambda r: estimate(r[0], config))[1]


def legal_tiles(shape: Shape, config: Config, vthreads: int) -> Iterator[Tile]:
    """Every tile of the schedule space that the buffers hold."""
    return _model(shape, config).candidates(vthreads)


def is_legal(tile: Tile, shape: Shape, config: Config, vthreads: int) -> bool:
    """Whether ``legal_tiles`` has a tile; of all those, only the ones of its size are made."""
    return tile in _model(shape, config).candidates(vthreads, tile)


class _Model(Protocol):
    """An operator's schedule space and what its points cost."""

    what: str

    def candidates(self, vthreads: int, only: Any = None) -> Iterator[Any]:
        """The legal tiles; with ``only``, those of its size."""

    def steps(self, tile: Any) -> Steps:
        """The work of a candidate."""


def _model(shape: Shape, config: Config) -> _Model:
    if isinstance(shape, ConvShape):
        return _ConvModel(shape, config)
    if isinstance(shape, PoolShape):
        return _PoolModel(shape, config)
    return _AddModel(shape, config)


def _sizes(values: Sequence[int], only: Tile | None, knob: str) -> Sequence[int]:
    """The values a knob may have; with ``only``, that tile's if it is one of them."""
    return values if only is None else [n for n in values if n == getattr(only, knob)]


def _rough(work: Steps, config: Config) -> float:
    """A quick stand-in for the estimate, to choose the finalists by."""
    steps = work.tiles * work.steps
    ends = work.inp + work.wgt + work.store / (1 if work.shared else work.parts)
    if work.threads == 1:  # loads and results take turns
        waits = work.parts * (config.memory.latency + STARTUP)
        return work.compute + work.traffic + steps * waits + ends
    return max(work.compute, work.traffic) + ends + steps * work.parts * STARTUP / 4


def _paddable(pads: tuple[int, int, int, int], tall: int, wide: int, entries: int) -> bool:
    """Whether one LOAD can pad any tile of a size whose pixels are some entries each."""
    top, left, bottom, right = pads
    rows, cols = min(max(top, bottom), tall), min(max(left, right), wide)
    return max(rows, cols * entries) <= MAX_PAD


def _window(noun: str, shape: ConvShape | PoolShape) -> str:
    """How errors name a window operator."""
    pad = max(shape.pads)
    padded = f" padded by {pad} (at most {MAX_PAD} in one LOAD)" if pad > MAX_PAD else ""
    return f"a {shape.kernel[0]}×{shape.kernel[1]} {noun}{padded}"


# Convolution ------------------------------------------------------------------------------------


class _ConvModel:
    def __init__(self, shape: ConvShape, config: Config) -> None:
        self.shape, self.config = shape, config
        self.what = _window("convolution", shape)
        self.si = config.channel_block // config.block_in
        self.so = config.channel_block // config.block_out
        self.taps = shape.kernel[0] * shape.kernel[1]
        self.blocks = shape.groups * shape.outputs * self.so

    def reach(self, rows: int, cols: int) -> tuple[int, int]:
        """Input rows and columns under a tile."""
        k, s, d = self.shape.kernel, self.shape.steps, self.shape.dilations
        return (rows - 1) * s[0] + (k[0] - 1) * d[0] + 1, (cols - 1) * s[1] + (k[1] - 1) * d[1] + 1

    def candidates(self, vthreads: int, only: ConvTile | None = None) -> Iterator[ConvTile]:
        """The legal tiles; with ``only``, those of its size."""
        s, most = self.shape, min(MAX_UOPS, self.config.uop_depth)
        heights = _sizes(parts(s.out_height), only, "rows")
        widths = _sizes(parts(s.out_width), only, "cols")
        ins = _sizes(divisors(s.inputs), only, "inputs")
        outs = _sizes(divisors(s.outputs), only, "outputs")
        for rows, cols in product(heights, widths):
            tall, wide = self.reach(rows, cols)
            if not _paddable(s.pads, tall, wide, self.si):
                continue
            for inputs, outputs in product(ins, outs):
                if inputs > 1 and inputs * self.si * self.taps > most:
                    continue  # a step's reduction is one sequence of micro-ops
                for weights in _sizes(divisors(outputs), only, "weights"):
                    tile = ConvTile(outputs, rows, cols, inputs, weights, vthreads)
                    yield from self._variants(tile, tall * wide)

    def _variants(self, tile: ConvTile, window: int) -> Iterator[ConvTile]:
        """What may be kept on chip, with as many copies of the rest as fit."""
        for keep, resident in product(("", "inp", "wgt"), (True, False)):
            if keep == "wgt" and tile.inputs < self.shape.inputs and tile.weights < tile.outputs:
                continue  # a portion of what is kept lies densely
            chosen = replace(tile, keep=keep, resident=resident)
            if most := self._stages(chosen, window):
                yield replace(chosen, stages=min(most, MOST_STAGES) if tile.vthreads > 1 else 1)

    def counts(self, tile: ConvTile) -> dict[str, int]:
        """Tiles along each axis."""
        s = self.shape
        return {
            "n": s.batch,
            "g": s.groups,
            "o": s.outputs // tile.outputs,
            "y": ceil(s.out_height / tile.rows),
            "x": ceil(s.out_width / tile.cols),
        }

    def _acc(self, tile: ConvTile) -> int:
        """ACC entries of all threads' tiles, biases and scales."""
        residual, outs = self.shape.residual is not None, tile.outputs * self.so
        acc = outs * tile.rows * tile.cols * (2 if residual else 1) * tile.vthreads + residual
        return acc + 2 * (self.blocks if tile.resident else outs * tile.vthreads)

    def _stages(self, tile: ConvTile, window: int) -> int:
        """How many copies of what streams by fit; 0 when the tile itself doesn't."""
        c, s = self.config, self.shape
        if self._acc(tile) > c.depth("acc"):
            return 0
        step = tile.inputs * self.si
        inp, wgt = step * window, tile.weights * self.so * step * self.taps
        all_inp = s.inputs * self.si * window
        all_wgt = tile.outputs * self.so * s.inputs * self.si * self.taps
        most = []
        for name, portion, whole in (("inp", inp, all_inp), ("wgt", wgt, all_wgt)):
            if tile.keep == name:
                copies = kept_copies(s, tile)
                most.append(MOST_STAGES if copies * whole <= c.depth(name) else 0)
            else:
                most.append(c.depth(name) // portion)
        return min(most)

    def steps(self, tile: ConvTile) -> Steps:
        """The work of a candidate, averaged over full and partial tiles."""
        s, c = self.shape, self.config
        counts = self.counts(tile)
        down, across = counts["y"], counts["x"]
        tiles = prod(counts.values())
        rows, cols = s.out_height / down, s.out_width / across
        tall, wide = self.reach(tile.rows, tile.cols)
        pixels = rows * cols
        seen = min(tall, s.height) * min(wide, s.width)
        dense = wide >= s.width and not (s.pads[1] or s.pads[3])
        run = 1 if s.sampling[1] > 1 else seen if dense else min(wide, s.width)
        inp = tile.inputs * _transfer(seen * c.channel_block, run * c.channel_block, c)
        inp += tile.inputs * self.si * max(tall * wide - seen, 0)
        weight_bytes = tile.weights * self.so * tile.inputs * self.si * self.taps * c.wgt_entry
        outs = tile.outputs * self.so
        moved = tile.outputs * _transfer(pixels * c.channel_block, cols * c.channel_block, c)
        side = moved if s.residual else 0.0
        if not tile.resident:
            side += _transfer(2 * outs * c.acc_entry, outs * c.acc_entry, c) + _instructions(2, c)
        return Steps(
            0,
            tiles,
            tile.vthreads,
            s.inputs // tile.inputs,
            tile.outputs // tile.weights,
            inp + _instructions(1, c),
            _transfer(weight_bytes, weight_bytes, c) + _instructions(2, c),
            tile.weights * self.so * pixels * tile.inputs * self.si * self.taps,
            side,
            2 * outs * pixels + STARTUP if s.residual else 0.0,
            moved + _instructions(tile.outputs // tile.weights, c),
            shared=False,
            stages=tile.stages,
            inp_every=counts["o"] if tile.keep == "inp" else 1,
            wgt_every=down * across if tile.keep == "wgt" else 1,
        )


# Pools and additions ----------------------------------------------------------------------------


class _PoolModel:
    def __init__(self, shape: PoolShape, config: Config) -> None:
        self.shape, self.config = shape, config
        self.what = _window("pool", shape)
        self.sub = config.channel_block // config.block_out

    def reach(self, rows: int, cols: int) -> tuple[int, int]:
        """Input rows and columns under a tile."""
        k, s, d = self.shape.kernel, self.shape.strides, self.shape.dilations
        return (rows - 1) * s[0] + (k[0] - 1) * d[0] + 1, (cols - 1) * s[1] + (k[1] - 1) * d[1] + 1

    def candidates(self, vthreads: int, only: PoolTile | None = None) -> Iterator[PoolTile]:
        """The legal tiles; with ``only``, those of its size."""
        s, depth = self.shape, self.config.depth("acc")
        heights = _sizes(parts(s.out_height), only, "rows")
        widths = _sizes(parts(s.out_width), only, "cols")
        for rows, cols in product(heights, widths):
            tall, wide = self.reach(rows, cols)
            if not _paddable(s.pads, tall, wide, self.sub):
                continue
            for blocks in _sizes(divisors(s.blocks), only, "blocks"):
                tile = PoolTile(blocks, rows, cols, vthreads)
                entries = blocks * self.sub * (tall * wide + rows * cols)
                if entries * vthreads + 1 > depth:
                    continue
                counts = self.counts(tile)
                for axis in ("c", "y", "x") if vthreads > 1 else ("c",):
                    if counts[axis] >= vthreads:
                        yield replace(tile, axis=axis)

    def counts(self, tile: PoolTile) -> dict[str, int]:
        """Tiles along each axis."""
        s = self.shape
        return {
            "c": s.blocks // tile.blocks,
            "y": ceil(s.out_height / tile.rows),
            "x": ceil(s.out_width / tile.cols),
        }

    def steps(self, tile: PoolTile) -> Steps:
        """The work of a candidate."""
        s, c = self.shape, self.config
        counts = self.counts(tile)
        tall, wide = self.reach(tile.rows, tile.cols)
        seen = min(tall, s.height) * min(wide, s.width)
        load = tile.blocks * _transfer(seen * c.channel_block, wide * c.out_entry, c)
        load += tile.blocks * self.sub * max(tall * wide - seen, 0)
        vectors = tile.blocks * self.sub * tile.rows * tile.cols
        store = _transfer(vectors * c.out_entry, tile.cols * c.out_entry, c)
        share = shares(s.batch * prod(counts.values()), counts[tile.axis], tile.vthreads)
        return Steps(*share, 1, 1, load, 0.0, vectors * prod(s.kernel), 0.0, 0.0, store)


class _AddModel:
    what = "an addition"

    def __init__(self, shape: AddShape, config: Config) -> None:
        self.shape, self.config = shape, config

    def candidates(self, vthreads: int, only: AddTile | None = None) -> Iterator[AddTile]:
        """The legal tiles; with ``only``, those of its size."""
        for vectors in _sizes(parts(self.shape.vectors), only, "vectors"):
            fits = 2 * vectors * vthreads + 1 <= self.config.depth("acc")
            if fits and ceil(self.shape.vectors / vectors) >= vthreads:
                yield AddTile(vectors, vthreads)

    def steps(self, tile: AddTile) -> Steps:
        """The work of a candidate."""
        size = tile.vectors * self.config.out_entry
        move = _transfer(size, size, self.config)
        tiles = ceil(self.shape.vectors / tile.vectors)
        share = shares(tiles, tiles, tile.vthreads)
        return Steps(*share, 1, 1, 2 * move, 0.0, tile.vectors, 0.0, 0.0, move)


# Cycles -----------------------------------------------------------------------------------------


def _transfer(size: float, run: float, config: Config) -> float:
    """Bus cycles to move ``size`` bytes in runs of ``run`` contiguous bytes."""
    memory = config.memory
    cycles = size / min(config.port_bytes, memory.bytes_per_cycle)
    bursts = ceil(run / (config.port_bytes * config.burst_beats)) * size / max(run, 1)
    return max(cycles, bursts * (memory.latency + 4) / config.reads_in_flight)


def _instructions(n: int, config: Config) -> float:
    """Bus cycles to fetch ``n`` instructions."""
    return n * instruction_bytes(config) / min(config.port_bytes, config.memory.bytes_per_cycle)


def tile_text(tile: object) -> str:
    """A tile as the reports print it."""
    fields: Sequence[str] = list(getattr(tile, "__dataclass_fields__", {}))
    return " ".join(f"{name}={getattr(tile, name)}" for name in fields)
