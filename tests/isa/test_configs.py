"""Configs: what is accepted, what follows from it, and the errors of what is not."""

from __future__ import annotations

import dataclasses
from dataclasses import fields, replace
from itertools import permutations

import pytest

from vdla.isa.clock import Clock
from vdla.isa.config import Config, config_names, load_config, parse_config
from vdla.isa.identity import ENCODED, isa_hash
from vdla.isa.instructions import Gemm
from vdla.isa.memory import Memory
from vdla.isa.options import OPTIONS, options_of
from vdla.isa.options.reciprocals import reciprocal_groups
from vdla.isa.options.tables import results_per_word, tables
from vdla.isa.parameters import ConfigError

REQUIRED = {
    "block_in": 4,
    "block_out": 4,
    "inp_bytes": 256,
    "wgt_bytes": 256,
    "acc_bytes": 256,
    "uop_bytes": 256,
}


def written(tmp_path, text="", **values):
    lines = [f"{key} = {value}" for key, value in {**REQUIRED, "port_bytes": 4, **values}.items()]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([*lines, text]))
    return path


def error(*args) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(*args)
    return str(caught.value)


def test_comments_of_a_written_config_stand_in_one_column():
    lines = load_config("paper").to_toml().splitlines()
    assert {line.index("#") for line in lines if "#" in line} == {28}


@pytest.mark.parametrize("name", config_names())
def test_bundled_configs_print_as_they_read(name, tmp_path):
    config = load_config(name)
    path = tmp_path / f"{name}.toml"
    path.write_text(config.to_toml())
    assert load_config(path) == config
    assert load_config(path).hash == config.hash


def test_defaults(tmp_path):
    """What a file need not say; a config's hash and its published figures hang on it."""
    config = load_config(written(tmp_path))
    assert {f.name: getattr(config, f.name) for f in fields(config) if f.name not in REQUIRED} == {
        "name": "mine",
        "port_bytes": 4,
        "clock_mhz": 200,
        "command_queue": 16,
        "token_queue": 64,
        "burst_beats": 16,
        "reads_in_flight": 32,
        "read_buffer_beats": 256,
        "writes_in_flight": 16,
        **{option.parameter.name: 0 for option in ENCODED},
        "window_rows": 1,
        "fabric_lanes": 0,
        "alu_groups": 1,
        "store_groups": 1,
        "clock": Clock(),
        "memory": Memory(latency=64, bytes_per_cycle=8),
    }


def test_what_follows():
    config = load_config("paper")
    assert [config.depth(m) for m in ("inp", "wgt", "acc", "acc8")] == [2048, 128, 2048, 2048]
    assert config.macs_per_cycle == 256
    assert config.peak_gops == 102.4
    assert config.memory.name == "64 cycles, 8 B/cycle"


def test_the_hash_covers_the_hardware_alone(tmp_path):
    config = load_config(written(tmp_path))
    assert config.name == "mine"
    named = load_config(written(tmp_path, 'name = "other"\n[memory]\nlatency = 3'))
    assert (named.name, named.memory.latency) == ("other", 3)
    assert named.hash == config.hash
    assert named != config
    assert load_config(written(tmp_path, acc_bytes=512)).hash != config.hash


PAPERS_LANES = {"alu_groups": 2, "store_groups": 2}  # its kin multiply all lanes at a time
HASHES = {"colorlight": "3e362a10", "nano": "b3d16303", "narrow": "356b6490", "paper": "56681906",
          "tiny": "186f80e3", "ulx3s": "2d7d319c", "vta": "cf6cfa42",
          "wide": "4d3b667c"}  # fmt: skip


@pytest.mark.parametrize("name", HASHES)
def test_an_option_that_is_off_changes_nothing(name):
    """Modules, records and bitstreams from before the option carry these hashes."""
    config = load_config(name)
    assert config.hash == HASHES[name]
    assert tables(config) == config.depth("tab") == 0
    assert not config.to_dict().keys() & {option.parameter.name for option in ENCODED}
    on = load_config(name, ["table_bytes=512"])
    assert (tables(on), on.depth("tab") * config.port_bytes) == (1, 512)
    assert on.hash != config.hash
    assert on.to_dict()["table_bytes"] == 512
    off = [f"{option.parameter.name}={option.parameter.off}" for option in ENCODED]
    assert load_config(name, off) == config
    others = [load_config(name, [setting]) for setting in ("forwarding=1", "window_taps=2")]
    assert len({config.hash, on.hash, *(other.hash for other in others)}) == 4


def test_paper_plus_is_paper_with_tables():
    plus = load_config("paper-plus")
    assert replace(plus, name="paper", table_bytes=0, **PAPERS_LANES) == load_config("paper")
    assert (tables(plus), plus.depth("tab"), results_per_word(plus)) == (4, 256, 4)


def test_paper_ring_is_paper_with_what_its_ring_can_have():
    ring = load_config("paper-ring")
    assert (ring.forwarding, ring.window_taps, ring.window_rows, ring.vector_engine) == (1, 3, 2, 1)
    off = {"forwarding": 0, "window_taps": 0, "window_rows": 1, "vector_engine": 0}
    assert replace(ring, name="paper", **off, **PAPERS_LANES) == load_config("paper")


def test_fabric_lanes_change_the_hash_and_no_instruction():
    paper, mixed = load_config("paper"), load_config("paper", ["fabric_lanes=8"])
    assert load_config("paper", ["fabric_lanes=0"]).hash == paper.hash != mixed.hash
    assert isa_hash(mixed) == isa_hash(paper)
    assert mixed.to_dict()["fabric_lanes"] == 8


def test_paper_full_is_paper_ring_with_tables_and_reciprocals():
    full = load_config("paper-full")
    assert (tables(full), full.reciprocal_units, reciprocal_groups(full)) == (4, 4, 4)
    off = {"table_bytes": 0, "reciprocal_units": 0}
    assert replace(full, name="paper-ring", **off) == load_config("paper-ring")


def test_overrides_are_checked_together():
    """12 × 24 at 4 bytes is a machine; on the way there, in any order, none is."""
    settings = ["port_bytes=4", "block_in=12", "block_out=24"]
    wanted = load_config("paper", settings)
    assert (wanted.port_bytes, wanted.block_in, wanted.block_out) == (4, 12, 24)
    for order in permutations(settings):
        assert load_config("paper", order) == wanted


def test_overrides():
    config = load_config("tiny", ["memory.latency=0x10", "token_queue = 1_000", "acc_bytes=4096"])
    assert config.memory.latency == 16
    assert config.token_queue == 1000
    assert config.depth("acc") == 256
    assert load_config("tiny").memory.latency == 64


def test_a_micro_op_takes_the_power_of_two_that_holds_it():
    """One bit, two indices of ACC, one of WGT; the second one is of INP where that is deeper."""
    sizes = ["acc_bytes=65536", "inp_bytes=16384"]  # 12 bits each
    assert load_config("tiny", [*sizes, "wgt_bytes=2048"]).uop_entry == 4  # 1 + 24 + 7 bits
    assert load_config("tiny", [*sizes, "wgt_bytes=4096"]).uop_entry == 8
    deeper = ["acc_bytes=65536", "inp_bytes=32768"]
    assert load_config("tiny", [*deeper, "wgt_bytes=1024"]).uop_entry == 4
    assert load_config("tiny", [*deeper, "wgt_bytes=2048"]).uop_entry == 8


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("latency", "--set latency: expected KEY=VALUE with KEY one of block_in, "),
        ("latency=3", "--set latency=3: expected KEY=VALUE with KEY one of block_in, "),
        ("memory.size=3", "--set memory.size=3: expected KEY=VALUE with KEY one of memory.latency"),
        ("acc_bytes=big", "--set acc_bytes=big: expected an integer, found 'big'"),
        ("memory.latency=-1", "memory: expected 0 ≤ latency ≤ 1073741824, found -1"),
        ("vector_engine=2", "config tiny: expected 0 ≤ vector_engine ≤ 1, found 2"),
        ("table_bytes=-1", "config tiny: expected 0 ≤ table_bytes ≤ 131072, found -1"),
        (
            "reciprocal_units=3",
            "config tiny: expected reciprocal_units to be 0 or a power of two that divides "
            "block_out = 4, found 3",
        ),
        (
            "reciprocal_units=8",
            "config tiny: expected reciprocal_units to be 0 or a power of two that divides "
            "block_out = 4, found 8",
        ),
        (
            "fabric_lanes=3",
            "config tiny: expected fabric_lanes to be even, since two lanes share DSPs, and at "
            "most block_out = 4, found 3",
        ),
        (
            "fabric_lanes=6",
            "config tiny: expected fabric_lanes to be even, since two lanes share DSPs, and at "
            "most block_out = 4, found 6",
        ),
        ("alu_groups=3", "config tiny: expected alu_groups to divide block_out = 4, found 3"),
        ("alu_groups=8", "config tiny: expected alu_groups to divide block_out = 4, found 8"),
        ("alu_groups=0", "config tiny: expected 1 ≤ alu_groups ≤ 256, found 0"),
        ("store_groups=3", "config tiny: expected store_groups to be 1, 2 or 4, found 3"),
        ("store_groups=8", "config tiny: expected 1 ≤ store_groups ≤ 4, found 8"),
        ("store_groups=0", "config tiny: expected 1 ≤ store_groups ≤ 4, found 0"),
        ("fabric_lanes=-2", "config tiny: expected 0 ≤ fabric_lanes ≤ 256, found -2"),
        ("table_bytes=600", "config tiny: expected table_bytes to be a multiple of 512, found 600"),
        ("weights4=2", "config tiny: expected 0 ≤ weights4 ≤ 1, found 2"),
        ("forwarding=2", "config tiny: expected 0 ≤ forwarding ≤ 1, found 2"),
        ("window_taps=1", "config tiny: expected window_taps to be 0 or from 2 to block_in / 2 = "),
        ("window_taps=3", "config tiny: expected window_taps to be 0 or from 2 to block_in / 2 = "),
        (
            "window_rows=2",
            "config tiny: expected block_in ≥ 8 where window_rows = 2, found 4; set ",
        ),
        ("window_rows=0", "config tiny: expected 1 ≤ window_rows ≤ 2, found 0"),
        ("window_taps=-1", "config tiny: expected 0 ≤ window_taps ≤ 128, found -1"),
        ("block_in=0", "config tiny: expected 1 ≤ block_in ≤ 256, found 0"),
        ("block_in=512", "config tiny: expected 1 ≤ block_in ≤ 256, found 512"),
        ("block_out=512", "config tiny: expected 1 ≤ block_out ≤ 256, found 512"),
        ("port_bytes=2", "config tiny: expected 4 ≤ port_bytes ≤ 128, found 2"),
        ("port_bytes=12", "config tiny: expected block_in bytes to be a multiple of port_byt"),
        ("burst_beats=2000", "config tiny: expected 1 ≤ burst_beats ≤ 256, found 2000"),
        ("read_buffer_beats=3", "config tiny: expected read_buffer_beats ≥ burst_beats = 16"),
        ("acc_bytes=16", "config tiny: expected acc_bytes to hold at least 2 entries of 16 bytes"),
    ],
)
def test_settings_that_make_no_machine(setting, message):
    assert error("tiny", [setting]).startswith(message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"block_in": 12, "block_out": 12, "port_bytes": 12},
         "config mine: expected port_bytes to be a power of two, found 12"),
        ({"block_in": 20, "block_out": 8},
         "config mine: expected one of block_in, block_out to divide the other, found 20 and 8"),
        ({"block_in": 12, "block_out": 12, "forwarding": 1},
         "config mine: expected block_in / port_bytes to be a power of two where forwarding = 1, "
         "found 3; change one of them, or forwarding to 0"),
        ({"block_in": 8, "block_out": 8, "window_taps": 5},
         "config mine: expected window_taps to be 0 or from 2 to block_in / 2 = 4, found 5"),
        ({"block_in": 8, "block_out": 8, "window_rows": 2},
         "config mine: expected window_taps to be from 2 to block_in / 4 = 2 where "
         "window_rows = 2, found 0; change one of the two"),
        ({"block_in": 8, "block_out": 8, "window_taps": 3, "window_rows": 2},
         "config mine: expected window_taps to be from 2 to block_in / 4 = 2 where "
         "window_rows = 2, found 3; change one of the two"),
        ({"window_taps": 2, "window_rows": 2},
         "config mine: expected block_in ≥ 8 where window_rows = 2, found 4; set window_rows to 1"),
        ({"port_bytes": 64, "block_in": 64, "block_out": 64, "burst_beats": 128,
          "wgt_bytes": 8192, "acc_bytes": 512},
         "config mine: expected burst_beats × port_bytes ≤ 4096, found 8192"),
    ],
)  # fmt: skip
def test_values_that_contradict_each_other(values, message):
    with pytest.raises(ConfigError) as caught:
        Config("mine", **{**REQUIRED, "port_bytes": 4, **values})
    assert str(caught.value) == message


def test_two_options_that_each_add_an_engine(monkeypatch):
    (vector,) = (option for option in OPTIONS if option.engine)

    def with_engines(config):
        return tuple(dataclasses.replace(o, engine=vector.engine) for o in options_of(config))

    monkeypatch.setattr("vdla.isa.config.options_of", with_engines)
    assert error("wide", ["forwarding=1", "vector_engine=1"]) == (
        "config wide: expected one fourth engine at most, found forwarding and vector_engine; "
        "set one of them to 0"
    )


def test_files_that_are_no_config(tmp_path):
    first = "config nothing: expected a .toml file or one of colorlight, nano, narrow, "
    assert error("nothing").startswith(first)
    missing = tmp_path / "gone.toml"
    assert error(missing) == f"{missing}: expected a readable file, found No such file or directory"
    path = written(tmp_path, "= 3")
    assert error(path).startswith(f"{path}: expected TOML, found ")
    path = written(tmp_path, lanes=3)
    assert error(path).startswith(f"{path}: expected one of name, block_in, ")
    assert error(path).endswith(", found lanes")
    path = written(tmp_path, acc_bytes='"big"')
    assert error(path) == f"{path}: expected acc_bytes to be an integer, found 'big'"
    path = written(tmp_path, acc_bytes="true")
    assert error(path) == f"{path}: expected acc_bytes to be an integer, found True"
    path = written(tmp_path, memory=3)
    assert error(path) == f"{path}: expected memory to be a table, found 3"
    path.write_text("block_in = 4")
    assert error(path) == f"{path}: expected block_out, found no such key"
    path.write_bytes(b"\xff\xfe")
    assert error(path).startswith(f"{path}: expected TOML, found ")


@pytest.mark.parametrize("depth", [2, 3, 4, 5, 64, 65])
def test_instructions_number_every_micro_op_and_not_twice_as_many(depth):
    config = replace(load_config("tiny"), uop_bytes=4 * depth)
    assert config.uop_depth == depth
    first, last = Gemm.bounds(config)["uop_begin"]
    assert first == 0
    assert depth - 1 <= last < 2 * (depth - 1) + (depth == 2)


@pytest.mark.parametrize("value", [None, 3, [], "x"])
def test_a_header_whose_memory_is_no_table(value):
    """JSON has a null, which TOML has not."""
    with pytest.raises(ConfigError) as caught:
        parse_config({**load_config("tiny").to_dict(), "memory": value}, "tiny", "header")
    assert str(caught.value) == f"header: expected memory to be a table, found {value!r}"


def test_a_header_without_banks():
    values = load_config("tiny").to_dict()
    values["memory"] = {**values["memory"], "banks": None}
    assert parse_config(values, "tiny", "header") == load_config("tiny")


def test_the_ratio_of_a_drams_clocks_is_one_unless_it_is_said():
    """A config without it keeps its text, and with that the keys of what was made for it."""
    one = load_config("ulx3s")
    assert one.memory.banks.clock_ratio == 1
    assert "clock_ratio" not in one.to_dict()["memory"]["banks"]
    two = one.override(["memory.banks.clock_ratio=2"])
    assert two.to_dict()["memory"]["banks"]["clock_ratio"] == 2
    assert two != one
    assert two.hash == one.hash
    for config in (one, two):
        assert parse_config(config.to_dict(), "ulx3s", "header") == config
    with pytest.raises(ConfigError) as caught:
        one.override(["memory.banks.clock_ratio=3"])
    assert str(caught.value) == "memory.banks: expected 1 ≤ clock_ratio ≤ 2, found 3"
