"""The recurrence of the analytic model, as compiled loops: engines' clocks while tiles go by.

A candidate is a row of ``COLUMNS``, which are the fields of ``cost.TileCost``, and the machine a
``Timing``. Each engine takes its turn when it is free, when what it needs is there and when what it
overwrites is no longer needed; loads and stores share the bus.

    tiles that follow one another   ``in_turn``: operands have ``stages`` copies on chip
    threads that take turns         ``in_groups``: a tile per thread, step by step

Long runs are extrapolated from their period. All times are in cycles.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.sim.compiled import compile_once, inline, jit

Rows = NDArray[np.float64]

COLUMNS = (
    "pairs", "singles", "threads", "steps", "parts", "inp", "wgt", "gemm", "side", "alu", "store",
    "shared", "stages", "inp_every", "wgt_every",
)  # fmt: skip
(
    PAIRS, SINGLES, THREADS, STEPS, PARTS, INP, WGT, GEMM, SIDE, ALU, STORE,
    SHARED, STAGES, INP_EVERY, WGT_EVERY,
) = range(len(COLUMNS))  # fmt: skip
CHUNKS = 600  # portions that the recurrence follows before it extrapolates
FOLLOWED = 5  # groups of tiles that are followed before the others are extrapolated


class Timing(NamedTuple):
    """A machine's cycles: the memory's latency, hand-overs, and whether ALU is a fourth engine.

    ``startup`` is from a token to the first result, ``turn`` from a token to the first beat besides
    the memory's latency.
    """

    latency: float
    startup: float
    turn: float
    vector: bool


class _Clocks(NamedTuple):
    """When each engine is free, ``store_from`` when STORE began, in an array of one entry each."""

    load: Rows
    compute: Rows
    store: Rows
    store_from: Rows
    vector: Rows


def estimates(rows: Rows, timing: Timing) -> Rows:
    """Cycles of candidates [n, COLUMNS]: those that the engines take."""
    _warm_up()
    return _estimates(np.ascontiguousarray(rows, np.float64), timing)


@cache
def _warm_up() -> None:
    """Compiles the loops, or fetches them from numba's cache."""
    one = Timing(1.0, 1.0, 1.0, True)
    compile_once("compiler", lambda: _estimates(np.ones((1, len(COLUMNS))), one))


@jit
def _estimates(rows: Rows, timing: Timing) -> Rows:
    result = np.empty(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        work = rows[i]
        if work[SHARED] != 0:
            pairs = in_groups(work, int(work[THREADS]), int(work[PAIRS]), timing)
            result[i] = pairs + in_groups(work, 1, int(work[SINGLES]), timing)
        else:
            result[i] = in_turn(work, timing)
    return result


@jit
def in_turn(work: Rows, timing: Timing) -> float:
    """Cycles when tiles follow one another; long runs are extrapolated from their second half."""
    portions = work[STEPS] * work[PARTS]
    every = int(work[PAIRS] * work[THREADS] + work[SINGLES])
    tiles = min(every, max(4, int(np.ceil(CHUNKS / portions))))
    clocks = _Clocks(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))
    clocks.load[0] = 2 * (timing.latency + timing.turn) + timing.startup  # the stream comes first
    places = np.zeros((3, max(int(work[STAGES]), int(work[THREADS]))))
    heads = np.zeros(3, np.int64)
    marks = np.empty(tiles)
    for index in range(tiles):
        marks[index] = _tile(work, timing, clocks, places, heads, index)
    half = tiles // 2
    period = (marks[tiles - 1] - marks[half]) / max(tiles - 1 - half, 1)
    return float(marks[tiles - 1] + (every - tiles) * period)


@inline
def _tile(
    work: Rows, timing: Timing, clocks: _Clocks, places: Rows, heads: NDArray[np.int64], index: int
) -> float:
    """Runs a tile; the time at which it has been stored.

    ``places`` are the times at which the copies of INP, of WGT and of ACC are free, each a ring
    whose oldest entry is at its head.
    """
    stages, threads = int(work[STAGES]), int(work[THREADS])
    new_inp, new_wgt = index % int(work[INP_EVERY]) == 0, index % int(work[WGT_EVERY]) == 0
    ready, free, side = 0.0, places[2, heads[2]], 0.0
    alone = timing.vector and work[ALU] != 0
    if work[SIDE] != 0:
        side = _loaded(timing, clocks, free, work[SIDE])
        ready = 0.0 if alone else side
    for _ in range(int(work[STEPS])):
        if new_inp:
            ready = _loaded(timing, clocks, places[0, heads[0]], work[INP])
        for _ in range(int(work[PARTS])):
            if new_wgt:
                ready = _loaded(timing, clocks, places[1, heads[1]], work[WGT])
            clocks.compute[0] = max(clocks.compute[0], ready, free) + work[GEMM]
            if new_wgt:
                places[1, heads[1]] = clocks.compute[0] + timing.startup
                heads[1] = (heads[1] + 1) % stages
        if new_inp:
            places[0, heads[0]] = clocks.compute[0] + timing.startup
            heads[0] = (heads[0] + 1) % stages
    _finish(work, timing, clocks, side)
    stored = clocks.store[0] + timing.latency + timing.turn
    places[2, heads[2]] = stored
    heads[2] = (heads[2] + 1) % threads
    return float(stored)


@inline
def _finish(work: Rows, timing: Timing, clocks: _Clocks, side: float) -> None:
    """ALU, once ``side`` is loaded, and STORE."""
    startup = timing.startup
    if timing.vector and work[ALU] != 0:
        clocks.vector[0] = max(clocks.vector[0], clocks.compute[0] + startup, side) + work[ALU]
        clocks.store_from[0] = max(clocks.store[0], clocks.vector[0] + startup)
        clocks.store[0] = clocks.store_from[0] + work[STORE]
        return
    clocks.compute[0] += work[ALU]
    part = work[STORE] / work[PARTS]
    first = clocks.compute[0] - (work[PARTS] - 1) * work[GEMM] + startup
    clocks.store_from[0] = max(clocks.store[0], first)
    whole, last = clocks.store_from[0] + work[STORE], clocks.compute[0] + startup + part
    clocks.store[0] = max(whole, last)


@inline
def _loaded(timing: Timing, clocks: _Clocks, free: float, cycles: float) -> float:
    """Loads a portion into a place that is free from some time on; when it may be read."""
    latency = timing.latency + timing.turn
    start = max(clocks.load[0], free + latency if free > clocks.load[0] - latency else 0.0)
    delay = 0.0
    busy = start < clocks.store[0] and start + cycles > clocks.store_from[0]
    if busy:  # the bus is shared
        delay = min(cycles, clocks.store[0] - max(start, clocks.store_from[0]))
        clocks.store[0] += delay
    clocks.load[0] = start + cycles + delay
    return float(clocks.load[0] + 4)


@jit
def in_groups(work: Rows, threads: int, groups: int, timing: Timing) -> float:
    """Cycles of some groups of tiles; long runs are extrapolated from their period."""
    if groups == 0:
        return 0.0
    marks = followed(work, threads, min(groups, FOLLOWED), timing)
    last = len(marks) - 1
    period = (marks[last] - marks[1]) / (last - 1) if groups > FOLLOWED else 0.0
    return float(marks[last] + (groups - len(marks)) * period)


@jit
def followed(work: Rows, threads: int, groups: int, timing: Timing) -> Rows:
    """The time at which each group of tiles (one per thread) has been stored."""
    latency = timing.latency + timing.startup
    load = compute = store = 0.0
    inp_free, wgt_free = np.zeros(threads), np.zeros(threads)
    acc_free, side_free = np.zeros(threads), np.zeros(threads)
    done = np.zeros(threads)
    marks = np.empty(groups)
    for group in range(groups):
        done[:] = 0.0
        for step in range(int(work[STEPS])):
            for part in range(int(work[PARTS])):
                for v in range(threads):
                    if part == 0:
                        load = max(load, inp_free[v]) + work[INP]
                    load = max(load, wgt_free[v]) + work[WGT]
                    free = acc_free[v] if step == 0 and part == 0 else 0.0
                    compute = max(compute, load + latency, free) + work[GEMM]
                    wgt_free[v] = done[v] = compute + timing.startup
            inp_free[:] = done
        for v in range(threads):
            if work[SIDE] != 0:
                load = max(load, side_free[v]) + work[SIDE]
                compute = max(compute, load + latency)
            compute += work[ALU]
            side_free[v] = compute + timing.startup
            store = max(store, max(done[v], side_free[v] if work[ALU] != 0 else 0.0)) + work[STORE]
            acc_free[v] = store + latency
        marks[group] = acc_free.max()
    return marks
