"""The analytic model of the machine: what a tile costs, and which tile is best.

A candidate's tiles run through a max-plus recurrence of the engines (``recurrence.py``): each takes
its turn when it is free, when what they need is there and when what they overwrite is no longer
needed. That is the machine's own rule (docs/timing.md) at the grain of tiles, so the model ranks
schedules with one virtual thread and with several by the same measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.description.engines import alu_beside_gemm
from vdla.compiler.targets.accelerator.operators.access import Size
from vdla.compiler.targets.accelerator.operators.recurrence import COLUMNS, Timing, estimates
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes
from vdla.isa.options.lanes import alu_groups, store_groups
from vdla.sim.timing.constants import LATE_READ, TILE, WRITE_BACK
from vdla.support.errors import UserError

Places = NDArray[np.int64]

STARTUP = 4 + WRITE_BACK + 2  # cycles from a token to the first result: issue, pipeline, hand-over
TURN = TILE + 7  # cycles from a token to the first beat, besides memory's: start, request, buffer
FINALISTS = 64  # candidates that get the recurrence at a time, after the bound has ranked them
MOST_STAGES = 16  # most buffer copies that are tried; beyond these, latency is fully hidden


class TilingError(UserError):
    """No tile is legal: not even the smallest fits the buffers."""


def no_tile(wanted: str, config: Config) -> TilingError:
    """The error of buffers that don't hold what is wanted, such as "one tile of a pool"."""
    depths = ", ".join(f"{name} {config.depth(name)}" for name in ("inp", "wgt", "acc"))
    return TilingError(
        f"config {config.name}: expected buffers that hold {wanted}, found {depths} entries"
    )


@dataclass(frozen=True)
class TileCost:
    """The work of one tile: what the recurrence needs of a candidate, in cycles. All but ``shared``
    may be columns, with an entry for each of many candidates.

    A tile reduces in ``steps`` steps; each loads ``inp`` once and then, ``parts`` times, loads
    ``wgt`` and runs ``gemm``. ``side`` is loaded for the ALU (a residual) or for the tile alone
    (its biases), ``alu`` runs after the reduction and ``store`` writes the tile: so many cycles of
    the bus, for each of which STORE takes ``pace``.

    With ``shared`` virtual threads take turns step by step: ``pairs`` counts the groups of tiles
    that all threads share, ``singles`` the tiles left for one thread alone. Otherwise they take
    turns tile by tile, and the operands that change have ``stages`` buffer copies on chip. ``inp``
    is loaded for the first of every ``inp_every`` tiles, ``wgt`` for the first of every
    ``wgt_every``. The work is the mean of all tiles. Of these, ``across`` lie side by side and
    ``down`` below each other, each ``inner`` times in a row, and all but the last along an axis are
    ``wide`` and ``tall`` times the mean.
    """

    pairs: Size
    singles: Size
    threads: Size
    steps: Size = 1
    parts: Size = 1
    inp: Size = 0.0
    wgt: Size = 0.0
    gemm: Size = 0.0
    side: Size = 0.0
    alu: Size = 0.0
    store: Size = 0.0
    shared: bool = True
    stages: Size = 1
    inp_every: Size = 1
    wgt_every: Size = 1
    pace: float = 1.0
    inner: Size = 1
    across: Size = 1
    wide: Size = 1.0
    down: Size = 1
    tall: Size = 1.0

    @property
    def tiles(self) -> Size:
        """All tiles."""
        return self.pairs * self.threads + self.singles

    def compute(self, config: Config) -> Size:
        """Cycles of COMPUTE alone, or of VECTOR beside it if that takes longer.

        What ``shared`` threads compute is ALU's work throughout, so one engine does all of it.
        """
        work = self.steps * self.parts * self.gemm
        beside = alu_beside_gemm(config) and not self.shared
        return self.tiles * (np.maximum(work, self.alu) if beside else work + self.alu)

    @property
    def traffic(self) -> Size:
        """Cycles of the memory bus alone."""
        inp = -(-self.tiles // self.inp_every) * self.steps * self.inp
        wgt = -(-self.tiles // self.wgt_every) * self.steps * self.parts * self.wgt
        return inp + wgt + self.tiles * (self.side + self.store)

    def chosen(self, numbers: Places) -> TileCost:
        """The costs of some candidates, as columns."""
        columns: dict[str, Any] = {
            n: c for n, c in vars(self).items() if isinstance(c, np.ndarray) and c.ndim
        }
        return replace(self, **{name: column[numbers] for name, column in columns.items()})


def estimate(work: TileCost, config: Config) -> NDArray[np.float64]:
    """[n] cycles of candidates by the recurrence, and a little for every step: fewer are better."""
    columns = np.broadcast_arrays(*(np.atleast_1d(getattr(work, name)) for name in COLUMNS))
    cycles = estimates(np.stack(columns, axis=-1), timing(config))
    return np.maximum(cycles, work.traffic) + work.tiles * work.steps * work.parts


def timing(config: Config) -> Timing:
    """Times of a machine that the recurrence needs, in cycles."""
    latency = float(config.memory.first_beat)
    return Timing(latency, float(STARTUP), float(TURN), alu_beside_gemm(config))


def cheapest(groups: Iterable[tuple[TileCost, Places]], config: Config) -> int | None:
    """The candidate with the least estimate; None where none does any work.

    Args:
        groups: costs in columns, and which candidates they are of.
    """
    return next(iter(ranked(groups, config, FINALISTS)), None)


def ranked(
    groups: Iterable[tuple[TileCost, Places]], config: Config, count: int | None = None
) -> list[int]:
    """Candidates in order, without those that do no work: FINALISTS that a quick stand-in for the
    estimate likes best, the one with the least estimate first, then as many that it likes next.
    With ``count``, so many of all."""
    known = list(groups)
    if not known:
        return []
    rough = np.concatenate([np.broadcast_to(_rough(w, config), p.shape) for w, p in known])
    places = np.concatenate([places for _, places in known])
    numbers = np.concatenate([np.arange(len(places)) for _, places in known])
    group = np.repeat(np.arange(len(known)), [len(places) for _, places in known])
    finalists = np.lexsort((places, rough))[:count]
    finalists = finalists[rough[finalists] < np.inf]
    cycles = np.empty(len(finalists))
    for each in np.unique(group[finalists]).tolist():
        own = group[finalists] == each
        cycles[own] = estimate(known[each][0].chosen(numbers[finalists[own]]), config)
    order = np.lexsort((cycles, np.arange(len(finalists)) // FINALISTS))
    return [int(place) for place in places[finalists[order]]]


def _rough(work: TileCost, config: Config) -> NDArray[np.float64]:
    """A quick stand-in for the estimate, to choose the finalists by."""
    steps = work.tiles * work.steps
    ends = work.inp + work.wgt + work.store * work.pace / (1 if work.shared else work.parts)
    waits = work.parts * (config.memory.first_beat + STARTUP)
    compute, store = work.compute(config), work.tiles * work.store * work.pace
    in_turn = compute + work.traffic + steps * waits + ends  # loads and results
    busiest = np.maximum(np.maximum(compute, store), work.traffic)
    at_once = busiest + ends + steps * work.parts * STARTUP / 4
    cycles = np.where(np.equal(work.threads, 1), in_turn, at_once)
    return np.where(np.equal(work.tiles, 0), np.inf, cycles)


# What templates make their costs of ------------------------------------------------------------


def transfer(size: Size, run: Size, config: Config) -> Size:
    """Bus cycles to move ``size`` bytes in runs of ``run`` contiguous bytes."""
    memory = config.memory
    cycles = size / config.bytes_per_cycle
    bursts = np.ceil(run / (config.port_bytes * config.burst_beats)) * size / np.maximum(run, 1)
    return np.maximum(cycles, bursts * (memory.first_beat + 4) / config.reads_in_flight)


def requantized(size: float, config: Config) -> float:
    """STORE's own cycles to requantize ``size`` bytes: a step for each group of a beat's lanes."""
    return size / config.port_bytes * store_groups(config)


def pace(config: Config) -> float:
    """Cycles that a STORE that requantizes takes for one of the bus: more than one where its own
    steps are more than the bus's cycles."""
    return max(1.0, requantized(config.bytes_per_cycle, config))


def group_cycles(multiplied: Size, config: Config) -> Size:
    """Cycles that ALU micro-ops that multiply or shift take besides one each: READ keeps them while
    the multipliers take their lanes in groups."""
    return multiplied * (alu_groups(config) - 1)


def beside_gemm(alu: Size, chain: Size, config: Config) -> Size:
    """Cycles of ALU micro-ops with an early x, beside GEMM's chains of micro-ops on an accumulator.

    Of a chain's cycles GEMM takes one for its write and one for its late read, which may be the
    same one (docs/timing.md, section 5.11); VECTOR has the others. Without a vector engine ALU has
    its cycles for itself.
    """
    if not alu_beside_gemm(config):
        return alu
    taken = np.where(LATE_READ % chain == chain - 1, 1, 2)
    return alu * chain / np.maximum(chain - taken, 0.25)


def loaded_beside(moved: Size, chain: Size, config: Config) -> Size:
    """Bus cycles to load entries of ACC beside GEMM's chains of micro-ops on an accumulator.

    A chain's write goes before LOAD's, and VECTOR's do, while LOAD keeps what is behind it waiting.
    Without a vector engine ALU, which needs the entries, doesn't work beside GEMM.
    """
    return moved * chain / np.maximum(chain - 1, 0.5) if alu_beside_gemm(config) else moved


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
