"""Origin of an accelerator's clock: routed by a tool, estimated by a model, or asked for.

A config's file says it in a table beside ``clock_mhz``; without the table the clock is asked for.

    [clock]
    source = "routed"               # a tool placed and routed the design for the board
    tool = "nextpnr-ecp5 0.11.1"
    board = "ulx3s"
    seed = 1                        # if the tool takes one
    reached_mhz = 63.0              # by the tool's report: at least clock_mhz

    [clock]
    source = "estimated"            # no tool has routed it: levels of logic × a level's delay
    part = "xc7z020"
    levels = 9
    level_ns = 0.95                 # logic and wire, for the part
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vdla.isa.parameters import ConfigError, typed

ROUTED, ESTIMATED, ASKED = SOURCES = ("routed", "estimated", "asked")
TABLE = "clock"
TEXT, WHOLE, NUMBER = (str,), (int,), (int, float)
KEYS: Mapping[str, Mapping[str, tuple[type, ...]]] = {  # of each source, and their types
    ROUTED: {"tool": TEXT, "board": TEXT, "seed": WHOLE, "reached_mhz": NUMBER},
    ESTIMATED: {"part": TEXT, "levels": WHOLE, "level_ns": NUMBER},
    ASKED: {},
}
OPTIONAL = ("seed",)
ARTICLES = {TEXT: "a string", WHOLE: "an integer", NUMBER: "a number"}


@dataclass(frozen=True)
class Clock:
    """Origin of a clock: its ``source``, "routed", "estimated" or "asked", with the evidence.

    A routed one has the ``tool`` with its version, the ``board``, the ``seed`` if the tool takes
    one, and the clock that was reached in MHz. An estimated one has the ``part``, the ``levels`` of
    logic of the longest path, and what a level takes with its wires, in ns.
    """

    source: str = ASKED
    tool: str = ""
    board: str = ""
    seed: int | None = None
    reached_mhz: float | None = None
    part: str = ""
    levels: int | None = None
    level_ns: float | None = None

    @property
    def is_asked(self) -> bool:
        """Whether nothing is behind the clock but somebody's wish."""
        return self.source == ASKED

    @property
    def most_mhz(self) -> float | None:
        """The highest clock in MHz that the evidence allows; None where there is none."""
        if self.levels is not None and self.level_ns is not None:
            return 1e3 / (self.levels * self.level_ns)
        return self.reached_mhz

    def to_dict(self) -> dict[str, str | float]:
        """The table as a config's file has it; an asked clock has its source alone."""
        values = {name: getattr(self, name) for name in KEYS[self.source]}
        given = {name: value for name, value in values.items() if value is not None}
        return {"source": self.source, **given}

    def to_toml(self) -> str:
        """The table as text of a config's file."""
        values = self.to_dict().items()
        lines = (f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in values)
        return "\n".join((f"[{TABLE}]", *lines))

    @property
    def text(self) -> str:
        """The origin in words: ``routed by nextpnr-ecp5 0.11.1 for ulx3s, seed 1, at 63 MHz``."""
        if self.source == ROUTED:
            seed = "" if self.seed is None else f", seed {self.seed}"
            return f"routed by {self.tool} for {self.board}{seed}, at {self.reached_mhz:g} MHz"
        if self.source == ESTIMATED:
            return (
                f"estimated for {self.part}: {self.levels} levels of {self.level_ns:.3g} ns, "
                f"{self.most_mhz:.1f} MHz"
            )
        return "asked: no tool has routed it"


def clock_text(mhz: float, source: str) -> str:
    """A clock in MHz with the word that says where it comes from: ``200 MHz (asked)``."""
    return f"{round(mhz, 1):g} MHz ({source})"


def at_clock(mhz: float, source: str) -> str:
    """The phrase behind every time that a clock in MHz led to: ``at 200 MHz (asked)``."""
    return f"at {clock_text(mhz, source)}"


def clock_of(data: object, mhz: object, where: str) -> Clock:
    """The origin of a config's clock from the table of its file.

    Args:
        data: the decoded table.
        mhz: the config's ``clock_mhz``; None leaves it unchecked.
        where: names the file in errors.

    Raises:
        ConfigError: no table, an unknown source, a key that is missing, unknown or ill-typed, or
            evidence of a slower clock.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: expected {TABLE} to be a table, found {data!r}")
    source = data.get("source")
    if source not in SOURCES:
        known = ", ".join(SOURCES)
        raise ConfigError(
            f"{where}: expected {TABLE}.source to be one of {known}, found {source!r}"
        )
    keys = KEYS[str(source)]
    _check_keys(data, keys, str(source), where)
    result = Clock(**data)
    most = result.most_mhz
    if most is not None and isinstance(mhz, int) and mhz > most:
        raise ConfigError(
            f"{where}: expected clock_mhz ≤ {most:.1f}, the clock that was {source}, found {mhz}; "
            f'lower it, or set {TABLE}.source to "{ASKED}"'
        )
    return result


def _check_keys(
    data: Mapping[str, object], keys: Mapping[str, tuple[type, ...]], source: str, where: str
) -> None:
    """Raises ConfigError unless a table has the keys of its source, of their types."""
    for name, value in data.items():
        if name == "source":
            continue
        if name not in keys:
            expected = ", ".join(f"{TABLE}.{each}" for each in keys) or "no further key"
            raise ConfigError(
                f"{where}: expected {expected} of a clock that is {source}, found {TABLE}.{name}"
            )
        if not typed(value, keys[name]):
            article = ARTICLES[keys[name]]
            raise ConfigError(f"{where}: expected {TABLE}.{name} to be {article}, found {value!r}")
        if isinstance(value, int | float) and name != "seed" and value <= 0:
            raise ConfigError(f"{where}: expected {TABLE}.{name} > 0, found {value}")
    for name in keys:
        if name not in data and name not in OPTIONAL:
            raise ConfigError(
                f"{where}: expected {TABLE}.{name} of a clock that is {source}, found no such key"
            )
