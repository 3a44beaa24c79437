"""The MAC array against numpy: one product in every cycle, for every shape of array."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.back import rtlil
from arithmetic import simulate

from vdla.boards.flows import trellis
from vdla.boards.flows.yosys import area_in, script, total
from vdla.hw.gemm import Gemm
from vdla.hw.verilog import run_yosys

CYCLES = 6  # from the operands to the sums
INT8 = (-128, 127)
NARROW = SimpleNamespace(multiplier_bits=18)  # as an ECP5's


BOTH = pytest.mark.parametrize("platform", [None, NARROW], ids=["packed", "overlapping"])


def shapes(quick, slow):
    """Shapes of arrays; the simulation of the latter takes long."""
    both = [(platform, *shape) for platform in (None, NARROW) for shape in quick]
    late = [(platform, *shape) for platform in (None, NARROW) for shape in slow]
    return [*both, *(pytest.param(*each, marks=pytest.mark.long) for each in late)]


def config(block_in, block_out, taps=0, rows=1, fabric=0):
    """What GEMM asks of a config."""
    return SimpleNamespace(
        block_in=block_in,
        block_out=block_out,
        window_taps=taps,
        window_rows=rows,
        fabric_lanes=fabric,
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
            results.append([ctx.get(unit.sums[o]) + (carry >> o & 1) for o in range(block_out)])
            await ctx.tick()

    simulate(unit, drive, platform)
    return np.array(results[CYCLES:])


@BOTH
@pytest.mark.parametrize("fabric", [0, 2, 4])
def test_sums_are_zero_after_clear(platform, fabric):
    unit = Gemm(config(8, 4, fabric=fabric))

    async def drive(ctx):
        ctx.set(unit.inp, [1] * 8)
        ctx.set(unit.wgt, [1] * 32)
        await ctx.tick().repeat(CYCLES)
        carry = ctx.get(unit.carry)
        assert carry == (0b1111 >> fabric if platform is None else 0)
        wanted = [8 - (carry >> lane & 1) for lane in range(4)]
        for clear in (0, 1, 1, 0, 1, 0):
            ctx.set(unit.clear, clear)
            await ctx.tick()
            assert [ctx.get(s) for s in unit.sums] == ([0] * 4 if clear else wanted)

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


@pytest.mark.parametrize(("platform", "block_in", "block_out"), shapes(
    [(4, 4), (8, 8), (1, 1), (2, 3), (3, 5), (5, 1), (9, 2)],
    [(8, 16), (24, 8), (64, 4), (256, 2)],
))  # fmt: skip
def test_sums(platform, block_in, block_out):
    vectors, tiles = operands(block_in, block_out, 40, seed=block_in)
    wanted = np.einsum("noi,ni->no", tiles, vectors)
    assert np.array_equal(
        products(Gemm(config(block_in, block_out)), vectors, tiles, platform), wanted
    )


@BOTH
@pytest.mark.parametrize(
    ("block_in", "block_out", "lanes"),
    [
        (4, 4, 2),
        (8, 4, 4),
        pytest.param(16, 6, 2, marks=pytest.mark.long),
        (1, 1, 1),
        (2, 3, 2),
        (3, 5, 1),
        (5, 2, 2),
        (9, 3, 2),
    ],
)
def test_sums_of_lanes_in_the_fabric(block_in, block_out, lanes, platform):
    vectors, tiles = operands(block_in, block_out, 40, seed=block_in)
    wanted = np.einsum("noi,ni->no", tiles, vectors)
    unit = Gemm(config(block_in, block_out, fabric=lanes))
    assert np.array_equal(products(unit, vectors, tiles, platform), wanted)


@pytest.mark.long
def test_every_product_in_the_fabric():
    """All pairs of int8, first or second in their chains, beside a product at its limits."""
    lanes = 32
    x, w = np.arange(-128, 128), np.arange(-128, 128).reshape(-1, lanes, 1)
    for order in (1, -1):
        for other in (-128, 127):
            vectors = np.repeat(x, len(w))[:, None]
            tiles = np.tile(w, (len(x), 1, 1))
            vectors = np.concatenate([vectors, np.full_like(vectors, other)][::order], axis=1)
            tiles = np.concatenate([tiles, np.full_like(tiles, -128)][::order], axis=2)
            wanted = np.einsum("noi,ni->no", tiles, vectors)
            unit = Gemm(config(2, lanes, fabric=lanes))
            assert np.array_equal(products(unit, vectors, tiles), wanted)


@BOTH
def test_every_product_of_two_neighbours(platform):
    """All x with the weights at which a low product could borrow from the high one, and overlap it
    the most."""
    weights = [(a, b) for a in (-128, -1, 0, 1, 127) for b in (-128, 127)]
    weights += [(b, a) for a, b in weights]
    cases = [(x, a, b) for x in range(-128, 128) for a, b in weights]
    vectors = np.array([[x] for x, _, _ in cases])
    tiles = np.array([[[a], [b]] for _, a, b in cases])
    unit = Gemm(config(1, 2))
    assert np.array_equal(products(unit, vectors, tiles, platform), tiles[:, :, 0] * vectors)


@pytest.mark.long
@pytest.mark.parametrize("low", [-128, -1, 0, 127])
def test_every_product_of_the_overlap(low):
    """All x with all weights above a low one."""
    rows = 32
    tiles = np.full((256 // rows * 2, 2 * rows, 1), low)
    tiles[:, ::2, 0] = np.tile(np.arange(-128, 128).reshape(-1, rows), (2, 1))
    tiles = np.repeat(tiles[: 256 // rows], 256, axis=0)
    vectors = np.tile(np.arange(-128, 128), 256 // rows)[:, None]
    unit = Gemm(config(1, 2 * rows))
    assert np.array_equal(products(unit, vectors, tiles, NARROW), tiles[:, :, 0] * vectors)


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


@pytest.mark.parametrize(("platform", "block_in", "block_out", "taps", "fabric"), shapes(
    [(4, 4, 2, 0), (9, 3, 4, 0), (5, 5, 2, 0), (4, 4, 2, 2), (5, 5, 2, 2)],
    [(8, 8, 3, 0), (8, 16, 4, 0), (16, 4, 8, 0), (24, 8, 3, 0), (4, 12, 2, 0), (8, 8, 3, 4),
     (8, 4, 4, 4)],
))  # fmt: skip
@pytest.mark.parametrize("rows", [1, 2], ids=["one row", "two rows"])
def test_sums_over_a_window(platform, block_in, block_out, taps, fabric, rows):
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
    unit = Gemm(config(block_in, block_out, taps, rows, fabric))
    wanted = np.einsum("noi,noi->no", tiles, np.array(seen))
    seconds = seconds if rows > 1 else ()
    assert np.array_equal(products(unit, vectors, tiles, platform, marks, seconds), wanted)


@pytest.mark.parametrize(("block_in", "block_out"), [
    (4, 4), (16, 8), pytest.param(256, 4, marks=pytest.mark.long), (4, 5),
])  # fmt: skip
def test_two_multiplications_per_multiplier(block_in, block_out):
    unit = Gemm(config(block_in, block_out))
    assert rtlil.convert(unit).count("cell $mul") == block_in * -(-block_out // 2)


@pytest.mark.parametrize("block_out", [5, 6])
def test_two_multiplications_per_narrow_multiplier(block_out):
    text = rtlil.convert(Gemm(config(4, block_out)), platform=NARROW)
    assert text.count("cell $mul") == 4 * 3


@BOTH
def test_no_multiplication_in_the_fabric(platform):
    """What isn't written as a multiplication becomes a DSP in no tool."""
    text = rtlil.convert(Gemm(config(4, 8, fabric=3)), platform=platform)
    assert text.count("cell $mul") == 4 * 3


@pytest.mark.parametrize("family", ["xc7", pytest.param("xcup", marks=pytest.mark.long)])
def test_luts_in_the_fabric(tmp_path, family):
    """No DSP, and at most 50 LUTs for a multiply-add."""
    (tmp_path / "vdla.il").write_text(rtlil.convert(Gemm(config(4, 1, fabric=1)), name="vdla"))
    (tmp_path / "vdla.ys").write_text(script(family, apart=False))
    run_yosys(["-q", "-s", "vdla.ys"], tmp_path)
    used = total(area_in(tmp_path))
    assert 0 < used["lut"] <= 50 * 4
    assert used["dsp"] == 0


def test_two_products_of_an_ecp5s_multiplier(tmp_path):
    """Half a MULT18X18D for a multiply-add, and at most 48 LUTs."""
    unit = Gemm(config(8, 4))
    (tmp_path / "vdla.il").write_text(rtlil.convert(unit, name="vdla", platform=NARROW))
    (tmp_path / "vdla.ys").write_text(trellis.script())
    run_yosys(["-q", "-s", "vdla.ys"], tmp_path)
    used = trellis.synthesized(tmp_path / "vdla.json")
    assert used["dsp"] == 8 * 4 // 2
    assert 0 < used["lut"] <= 48 * 8 * 4


def test_dsps_make_weights_and_quads(tmp_path):
    """yosys puts the subtraction before a multiplier and the sum behind it into its DSP48E1."""
    unit = Gemm(config(8, 2))
    (tmp_path / "gemm.il").write_text(rtlil.convert(unit, name="gemm"))
    mapped = "synth_xilinx -family xc7 -flatten -top gemm -run begin:coarse; write_rtlil mapped.il"
    run_yosys(["-q", "-p", f"read_rtlil gemm.il; {mapped}"], tmp_path)
    text = (tmp_path / "mapped.il").read_text()
    assert text.count("cell \\DSP48E1") == text.count(r"\INMODE 5'01100") == 8  # D - A
    assert text.count(r"\OPMODE 7'0010101") == 6  # the product, and PCIN of the one before
