"""What a measurement is of: an operator's geometry on one machine.

Zero points, scales and clipping bounds change results and no cycle, so layers that differ in
nothing else are one workload, tuned once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from vdla import compiler, isa, sim
from vdla.compiler.topi.vdla.conv2d import ConvShape
from vdla.compiler.topi.vdla.elementwise import AddShape
from vdla.compiler.topi.vdla.pool import PoolShape
from vdla.compiler.topi.vdla.tiling import ANY_RESIDUAL, NUMBERS, Shape
from vdla.isa.config import Config, parse_config
from vdla.support.files import digest

SHAPES: dict[str, type[Any]] = {"conv": ConvShape, "pool": PoolShape, "add": AddShape}


@dataclass(frozen=True)
class Workload:
    """An operator's geometry, a machine with its memory, and the number of virtual threads.

    ``shape`` and ``machine`` are canonical JSON, so that workloads can be compared and hashed.
    """

    kind: str
    shape: str
    machine: str
    vthreads: int

    @classmethod
    def of(cls, shape: Shape, config: Config, vthreads: int) -> Workload:
        """The workload of a shape."""
        kind = next(name for name, made in SHAPES.items() if isinstance(shape, made))
        geometry = {f.name: getattr(shape, f.name) for f in fields(shape) if f.name not in NUMBERS}
        if "residual" in geometry:
            geometry["residual"] = geometry["residual"] is not None
        machine = {key: value for key, value in asdict(config).items() if key != "name"}
        return cls(kind, _text(geometry), _text(machine), vthreads)

    @property
    def config(self) -> Config:
        """The machine, by no name."""
        return parse_config(json.loads(self.machine), "recorded", "record")

    def like(self) -> Shape:
        """A shape of this geometry, with made-up numbers.

        Raises:
            TypeError: shapes have other fields today.
        """
        known = {k: _tuples(v) for k, v in json.loads(self.shape).items()}
        if "residual" in known:
            known["residual"] = ANY_RESIDUAL if known["residual"] else None
        made = SHAPES[self.kind]
        numbers = {f.name: 0 for f in fields(made) if f.name in NUMBERS}
        shape: Shape = made(**numbers, **known)
        return shape

    def to_json(self) -> dict[str, Any]:
        """As a record holds it; the config's hash is there for the reader."""
        return {
            "kind": self.kind,
            "shape": json.loads(self.shape),
            "config": self.config.hash,
            "machine": json.loads(self.machine),
            "vthreads": self.vthreads,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Workload:
        """The reverse.

        Raises:
            KeyError: a part is missing.
            ValueError: a part is of another type.
        """
        types = {"kind": str, "shape": dict, "machine": dict, "vthreads": int}
        for key, wanted in types.items():
            if type(value[key]) is not wanted:
                raise ValueError(f"workload with {key} {value[key]!r}")
        shape, machine = _text(value["shape"]), _text(value["machine"])
        return cls(value["kind"], shape, machine, value["vthreads"])


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


ISA_SOURCES = ("config", "fields", "identity", "instructions", "numbers", "program")


@cache
def sources() -> str:
    """Twelve hex digits over all that decides a cycle: ISA, simulator, and the way to a stream.

    Cycles recorded under other digits are stale. Registers, manuals and links don't count.
    """
    root, spec = Path(compiler.__path__[0]), Path(isa.__path__[0])
    parts = ("codegen/vdla", "passes", "schedule", "target", "te", "tir", "topi/vdla")
    folders = [Path(sim.__path__[0]), *(root / part for part in parts)]
    files = [root / "lower.py", *(spec / f"{name}.py" for name in ISA_SOURCES)]
    return digest([*files, *folders], digits=12)
