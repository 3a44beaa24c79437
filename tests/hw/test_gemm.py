"""The MAC array against numpy: one product in every cycle, for every shape of array."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.back import rtlil
from arithmetic import simulate

from vdla.hw.gemm import Gemm
from vdla.hw.verilog import run_yosys

CYCLES = 5  # from the data of the scratchpads to the sums
INT8 = (-128, 127)
NARROW = SimpleNamespace(multiplier_bits=18)  # as an ECP5's


def config(block_in, block_out, taps=0, rows=1):
    """What GEMM asks of a config."""
    return SimpleNamespace(
        block_in=block_in, block_out=block_out, window_taps=taps, window_rows=rows
    )


def products(unit, vectors, tiles, platform=None, marks=(), seconds=()):
    """The sums that belong to each vector and tile, given in consecutive cycles.

    ``marks``: of each vector, whether it sees the window, and whether that goes on. ``seconds``:
    the vectors of the window's second row.
    """
    results, block_out = [], unit.config.block_out

    async def drive(ctx):
        for n in range(len(vectors) + CYCLES):
            if n < len(vectors):
                ctx.set(unit.inp, vectors[n].tolist())
                ctx.set(unit.wgt, tiles[n].reshape(-1).tolist())
            if n < len(marks):
                ctx.set(unit.window, marks[n][0])
                ctx.set(unit.window_goes_on, marks[n][1])
            if n < len(seconds):
                ctx.set(unit.second, seconds[n].tolist())
            carry = ctx.get(unit.carry)
            results.append([ctx.get(unit.sums[o]) + carry for o in range(block_out)])
            await ctx.tick()

    simulate(unit, drive, platform)
    return np.array(results[CYCLES:])


@pytest.mark.parametrize("platform", [None, NARROW], ids=["packed", "not packed"])
def test_sums_are_zero_after_clear(platform):
    unit = Gemm(config(8, 2))

    async def drive(ctx):
        ctx.set(unit.inp, [1] * 8)
        ctx.set(unit.wgt, [1] * 16)
        await ctx.tick().repeat(CYCLES)
        wanted = 8 - ctx.get(unit.carry)
        for clear in (0, 1, 1, 0, 1, 0):
            ctx.set(unit.clear, clear)
            await ctx.tick()
            assert ctx.get(unit.sums[0]) == ctx.get(unit.sums[1]) == (0 if clear else wanted)

    simulate(unit, drive, platform)


def operands(block_in, block_out, count, seed):
    """Random operands, and those at the limits of int8: they carry the most into each other."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(*INT8, (count, block_in), endpoint=True)
    tiles = rng.integers(*INT8, (count, block_out, block_in), endpoint=True)
    edges = np.array([-128, -127, -1, 0, 1, 127])
    half = count // 2
    vectors[:half] = rng.choice(edges, vectors[:half].shape)
    tiles[:half] = rng.choice(edges, tiles[:half].shape)
    for n, (x, w) in enumerate([(-128, -128), (-128, 127), (127, -128), (127, 127)]):
        vectors[n], tiles[n] = x, w  # the greatest sums
        vectors[4 + n], tiles[4 + n], tiles[4 + n, 1::2] = x, w, -1 - w  # neighbours against it
    return vectors, tiles


@pytest.mark.parametrize("platform", [None, NARROW], ids=["packed", "not packed"])
@pytest.mark.parametrize(
    ("block_in", "block_out"),
    [(4, 4), (8, 8), (8, 16), (24, 8), (64, 4), (256, 2), (1, 1), (2, 3), (3, 5), (5, 1), (9, 2)],
)
def test_sums(block_in, block_out, platform):
    vectors, tiles = operands(block_in, block_out, 40, seed=block_in)
    wanted = np.einsum("noi,ni->no", tiles, vectors)
    assert np.array_equal(
        products(Gemm(config(block_in, block_out)), vectors, tiles, platform), wanted
    )


def test_every_product_of_two_neighbours():
    """All x with the weights at which the low product could borrow from the high one."""
    weights = [(a, b) for a in (-128, -1, 0, 1, 127) for b in (-128, 127)]
    cases = [(x, a, b) for x in range(-128, 128) for a, b in weights]
    vectors = np.array([[x] for x, _, _ in cases])
    tiles = np.array([[[a], [b]] for _, a, b in cases])
    assert np.array_equal(products(Gemm(config(1, 2)), vectors, tiles), tiles[:, :, 0] * vectors)


def test_what_a_low_half_borrows():
    """Four lanes' products at their limits, and just beside zero, under every parity above."""
    limits = np.array([(-128, -128), (127, -128), (-128, 127), (1, 1), (1, -1), (0, 0)])
    quads = limits[list(product(range(len(limits)), repeat=4))]  # x and low weight of each lane
    sums = (quads[..., 0] * quads[..., 1]).sum(axis=1)
    assert {-1, 0, 1} <= set(sums)
    assert (min(sums), max(sums)) == (-4 * 127 * 128, 4 * 128 * 128)
    rng = np.random.default_rng(0)
    others = rng.permutation(len(quads))  # the next four lanes, where the outputs change places
    vectors = np.concatenate([quads[..., 0], quads[others, :, 0]], axis=1)
    tiles = rng.choice([-128, -127, 0, 1, 126, 127], (len(quads), 2, 8))
    tiles[:, 0, :4], tiles[:, 1, 4:] = quads[..., 1], quads[others, :, 1]
    backwards = tiles[:, ::-1]  # whichever of the two is the low half
    for each in (tiles, backwards):
        wanted = np.einsum("noi,ni->no", each, vectors)
        assert np.array_equal(products(Gemm(config(8, 2)), vectors, each), wanted)


@pytest.mark.parametrize("platform", [None, NARROW], ids=["packed", "not packed"])
@pytest.mark.parametrize(
    ("block_in", "block_out", "taps"),
    [(4, 4, 2), (8, 8, 3), (8, 16, 4), (16, 4, 8), (9, 3, 4), (5, 5, 2), (24, 8, 3), (4, 12, 2)],
)
@pytest.mark.parametrize("rows", [1, 2], ids=["one row", "two rows"])
def test_sums_over_a_window(block_in, block_out, taps, rows, platform):
    """Instructions of some vectors each, with the window and without, one a cycle."""
    block_in *= rows  # room for both
    vectors, tiles = operands(block_in, block_out, 40, seed=taps)
    seconds = operands(block_in, block_out, 40, seed=100 + taps)[0][::-1]
    rng, marks, seen = np.random.default_rng(taps), [], []
    while len(marks) < len(vectors):
        used, length = rng.integers(0, 2), min(rng.integers(1, 7), len(vectors) - len(marks))
        first = len(marks)
        marks += [(int(used), int(used and n < length - 1)) for n in range(length)]
        for n in range(first, first + length):
            lanes = np.tile(vectors[n], (block_out, 1))
            for row, o, i in np.ndindex(rows, block_out, 2 * taps if used else 0):
                read, then = (vectors, seconds)[row], n - i // 2
                before = read[then] if then >= first else np.zeros(block_in, int)
                lanes[o, 2 * taps * row + i] = before[(2 * (o // 2) + i % 2) % block_in]
            seen.append(lanes)
    unit = Gemm(config(block_in, block_out, taps, rows))
    wanted = np.einsum("noi,noi->no", tiles, np.array(seen))
    seconds = seconds if rows > 1 else ()
    assert np.array_equal(products(unit, vectors, tiles, platform, marks, seconds), wanted)


@pytest.mark.parametrize(("block_in", "block_out"), [
    (4, 4), (16, 8), pytest.param(256, 4, marks=pytest.mark.long), (4, 5),
])  # fmt: skip
def test_two_multiplications_per_multiplier(block_in, block_out):
    unit = Gemm(config(block_in, block_out))
    assert rtlil.convert(unit).count("cell $mul") == block_in * -(-block_out // 2)


def test_a_multiplication_per_narrow_multiplier():
    text = rtlil.convert(Gemm(config(4, 6)), platform=NARROW)
    assert text.count("cell $mul") == 4 * 6


def test_dsps_make_weights_and_quads(tmp_path):
    """yosys puts the subtraction before a multiplier and the sum behind it into its DSP48E1."""
    unit = Gemm(config(8, 2))
    (tmp_path / "gemm.il").write_text(rtlil.convert(unit, name="gemm"))
    mapped = "synth_xilinx -family xc7 -flatten -top gemm -run begin:coarse; write_rtlil mapped.il"
    run_yosys(["-q", "-p", f"read_rtlil gemm.il; {mapped}"], tmp_path)
    text = (tmp_path / "mapped.il").read_text()
    assert text.count("cell \\DSP48E1") == text.count(r"\INMODE 5'01100") == 8  # D - A
    assert text.count(r"\OPMODE 7'0010101") == 6  # the product, and PCIN of the one before
