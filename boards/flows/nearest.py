"""The nearest config that fits a device, where one was just found too large; without synthesis.

What a config takes is estimated by its ``size`` from what yosys counted for the other one, so that
units and families cancel: an ECP5 has two multipliers where an AMD device has one, and block RAMs
of the same 18 Kbit.

Against yosys, from config ``narrow`` to half its ``block_out`` and to ``tiny``, on both families:
DSP is exact, BRAM within one, LUT and FF 3 to 12 % too many, which is TRUSTED's caution (``pytest
-m long -s tests/boards/test_nearest.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement
from math import log2
from typing import NamedTuple

from vdla.boards.board import Board
from vdla.hw.fifo import SHALLOW
from vdla.isa.config import Config, config_names, load_config
from vdla.isa.options.fabric import fabric_lanes
from vdla.isa.parameters import ConfigError
from vdla.support.numbers import ceil_div

SIZES = ("block_in", "block_out", "inp_bytes", "wgt_bytes", "acc_bytes", "uop_bytes")
HALVINGS = 8  # at most: beyond that it is another machine
BUFFERS = ("inp", "wgt", "acc", "uop")
DEEP = 128  # entries: yosys makes shallower buffers of LUTs, which ``size`` doesn't know
SHAPES = tuple((36 >> i, 512 << i) for i in range(6))  # of a block RAM: bits, entries
FABRIC = 1 / 8  # a multiply-add in LUTs, in lanes of block_out, on either family
TRUSTED = {"lut": 0.9, "ff": 0.9}  # the part of a saving that is counted on; all of the others


class Logic(NamedTuple):
    """Logic beside the lanes of block_out, measured in such lanes: all that there is once, in LUT
    and in FF, a byte of the port, a multiply-add of GEMM."""

    lut: float
    ff: float
    port: float
    mac: float


LATTICE = Logic(8.5, 4.3, port=0.65, mac=1 / 25)
LOGIC = {  # by a device's first letters
    "xc": Logic(9, 6.5, port=0.45, mac=1 / 80),
    "LF": LATTICE,
    "GW": LATTICE,  # not measured: LUTs of four inputs and two products of a multiplier, too
}


class Candidate(NamedTuple):
    """A smaller config, and what to type for it."""

    typed: str
    config: Config


def nearest(board: Board, config: Config, used: Mapping[str, float]) -> Candidate | None:
    """The nearest smaller config that fits by the estimate, or None.

    Smaller ones are the bundled configs and all that halvings of SIZES give. Nearest is the one
    with the fewest halvings; then with the most multiply-adds per cycle; then with the most bytes
    in its buffers.
    """

    def rank(candidate: Candidate) -> tuple[float, int, int]:
        smaller = candidate.config
        held = sum(getattr(smaller, f"{buffer}_bytes") for buffer in BUFFERS)
        return distance(config, smaller), -smaller.macs_per_cycle, -held

    ranked = sorted([*bundled(config), *halved(config, HALVINGS)], key=rank)
    return next((c for c in ranked if fits(board, estimate(board, config, used, c.config))), None)


def fits(board: Board, used: Mapping[str, float]) -> bool:
    """Whether a board's device has all that is ``used``."""
    return all(used.get(name, 0) <= most for name, most in board.available.items())


def estimate(
    board: Board, config: Config, used: Mapping[str, float], other: Config
) -> dict[str, float]:
    """Resources of a device that ``other`` takes, given that ``config`` was counted to take
    ``used``.

    It errs on the safe side: only a part of a saving in LUT and FF is counted on (TRUSTED).
    """
    now, then = size(board, config), size(board, other)
    changes = {name: used.get(name, 0) * (then[name] / now[name] - 1) for name in now}
    return {
        name: used.get(name, 0) + change * (TRUSTED.get(name, 1) if change < 0 else 1)
        for name, change in changes.items()
    }


def size(board: Board, config: Config) -> dict[str, float]:
    """LUT and FF in lanes of block_out, DSP in multipliers of 18 × 25 bits, BRAM in 18 Kbit."""
    logic = LOGIC[board.device[:2]]
    in_fabric = config.block_in * fabric_lanes(config)
    macs = logic.mac * (config.macs_per_cycle - in_fabric) + FABRIC * in_fabric
    lanes = config.block_out + logic.port * config.port_bytes + macs
    return {
        "lut": logic.lut + lanes,
        "ff": logic.ff + lanes,
        # GEMM makes two products with one, the ALU takes three a lane, STORE two a lane.
        "dsp": config.block_in * ceil_div(config.block_out - fabric_lanes(config), 2)
        + 3 * config.block_out
        + 2 * config.port_bytes,
        # One more stands in a ULX3S's bridge.
        "bram": 1 + read_buffer(config) + sum(block_rams(config, buffer) for buffer in BUFFERS),
    }


def block_rams(config: Config, buffer: str) -> int:
    """Number of block RAMs of 18 Kbit that a buffer takes.

    A buffer is written a beat at a time, so it has a column of RAM for each beat of an entry. ACC
    is written in whole entries; it is read twice in a cycle, so it is there twice.
    """
    entry, depth = config.entry(buffer), config.depth(buffer)
    column = entry if buffer == "acc" else config.port_bytes
    copies = 2 if buffer == "acc" else entry // column
    return copies * of_shape(8 * column, depth)


def read_buffer(config: Config) -> int:
    """Number of block RAMs of 18 Kbit that hold the beats that LOAD has asked for."""
    depth = config.read_buffer_beats
    return of_shape(8 * config.port_bytes, depth) if depth > SHALLOW else 0


def of_shape(width: int, depth: int) -> int:
    """Number of block RAMs of 18 Kbit that hold ``depth`` words of ``width`` bits."""
    return min(ceil_div(width, bits) * ceil_div(depth, entries) for bits, entries in SHAPES)


def distance(config: Config, smaller: Config) -> float:
    """Halvings between two configs."""
    names = (*SIZES, "port_bytes")
    return sum(abs(log2(getattr(config, name) / getattr(smaller, name))) for name in names)


def bundled(config: Config) -> Iterator[Candidate]:
    """The bundled configs that are smaller: somewhere less, and nowhere more."""
    for name in config_names():
        other = load_config(name)
        pairs = [(getattr(other, n), getattr(config, n)) for n in (*SIZES, "port_bytes")]
        if all(less <= more for less, more in pairs) and distance(config, other):
            yield Candidate(f"-c {name}", other)


def halved(config: Config, most: int) -> Iterator[Candidate]:
    """Configs that up to ``most`` halvings give, as far as they are legal and their buffers are
    DEEP.
    """
    known = config.name in config_names() and load_config(config.name).hash == config.hash
    start = f"-c {config.name}" if known else "the same with"
    for count in range(1, most + 1):
        for steps in combinations_with_replacement(SIZES, count):
            settings = [
                f"{name}={getattr(config, name) >> steps.count(name)}"
                for name in dict.fromkeys(steps)
            ]
            try:
                smaller = config.override(settings)
            except ConfigError:
                continue
            if any(smaller.depth(b) < min(DEEP, config.depth(b)) for b in BUFFERS):
                continue
            yield Candidate(" ".join([start, *(f"--set {s}" for s in settings)]), smaller)
