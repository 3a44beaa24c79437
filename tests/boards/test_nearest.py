"""The nearest config that fits: legal, smaller, and by an estimate that yosys agrees with."""

import json
import shlex
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.boards import MODULES, find_board
from vdla.boards.board import BoardError
from vdla.boards.flows import trellis, yosys
from vdla.boards.flows.files import write
from vdla.boards.flows.nearest import (
    DEEP,
    SIZES,
    block_rams,
    bundled,
    distance,
    estimate,
    fits,
    halved,
    nearest,
    size,
)
from vdla.boards.flows.tools import call, find_yosys
from vdla.isa.config import config_names, load_config

BOARD, PAPER = find_board("pynq-z2"), load_config("paper")
ROOMY = {"lut": 1, "ff": 1, "dsp": 1, "bram": 1}


def typed(words, config):
    """The config that a command with these words is for, where it was for ``config`` before."""
    name, *words = shlex.split(words.removeprefix("-c ").replace("the same with", "same"))
    assert words[::2] == ["--set"] * (len(words) // 2)
    return (config if name == "same" else load_config(name)).override(words[1::2])


def smaller(there, config):
    """Somewhere less, and nowhere more."""
    pairs = [(getattr(there, n), getattr(config, n)) for n in (*SIZES, "port_bytes")]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@st.composite
def configs(draw):
    """A bundled config, or one with other buffers."""
    config = load_config(draw(st.sampled_from(config_names())))
    buffers = {name: draw(st.integers(1, 4)) * getattr(config, name) for name in SIZES[2:]}
    return replace(config, **buffers) if draw(st.booleans()) else config


SHARES = st.fixed_dictionaries({name: st.floats(0.1, 6) for name in BOARD.available})


@settings(max_examples=6)
@given(configs(), SHARES)
def test_what_is_suggested_is_legal_and_smaller_and_fits(config, share):
    suggests_what_fits(config, share)


@pytest.mark.long
@settings(max_examples=15)
@given(configs(), SHARES)
def test_more_of_what_is_suggested_fits(config, share):
    suggests_what_fits(config, share)


def suggests_what_fits(config, share):
    used = {name: share[name] * most for name, most in BOARD.available.items()}
    found = nearest(BOARD, config, used)
    if found is None:
        for candidate in bundled(config):
            assert not fits(BOARD, estimate(BOARD, config, used, candidate.config))
        return
    for near in halved(config, 1):
        enough = fits(BOARD, estimate(BOARD, config, used, near.config))
        assert not enough or distance(config, found.config) <= 1
    assert typed(found.typed, config).hash == found.config.hash
    assert smaller(found.config, config)
    assert fits(BOARD, estimate(BOARD, config, used, found.config))


@pytest.mark.parametrize(
    ("config", "used", "expected"),
    [
        # One halving of either block would do: a tie, and the first.
        ("paper", {"dsp": 240}, "-c paper --set block_in=8"),
        # An ALU's lane is what takes LUTs.
        ("paper", {"lut": 70_000}, "-c paper --set block_out=8"),
        # A buffer before a block; the one that loses least.
        ("vta", {"bram": 150}, "-c vta --set acc_bytes=65536"),
        # Fewer lanes than the port has bytes are for a config with a narrower port.
        ("paper", {"lut": 90_000}, "-c nano"),
    ],
)
def test_the_nearest(config, used, expected):
    assert nearest(BOARD, load_config(config), ROOMY | used).typed == expected


def test_a_config_of_ones_own_is_changed_where_it_stands():
    own = PAPER.override(["uop_bytes=16384"])
    found = nearest(BOARD, own, ROOMY | {"dsp": 240})
    assert found.typed == "the same with --set block_in=8"


def test_only_what_is_over_counts():
    """What has room keeps it: halving a buffer saves no LUT, and takes none."""
    used = {**BOARD.available, "bram": 141}
    assert nearest(BOARD, PAPER, used).config.macs_per_cycle == PAPER.macs_per_cycle


@pytest.mark.parametrize("name", MODULES)
def test_every_board_has_a_config_that_fits(name):
    board = find_board(name)
    used = {kind: 1.01 * most for kind, most in board.available.items()}
    found = nearest(board, load_config(board.config), used)
    assert fits(board, estimate(board, load_config(board.config), used, found.config))


def test_no_buffer_becomes_so_shallow_that_it_would_be_made_of_luts():
    assert PAPER.depth("wgt") == DEEP
    assert all(c.config.depth("wgt") >= DEEP for c in halved(PAPER, 3))
    shallow = PAPER.override(["wgt_bytes=16384"])
    assert any(c.config.depth("wgt") == DEEP // 2 for c in halved(shallow, 1))


def test_nothing_fits():
    assert nearest(BOARD, PAPER, ROOMY | {"lut": 9_000_000}) is None
    assert nearest(BOARD, load_config("tiny"), ROOMY | {"dsp": 100_000}) is None


@pytest.mark.parametrize(
    ("name", "dsp", "blocks"),
    [
        ("tiny", 28, [1, 4, 8, 1]),
        ("ulx3s", 64, [8, 16, 30, 4]),
        ("paper", 192, [16, 64, 114, 16]),
        ("xc7z020", 208, [32, 128, 58, 4]),
    ],
)
def test_multipliers_and_block_rams(name, dsp, blocks):
    config = load_config(name)
    assert size(BOARD, config)["dsp"] == dsp
    assert [block_rams(config, buffer) for buffer in ("inp", "wgt", "acc", "uop")] == blocks


def test_multipliers_in_luts_take_luts():
    """As yosys counts them: docs/decisions/0051."""
    used, mixed = {"lut": 11_080, "ff": 14_354, "dsp": 192}, PAPER.override(["fabric_lanes=8"])
    changed = estimate(BOARD, PAPER, used, mixed)
    assert changed["dsp"] == 128
    assert changed["lut"] == pytest.approx(16_455, rel=0.05)
    assert changed["ff"] >= 14_354 + 4_088


def counted(board, config, folder):
    """By yosys."""
    if board.toolchains == ("trellis",):
        write(folder, trellis.design(board, config)[0])
        call([find_yosys(), "-q", "vdla.ys"], folder, "yosys.log")
        return trellis.synthesized(folder / "vdla.json")
    with suppress(BoardError):  # too large
        yosys.synthesize(board, config, folder)
    return json.loads((folder / "area.json").read_text())["total"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["pynq-z2", "ulx3s"])
def test_yosys_agrees(name, tmp_path):
    """Prints in per cent how much more is estimated than counted."""
    board, start = find_board(name), load_config("narrow", ["clock_mhz=100"])
    used = counted(board, start, tmp_path / "start")
    for other in (start.override(["block_out=8"]), load_config("tiny")):
        there = counted(board, other, tmp_path / str(other.hash))
        found = estimate(board, start, used, other)
        errors = {kind: found[kind] / there[kind] - 1 for kind in found}
        shown = {kind: f"{100 * error:+.1f} %" for kind, error in errors.items()}
        print(f"{board.name}: {start.name} to {other.name} of {other.block_out} lanes: {shown}")
        assert found["dsp"] == there["dsp"]
        assert abs(found["bram"] - there["bram"]) <= 1
        assert -0.05 < errors["lut"] < 0.25
        assert -0.05 < errors["ff"] < 0.25
