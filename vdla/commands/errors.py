"""Which errors are the user's, and which mean that the thing checked doesn't hold."""

from __future__ import annotations

from vdla.boards.board import BoardError
from vdla.commands.usage import UsageError
from vdla.compiler.codegen.target import TargetError
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.passes.allocate import AllocationError
from vdla.compiler.topi.vdla.tiling import TilingError
from vdla.compiler.tune.model import TuneDependencyError
from vdla.compiler.tune.records import RecordError
from vdla.isa.asm import AsmError
from vdla.isa.config import ConfigError
from vdla.isa.fields import EncodingError
from vdla.isa.program import ProgramError
from vdla.runtime.errors import DeviceError, InputError, ModuleError
from vdla.sim.machine import SimulationError

FAILURES = (SimulationError,)
USER_ERRORS = (
    AllocationError,
    AsmError,
    BoardError,
    ConfigError,
    DeviceError,
    EncodingError,
    GraphError,
    InputError,
    ModelError,
    ModuleError,
    OSError,
    ProgramError,
    RecordError,
    TargetError,
    TilingError,
    TuneDependencyError,
    UsageError,
)
