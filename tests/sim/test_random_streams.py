"""Random streams, wrong in any field or bit: timing, effects and checker say the same of them."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Load, Store, instruction_bytes
from vdla.sim.checker import check
from vdla.sim.machine import SimulationError, run_functional
from vdla.sim.random_programs import DRAM_BYTES, random_program
from vdla.sim.stream import Stream, memory_image
from vdla.sim.timing import Clock

CONFIGS = [
    load_config("tiny"),
    load_config("tiny", ["table_bytes=1024", "forwarding=1", "window_taps=2"]),
]
UNDEFINED = {"conflict", "uop"}  # findings of programs whose effects depend on the order
STANDS = {"deadlock", "leftover"}  # findings that are no fault
LONGEST = 5000  # entries that an instruction moves, or micro-ops that it runs


def wrong_program(config, number):
    """A random program, some of whose fields and bits have other values."""
    rng = Random(number)
    program = random_program(config, number, rng.choice((3, 12, 30)))
    size = instruction_bytes(config)
    for _ in range(rng.choice((1, 1, 2, 4))):
        each = program.instructions[rng.randrange(len(program.instructions))]
        if isinstance(each, Finish):
            continue
        field = rng.choice(each.fields[1:])
        low, high = field.bounds(config)
        setattr(each, field.name, rng.choice((low, high, rng.randint(low, high))))
    raw = bytearray(program.stream())
    while rng.random() < 0.3:
        bit = rng.randrange(8 * (len(raw) - size))  # FINISH stays what it is
        raw[bit // 8] ^= 1 << bit % 8
    dram = memory_image(program, DRAM_BYTES)
    dram[program.base : program.base + len(raw)] = np.frombuffer(raw, np.uint8)
    return Stream.of_bytes(config, bytes(raw), program.base), dram


def length(each):
    if isinstance(each, Load | Store):
        pads = getattr(each, "pad_y0", 0) + getattr(each, "pad_y1", 0)
        pads_x = getattr(each, "pad_x0", 0) + getattr(each, "pad_x1", 0)
        return each.z_size * (each.y_size + pads) * (each.x_size + pads_x)
    return each.steps() if hasattr(each, "steps") else 0


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "options"])
def test_timing_effects_and_checker_agree(config):
    endings = Counter()
    for number in range(400):
        stream, dram = wrong_program(config, number)
        if max(map(length, stream.instructions)) > LONGEST:
            continue
        clock = Clock(stream, dram)
        kinds = {each.kind for each in check(config, stream.instructions, dram, stream.base)}
        if clock.fault:
            endings["fault"] += 1
            assert kinds, (number, clock.fault)
        elif clock.cycles < 0:
            endings["deadlock"] += 1
            assert "deadlock" in kinds, (number, kinds)
        else:
            endings["end"] += 1
            assert kinds <= UNDEFINED | STANDS, (number, kinds)
            try:
                run_functional(stream, clock.finish, dram)
            except SimulationError:
                assert kinds & UNDEFINED, number
    assert min(endings[name] for name in ("fault", "deadlock", "end")) > 10, endings
