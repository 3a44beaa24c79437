"""Options add to the area's model what they add to the core; a config without them has zeros."""

from __future__ import annotations

import pytest

from vdla.explore.area.added import Added, lanes_in_fabric
from vdla.explore.area.families import FAMILIES
from vdla.explore.area.features import features, fitted_as, registers
from vdla.explore.area.structure import memories
from vdla.isa.config import load_config

PLAIN = load_config("tiny")
FAMILY = next(iter(FAMILIES.values()))


@pytest.mark.parametrize(
    ("place", "expected"),
    [({}, "abx"), ({"behind": "a"}, "axb"), ({"before": "a"}, "xab"), ({"behind": "b"}, "abx")],
)
def test_features_stand_at_their_place(place, expected):
    added = Added(("LOAD",), lambda config, unit: {"x": 1}, **place)
    assert "".join(added.join({"a": 0, "b": 0}, PLAIN, "LOAD")) == expected


@pytest.mark.parametrize(
    ("setting", "unit", "feature"),
    [
        ("table_bytes=512", "ALU", "lanes, tables"),
        ("forwarding=1", "STORE", "INP address bits, forwarding"),
        ("window_taps=2", "COMPUTE", "window"),
        ("reciprocal_units=2", "COMPUTE", "reciprocal units"),
        ("vector_engine=1", "core", "vector engine"),
        ("fabric_lanes=2", "GEMM", "lanes in the fabric"),
        ("alu_groups=2", "ALU", "lanes kept"),
        ("store_groups=2", "STORE", "bytes kept"),
        ("weights4=1", "LOAD", "columns, weights of 4 bits"),
    ],
)
def test_an_options_features_are_zero_without_it(setting, unit, feature):
    config = load_config("tiny", [setting])
    assert features(config, FAMILY)[unit][feature] > 0
    assert features(PLAIN, FAMILY)[unit][feature] == 0


def test_an_engine_of_alu_is_a_unit_like_compute():
    config = load_config("tiny", ["vector_engine=1"])
    assert fitted_as(config) == {"VECTOR": "COMPUTE"}
    assert fitted_as(PLAIN) == {}
    assert list(features(config, FAMILY)["VECTOR"]) == list(features(PLAIN, FAMILY)["COMPUTE"])
    vectors = registers(config, FAMILY)
    assert vectors["VECTOR"] > 0
    assert "VECTOR" not in registers(PLAIN, FAMILY)
    assert vectors["COMPUTE"] < registers(PLAIN, FAMILY)["COMPUTE"]  # without ALU's operands


def test_memories_and_ports():
    windowed = load_config("narrow", ["window_taps=2", "window_rows=2"])
    inp, *_ = memories(windowed, FAMILY)
    assert inp.memory.reads == 2
    assert len(inp.memory.bits_read[1]) == 8 * min(windowed.block_in, windowed.block_out)
    tabled = load_config("tiny", ["table_bytes=512"])
    (tab,) = {each.memory for each in memories(tabled, FAMILY)} - {
        each.memory for each in memories(PLAIN, FAMILY)
    }
    assert (tab.depth, tab.width) == (256, 16)


def test_lanes_in_the_fabric():
    assert lanes_in_fabric(load_config("tiny", ["fabric_lanes=2"])) == 2
    assert lanes_in_fabric(PLAIN) == 0
