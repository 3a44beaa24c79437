"""Encodings: what is written is what is read, for every config."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.isa.asm import AsmError, assemble, disassemble
from vdla.isa.config import config_names, load_config
from vdla.isa.encoding import decode
from vdla.isa.fields import EncodingError, Field, OptionFlag, Record
from vdla.isa.instructions import (
    INSTRUCTIONS,
    Finish,
    Gemm,
    Unknown,
    Uop,
    instruction_bytes,
    instruction_set,
)
from vdla.isa.program import _CRC, _HEADER, MAGIC, Program, ProgramError

RING = load_config("paper-ring")  # has every field
CONFIGS = [load_config(name) for name in config_names()]


def value(draw, field, config):
    low, high = field.bounds(config)
    return draw(st.sampled_from((low, high, 0)) | st.integers(low, high))


@st.composite
def instructions(draw, config):
    """Any instruction, its fields anywhere in their range."""
    cls = draw(st.sampled_from(instruction_set(config)))
    return cls(**{f.name: value(draw, f, config) for f in cls.fields if f.name != "op"})


@st.composite
def programs(draw):
    """Any program with data, for any config."""
    config = draw(st.sampled_from(CONFIGS))
    data = {0x100: draw(st.binary(min_size=1, max_size=99)), 0x4000: draw(st.binary(min_size=1))}
    listed = draw(st.lists(instructions(config), min_size=1, max_size=8))
    return Program(config, listed, draw(st.integers(0, 1 << 31)), data)


@settings(max_examples=150)
@given(programs())
def test_programs_round_trip(program):
    assert Program.from_bytes(program.to_bytes(), program.config) == program
    assert assemble(disassemble(program), program.config) == program
    for each in program.instructions:
        assert decode(each.encode(program.config), program.config) == each


def test_a_program_as_text():
    """Lines of 32 bytes of data, in order of addresses; only fields that differ from their zero."""
    data = {0x200: bytes(range(33)), 0x100: b"\xff"}
    program = Program(load_config("tiny"), [Gemm(uop_count=2), Finish()], 0x40, data)
    assert disassemble(program).splitlines()[1:] == [
        ".base 0x40",
        ".data 0x100 ff",
        f".data 0x200 {bytes(range(32)).hex()}",
        ".data 0x220 20",
        "GEMM uop_count=2",
        "FINISH",
    ]
    assert ".base" not in disassemble(replace(program, base=0))


@settings(max_examples=150)
@given(st.data())
def test_micro_ops_round_trip(data):
    config = data.draw(st.sampled_from(CONFIGS))
    uop = Uop(**{f.name: value(data.draw, f, config) for f in Uop.fields})
    assert Uop.decode(uop.encode(config), config) == uop


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
def test_widths_fit(config):
    assert Uop.bits(config) <= 8 * config.uop_entry
    for cls in instruction_set(config):
        assert cls.bits(config) <= 8 * instruction_bytes(config)
        layout = cls.layout(config)
        assert [bit for _, bit, _ in layout] == [
            sum(w for _, _, w in layout[:i]) for i in range(len(layout))
        ]


def test_every_field_changes_the_encoding():
    for cls in INSTRUCTIONS:
        plain = cls().pack(RING)
        for f in cls.fields:
            if f.name != "op":
                assert cls(**{f.name: f.default ^ 1}).pack(RING) != plain, f.name


@pytest.mark.parametrize("cls", [*INSTRUCTIONS, Uop], ids=lambda cls: cls.__name__)
def test_a_field_holds_its_bounds_and_nothing_beyond(cls):
    config = load_config("tiny")
    for f in cls.fields:
        low, high = f.bounds(config)
        width = f.width(config)
        assert high - low == (1 << width) - 1
        assert f.holds(low, width)
        assert f.holds(high, width)
        for beyond in (low - 1, high + 1):
            assert not f.holds(beyond, width)
            if f.name != "op":
                with pytest.raises(EncodingError, match=rf"{f.name}: expected {low}\.\.{high} "):
                    cls(**{f.name: beyond}).pack(config)


def test_a_field_that_a_config_lacks_takes_no_bits():
    """What follows moves down; the field is 0 there, and says so when it isn't."""

    class Sample(Record):
        low = Field(2, "in every config")
        flag = OptionFlag("in one config", present=lambda config: config.name == "paper")
        high = Field(3, "in every config")

    paper, tiny = load_config("paper"), load_config("tiny")
    assert [(f.name, bit) for f, bit, _ in Sample.layout(paper)] == [
        ("low", 0), ("flag", 2), ("high", 3)
    ]  # fmt: skip
    assert [(f.name, bit) for f, bit, _ in Sample.layout(tiny)] == [("low", 0), ("high", 2)]
    assert Sample.flag.is_flag
    one = Sample(low=1, flag=1, high=5)
    assert one.pack(paper) == 0b101_1_01
    assert Sample.unpack(0b101_1_01, paper) == one
    assert one.replace(flag=0).pack(tiny) == 0b101_01
    assert Sample.unpack(0b101_01, tiny) == one.replace(flag=0)
    with pytest.raises(
        EncodingError, match=r"SAMPLE.flag: expected 0\.\.0 \(0 bits in config tiny"
    ):
        one.pack(tiny)


def test_instructions_are_equal_when_kind_and_fields_are():
    one = Gemm(uop_count=1)
    assert one == Gemm(uop_count=1) == one.copy() == one.replace()
    assert hash(one) == hash(one.copy())
    assert one != Gemm(uop_count=2)
    assert one.replace(uop_count=2) == Gemm(uop_count=2)
    assert Finish() != Unknown(Finish.opcode)
    assert Uop() != 0


def test_a_value_that_does_not_fit():
    config = load_config("paper")
    with pytest.raises(EncodingError) as caught:
        Gemm(uop_count=8193 * 2).encode(config)
    assert str(caught.value) == (
        "GEMM.uop_count: expected 0..16383 (14 bits in config paper), found 16386"
    )
    with pytest.raises(EncodingError, match=r"^GEMM: expected fields op, .*, found height$"):
        Gemm(height=3)


def test_bytes_that_are_no_instruction():
    config = load_config("tiny")
    size = instruction_bytes(config)
    with pytest.raises(EncodingError) as caught:
        decode((7).to_bytes(size, "little"), config, "instruction 3: ")
    assert str(caught.value) == "instruction 3: expected an opcode in [0, 1, 2, 3, 4], found 7"
    with pytest.raises(EncodingError, match=r"^expected 32 bytes, found 31$"):
        decode(bytes(size - 1), config)
    with pytest.raises(EncodingError, match=r"^expected zeros above FINISH's fields, found oth"):
        decode((4 | 1 << 100).to_bytes(size, "little"), config)


def error(raw, config) -> str:
    with pytest.raises(ProgramError) as caught:
        Program.from_bytes(raw, config, "p.bin")
    return str(caught.value)


def test_damaged_programs():
    config = load_config("tiny")
    raw = Program(config, [Gemm(), Finish()], 64, {0: b"abc"}).to_bytes()
    for end in range(len(raw)):
        assert error(raw[:end], config).startswith("p.bin: expected ")
    rng = random.Random(0)
    for _ in range(200):
        damaged = bytearray(raw)
        damaged[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        assert error(bytes(damaged), config).startswith("p.bin: expected ")
    assert error(b"ELF" + raw, config) == "p.bin: expected a VDLA program, found other content"
    short = MAGIC + bytes(_HEADER.size + _CRC.size - len(MAGIC))  # a header, and nothing in it
    assert error(short, config) == "p.bin: expected format version 2, found 0"
    assert error(short[:-1], config) == (
        f"p.bin: expected at least {len(short)} bytes, found {len(short) - 1}"
    )
    other = load_config("paper")
    assert error(raw, other) == (
        f"p.bin: expected a program for config paper ({other.hash}), found one for {config.hash}"
    )


def test_data_and_micro_ops_are_assembled():
    config = load_config("tiny")
    uops = Uop(first=1, dst=2), Uop(src=3, wgt=1)
    text = (
        ".base 0x200\n.data 16 0a 0b\n.data 18 0c\n.uop 32 first dst=2\n.uop 64 src=3 wgt=1\nFINISH"
    )
    program = assemble(text, config)
    assert program == Program(config, [Finish()], 0x200, {
        16: b"\x0a\x0b\x0c", 32: uops[0].encode(config), 64: uops[1].encode(config),
    })  # fmt: skip


def test_assembly_errors():
    config = load_config("tiny")
    for text, message in (
        ("LOAD memory=RAM", "t:1: expected memory to be an integer or one of INP, WGT, ACC, ACC8, "
                            "UOP, TAB, WGT4, found RAM"),
        ("; a comment\nGEMM height=3", "t:2: expected a field of GEMM, found height"),
        ("GEMM window", "t:1: expected a field of GEMM, found window"),  # tiny has none
        (".base", "t:1: expected one address, found none"),
        (".data 0 xyz", "t:1: expected bytes in hex, found xyz"),
    ):  # fmt: skip
        with pytest.raises(AsmError) as caught:
            assemble(text, config, "t")
        assert str(caught.value) == message
