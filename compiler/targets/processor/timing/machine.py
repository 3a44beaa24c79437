"""Processors that host time is modelled for: a TOML file for each, and a table of prices beside it.

``data/NAME.toml`` is written by hand, with the source of each figure. ``data/NAME.jsonl`` is
LLVM's: what each form of instruction costs by its machine model, one a line, written by
``python tools/host_tables.py --write``. The sections of the TOML file::

    [processor]    target (its name among those that code is compiled for) or triple, cpu and
                   features as LLVM has them; clock_mhz; issue (micro-operations per cycle);
                   in_order; overlaps (whether it computes while it waits for memory);
                   call_cycles (of a call); row_seconds (what Python takes for a row of functions)
    [[cache]]      bytes, bytes_per_cycle (what a core reads from it), level by level
    [memory]       bytes_per_second
    [calls]        cycles of a call of a library's function, by its name
    [[correction]] forms (a regular expression), and what replaces LLVM's price: scale (a factor),
                   or like (another form; ``\1`` is the expression's first group)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.description.processor import (
    PROCESSORS,
    Processor,
    find_processor,
)
from vdla.support.named_toml import names_in, read_toml

DATA = Path(__file__).parent / "data"
NAMES = names_in(DATA)
VECTOR = re.compile(r"<(\d+) x (\w+)>")
MEMORY_UNITS = re.compile(r"load|store|lsu|agu|ls$|fp45|fpst|lsunit", re.IGNORECASE)
DIGITS = 3
LEAST = 0.01  # cycles; less is an error of rounding


class Row(TypedDict):
    """A line of a table."""

    form: str
    uops: float
    latency: float
    ports: dict[str, float]


class Correction(TypedDict, total=False):
    """Correction of LLVM's model by a machine's description."""

    forms: str
    scale: float
    like: str


@dataclass(frozen=True)
class Price:
    """Price of an instruction: micro-operations, cycles until its result, and cycles for which it
    keeps each unit busy."""

    uops: float
    latency: float
    ports: Mapping[str, float] = field(default_factory=dict)

    def without(self, other: Price, memory: bool = False) -> Price:
        """The price less another one's; ``memory``: of a load or store, whose latency is its own
        and isn't subtracted."""
        ports = {name: busy - other.ports.get(name, 0.0) for name, busy in self.ports.items()}
        kept = {name: busy for name, busy in ports.items() if busy > LEAST}
        return Price(max(0.0, self.uops - other.uops), self.latency, kept)

    def times(self, factor: float) -> Price:
        """So many of them, side by side."""
        ports = {name: factor * busy for name, busy in self.ports.items()}
        return Price(factor * self.uops, self.latency, ports)


@dataclass(frozen=True)
class Cache:
    """A level of memory near a core: its size, and what a core reads from it in a cycle."""

    bytes: int
    bytes_per_cycle: float


@dataclass(frozen=True)
class Machine:
    """A processor whose time is modelled: one core, its caches and its memory. The fields are those
    of its file."""

    name: str
    processor: Processor
    clock_mhz: float
    issue: float
    in_order: bool
    overlaps: bool
    call_cycles: float
    row_seconds: float
    caches: tuple[Cache, ...]
    bytes_per_second: float
    calls: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict, repr=False)

    def price(self, form: str) -> Price:
        """The price of a form of instruction, or of the nearest that is known."""
        known = self.prices.get(form)
        return known if known is not None else _nearest(form, self.prices)

    def at(self, clock_mhz: float, bytes_per_second: float) -> Machine:
        """The machine at another clock, before another memory."""
        return replace(self, clock_mhz=clock_mhz, bytes_per_second=bytes_per_second)


def _nearest(form: str, prices: Mapping[str, Price]) -> Price:
    """The price of the same instruction on other numbers of lanes, or of any one."""
    vector = VECTOR.search(form)
    lanes = int(vector[1]) if vector else 1
    key = _shape(form)
    others = [other for other in prices if _shape(other) == key]
    if others:
        heads = {other: VECTOR.search(other) for other in others}
        sizes = {other: int(head[1]) for other, head in heads.items() if head}
        if sizes:
            best = min(sizes, key=lambda other: abs(sizes[other] - lanes))
            return prices[best].times(max(1.0, lanes / sizes[best]))
        return prices[others[0]]
    return Price(float(max(1, lanes // 4)), 1.0)


def _shape(form: str) -> str:
    """A form without its numbers of lanes, and without a shuffle's mask."""
    plain = re.sub(r"<\d+ x i32> <.*>$", "", form)
    return re.sub(r"\.v\d+", ".v", VECTOR.sub(r"<\2>", plain))


@cache
def machine_of(name: str) -> Machine:
    """A machine by its name, with its table.

    Raises:
        TargetError: there is none of that name.
    """
    data, _ = read_toml("processor", name, DATA, TargetError)
    own, prices = data["processor"], read_table(name)
    for correction in data.get("correction", ()):
        prices |= _corrected(prices, correction)
    processor = (
        find_processor(own["target"])
        if "target" in own
        else Processor(own["triple"], own["cpu"], own["features"])
    )
    return Machine(
        name,
        processor,
        own["clock_mhz"],
        own["issue"],
        own["in_order"],
        own["overlaps"],
        own["call_cycles"],
        own["row_seconds"],
        tuple(Cache(each["bytes"], each["bytes_per_cycle"]) for each in data["cache"]),
        data["memory"]["bytes_per_second"],
        data.get("calls", {}),
        prices,
    )


def _corrected(prices: Mapping[str, Price], correction: Correction) -> dict[str, Price]:
    """The prices that a correction replaces."""
    result = {}
    for form, price in prices.items():
        head = re.fullmatch(correction["forms"], form)
        if head is None:
            continue
        known = prices[head.expand(correction["like"])] if "like" in correction else price
        result[form] = known.times(correction.get("scale", 1.0))
    return result


def table_path(name: str) -> Path:
    """Path of a machine's table."""
    return DATA / f"{name}.jsonl"


def read_table(name: str) -> dict[str, Price]:
    """Prices of instructions by LLVM's machine model, by their forms; empty before it is made."""
    if not table_path(name).exists():
        return {}
    rows = map(json.loads, table_path(name).read_text().splitlines())
    return {row["form"]: _price(row) for row in rows}


def table_text(prices: Mapping[str, Price]) -> str:
    """A table as its file has it."""
    rows = (
        {
            "form": form,
            "uops": p.uops,
            "latency": p.latency,
            "ports": {name: round(busy, DIGITS) for name, busy in sorted(p.ports.items())},
        }
        for form, p in sorted(prices.items())
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def _price(row: Row) -> Price:
    return Price(row["uops"], row["latency"], row["ports"])


def machine_for(processor: Processor) -> Machine:
    """The machine that a processor is: the one of its name, or for this machine, the one of the
    name that LLVM gives it.

    Raises:
        TargetError: it isn't described.
    """
    name = processor.cpu or _host_cpu()
    if name in NAMES:
        return machine_of(name)
    raise TargetError(
        f"host time: expected a processor that is described, one of {', '.join(NAMES)}, "
        f"found {name}; name one of them with --host, or describe {name} as docs/host-time.md says"
    )


def is_native(machine: Machine) -> bool:
    """Whether a machine is the one that this runs on."""
    return machine.name == _host_cpu()


@cache
def _host_cpu() -> str:
    import llvmlite.binding as llvm  # whoever lists machines needs none

    return str(llvm.get_host_cpu_name())


__all__ = [
    "NAMES", "PROCESSORS", "Cache", "Machine", "Price", "is_native", "machine_for", "machine_of",
    "table_path", "table_text",
]  # fmt: skip
