"""Workloads, which measurements are of: an operator's geometry on one machine, simulated or a
board.

Zero points, scales and clipping bounds change results and no cycle, so layers that differ in
nothing else are one workload, tuned once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vdla import compiler, isa, sim
from vdla.compiler.search.records import Line
from vdla.compiler.targets.accelerator.operators.template import BY_NAME, AnyTemplate
from vdla.isa.config import Config, parse_config
from vdla.support.files import digest


@dataclass(frozen=True)
class Workload:
    """An operator's geometry, a machine with its memory, and the number of virtual threads.

    ``shape`` and ``machine`` are canonical JSON, so that workloads can be compared and hashed.
    ``board`` names the board that counts the cycles, whose own memory then takes the place of the
    machine's; it is empty where the simulator counts. So the two are never compared.
    """

    kind: str
    shape: str
    machine: str
    vthreads: int
    board: str = ""

    @classmethod
    def of(cls, template: AnyTemplate, config: Config, vthreads: int, board: str = "") -> Workload:
        """The workload of a layer's template on a config, with so many virtual threads: on a board
        of this name, or simulated."""
        shape, machine = _text(template.to_json()), _text(config.machine)
        return cls(template.NAME, shape, machine, vthreads, board)

    @property
    def config(self) -> Config:
        """The config of the accelerator, under a stand-in for its name, which doesn't count.

        Raises:
            ConfigError: there is no such machine, today at least.
        """
        return _config(self.machine)

    def like(self) -> AnyTemplate:
        """A template of this geometry, with made-up numbers.

        Raises:
            KeyError, TypeError: today's templates have other names or fields.
        """
        return BY_NAME[self.kind].from_json(json.loads(self.shape))

    def to_json(self) -> dict[str, object]:
        """JSON in a record; the config's hash is there for the reader."""
        where = {"board": self.board} if self.board else {}
        return {
            "kind": self.kind,
            "shape": json.loads(self.shape),
            "config": self.config.hash,
            "machine": json.loads(self.machine),
            "vthreads": self.vthreads,
            **where,
        }

    @classmethod
    def from_json(cls, value: Line) -> Workload:
        """The workload of which ``to_json`` made ``value``.

        Raises:
            KeyError: a part is missing.
            ValueError: a part is of another type.
        """
        types = {"kind": str, "shape": dict, "machine": dict, "vthreads": int, "board": str}
        parts = {"board": "", **value}
        for key, wanted in types.items():
            if type(parts[key]) is not wanted:
                raise ValueError(f"workload with {key} {parts[key]!r}")
        if not is_small(parts["shape"]):
            raise ValueError(f"workload with shape {parts['shape']!r}")
        shape, machine = _text(parts["shape"]), _text(parts["machine"])
        return cls(parts["kind"], shape, machine, parts["vthreads"], parts["board"])


def is_small(value: object) -> bool:
    """Whether all numbers of a record's shape or tile are of sizes that layers can have."""
    if isinstance(value, dict | list):
        return all(map(is_small, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) <= LARGEST


@cache
def _config(machine: str) -> Config:
    return parse_config(json.loads(machine), "recorded", "record")


def _text(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


LARGEST = (1 << 31) - 1  # of a number in a shape or a tile: no tensor has more elements
ISA_SOURCES = ("config", "fields", "identity", "instructions", "numbers", "program")


@cache
def sources() -> str:
    """Twelve hex digits over all that decides a cycle: ISA, simulator, and the way to a stream.

    Cycles recorded under other digits are stale. Registers, manuals and links don't count.
    """
    root, spec = Path(compiler.__path__[0]), Path(isa.__path__[0])
    target = root / "targets" / "accelerator"
    parts = [target / part for part in ("codegen", "description", "operators", "passes")]
    parts += [root / part for part in ("schedule", "te", "tir")]
    files = [target / "lower.py", *(spec / f"{name}.py" for name in ISA_SOURCES)]
    folders = [Path(sim.__path__[0]), *parts]
    return digest([*files, *folders], digits=12)
