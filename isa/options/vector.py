"""The vector engine: ALU has an engine of its own, VECTOR, beside COMPUTE's GEMM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.engines import Engine
from vdla.isa.options.option import AddedEngine, Option, Parameter, Probes

if TYPE_CHECKING:
    from vdla.isa.config import Config

PARAMETER = Parameter("vector_engine", "whether ALU has an engine of its own, VECTOR; 0: COMPUTE")
VECTOR = Engine.add(3, "VECTOR")


def has_vector_engine(config: Config) -> bool:
    """Whether ALU has an engine of its own."""
    return bool(PARAMETER.of(config))


OPTIONS = (
    Option(
        rank=5,
        title="a vector engine",
        parameter=PARAMETER,
        engine=AddedEngine(VECTOR, Engine.COMPUTE, ("ALU",)),
        probes=Probes((("e", {PARAMETER.name: 1}), ("b", {PARAMETER.name: 1})), "6a2eee8c"),
    ),
)
