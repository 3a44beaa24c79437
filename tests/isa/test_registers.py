"""The register map: no overlap, and what other tools read of it."""

import re

import pytest
from systemrdl import RDLCompiler

from vdla.isa.config import load_config
from vdla.isa.identity import isa_hash
from vdla.isa.manual import header, systemrdl
from vdla.isa.registers import (
    SPACE_BYTES,
    Cause,
    counter,
    instruction_address,
    register,
    registers,
)
from vdla.isa.ring import engines

PAPER = load_config("paper")
REGISTERS = registers(PAPER)


def test_registers_lie_apart_in_the_space():
    offsets = [r.offset for r in REGISTERS]
    assert offsets == sorted(set(offsets))
    assert all(offset % 4 == 0 and offset + 4 <= SPACE_BYTES for offset in offsets)


@pytest.mark.parametrize("r", REGISTERS, ids=lambda r: r.name)
def test_fields_lie_apart_in_their_register(r):
    taken = 0
    for bits in r.bits:
        assert taken & bits.mask == 0
        taken |= bits.mask
    assert taken < 1 << 32


def test_every_engine_counts_every_cause():
    assert {counter(e, c) for e in engines(PAPER) for c in Cause} <= {r.name for r in REGISTERS}


def test_systemrdl_says_the_same(tmp_path):
    path = tmp_path / "vdla.rdl"
    path.write_text(systemrdl(PAPER))
    compiler = RDLCompiler()
    compiler.compile_file(str(path))
    found = {r.inst_name: r for r in compiler.elaborate().top.registers()}
    assert {name: r.absolute_address for name, r in found.items()} == {
        r.name: r.offset for r in REGISTERS
    }
    for r in REGISTERS:
        fields = {f.inst_name: (f.low, f.width) for f in found[r.name].fields()}
        assert fields == {b.name: (b.low, b.width) for b in r.bits} or fields == {"VALUE": (0, 32)}
        writable = any(f.is_sw_writable for f in found[r.name].fields())
        assert writable == (r.access != "ro")
    values = [found[n].fields()[0].get_property("reset") for n in
              ("ISA_HASH", "CONFIG_HASH")]  # fmt: skip
    assert [f"{value:08x}" for value in values] == [isa_hash(), PAPER.hash]


def test_the_header_names_every_register():
    text = header(PAPER)
    for r in REGISTERS:
        assert re.search(rf"#define VDLA_REG_{r.name} {r.offset:#05x}$", text, re.MULTILINE)


def test_addresses_of_instructions():
    assert instruction_address(PAPER, 0x1000, 3) == 0x1060
    assert register("CONTROL").field("RESET").mask == 2
