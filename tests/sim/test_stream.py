"""Programs as arrays: what is legal in rows is what is legal in instructions, and which bytes of
DRAM cycles depend on."""

from __future__ import annotations

import random

import pytest

from vdla.isa.config import config_names, load_config
from vdla.isa.instructions import INSTRUCTIONS, Finish, Load, Mem, Unknown
from vdla.sim.machine import run_cycles
from vdla.sim.random_programs import DRAM_BYTES, random_program
from vdla.sim.stream import Stream, memory_image


@pytest.mark.parametrize("name", config_names())
def test_rows_are_legal_where_instructions_are(name):
    """Enumerated fields with all values that their bits hold, legal in a config or not."""
    config, rng = load_config(name), random.Random(7)
    program = [Unknown(7), Finish()]
    for cls in INSTRUCTIONS:
        for _ in range(50):
            values = {f.name: rng.randrange(16) for f in cls.fields if f.names and f.name != "op"}
            program.append(cls(**values))
    legal = [each.is_legal(config) for each in program]
    assert Stream.of(config, program).legal.tolist() == legal
    assert {True, False} == set(legal)


@pytest.mark.parametrize("name", ["tiny", "paper-full", "ulx3s"])
@pytest.mark.parametrize("seed", range(6))
def test_cycles_depend_on_the_program_and_its_micro_ops_alone(name, seed):
    """Every other byte of DRAM but the program's is replaced."""
    config = load_config(name)
    program = random_program(config, seed, 30)
    image = memory_image(program, DRAM_BYTES)
    stream = Stream.of(config, program.instructions, program.base)
    other = (~image).copy()
    assert stream.micro_ops(image) != stream.micro_ops(other) or not stream.micro_ops(image)
    for low, high in [(program.base, program.base + len(program.stream())), *stream.uop_places]:
        other[low:high] = image[low:high]
    assert stream.micro_ops(image) == stream.micro_ops(other)
    runs = [run_cycles(stream, each) for each in (image, other)]
    assert runs[0].cycles == runs[1].cycles
    assert (runs[0].finish == runs[1].finish).all()
    assert runs[0].causes == runs[1].causes


def test_micro_op_places_are_those_that_loads_read():
    config = load_config("tiny")
    size = config.entry("uop")
    loads = [
        Load(memory=Mem.UOP, dram_base=64 * size, x_size=2, y_size=3, z_size=1, y_stride=4),
        Load(memory=Mem.UOP, dram_base=70 * size, x_size=8, y_size=1, z_size=1),
        Load(memory=Mem.UOP, dram_base=8 * size, x_size=3, y_size=1, z_size=2, z_stride=9),
        Load(memory=Mem.INP, dram_base=0, x_size=3, y_size=1, z_size=1),
    ]
    places = Stream.of(config, [*loads, Finish()]).uop_places
    assert [(low // size, high // size) for low, high in places] == [(8, 20), (64, 78)]
