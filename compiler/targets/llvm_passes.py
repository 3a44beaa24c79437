"""LLVM's pipeline of passes over a module, in memory that is given back.

Imports llvmlite alone: the processes that optimize parts of a module start with it.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager


def run_pipeline(
    module: llvm.ModuleRef, machine: llvm.TargetMachine, tuning: llvm.PipelineTuningOptions
) -> None:
    """Runs the pipeline of ``tuning``'s level over a module, for a machine."""
    builder = llvm.create_pass_builder(machine, tuning)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    # llvmlite 0.50 leaves some 50 KB of passes behind: close() calls the empty _dispose of the
    # first of two base classes, and not the second one's.
    NewPassManager._dispose(passes)
    passes.detach()
