"""Origins of clocks: what a config's file may say, what it comes to, and the errors of the rest."""

import pytest

from vdla.isa.clock import Clock, at_clock
from vdla.isa.config import Config, config_names, load_config, parse_config
from vdla.isa.parameters import ConfigError

TINY = load_config("tiny")
ROUTED = {"source": "routed", "tool": "nextpnr-ecp5 0.11.1", "board": "ulx3s", "seed": 3,
          "reached_mhz": 104.5}  # fmt: skip
ESTIMATED = {"source": "estimated", "part": "xc7z020", "levels": 8, "level_ns": 1.0}


def with_clock(table) -> Config:
    return parse_config({**TINY.to_dict(), "clock": table}, "mine", "mine.toml")


def error(table) -> str:
    with pytest.raises(ConfigError) as caught:
        with_clock(table)
    return str(caught.value)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (ROUTED, "routed by nextpnr-ecp5 0.11.1 for ulx3s, seed 3, at 104.5 MHz"),
        ({k: v for k, v in ROUTED.items() if k != "seed"},
         "routed by nextpnr-ecp5 0.11.1 for ulx3s, at 104.5 MHz"),
        (ESTIMATED, "estimated for xc7z020: 8 levels of 1 ns, 125.0 MHz"),
        ({"source": "asked"}, "asked: no tool has routed it"),
    ],
)  # fmt: skip
def test_what_a_file_says_is_kept_and_is_no_part_of_the_machine(table, text, tmp_path):
    config = with_clock(table)
    assert config.clock.text == text
    assert config.clock.to_dict() == table
    assert config.at_clock == f"at 100 MHz ({table['source']})"
    assert (config.hash, config) == (TINY.hash, TINY)
    path = tmp_path / "mine.toml"
    path.write_text(config.to_toml())
    assert load_config(path).clock == config.clock
    assert parse_config(config.to_dict(), "", "header").clock == config.clock
    assert "clock" not in config.machine


def test_another_machine_has_an_asked_clock():
    """A setting of the memory leaves the machine, and so does one that changes nothing."""
    config = with_clock(ROUTED)
    for setting, is_asked in (
        ("memory.latency=3", False), ("clock_mhz=100", False), ("clock_mhz=99", True),
        ("token_queue=8", True), ("block_in=8", True),
    ):  # fmt: skip
        assert config.override([setting]).clock.is_asked == is_asked, setting
    assert config.untimed.clock == Clock()


def test_bundled_clocks():
    """Nothing but what was shown: a clock is asked until a tool has routed it."""
    sources = {name: load_config(name).clock for name in config_names()}
    routed = {name: clock.reached_mhz for name, clock in sources.items() if not clock.is_asked}
    assert routed == {"colorlight": 71.6, "nano": 66.7, "ulx3s": 84.8, "ulx3s-wide": 77.5}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "expected clock to be a table, found 3"),
        ({}, "expected clock.source to be one of routed, estimated, asked, found None"),
        ({"source": "guessed"},
         "expected clock.source to be one of routed, estimated, asked, found 'guessed'"),
        ({"source": ["routed"]},
         "expected clock.source to be one of routed, estimated, asked, found ['routed']"),
        ({"source": "asked", "part": "x"},
         "expected no further key of a clock that is asked, found clock.part"),
        ({**ESTIMATED, "tool": "x"},
         "expected clock.part, clock.levels, clock.level_ns of a clock that is estimated, "
         "found clock.tool"),
        ({**ROUTED, "seed": 1.5}, "expected clock.seed to be an integer, found 1.5"),
        ({**ROUTED, "tool": 3}, "expected clock.tool to be a string, found 3"),
        ({**ROUTED, "reached_mhz": True}, "expected clock.reached_mhz to be a number, found True"),
        ({**ESTIMATED, "levels": 0}, "expected clock.levels > 0, found 0"),
        ({"source": "routed", "tool": "x"},
         "expected clock.board of a clock that is routed, found no such key"),
        ({**ROUTED, "reached_mhz": 99.0},
         "expected clock_mhz ≤ 99.0, the clock that was routed, found 100; lower it, or set "
         'clock.source to "asked"'),
        ({**ESTIMATED, "levels": 11},
         "expected clock_mhz ≤ 90.9, the clock that was estimated, found 100; lower it, or set "
         'clock.source to "asked"'),
    ],
)  # fmt: skip
def test_what_is_no_origin(table, message):
    assert error(table) == f"mine.toml: {message}"


@pytest.mark.parametrize(
    ("mhz", "text"),
    [(200, "at 200 MHz (asked)"), (62.4837, "at 62.5 MHz (asked)"), (61.96, "at 62 MHz (asked)")],
)
def test_the_phrase(mhz, text):
    assert at_clock(mhz, "asked") == text
