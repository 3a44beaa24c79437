"""Kernels of operators, each made once for all configs on which it is the same.

    template, tile ── blocks, options ──▶ loops ── depths, port ──▶ instructions

Loops don't depend on how much the buffers hold (``operators/loops.py``), and neither loops nor
instructions of any operator on pace, memory or lanes of LUTs. So designs that differ in those alone
share them: an exploration makes thousands of kernels of few layers. With a ``LoopStore`` processes
share loops on disk, too.
"""

from __future__ import annotations

from functools import lru_cache

from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.loop_store import LoopStore
from vdla.compiler.targets.accelerator.lower import to_instructions
from vdla.compiler.targets.accelerator.operators.loops import config_of_loops, loops_of
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Tile
from vdla.compiler.tir.ir import PrimFunc
from vdla.isa.config import Config


def kernel_of(
    template: AnyTemplate, tile: Tile, config: Config, store: LoopStore | None = None
) -> Kernel:
    """The instructions of an operator, before tokens and addresses; loops come from ``store`` where
    it has them, and go there.

    Raises:
        AllocationError: its buffers, or its micro-ops, exceed what the config has.
        CodegenError, IntrinsicError: no instruction of the config expresses an access.
        ScheduleError: the operator's schedule isn't well formed.
    """
    return _instructions(template, tile, config.untimed, store)


@lru_cache(maxsize=512)
def _instructions(
    template: AnyTemplate, tile: Tile, config: Config, store: LoopStore | None
) -> Kernel:
    made = template.instructions(tile, config)
    if made is not None:
        return made
    return to_instructions(_loops(template, tile, config, store), config)


def _loops(template: AnyTemplate, tile: Tile, config: Config, store: LoopStore | None) -> PrimFunc:
    if store is None:
        return loops_of(template, tile, config)
    return _stored(template, tile, config_of_loops(template, config), store)


@lru_cache(maxsize=1024)
def _stored(template: AnyTemplate, tile: Tile, config: Config, store: LoopStore) -> PrimFunc:
    key = repr((type(template).__qualname__, template, tile, config.hash))
    return store.loops(key, lambda: loops_of(template, tile, config))
