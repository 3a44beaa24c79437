"""Contents of a module: tensors and their places, a run plan, code and data of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from vdla.isa.identity import Identity
from vdla.runtime import plan
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.errors import ModuleError
from vdla.runtime.kernels import Kernels
from vdla.runtime.plan import Plan
from vdla.runtime.values import Values

NOBODY = Identity("", "")  # of a module without programs


@dataclass(frozen=True)
class TensorInfo:
    """A tensor in the DRAM image: its shape in memory, element type and byte offset."""

    shape: tuple[int, ...]
    dtype: str
    offset: int

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes."""
        return prod(self.shape) * dtype_of(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class HostCode:
    """An object file of host functions, or an archive of several, and the machine it is for.

    ``functions`` are the bytes that each parameter of a function has, its result last, by name.
    ``source`` is their text, from which the compiler makes code for another machine; it may be
    empty.
    """

    code: bytes
    triple: str
    cpu: str
    features: str
    functions: Mapping[str, tuple[int, ...]]
    source: bytes = b""


@dataclass(repr=False)
class Contents:
    """A compiled network.

    ``steps`` are its run plan. ``kernels`` are launched; ``programs``, ``external`` and ``outside``
    are the programs, ONNX models and codes for other packages' targets that the steps name.
    ``arguments`` are inputs that are no tensors, and ``values`` all results, where one isn't.
    ``tensors`` have their places in one DRAM image of ``dram_bytes``, which begins with the
    ``constants``.
    """

    tensors: dict[str, TensorInfo]
    inputs: list[str]
    outputs: list[str]
    dram_bytes: int
    steps: Plan
    constants: bytes = b""
    host: HostCode | None = None
    kernels: Kernels | None = None
    programs: dict[str, bytes] = field(default_factory=dict)
    external: dict[str, bytes] = field(default_factory=dict)
    outside: dict[str, bytes] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    identity: Identity = NOBODY
    metadata: dict[str, Any] = field(default_factory=dict)
    arguments: Values = field(default_factory=dict)
    values: Values = field(default_factory=dict)

    @property
    def accelerated(self) -> bool:
        """Whether any step needs an accelerator."""
        return bool(plan.accelerator_steps(self.steps))

    @property
    def results(self) -> list[str]:
        """The names of what a run gives, in order: outputs whose sizes depend on data among them,
        for which a single one of ``outputs`` stands."""
        if self.values:
            return list(self.values)
        orders = (step.order for step in self.steps if isinstance(step, plan.Open))
        return list(next(orders, self.outputs))

    def stream_names(self, program: str, instructions: int) -> tuple[list[str], list[str]]:
        """The layer and the stage of each of a program's instructions; none where the module says
        neither.

        Raises:
            ModuleError: it says them for another number of instructions.
        """
        stream = self.metadata.get("streams", {}).get(program, {"layers": [], "stages": []})
        counts, stages = [count for _, count in stream["layers"]], stream["stages"]
        for what, count in (("layers", sum(counts)), ("stages", len(stages))):
            if count not in (0, instructions):
                raise ModuleError(
                    f"header: streams: {program}: expected {what} of {instructions} instructions, "
                    f"found those of {count}"
                )
        return [name for name, count in stream["layers"] for _ in range(count)], stages
