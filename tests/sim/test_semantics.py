"""Requantization and lane arithmetic at the edges of their ranges."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from random import Random
from runpy import run_path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vdla.isa.config import load_config
from vdla.isa.identity import ENCODED
from vdla.isa.instructions import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Init,
    Load,
    Mem,
    Store,
    memories,
    operations,
)
from vdla.isa.numbers import pack_scale, reciprocal, rq, rsqrt
from vdla.isa.operations import SEMANTICS
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream

TINY = load_config("tiny")
ALL = max(operations(TINY))
TABLES = load_config("tiny", ["table_bytes=1024"])
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
WORD = st.builds(lambda m, k: m | k << 24, st.integers(0, (1 << 24) - 1), st.integers(0, 63))


def signed(word):
    return word - (1 << 32) if word >> 31 else word


def run(instruction, state):
    execute(state, Stream.of(TINY, [instruction, Finish()]).rows[0])


@settings(max_examples=300)
@given(st.lists(INT32, min_size=4, max_size=4), st.lists(WORD, min_size=4, max_size=4))
@example([-153, 153, -(1 << 31), (1 << 31) - 1], [63 << 24 | 0xFFFFEE] * 4)
@example([1, 3, -1, -3], [1 << 24 | 1] * 4)
@example([5, -5, 0, 7], [3, 0, 3, 0xFFFFFF])
def test_alu_and_store_requantize_alike(values, words):
    """Both equal the scalar definition, over every shift."""
    state = State(TINY, np.zeros(64, np.uint8))
    state.acc[0], state.acc[1] = values, [signed(word) for word in words]
    run(Store(memory=Mem.ACC8, x_size=1, y_size=1, z_size=1, scale_base=1, zero=3), state)
    exact = [rq(x, word) for x, word in zip(values, words, strict=True)]
    assert state.dram[:4].view(np.int8).tolist() == [min(max(x + 3, -128), 127) for x in exact]
    run(Alu(alu_op=AluOp.RQ, uop_count=1, src_base=1, zero=3, low=-256, high=255), state)
    assert state.acc[0].tolist() == [min(max(x + 3, -256), 255) for x in exact]


@settings(max_examples=200)
@given(INT32, INT32, st.integers(-(1 << 23), (1 << 23) - 1))
def test_sums_and_products_wrap(x, y, weight):
    state = State(TINY, np.zeros(64, np.uint8))
    for op, exact in (
        (AluOp.ADD, x + y),
        (AluOp.MUL, x * low(y, 25)),
        (AluOp.SHR, x >> low(y, 6) if low(y, 6) >= 0 else x << -low(y, 6)),
        (AluOp.WADD, low(x, 18) * weight + low(y, 18) * low(y, 24)),
    ):
        state.acc[0], state.acc[1] = x, y
        run(Alu(alu_op=op, uop_count=1, src_base=1, weight=weight, imm=low(y, 24)), state)
        assert state.acc[0].tolist() == [low(exact, 32)] * 4


@settings(max_examples=200)
@given(st.lists(INT32, min_size=4, max_size=4), st.integers(0, 1), st.integers(-(1 << 23), 1 << 23))
def test_a_table_has_a_result_for_the_low_bits_of_y(values, number, above):
    """Signed, wherever use_imm points, and whatever x is."""
    state = State(TABLES, np.zeros(64, np.uint8))
    state.options["tab"].reshape(-1)[:] = results = np.random.default_rng(number).integers(
        -(1 << 15), 1 << 15, 512, np.int16
    )
    state.acc[:2] = [[7] * 4, values]
    for use_imm in (0, 1):
        imm = above * 256 + number
        run(Alu(alu_op=AluOp.TABLE, use_imm=use_imm, imm=imm, uop_count=1, src_base=1), state)
        assert state.acc[0].tolist() == [results[256 * number + y % 256] for y in values]


RECIPROCALS = load_config("tiny", ["reciprocal_units=1"])
POSITIVE = st.integers(1, (1 << 31) - 1) | st.builds(
    lambda e, d: min(max((1 << e) + d, 1), (1 << 31) - 1), st.integers(0, 31), st.integers(-2, 2)
)


@settings(max_examples=200)
@given(st.lists(POSITIVE | INT32, min_size=4, max_size=4))
@example([0, -1, -(1 << 31), (1 << 31) - 1])
@example([1, 2, 3, 4])
def test_reciprocals_are_those_of_the_definitions(values):
    """Of acc[src], wherever use_imm points, and whatever x is."""
    state = State(RECIPROCALS, np.zeros(64, np.uint8))
    for op, exact in ((AluOp.RECIPROCAL, reciprocal), (AluOp.RSQRT, rsqrt)):
        for use_imm in (0, 1):
            state.acc[:2] = [[7] * 4, values]
            run(Alu(alu_op=op, use_imm=use_imm, imm=5, uop_count=1, src_base=1), state)
            assert state.acc[0].tolist() == [exact(y) for y in values]


@settings(max_examples=200)
@given(st.lists(INT32, min_size=4, max_size=4), st.lists(WORD, min_size=4, max_size=4))
@example([(1 << 31) - 1, -(1 << 31), 1, -1], [0xFFFFFF, 0xFFFFFF, 1 << 24 | 1, 1 << 24 | 3])
def test_scale_is_a_requantization_of_32_bits(values, words):
    """Without a zero point and limits, whatever these fields hold."""
    state = State(RECIPROCALS, np.zeros(64, np.uint8))
    state.acc[0], state.acc[1] = values, [signed(word) for word in words]
    run(Alu(alu_op=AluOp.SCALE, uop_count=1, src_base=1, **LIMITS), state)
    assert state.acc[0].tolist() == [rq(x, word) for x, word in zip(values, words, strict=True)]
    state.acc[0] = values
    run(Alu(alu_op=AluOp.SCALE, uop_count=1, use_imm=1, imm=signed(words[0])), state)
    assert state.acc[0].tolist() == [rq(x, words[0]) for x in values]


@settings(max_examples=60)
@given(st.data())
def test_a_store_to_inp_writes_what_a_store_to_dram_would(data):
    """The same bytes at the same addresses, however long an entry of INP is."""
    block_in, block_out = data.draw(st.sampled_from(((8, 8), (16, 4), (4, 16), (8, 4))))
    config = load_config("tiny", ["forwarding=1", f"block_in={block_in}",
                                  f"block_out={block_out}", "wgt_bytes=4096",
                                  "acc_bytes=4096"])  # fmt: skip
    state = State(config, np.zeros(config.inp_bytes, np.uint8))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    state.acc[:] = rng.integers(-(1 << 31), 1 << 31, state.acc.shape)
    few = st.integers(0, 3)
    store = Store(memory=Mem.INP, dram_base=4 * data.draw(few), x_size=data.draw(few), y_size=2,
                  z_size=2, y_pitch=3, z_pitch=5, x_stride=data.draw(few), y_stride=4, z_stride=9,
                  scale_base=20, low=-100, zero=3)  # fmt: skip
    run(store, state)
    assert not state.dram.any()
    run(store.replace(memory=Mem.ACC8), state)
    assert state.inp.tobytes() == state.dram.tobytes()
    assert store.x_size == 0 or state.dram.any()


@settings(max_examples=60)
@given(st.sampled_from(((8, 8, 3), (8, 16, 4), (16, 4, 2), (4, 4, 2))), st.integers(0, 99))
def test_a_window_convolves_by_channel_and_row(shape, seed):
    """A depthwise convolution of T × T takes a micro-op for each row of its kernel.

    A row of vectors passes the window once. Its first T - 1 results lack vectors, since the window
    was empty: they stand for themselves, as what lies beside an image that is padded with zeros.
    """
    block_in, block_out, taps = shape
    config = load_config("tiny", [f"window_taps={taps}", f"block_in={block_in}",
                                  f"block_out={block_out}", "wgt_bytes=4096",
                                  "acc_bytes=4096"])  # fmt: skip
    width, rng = 6, np.random.default_rng(seed)
    channels = [output % block_in for output in range(block_out)]
    image = rng.integers(-128, 128, (taps, width, block_in))
    kernel = rng.integers(-128, 128, (block_out, taps, taps))  # [output, row, place]
    state = State(config, np.zeros(64, np.uint8))
    state.inp[: taps * width] = image.reshape(-1, block_in)
    for row, output, place in np.ndindex(taps, block_out, taps):
        state.wgt[row, output, 2 * (taps - 1 - place) + output % 2] = kernel[output, row, place]
    for row in range(taps):
        run(Gemm(window=1, init=Init.ACC, uop_count=1, extent_0=width, dst_0=1, src_0=1,
                 src_base=row * width, wgt_base=row), state)  # fmt: skip
    padded = np.pad(image, ((0, 0), (taps - 1, 0), (0, 0)))
    for x, output in np.ndindex(width, block_out):
        seen = padded[:, x : x + taps, channels[output]]
        assert state.acc[x, output] == (seen * kernel[output]).sum()


@settings(max_examples=60)
@given(st.sampled_from(((16, 16, 3), (8, 16, 2), (16, 4, 4), (12, 12, 3))), st.integers(0, 99))
def test_a_window_of_two_rows_convolves_two_rows_at_once(shape, seed):
    """A depthwise convolution of 4 rows and T columns takes two micro-ops, one for two rows each:
    the second row of an image lies a row's vectors behind the first."""
    block_in, block_out, taps = shape
    config = load_config("tiny", [f"window_taps={taps}", "window_rows=2", f"block_in={block_in}",
                                  f"block_out={block_out}", "wgt_bytes=4096", "acc_bytes=4096",
                                  "inp_bytes=1024"])  # fmt: skip
    height, width, rng = 4, 6, np.random.default_rng(seed)
    channels = [output % block_in for output in range(block_out)]
    image = rng.integers(-128, 128, (height, width, block_in))
    kernel = rng.integers(-128, 128, (block_out, height, taps))  # [output, row, place]
    state = State(config, np.zeros(64, np.uint8))
    state.inp[: height * width] = image.reshape(-1, block_in)
    for row, output, place in np.ndindex(height, block_out, taps):
        lane = row % 2 * 2 * taps + 2 * (taps - 1 - place) + output % 2
        state.wgt[row // 2, output, lane] = kernel[output, row, place]
    for row in range(0, height, 2):
        run(Gemm(window=1, init=Init.ACC, uop_count=1, extent_0=width, dst_0=1, src_0=1,
                 src_base=row * width, pitch=width, wgt_base=row // 2), state)  # fmt: skip
    padded = np.pad(image, ((0, 0), (taps - 1, 0), (0, 0)))
    for x, output in np.ndindex(width, block_out):
        seen = padded[:, x : x + taps, channels[output]]
        assert state.acc[x, output] == (seen * kernel[output]).sum()


def test_without_the_flag_a_pitch_means_nothing():
    config = load_config("tiny", ["window_taps=2", "window_rows=2", "block_in=8", "wgt_bytes=4096"])
    for window in (0, 1):
        gemms = [Gemm(window=window, pitch=pitch, **NEST) for pitch in (0, 3)]
        plain, pitched = (list(run_each(config, [gemm])) for gemm in gemms)
        assert (plain == pitched) == (window == 0)


def test_what_instructions_do_is_part_of_the_isa_hash():
    """Every operation over a battery of operands; see SEMANTICS in isa/operations.py."""
    assert_digest("SEMANTICS", SEMANTICS, battery())


@pytest.mark.parametrize("option", ENCODED, ids=lambda option: option.title)
def test_what_an_option_adds_is_part_of_its_isa_hash(option):
    assert_digest(option.title, option.probes.semantics, OPTION_BATTERIES[option.title]())


def assert_digest(name, digest, states):
    found = hashlib.sha256(b"".join(states)).hexdigest()[:8]
    assert found == digest, (
        f"what an instruction does has changed: write {found!r} for {name} into isa, "
        "so that nothing compiled before is taken for compiled today"
    )


def battery():
    """What is in memory after each of many instructions, from the same random contents."""
    gemm = [Gemm(init=init, bias_base=9, bias_1=1, **NEST) for init in Init]
    load = [each for memory in memories(TINY) for each in loads(memory)]
    store = [each for memory in (Mem.ACC, Mem.ACC8) for each in stores(memory)]
    return run_each(TINY, (*operate(), *gemm, *load, *store))


def table_battery():
    """The instructions that only a config with tables has."""
    alu = [
        Alu(alu_op=AluOp.TABLE, use_imm=use, init=init, imm=imm, **NEST)
        for use in (0, 1)
        for init in (0, 1)
        for imm in (0, 1, -255)
    ]
    return run_each(TABLES, (*alu, *loads(Mem.TAB)))


def forwarding_battery():
    """STOREs to INP, whose entries are as long as ACC8's, longer and shorter."""
    for block_in in (4, 8, 16):
        config = load_config("tiny", ["forwarding=1", f"block_in={block_in}", "wgt_bytes=4096"])
        yield from run_each(config, stores(Mem.INP))


def window_battery():
    """GEMMs with every number of taps, with and without the window."""
    for block_in, taps in ((4, 2), (8, 2), (8, 3), (8, 4)):
        settings = [f"window_taps={taps}", f"block_in={block_in}", "wgt_bytes=4096"]
        yield from run_each(
            load_config("tiny", settings),
            [
                Gemm(init=init, window=window, bias_base=9, bias_1=1, **NEST)
                for init in Init
                for window in (0, 1)
            ],
        )


def rows_battery():
    """GEMMs with two rows of a window, at one place of INP and apart."""
    for block_in, taps in ((8, 2), (16, 3), (16, 4)):
        settings = [f"window_taps={taps}", "window_rows=2", f"block_in={block_in}"]
        yield from run_each(
            load_config("tiny", [*settings, "wgt_bytes=4096"]),
            [
                Gemm(init=init, window=window, pitch=pitch, bias_base=9, bias_1=1, **NEST)
                for init in Init
                for window, pitch in ((0, 3), (1, 0), (1, 1), (1, 5))
            ],
        )


def vector_battery():
    """ALU's first operations where VECTOR executes them."""
    return run_each(load_config("tiny", ["vector_engine=1"]), operate(AluOp.RQ))


def reciprocal_battery():
    """The operations that only a config with reciprocal units has."""
    config = load_config("tiny", ["reciprocal_units=2"])
    alu = [
        Alu(alu_op=op, use_imm=use, init=init, imm=imm, **NEST)
        for op in (AluOp.SCALE, AluOp.RECIPROCAL, AluOp.RSQRT)
        for use in (0, 1)
        for init in (0, 1)
        for imm in (0, pack_scale(0.3), pack_scale(3e5))
    ]
    return run_each(config, alu)


OPTION_BATTERIES = {
    "tables": table_battery,
    "forwarding": forwarding_battery,
    "a window": window_battery,
    "a window of two rows": rows_battery,
    "a vector engine": vector_battery,
    "reciprocals": reciprocal_battery,
}


def stores(memory):
    for stride in (1, 2):
        yield Store(memory=memory, sram_base=5, dram_base=128, y_pitch=4, z_pitch=9,
                    x_stride=stride, y_stride=7, z_stride=11, scale_base=40, **LIMITS,
                    **TILE)  # fmt: skip


def operate(last=ALL):
    """Every ALU operation up to one, with operands of all kinds."""
    return [
        Alu(alu_op=op, use_imm=use, init=init, imm=imm, weight=weight, **NEST, **LIMITS)
        for op in operations(TINY)
        if op <= last
        for use in (0, 1)
        for init in (0, 1)
        for imm, weight in ((-7, 3), (pack_scale(0.3), -(1 << 23)), (1 << 23, (1 << 23) - 1))
    ]


def loads(memory):
    for stride in (1, 2):
        yield Load(memory=memory, sram_base=1, dram_base=64, x_stride=stride, y_stride=5,
                   z_stride=7, pad_x0=1, pad_x1=2, pad_y0=1, pad_y1=1, pad_value=-3, zero=-128,
                   **TILE)  # fmt: skip


def run_each(config, instructions):
    """What is in memory after each instruction, from the same random contents."""
    for each in instructions:
        rng = Random(7)
        state = State(config, np.frombuffer(rng.randbytes(2048), np.uint8).copy())
        for memory in (state.inp, state.wgt, state.acc, state.options["tab"]):
            raw = memory.reshape(-1).view(np.uint8)
            raw[:] = np.frombuffer(rng.randbytes(raw.size), np.uint8)
        state.acc[:6] = EDGES
        state.uop[:4] = [[1, 0, 0, 1], [0, 1, 2, 0], [0, 1, 3, 2], [1, 4, 5, 3]]
        run(each, state)
        for memory in (
            state.inp,
            state.wgt,
            state.acc,
            state.uop_raw,
            state.options["tab"],
            state.dram,
        ):
            yield memory.tobytes()


TILE = {"x_size": 3, "y_size": 2, "z_size": 2}
NEST = {
    "uop_count": 4, "extent_0": 2, "extent_1": 3, "extent_2": 2, "dst_base": 2, "dst_0": 7,
    "dst_1": 2, "dst_2": 0, "src_base": 1, "src_0": 3, "src_1": 1, "src_2": 4,
}  # fmt: skip
LIMITS = {"zero": 5, "low": -100, "high": 90}
EDGES = [
    [-(1 << 31), (1 << 31) - 1, 0, -1],
    [1, 2, 3, 5],
    [-3, -5, 1 << 17, -(1 << 17)],
    [1 << 24, -(1 << 24) - 1, 31, -32],
    [63, 64, -33, 1 << 30],
    [0x01000001, 0x02000003, 0x3F000001, 0x17FFFFFF],
]


def low(value, bits):
    """The low bits of a value, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


for path in Path(__file__).parent.glob("battery_*.py"):  # further options, a file each
    own = run_path(str(path))
    config = load_config("tiny", own["SETTINGS"])
    OPTION_BATTERIES[own["TITLE"]] = partial(run_each, config, own["instructions"](**NEST))
