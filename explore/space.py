"""Spaces of designs as TOML: a base config, values for some of its parameters, and constraints.

    name = "small"
    base = "tiny"                                        # what every design starts from
    constraints = ["block_in <= block_out"]
    clock_mhz = 100                                      # asked of every design; else a model's

    [parameters]
    block_in = [4, 8, 16]                                # a list
    acc_bytes = { from = 2048, to = 16384, factor = 2 }  # 2048, 4096, 8192, 16384
    token_queue = { from = 4, to = 12, step = 4 }        # 4, 8, 12
    "memory.latency" = [16, 64]

A **point** is a tuple with the position of each parameter's value. Points are the grid of all
values; what the constraints or the config's own rules refuse is no design.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import product, takewhile
from math import prod
from operator import ge
from pathlib import Path
from random import Random

from vdla.explore.constraints import Constraint
from vdla.explore.errors import ExploreError
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory
from vdla.isa.parameters import ConfigError
from vdla.support.files import digest
from vdla.support.named_toml import names_in, read_toml
from vdla.support.names import check_name

SPACES = Path(__file__).parent / "spaces"
DEFAULT = "default"
MOST_VALUES = 1024  # of one parameter
KEYS = ("name", "base", "constraints", "clock_mhz", "parameters")

Point = tuple[int, ...]


class IllegalError(ExploreError):
    """A point that is no design; the text says which rule refuses it, without its numbers."""


@dataclass(frozen=True)
class Space:
    """Designs around a base config.

    ``parameters`` are the values of each parameter, ascending, by its name; ``memory.`` and a name
    are the memory's. ``asked_mhz`` is the clock that is asked of every design; without it a model
    estimates each one's.
    """

    name: str
    base: Config
    parameters: Mapping[str, tuple[int, ...]]
    constraints: tuple[Constraint, ...] = ()
    asked_mhz: int | None = None

    @property
    def size(self) -> int:
        """Points of the grid, legal or not."""
        return prod(self.shape)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each parameter."""
        return tuple(len(values) for values in self.parameters.values())

    @cached_property
    def digest(self) -> str:
        """12 hex digits over the base config, the values and the constraints."""
        base = {"name": "", **self.base.machine}
        parts = (base, {**self.parameters}, [each.text for each in self.constraints])
        return digest([], also=json.dumps(parts, sort_keys=True), digits=12)

    def points(self) -> Iterator[Point]:
        """All points of the grid, legal or not; the last parameter changes first."""
        return product(*map(range, self.shape))

    def random_point(self, rng: Random) -> Point:
        """A point of the grid, legal or not."""
        return tuple(rng.randrange(count) for count in self.shape)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """The points with one parameter a step up or down."""
        for axis, (position, count) in enumerate(zip(point, self.shape, strict=True)):
            for other in (position - 1, position + 1):
                if 0 <= other < count:
                    yield (*point[:axis], other, *point[axis + 1 :])

    def values(self, point: Point) -> dict[str, int]:
        """The parameters of a point by name."""
        pairs = zip(self.parameters.items(), point, strict=True)
        return {name: values[position] for (name, values), position in pairs}

    def settings(self, point: Point) -> list[str]:
        """The parameters of a point as ``KEY=VALUE``, for ``--set``."""
        return [f"{name}={value}" for name, value in self.values(point).items()]

    def point(self, values: Mapping[str, int]) -> Point | None:
        """The point of some parameters' values; None where the grid has no such point."""
        try:
            return tuple(own.index(values[name]) for name, own in self.parameters.items())
        except (KeyError, ValueError):
            return None

    def design(self, point: Point) -> Config:
        """The config of a point.

        Raises:
            IllegalError: a constraint or a rule of configs refuses it.
        """
        settings = self.settings(point)
        try:
            config = self.base.override(settings)
        except ConfigError as error:
            raise IllegalError(_rule(str(error))) from None
        known = _all_values(config)
        for constraint in self.constraints:
            if not constraint.holds(known):
                raise IllegalError(f"constraint {constraint.text}")
        return config

    def designs(self) -> Iterator[tuple[Point, Config]]:
        """All designs with their points."""
        for point in self.points():
            try:
                yield point, self.design(point)
            except IllegalError:
                continue


def load_space(name: str | Path) -> Space:
    """Reads a space by its bundled name or from a TOML file.

    Raises:
        ExploreError: no such space, not TOML, an unknown key, a parameter without values.
        ConfigError: there is no such base config.
    """
    data, path = read_toml("space", name, SPACES, ExploreError)
    return parse_space(data, path.stem, str(path))


def space_names() -> list[str]:
    """The bundled spaces."""
    return names_in(SPACES)


def parse_space(data: Mapping[str, object], name: str, where: str) -> Space:
    """A space from decoded TOML; ``where`` names the source in errors.

    Raises:
        ExploreError: an unknown key, a parameter without values, a constraint that is none.
        ConfigError: there is no such base config.
    """
    for key in data:
        if key not in KEYS:
            raise ExploreError(f"{where}: expected one of {', '.join(KEYS)}, found {key}")
    given, base, texts = (data.get(key, default) for key, default in
                          (("name", name), ("base", "paper"), ("constraints", [])))  # fmt: skip
    if not isinstance(given, str) or not isinstance(base, str):
        raise ExploreError(f"{where}: expected name and base to be strings, found another type")
    check_name(given, where, ExploreError)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ExploreError(f"{where}: expected constraints to be a list of strings, found {texts}")
    config, asked = load_config(base), _asked(data.get("clock_mhz"), where)
    if asked is not None:
        config = config.override([f"clock_mhz={asked}"])
    parameters = _parameters(data.get("parameters", {}), config, where)
    constraints = tuple(Constraint(text) for text in texts)
    for constraint in constraints:
        try:
            constraint.check(_all_values(config))
        except ExploreError as error:
            raise ExploreError(f"{where}: {error}") from None
    return Space(given, config, parameters, constraints, asked)


def _asked(given: object, where: str) -> int | None:
    """The clock in MHz that a space asks of every design; None where it asks for none."""
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ExploreError(f"{where}: expected clock_mhz to be an integer > 0, found {given!r}")
    return given


def _parameters(data: object, base: Config, where: str) -> dict[str, tuple[int, ...]]:
    """The values of each parameter, with those of an inner table ``memory`` as ``memory.NAME``."""
    if not isinstance(data, Mapping) or not data:
        raise ExploreError(f"{where}: expected a table parameters with values, found none")
    flat = dict(data)
    if isinstance(inner := flat.get("memory"), Mapping):
        del flat["memory"]
        flat |= {f"memory.{name}": values for name, values in inner.items()}
    known = _all_values(base)
    for name in flat:
        if name not in known:
            raise ExploreError(f"{where}: expected one of {', '.join(known)}, found {name}")
    return {name: _values(values, f"{where}: {name}") for name, values in flat.items()}


def _values(given: object, where: str) -> tuple[int, ...]:
    """Distinct values, ascending, of a list or a range."""
    match given:
        case int() if not isinstance(given, bool):
            values: Sequence[object] = [given]
        case list():
            values = given
        case {"from": int(low), "to": int(high), "step": int(step), **rest} if not rest:
            _expect_range(low <= high and step > 0, given, where)
            values = range(low, min(high, low + step * MOST_VALUES) + 1, step)
        case {"from": int(low), "to": int(high), "factor": int(factor), **rest} if not rest:
            _expect_range(0 < low <= high and factor > 1, given, where)
            powers = (low * factor**n for n in range(MOST_VALUES))
            values = list(takewhile(partial(ge, high), powers))
        case _:
            raise ExploreError(
                f"{where}: expected a list of integers, {{from, to, step}} or {{from, to, factor}}"
                f", found {given}"
            )
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        raise ExploreError(f"{where}: expected a list of integers, found {given}")
    if not numbers or len(numbers) > MOST_VALUES:
        raise ExploreError(f"{where}: expected 1 to {MOST_VALUES} values, found {given}")
    if len(set(numbers)) < len(numbers):
        raise ExploreError(f"{where}: expected distinct values, found {given}")
    return tuple(sorted(numbers))


def _expect_range(holds: bool, given: object, where: str) -> None:
    if not holds:
        raise ExploreError(f"{where}: expected a range that has values, found {given}")


def _all_values(config: Config) -> dict[str, int]:
    """Every parameter of a config by name, the memory's as ``memory.NAME``."""
    own = {f.name: getattr(config, f.name) for f in fields(Config) if "low" in f.metadata}
    memory = {f"memory.{f.name}": getattr(config.memory, f.name) for f in fields(Memory)}
    return own | memory


def _rule(text: str) -> str:
    """The rule that an error's text states, without the config's name and what was found."""
    text = text.partition(": expected ")[2] or text
    return text.rpartition(", found ")[0] or text
