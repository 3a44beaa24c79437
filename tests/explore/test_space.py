"""Spaces as TOML: their values, their designs, and what is refused in one line."""

from __future__ import annotations

from dataclasses import asdict, replace
from random import Random

import pytest

from vdla.explore.constraints import Constraint
from vdla.explore.errors import ExploreError
from vdla.explore.space import IllegalError, load_space, space_names
from vdla.isa.config import load_config
from vdla.isa.parameters import ConfigError

TEXT = """
base = "tiny"
constraints = ["block_in <= block_out", "inp_bytes + acc_bytes < 8 * 1024 or not port_bytes == 4"]
[parameters]
block_in = [8, 4]
block_out = { from = 4, to = 8, factor = 2 }
inp_bytes = { from = 1024, to = 5120, step = 2048 }
"memory.latency" = [16, 64]
"""


def space_of(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_space(path)


@pytest.fixture
def space(tmp_path):
    return space_of(tmp_path, TEXT)


def test_values_are_lists_and_ranges(space):
    assert space.parameters == {
        "block_in": (4, 8),
        "block_out": (4, 8),
        "inp_bytes": (1024, 3072, 5120),
        "memory.latency": (16, 64),
    }
    assert (space.name, space.size, space.shape) == ("mine", 24, (2, 2, 3, 2))
    assert len(list(space.points())) == 24


def test_memory_may_be_an_inner_table(tmp_path, space):
    text = TEXT.replace('"memory.latency"', "memory.latency")
    assert space_of(tmp_path, text).parameters == space.parameters


def test_designs_keep_to_the_constraints(space):
    designs = dict(space.designs())
    assert len(designs) == 3 * 3 * 2
    for point, config in designs.items():
        assert config.block_in <= config.block_out
        assert space.point(space.values(point)) == point
        assert config == space.base.override(space.settings(point))
    assert space.point({"block_in": 5}) is None
    with pytest.raises(IllegalError, match=r"^constraint block_in <= block_out$"):
        space.design((1, 0, 0, 0))


def test_rules_of_configs_are_named_without_numbers(tmp_path):
    space = space_of(tmp_path, 'base = "tiny"\n[parameters]\nport_bytes = [4, 8]\n')
    with pytest.raises(IllegalError, match=r"^block_in bytes to be a multiple of port_bytes = 8$"):
        space.design((1,))


def test_neighbours_are_a_step_away(space):
    assert set(space.neighbours((0, 1, 1, 0))) == {
        (1, 1, 1, 0), (0, 0, 1, 0), (0, 1, 0, 0), (0, 1, 2, 0), (0, 1, 1, 1),
    }  # fmt: skip
    point = space.random_point(Random(1))
    assert all(0 <= position < count for position, count in zip(point, space.shape, strict=True))


def test_a_digest_is_of_what_the_space_holds(tmp_path, space):
    assert space_of(tmp_path, "# a remark\n" + TEXT).digest == space.digest
    assert space_of(tmp_path, TEXT.replace("64]", "65]")).digest != space.digest
    assert space_of(tmp_path, TEXT.replace("<= block_out", "< block_out")).digest != space.digest


def test_bundled_spaces_have_designs():
    assert {"default", "small", "xc7z020"} <= set(space_names())
    for name in space_names():
        assert next(load_space(name).designs())


def test_space_xc7z020_has_the_lanes_of_each_array_in_the_fabric():
    space = load_space("xc7z020")
    first = space.values(next(space.points()))
    narrow = {**first, "block_out": 16, "fabric_lanes": 20}
    with pytest.raises(IllegalError, match=r"^fabric_lanes to be even, .* block_out"):
        space.design(space.point(narrow))
    for values in (narrow | {"fabric_lanes": 16}, narrow | {"block_out": 32}):
        assert space.design(space.point(values)).fabric_lanes == values["fabric_lanes"]


def test_config_xc7z020_is_a_design_of_its_space():
    space, config = load_space("xc7z020"), load_config("xc7z020")
    point = space.point(asdict(config))
    assert replace(space.design(point), name="xc7z020") == config


def test_a_space_may_ask_for_a_clock(tmp_path):
    space = space_of(tmp_path, "clock_mhz = 125\n[parameters]\nblock_in = [4, 8]")
    assert space.asked_mhz == 125
    assert {config.at_clock for _, config in space.designs()} == {"at 125 MHz (asked)"}
    assert space_of(tmp_path, "[parameters]\nblock_in = [4]").asked_mhz is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing", "expected TOML, found Expected '=' after a key in a key/value pair"),
        (
            "bases = 1",
            "expected one of name, base, constraints, clock_mhz, parameters, found bases",
        ),
        ("clock_mhz = 0", "expected clock_mhz to be an integer > 0, found 0"),
        ("clock_mhz = true", "expected clock_mhz to be an integer > 0, found True"),
        ("clock_mhz = 1.5", "expected clock_mhz to be an integer > 0, found 1.5"),
        ("base = 3", "expected name and base to be strings, found another type"),
        ("constraints = 3", "expected constraints to be a list of strings, found 3"),
        ("", "expected a table parameters with values, found none"),
        ("[parameters]\nblock_im = [4]", "found block_im"),
        ("[parameters]\nblock_in = []", "block_in: expected 1 to 1024 values, found []"),
        ("[parameters]\nblock_in = [4, 4]", "block_in: expected distinct values, found [4, 4]"),
        ('[parameters]\nblock_in = ["4"]', "block_in: expected a list of integers, found ['4']"),
        (
            "[parameters]\nblock_in = { from = 8, to = 4, step = 1 }",
            "block_in: expected a range that has values, found {'from': 8, 'to': 4, 'step': 1}",
        ),
        (
            "[parameters]\nblock_in = { from = 8, to = 16, factor = 1 }",
            "block_in: expected a range that has values, found {'from': 8, 'to': 16, 'factor': 1}",
        ),
        (
            "[parameters]\nblock_in = { from = 8 }",
            "block_in: expected a list of integers, {from, to, step} or {from, to, factor}, "
            "found {'from': 8}",
        ),
        (
            'constraints = ["block_in <= x"]\n[parameters]\nblock_in = [4]',
            "found x",
        ),
        (
            "constraints = [\"__import__('os') == 1\"]\n[parameters]\nblock_in = [4]",
            "constraint \"__import__('os') == 1\": expected comparisons of integers and parameters "
            "with + - * // %, and, or, not, found __import__('os')",
        ),
        (
            'constraints = ["block_in +"]\n[parameters]\nblock_in = [4]',
            "constraint 'block_in +': expected an expression, found none",
        ),
    ],
)
def test_a_bad_space_is_refused_in_a_line(tmp_path, text, expected):
    with pytest.raises(ExploreError) as caught:
        space_of(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'mine.toml'}: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_space_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ExploreError, match=r"^space huge: expected a .toml file or one of .*small"):
        load_space("huge")
    with pytest.raises(ExploreError, match=r"expected a readable file, found No such file"):
        load_space(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"config nosuch: expected a .toml file or one of"):
        space_of(tmp_path, 'base = "nosuch"\n[parameters]\nblock_in = [4]')


def test_a_division_by_zero_keeps_to_nothing():
    constraint = Constraint("inp_bytes // (block_in - 4) > 0 and -1 < 0 < block_in % 5 != 9")
    assert not constraint.holds({"inp_bytes": 1024, "block_in": 4})
    assert constraint.holds({"inp_bytes": 1024, "block_in": 8})
