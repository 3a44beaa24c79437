"""The recurrence of the analytic model, as compiled loops: engines' clocks while tiles go by.

A candidate is a row of ``COLUMNS``, which are the fields of ``cost.TileCost``, and the machine a
``Timing``. Each engine takes its turn when it is free, when what it needs is there and when what it
overwrites is no longer needed; loads and stores share the bus.

    tiles that follow one another   ``in_turn``: operands have ``stages`` copies on chip
    threads that take turns         ``in_groups``: a tile per thread, step by step

Long runs are extrapolated from their period. All times are in cycles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.sim.compiled import compiled, inline, shared

Rows = NDArray[np.float64]

COLUMNS = (
    "pairs", "singles", "threads", "steps", "parts", "inp", "wgt", "gemm", "side", "alu", "store",
    "shared", "stages", "inp_every", "wgt_every", "pace", "inner", "across", "wide", "down", "tall",
)  # fmt: skip
(
    PAIRS, SINGLES, THREADS, STEPS, PARTS, INP, WGT, GEMM, SIDE, ALU, STORE,
    SHARED, STAGES, INP_EVERY, WGT_EVERY, PACE, INNER, ACROSS, WIDE, DOWN, TALL,
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


class Room(NamedTuple):
    """Room for what the loops note of one candidate.

    ``places`` [3, copy] are the times at which the copies of INP, of WGT and of ACC are free, each
    a ring whose oldest entry is at its head, ``heads`` [3]; ``marks`` when a tile or a group of
    tiles has been stored. The others are [thread].
    """

    clocks: _Clocks
    places: Rows
    heads: NDArray[np.int64]
    marks: Rows
    inp_free: Rows
    wgt_free: Rows
    acc_free: Rows
    side_free: Rows
    done: Rows

    @classmethod
    def of(cls, rows: Rows) -> Room:
        """Enough for each of some candidates [n, COLUMNS]."""
        copies = int(rows[:, [STAGES, THREADS]].max(initial=1))
        clocks = _Clocks(*(np.zeros(1) for _ in _Clocks._fields))
        threads = (np.zeros(copies) for _ in range(5))
        return cls(clocks, np.zeros((3, copies)), np.zeros(3, np.int64), np.zeros(CHUNKS), *threads)


def estimates(rows: Rows, timing: Timing) -> Rows:
    """Cycles of candidates [n, COLUMNS]: those that the engines take."""
    rows, result = np.ascontiguousarray(rows, np.float64), np.empty(len(rows))
    _estimates(rows, timing, Room.of(rows), result)
    return result


@compiled("compiler")
def _estimates(rows: Rows, timing: Timing, room: Room, result: Rows) -> None:
    for i in range(rows.shape[0]):
        work = rows[i]
        if work[SHARED] != 0:
            pairs = in_groups(work, int(work[THREADS]), int(work[PAIRS]), timing, room)
            result[i] = pairs + in_groups(work, 1, int(work[SINGLES]), timing, room)
        else:
            result[i] = in_turn(work, timing, room)


@shared
def in_turn(work: Rows, timing: Timing, room: Room) -> float:
    """Cycles when tiles follow one another; long runs are extrapolated from their second half."""
    portions = work[STEPS] * work[PARTS]
    every = int(work[PAIRS] * work[THREADS] + work[SINGLES])
    tiles = min(every, max(4, int(np.ceil(CHUNKS / portions))))
    clocks, marks = room.clocks, room.marks
    clocks.load[0] = 2 * (timing.latency + timing.turn) + timing.startup  # the stream comes first
    clocks.compute[0] = clocks.store[0] = clocks.store_from[0] = clocks.vector[0] = 0.0
    for operand in range(3):
        room.heads[operand] = 0
        for copy in range(room.places.shape[1]):
            room.places[operand, copy] = 0.0
    half, followed, behind = tiles // 2, 0.0, 0.0
    for index in range(tiles):
        share = _along(index // int(work[INNER]), work[ACROSS], work[WIDE])
        share *= _along(index // int(work[INNER] * work[ACROSS]), work[DOWN], work[TALL])
        marks[index] = _tile(work, timing, room, index, share)
        followed += share
        behind += share if index > half else 0.0
    period = (marks[tiles - 1] - marks[half]) / max(behind, 1e-3)
    return float(marks[tiles - 1] + (every - followed) * period)


@inline
def _along(index: int, count: float, share: float) -> float:
    """A tile's share along an axis in what a tile has on average, where all but the last one of
    ``count`` have ``share``."""
    return share if index % int(count) < int(count) - 1 else count - (count - 1) * share


@inline
def _tile(work: Rows, timing: Timing, room: Room, index: int, share: float) -> float:
    """Runs a tile of ``share`` times the mean's work; the time at which it has been stored."""
    clocks, places, heads = room.clocks, room.places, room.heads
    stages, threads = int(work[STAGES]), int(work[THREADS])
    new_inp, new_wgt = index % int(work[INP_EVERY]) == 0, index % int(work[WGT_EVERY]) == 0
    ready, free, side = 0.0, places[2, heads[2]], 0.0
    alone = timing.vector and work[ALU] != 0
    if work[SIDE] != 0:
        side = _loaded(work, timing, clocks, free, work[SIDE] * share)
        ready = 0.0 if alone else side
    for _ in range(int(work[STEPS])):
        if new_inp:
            ready = _loaded(work, timing, clocks, places[0, heads[0]], work[INP] * share)
        for _ in range(int(work[PARTS])):
            if new_wgt:
                ready = _loaded(work, timing, clocks, places[1, heads[1]], work[WGT])
            clocks.compute[0] = max(clocks.compute[0], ready, free) + work[GEMM] * share
            if new_wgt:
                places[1, heads[1]] = clocks.compute[0] + timing.startup
                heads[1] = (heads[1] + 1) % stages
        if new_inp:
            places[0, heads[0]] = clocks.compute[0] + timing.startup
            heads[0] = (heads[0] + 1) % stages
    _finish(work, timing, clocks, side, share)
    stored = clocks.store[0] + timing.latency + timing.turn
    places[2, heads[2]] = stored
    heads[2] = (heads[2] + 1) % threads
    return float(stored)


@inline
def _finish(work: Rows, timing: Timing, clocks: _Clocks, side: float, share: float) -> None:
    """ALU, once ``side`` is loaded, and STORE."""
    startup, alu, store = timing.startup, work[ALU] * share, work[STORE] * share * work[PACE]
    if timing.vector and work[ALU] != 0:
        clocks.vector[0] = max(clocks.vector[0], clocks.compute[0] + startup, side) + alu
        clocks.store_from[0] = max(clocks.store[0], clocks.vector[0] + startup)
        clocks.store[0] = clocks.store_from[0] + store
        return
    clocks.compute[0] += alu
    part = store / work[PARTS]
    first = clocks.compute[0] - (work[PARTS] - 1) * work[GEMM] * share + startup
    clocks.store_from[0] = max(clocks.store[0], first)
    whole, last = clocks.store_from[0] + store, clocks.compute[0] + startup + part
    clocks.store[0] = max(whole, last)


@inline
def _loaded(work: Rows, timing: Timing, clocks: _Clocks, free: float, cycles: float) -> float:
    """Loads a portion into a place that is free from some time on; when it may be read.

    STORE takes a part of the bus's cycles, and half of them at most while LOAD wants them too.
    """
    latency = timing.latency + timing.turn
    start = max(clocks.load[0], free + latency if free > clocks.load[0] - latency else 0.0)
    delay = 0.0
    busy = start < clocks.store[0] and start + cycles > clocks.store_from[0]
    if busy:  # the bus is shared
        pace, left = work[PACE], clocks.store[0] - max(start, clocks.store_from[0])
        delay = min(cycles / max(pace - 1, 1.0), left / pace)
        clocks.store[0] += delay * max(2 - pace, 0.0)
    clocks.load[0] = start + cycles + delay
    return float(clocks.load[0] + 4)


@shared
def in_groups(work: Rows, threads: int, groups: int, timing: Timing, room: Room) -> float:
    """Cycles of some groups of tiles; long runs are extrapolated from their period."""
    if groups == 0:
        return 0.0
    count = min(groups, FOLLOWED)
    follow(work, threads, count, timing, room)
    marks, last = room.marks, count - 1
    period = (marks[last] - marks[1]) / (last - 1) if groups > FOLLOWED else 0.0
    return float(marks[last] + (groups - count) * period)


@shared
def follow(work: Rows, threads: int, groups: int, timing: Timing, room: Room) -> None:
    """Puts into ``room.marks`` when each group of tiles (one per thread) has been stored."""
    latency = timing.latency + timing.startup
    load = compute = store = 0.0
    inp_free, wgt_free, acc_free = room.inp_free, room.wgt_free, room.acc_free
    side_free, done = room.side_free, room.done
    for v in range(threads):
        inp_free[v] = wgt_free[v] = acc_free[v] = side_free[v] = 0.0
    for group in range(groups):
        for v in range(threads):
            done[v] = 0.0
        for step in range(int(work[STEPS])):
            for part in range(int(work[PARTS])):
                for v in range(threads):
                    if part == 0:
                        load = max(load, inp_free[v]) + work[INP]
                    load = max(load, wgt_free[v]) + work[WGT]
                    free = acc_free[v] if step == 0 and part == 0 else 0.0
                    compute = max(compute, load + latency, free) + work[GEMM]
                    wgt_free[v] = done[v] = compute + timing.startup
            for v in range(threads):
                inp_free[v] = done[v]
        latest = 0.0
        for v in range(threads):
            if work[SIDE] != 0:
                load = max(load, side_free[v]) + work[SIDE]
                compute = max(compute, load + latency)
            compute += work[ALU]
            side_free[v] = compute + timing.startup
            ready = max(done[v], side_free[v] if work[ALU] != 0 else 0.0)
            store = max(store, ready) + work[STORE] * work[PACE]
            acc_free[v] = store + latency
            latest = max(latest, acc_free[v])
        room.marks[group] = latest
