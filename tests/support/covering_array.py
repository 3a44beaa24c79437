"""Configs in which every legal pair of parameters' values meets: a covering array.

Faults hide where two parameters cross, each of which is right alone. ``LEVELS`` has the extremes
and odd values of every parameter that ``isa/config.py`` declares; a row of the array chooses one
for each. ``Array`` makes the rows, the same for the same seed, each the best of some candidates
for pairs that no row before it has.

What a parameter's value forbids another is read from ``ConfigError``: parameters that one error
names belong together, and all combinations of such a group are tried. A pair that no combination
holds is impossible. Other parameters never make a config illegal, and are free.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from random import Random
from typing import Any

from vdla.isa.config import BANKS, INT32_BYTES, PARTS, Config, parse_config
from vdla.isa.parameters import ConfigError, parameters

WITH_BANKS = "memory.banks"  # whether the memory has banks: what theirs say means nothing elsewhere
SMALL, LARGEST = 256, 1024  # multipliers of a config whose RTL is built: 4,096 take seven minutes
WIDEST = 1 << 16  # multipliers, at most
PROBES = 2000  # random configs by which what belongs together is found
CANDIDATES = 40  # combinations of which a row takes the one with most new pairs

Given = Mapping[str, int]  # values of the parameters that come before
Level = int | Callable[[Given], int]
Row = Mapping[str, str]  # by parameter, the name of its level
Place = tuple[str, str]  # a parameter and a level's name
Pair = tuple[Place, Place]


def _numbers(*values: int) -> dict[str, Level]:
    return {str(value): value for value in values}


def _buffer(entry: Callable[[Given], int]) -> dict[str, Level]:
    """Bytes of two entries; of an odd number, and some bytes that hold none; of many."""
    return {
        "2 entries": lambda given: 2 * entry(given),
        "37 and a rest": lambda given: 38 * entry(given) - 1,
        "1023 entries": lambda given: 1023 * entry(given),
    }


def _uop(given: Given) -> int:
    """Bytes of an entry of UOP, which has as many as the other buffers ask for."""
    return Config("pairs", uop_bytes=1 << 20, **given).entry("uop")


def _taps(given: Given) -> int:
    """The widest window of as many rows as there are."""
    return given["block_in"] // (2 * given["window_rows"])


def _units(given: Given) -> int:
    return given["block_out"] & -given["block_out"]


LEVELS: Mapping[str, Mapping[str, Level]] = {
    "port_bytes": _numbers(4, 8, 16, 128),
    "block_in": _numbers(4, 8, 12, 32, 64, 256),
    "block_out": _numbers(4, 8, 12, 32, 64, 256),
    "inp_bytes": _buffer(lambda given: given["block_in"]),
    "wgt_bytes": _buffer(lambda given: given["block_in"] * given["block_out"]),
    "acc_bytes": _buffer(lambda given: INT32_BYTES * given["block_out"]),
    "uop_bytes": _buffer(_uop),
    "clock_mhz": _numbers(1, 200),
    "command_queue": _numbers(2, 3, 1000),
    "token_queue": _numbers(1, 2, 1000),
    "burst_beats": _numbers(1, 3, 256),
    "reads_in_flight": _numbers(1, 3, 512),
    "read_buffer_beats": {
        "a burst": lambda given: given["burst_beats"],
        "a burst and 1": lambda given: given["burst_beats"] + 1,
        "a burst and 999": lambda given: given["burst_beats"] + 999,
    },
    "writes_in_flight": _numbers(1, 3, 512),
    "table_bytes": _numbers(0, 512, 3 * 512, 1 << 17),
    "forwarding": _numbers(0, 1),
    "window_rows": _numbers(1, 2),
    "window_taps": {**_numbers(0, 2, 3), "widest": _taps},
    "vector_engine": _numbers(0, 1),
    "reciprocal_units": {**_numbers(0, 1), "most": _units},
    "fabric_lanes": {**_numbers(0, 2), "all": lambda given: given["block_out"]},
    "alu_groups": {**_numbers(1, 2), "most": lambda given: given["block_out"]},
    "store_groups": _numbers(1, 2, 4),
    "weights4": _numbers(0, 1),
    "memory.latency": _numbers(0, 1, 300),
    "memory.bytes_per_cycle": {**_numbers(1, 3), "port": lambda given: given["port_bytes"]},
    WITH_BANKS: _numbers(0, 1),
    BANKS + "count": _numbers(1, 4, 16),
    BANKS + "row_bytes": _numbers(16, 1024, 1 << 16),
    BANKS + "requests": _numbers(1, 2),
    **{
        BANKS + name: _numbers(1, 7)
        for name in (
            "read_cycles", "write_cycles", "activate", "row_open", "row_cycle", "other_row",
            "read_recovery", "write_recovery", "read_to_write", "write_to_read",
        )
    },
    BANKS + "precharge": _numbers(1, 60),
    BANKS + "refresh_cycles": _numbers(1, 40),
    BANKS + "refresh_interval": _numbers(90, 500, 1 << 16),
    BANKS + "refreshes_put_off": _numbers(0, 8),
    BANKS + "start_cycles": _numbers(1, 300),
    BANKS + "clock_ratio": _numbers(1, 2),
}  # fmt: skip


# Rows -------------------------------------------------------------------------------------------


def declared() -> list[str]:
    """Every parameter that a config can have."""
    return [scope + f.name for scope, part in PARTS.items() for f in parameters(part)]


def config_of(row: Row) -> Config:
    """The config of a row.

    Raises:
        ConfigError: there can be no such machine.
    """
    values: dict[str, int] = {}
    for key, levels in LEVELS.items():
        level = levels[row[key]]
        values[key] = level(values) if callable(level) else level
    banks = values.pop(WITH_BANKS)
    data: dict[str, Any] = {"memory": {}}
    for key, value in values.items():
        scope = next(each for each in (BANKS, "memory.", "") if key.startswith(each))
        table = data if not scope else data["memory"]
        if scope == BANKS:
            if not banks:
                continue
            table = table.setdefault("banks", {})
        table[key.removeprefix(scope)] = value
    return parse_config(data, "pairs", "pairs")


def error_of(row: Row) -> str:
    """Why there can be no machine of a row; nothing if there can."""
    try:
        config_of(row)
    except ConfigError as error:
        return str(error)
    return ""


def places_of(row: Row) -> list[Place]:
    """The levels that a row's config has: those of banks only if it has banks."""
    banks = row[WITH_BANKS] == "1"
    return [place for place in row.items() if banks or not place[0].startswith(BANKS)]


def pairs_of(row: Row) -> Iterator[Pair]:
    """The pairs that meet in a row's config."""
    return combinations(places_of(row), 2)


def all_pairs() -> Iterator[Pair]:
    """Every pair of levels of different parameters."""
    for (one, levels), (other, others) in combinations(LEVELS.items(), 2):
        for level, more in product(levels, others):
            yield (one, level), (other, more)


def reason_of(pair: Pair) -> str:
    """Why no legal config has an impossible pair: what is wrong with one that has it, in words that
    name both parameters, if there are such words."""
    rng, names, errors = Random(0), [key for key, _ in pair], []
    for _ in range(PROBES):
        row = {key: rng.choice(list(levels)) for key, levels in LEVELS.items()}
        errors.append(error_of({**row, WITH_BANKS: "1", **dict(pair)}).partition(": ")[2])
        if all(_names(errors[-1], name) for name in names):
            return errors[-1]
    return errors[0] or "expected banks, found none"


# What belongs together ----------------------------------------------------------------------------


def groups() -> list[list[str]]:
    """Parameters that errors name together, by the order of ``LEVELS``."""
    rng, together = Random(0), {key: {key} for key in LEVELS}
    for _ in range(PROBES):
        row = {key: rng.choice(list(levels)) for key, levels in LEVELS.items()}
        while error := error_of(row):
            names = [key for key in LEVELS if key != WITH_BANKS and _names(error, key)]
            joined = {each for key in names for each in together[key]}
            together |= dict.fromkeys(joined, joined)
            key = rng.choice(names)
            row[key] = rng.choice(list(LEVELS[key]))
    found = {min(map(list(LEVELS).index, each)): each for each in together.values()}
    return [[key for key in LEVELS if key in found[first]] for first in sorted(found)]


def _names(error: str, key: str) -> bool:
    return re.search(rf"\b{key.rpartition('.')[2]}\b", error) is not None


class Array:
    """The rows; ``impossible`` are the pairs that no legal config has, ``pairs`` all others.

    Rows of SMALL configs come first, then those with LARGEST multipliers at most; the last have the
    pairs that ask for more.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.rng = seed, Random(seed)
        self.groups = [group for group in groups() if len(group) > 1]
        self.legal = [list(self._combinations(group)) for group in self.groups]

    def _combinations(self, group: Sequence[str]) -> Iterator[Row]:
        """Every legal combination of a group's levels, with plain ones elsewhere."""
        for levels in product(*(LEVELS[key] for key in group)):
            part = dict(zip(group, levels, strict=True))
            if not error_of({**PLAIN, WITH_BANKS: "1", **part}):
                yield part

    @cached_property
    def impossible(self) -> set[Pair]:
        """Pairs within a group that none of its combinations has, and those of no banks."""
        result: set[Pair] = set()
        for group, legal in zip(self.groups, self.legal, strict=True):
            held = {pair for part in legal for pair in combinations(part.items(), 2)}
            result |= {p for p in all_pairs() if {p[0][0], p[1][0]} <= set(group)} - held
        none = (WITH_BANKS, "0")
        return result | {p for p in all_pairs() if p[0] == none and p[1][0].startswith(BANKS)}

    @cached_property
    def pairs(self) -> set[Pair]:
        """Every pair that a legal config can have."""
        return set(all_pairs()) - self.impossible

    @cached_property
    def rows(self) -> list[Row]:
        """The rows, of which each has a pair that none before has."""
        rows: list[Row] = []
        left = dict.fromkeys(p for p in all_pairs() if p not in self.impossible)
        for limit in (SMALL, LARGEST, WIDEST):
            missed: dict[Pair, None] = {}
            while left:
                pair = next(iter(left))
                row = self._row(pair, left, limit)
                if row is None:
                    missed[pair] = left.pop(pair)
                    continue
                rows.append(row)
                for each in pairs_of(row):
                    left.pop(each, None)
                    missed.pop(each, None)
            left = missed
        return rows

    def _row(self, pair: Pair, left: Container[Pair], limit: int) -> Row | None:
        """A row with a pair and with many that are left, if there is one below the limit."""
        chosen: dict[str, str] = dict(pair)
        if any(key.startswith(BANKS) for key in chosen):
            chosen[WITH_BANKS] = "1"
        for group, legal in zip(self.groups, self.legal, strict=True):
            fixed = {key: chosen[key] for key in group if key in chosen}
            fits = [part for part in legal if fixed.items() <= part.items()]
            fits = [part for part in fits if _macs(part) <= limit]
            if not fits:
                return None
            tried = self.rng.sample(fits, min(CANDIDATES, len(fits)))
            best = max(tried, key=lambda part: (_gain({**chosen, **part}, left), -_macs(part)))
            chosen.update(best)
        free = [key for key in LEVELS if key not in chosen]
        self.rng.shuffle(free)
        for key in free:
            levels = self.rng.sample(list(LEVELS[key]), len(LEVELS[key]))
            chosen[key] = max(levels, key=lambda level: _gain_of((key, level), chosen, left))
        return {key: chosen[key] for key in LEVELS}


def _macs(part: Row) -> int:
    """Multipliers, of a part that has blocks."""
    return int(part.get("block_in", 1)) * int(part.get("block_out", 1))


def _gain(chosen: Row, left: Container[Pair]) -> int:
    ordered = [(key, chosen[key]) for key in LEVELS if key in chosen]
    return sum(pair in left for pair in combinations(ordered, 2))


def _gain_of(place: Place, chosen: Row, left: Container[Pair]) -> int:
    order = list(LEVELS).index
    others = chosen.items()
    pairs = ((place, o) if order(place[0]) < order(o[0]) else (o, place) for o in others)
    return sum(pair in left for pair in pairs)


PLAIN: dict[str, str] = {
    key: level for key, levels in LEVELS.items() for level in list(levels)[:1]
}  # a legal row
