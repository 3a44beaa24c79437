"""The analytic model of the machine: what a tile costs, and which tile is best.

A candidate's tiles run through a max-plus recurrence of the engines: each takes its turn when it is
free, when what they need is there and when what they overwrite is no
longer needed. That is the machine's own rule (docs/timing.md) at the grain of tiles, so the model
ranks schedules with one virtual thread and with several by the same measure.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.operators.access import Size
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes
from vdla.support.errors import UserError

Places = NDArray[np.int64]

STARTUP = 12  # cycles from a token to the first result: issue, pipeline, hand-over
LATE_READ = 5  # cycles from a micro-op's first read to that of its accumulator
TURN = 8  # cycles from a token to the first beat, besides memory's: start, request, buffer
FINALISTS = 64  # candidates that get the recurrence, after the bound has ranked them
CHUNKS = 600  # portions that the recurrence follows before it extrapolates
MOST_STAGES = 16  # most buffer copies that are tried; beyond these, latency is fully hidden


class TilingError(UserError):
    """No tile is legal: not even the smallest fits the buffers."""


def no_tile(wanted: str, config: Config) -> TilingError:
    """The error of buffers that don't hold what is wanted, such as "one tile of a pool"."""
    depths = ", ".join(f"{name} {config.depth(name)}" for name in ("inp", "wgt", "acc"))
    return TilingError(
        f"config {config.name}: expected buffers that hold {wanted}, found {depths} entries"
    )


Count = TypeVar("Count", bound=Size, covariant=True)
Cycles = TypeVar("Cycles", bound=Size, covariant=True)


@dataclass(frozen=True)
class TileCost(Generic[Count, Cycles]):
    """The work of one tile: what the recurrence needs of a candidate, in cycles.

    A tile reduces in ``steps`` steps; each loads ``inp`` once and then, ``parts`` times, loads
    ``wgt`` and runs ``gemm``. ``side`` is loaded for the ALU (a residual) or for the tile alone
    (its biases), ``alu`` runs after the reduction and ``store`` writes the tile.

    With ``shared`` virtual threads take turns step by step: ``pairs`` counts the groups of tiles
    that all threads share, ``singles`` the tiles left for one thread alone. Otherwise they take
    turns tile by tile, and the operands that change have ``stages`` buffer copies on chip. ``inp``
    is loaded for the first of every ``inp_every`` tiles, ``wgt`` for the first of every
    ``wgt_every``.

    ``Cost`` is one candidate's. ``CostColumns`` are the costs of many: all but ``shared`` may be
    columns, with an entry for each.
    """

    pairs: Count
    singles: Count
    threads: Count
    steps: Count
    parts: Count
    inp: Cycles
    wgt: Cycles
    gemm: Cycles
    side: Cycles
    alu: Cycles
    store: Cycles
    shared: bool = True
    stages: Count | int = 1
    inp_every: Count | int = 1
    wgt_every: Count | int = 1

    @property
    def tiles(self: CostColumns) -> Size:
        """All tiles."""
        return self.pairs * self.threads + self.singles

    def compute(self: CostColumns, config: Config) -> Size:
        """Cycles of COMPUTE alone, or of VECTOR beside it if that takes longer.

        What ``shared`` threads compute is ALU's work throughout, so one engine does all of it.
        """
        work = self.steps * self.parts * self.gemm
        beside = config.vector_engine and not self.shared
        return self.tiles * (np.maximum(work, self.alu) if beside else work + self.alu)

    @property
    def traffic(self: CostColumns) -> Size:
        """Cycles of the memory bus alone."""
        inp = -(-self.tiles // self.inp_every) * self.steps * self.inp
        wgt = -(-self.tiles // self.wgt_every) * self.steps * self.parts * self.wgt
        return inp + wgt + self.tiles * (self.side + self.store)

    def candidate(self, number: int) -> Cost:
        """The cost of candidate ``number``, as scalars."""
        columns = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        return TileCost(**{n: (c[number] if c.ndim else c).item() for n, c in columns.items()})


Cost = TileCost[int, float]
CostColumns = TileCost[Size, Size]


def estimate(work: Cost, config: Config) -> float:
    """Cycles of a candidate by the recurrence, and a little for every step: fewer are better."""
    if work.shared:
        cycles = _groups(work, work.threads, work.pairs, config)
        cycles += _groups(work, 1, work.singles, config)
    else:
        cycles = _in_turn(work, config)
    return float(max(cycles, work.traffic) + work.tiles * work.steps * work.parts)


def _in_turn(work: Cost, config: Config) -> float:
    """Cycles when tiles follow one another; long runs are extrapolated from their second half."""
    tiles = min(int(work.tiles), max(4, ceil(CHUNKS / (work.steps * work.parts))))
    run = _Run(work, config)
    marks = [run.tile(index) for index in range(tiles)]
    half = len(marks) // 2
    period = (marks[-1] - marks[half]) / max(len(marks) - 1 - half, 1)
    return float(marks[-1] + (work.tiles - tiles) * period)


class _Run:
    """The engines' clocks while tiles go by in turn."""

    def __init__(self, work: Cost, config: Config) -> None:
        self.work, self.latency = work, config.memory.latency + TURN
        self.vector = 0.0 if config.vector_engine else None  # ALU's own clock, if it has one
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
        side = 0.0
        if work.side:
            side = self.loaded(free, work.side)
            ready = 0.0 if self.vector is not None and work.alu else side
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
        self._finish(side)
        self.acc_free.append(self.store + self.latency)
        return self.store + self.latency

    def _finish(self, side: float) -> None:
        """ALU, once ``side`` is loaded, and STORE."""
        work = self.work
        if self.vector is not None and work.alu:
            self.vector = max(self.vector, self.compute + STARTUP, side) + work.alu
            self.store_from = max(self.store, self.vector + STARTUP)
            self.store = self.store_from + work.store
            return
        self.compute += work.alu
        part = work.store / work.parts
        self.store_from = max(self.store, self.compute - (work.parts - 1) * work.gemm + STARTUP)
        self.store = max(self.store_from + work.store, self.compute + STARTUP + part)

    def loaded(self, free: float, cycles: float) -> float:
        """Loads a portion into a place that is free from some time on; when it may be read."""
        start = max(self.load, free + self.latency if free > self.load - self.latency else 0.0)
        delay = 0.0
        if start < self.store and start + cycles > self.store_from:  # the bus is shared
            delay = min(cycles, self.store - max(start, self.store_from))
            self.store += delay
        self.load = start + cycles + delay
        return self.load + 4


def _groups(work: Cost, threads: int, groups: int, config: Config) -> float:
    """Cycles of some groups of tiles; long runs are extrapolated from their period."""
    if groups == 0:
        return 0.0
    marks = _recurrence(work, threads, min(groups, 5), config)
    period = (marks[-1] - marks[1]) / (len(marks) - 2) if groups > 5 else 0.0
    return marks[-1] + (groups - len(marks)) * period


def _recurrence(work: Cost, threads: int, groups: int, config: Config) -> list[float]:
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


def cheapest(groups: Iterable[tuple[CostColumns, Places]], config: Config) -> int | None:
    """The candidate with the least estimate; None where none does any work.

    Args:
        groups: costs in columns, and which candidates they are of.
    """
    ranked = [
        (cycles, place, work, number)
        for work, places in groups
        for number, (cycles, place) in enumerate(zip(_rough(work, config), places, strict=True))
        if cycles < np.inf
    ]
    best = heapq.nsmallest(FINALISTS, ranked, key=lambda r: r[:2])
    cycles = [estimate(work.candidate(number), config) for _, _, work, number in best]
    return int(best[int(np.argmin(cycles))][1]) if best else None


def _rough(work: CostColumns, config: Config) -> NDArray[np.float64]:
    """A quick stand-in for the estimate, to choose the finalists by."""
    steps = work.tiles * work.steps
    ends = work.inp + work.wgt + work.store / (1 if work.shared else work.parts)
    waits = work.parts * (config.memory.latency + STARTUP)
    compute = work.compute(config)
    in_turn = compute + work.traffic + steps * waits + ends  # loads and results
    at_once = np.maximum(compute, work.traffic) + ends + steps * work.parts * STARTUP / 4
    cycles = np.where(np.equal(work.threads, 1), in_turn, at_once)
    return np.where(np.equal(work.tiles, 0), np.inf, cycles)


# What templates make their costs of ------------------------------------------------------------


def transfer(size: Size, run: Size, config: Config) -> Size:
    """Bus cycles to move ``size`` bytes in runs of ``run`` contiguous bytes."""
    memory = config.memory
    cycles = size / config.bytes_per_cycle
    bursts = np.ceil(run / (config.port_bytes * config.burst_beats)) * size / np.maximum(run, 1)
    return np.maximum(cycles, bursts * (memory.latency + 4) / config.reads_in_flight)


def beside_gemm(alu: Size, chain: Size, config: Config) -> Size:
    """Cycles of ALU micro-ops with an early x, beside GEMM's chains of micro-ops on an accumulator.

    Of a chain's cycles GEMM takes one for its write and one for its late read, which may be the
    same one (docs/timing.md, section 5.11); VECTOR has the others. Without a vector engine ALU has
    its cycles for itself.
    """
    if not config.vector_engine:
        return alu
    taken = np.where(LATE_READ % chain == chain - 1, 1, 2)
    return alu * chain / np.maximum(chain - taken, 0.25)


def loaded_beside(moved: Size, chain: Size, config: Config) -> Size:
    """Bus cycles to load entries of ACC beside GEMM's chains of micro-ops on an accumulator.

    A chain's write goes before LOAD's, and VECTOR's do, while LOAD keeps what is behind it waiting.
    Without a vector engine ALU, which needs the entries, doesn't work beside GEMM.
    """
    return moved * chain / np.maximum(chain - 1, 0.5) if config.vector_engine else moved


def fetch(n: Size, config: Config) -> Size:
    """Bus cycles to fetch ``n`` instructions."""
    return n * instruction_bytes(config) / config.bytes_per_cycle


def parts(n: int) -> list[int]:
    """The tile sizes that cut ``n`` into 1, 2, 3 … nearly equal tiles, ascending."""
    return sorted({ceil(n / k) for k in range(1, n + 1)})


def shares(tiles: Size, along: Size, threads: Size) -> tuple[Size, Size, Size]:
    """(pairs, singles, threads) when ``along`` of ``tiles`` tiles are shared out at a time."""
    rest = tiles // along
    return rest * (along // threads), rest * (along % threads), threads


def sizes(values: Sequence[int], only: object, knob: str) -> Sequence[int]:
    """The values a knob may have; with ``only``, that tile's if it is one of them."""
    return values if only is None else [n for n in values if n == getattr(only, knob)]
