"""A user's kernel as a function that is to be scheduled for the accelerator.

The learned model sees what can be counted in the scheduled loops without making instructions:
calls of intrinsics by the engine that runs them, how often their innermost loops begin, bytes
that transfers move, entries that buffers take, and virtual threads. All are logarithms.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2
from typing import ClassVar

import numpy as np

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.trace import Step
from vdla.compiler.search.points import Floats
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.description.memory import BUFFER_OF_SCOPE
from vdla.compiler.targets.accelerator.lower import Linker, lower_function
from vdla.compiler.targets.accelerator.standalone import Standalone, standalone
from vdla.compiler.targets.search.function import Function, result_of
from vdla.compiler.tir.in_bounds import with_promises
from vdla.compiler.tir.ir import Alloc, Buffer, Evaluate, For, PrimFunc, Stmt
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.ir.stmt import THREADS
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.visitor import stmt_children
from vdla.isa.config import Config

ENGINES = ("load", "compute", "store")
SCOPES = tuple(sorted(BUFFER_OF_SCOPE))
COUNTED = (
    *(f"{engine} {what}" for engine in ENGINES for what in ("calls", "runs")),
    "bytes",
    *(f"bits {scope}" for scope in SCOPES),
    "threads",
)


@dataclass(frozen=True, eq=False)
class AcceleratorFunction(Function):
    """A kernel of te for the accelerator of a config; it has no schedule before one is made."""

    FEATURES: ClassVar[Sequence[str]] = COUNTED

    config: Config

    @classmethod
    def of(cls, s: Schedule, config: Config) -> AcceleratorFunction:
        """The kernel of a schedule without primitives.

        Raises:
            ScheduleError: it has several results.
        """
        name, result = result_of(s.built)
        return cls((name,), s.built, result, (), None, config)

    @property
    def machine(self) -> str:
        """The machine of the config with its memory, as canonical JSON."""
        return json.dumps(self.config.machine, sort_keys=True, separators=(",", ":"))

    @cached_property
    def intrinsics(self) -> Mapping[str, TensorIntrin]:
        """The config's instructions, by name."""
        return {each.name: each for each in intrinsics(self.config)}

    def schedule_default(self, s: Schedule) -> None:
        """Leaves it without primitives: which instructions it takes is for a schedule to say."""

    def code(self, trace: Sequence[Step]) -> PrimFunc:
        """The kernel as a trace schedules it."""
        return with_promises(self.schedule(trace).mod)

    def program(self, trace: Sequence[Step]) -> Standalone:
        """The stream of a trace's schedule, alone and cold.

        Raises:
            ScheduleError: a step doesn't apply.
            AllocationError: the buffers exceed what the config has.
            CodegenError: a stage isn't tensorized, or no instruction expresses an access.
        """
        kernel = lower_function(self.code(trace), self.config)
        linker = Linker(self.config)
        linker.add(kernel.name, kernel, {name: name for name in kernel.tensors})
        return standalone(linker, kernel.tensors, {})

    def loops(self, trace: Sequence[Step]) -> PrimFunc:
        """The scheduled loops."""
        return flatten_blocks(self.code(trace))

    def features(self, loops: PrimFunc) -> Floats:
        """Counts of the scheduled loops, in the order of ``FEATURES``."""
        counts: Counter[str] = Counter()
        for stmt, around in _nested(loops.body, ()):
            counts.update(_counted(stmt, around))
        return np.array([log2(1 + counts[name]) for name in COUNTED])

    @property
    def params(self) -> Sequence[Buffer]:
        """Inputs with the values that its indices need, and the result."""
        return with_promises(self.schedule().mod).params


def _nested(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """All statements with the loops around them, outermost first."""
    yield stmt, loops
    inner = (*loops, stmt) if isinstance(stmt, For) else loops
    for child in stmt_children(stmt):
        yield from _nested(child, inner)


def _counted(stmt: Stmt, loops: tuple[For, ...]) -> Counter[str]:
    """Counts of a statement alone, with the steps of the loops around it."""
    result: Counter[str] = Counter()
    match stmt:
        case Evaluate(call):
            engine = _engine([ref.buffer.scope for ref in call.operands])
            steps = int(np.prod([loop.extent for loop in loops], dtype=np.int64))
            result[f"{engine} calls"] = steps
            result[f"{engine} runs"] = steps // (loops[-1].extent if loops else 1)
            if engine != "compute":
                formal = call.intrin.operands[0]
                result["bytes"] = steps * formal.size * np.dtype(formal.dtype).itemsize
        case Alloc(buffer, _) if buffer.scope in SCOPES:
            size = buffer.size * buffer.copies * np.dtype(buffer.dtype).itemsize
            result[f"bits {buffer.scope}"] = 8 * size
        case For(_, extent, "vthread", _, _, notes):
            dealt = dict(notes).get(THREADS)
            result["threads"] = dealt if isinstance(dealt, int) else extent
    return result


def _engine(scopes: Sequence[str]) -> str:
    """The engine of a call with operands in some memories, the one that is written first."""
    if all(scope in SCOPES for scope in scopes):
        return "compute"
    return "load" if scopes[0] in SCOPES else "store"
