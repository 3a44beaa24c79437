"""Kernels of operators, each made once for all configs on which it is the same.

    template, tile ── blocks, options ──▶ loops ── depths, port ──▶ instructions

Loops of convolutions don't depend on how much the buffers hold (``FITS_ALREADY``), and neither
loops nor instructions of any operator on pace, memory or lanes of LUTs. So designs that differ in
those alone share them: an exploration makes thousands of kernels of few layers. With a
``LoopStore`` processes share loops on disk, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from vdla.compiler.schedule.schedule import checked_at_the_end
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.loop_store import LoopStore
from vdla.compiler.targets.accelerator.lower import to_instructions, to_loops
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Tile
from vdla.compiler.tir.ir import PrimFunc
from vdla.isa.config import Config
from vdla.isa.parameters import parameters

DEPTH = 1 << 16  # entries of each buffer of the config that loops are made for
MOST = {f.name: f.metadata["high"] for f in parameters(Config)}  # legal values of its parameters


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
    depths = _roomy(config) if template.FITS_ALREADY else config
    return to_instructions(_loops(template, tile, depths, store), config)


def _roomy(config: Config) -> Config:
    """A config with buffers of DEPTH entries, or as many as there can be, for what doesn't depend
    on their depths."""
    sizes = {
        "inp_bytes": DEPTH * config.inp_entry,
        "wgt_bytes": DEPTH * config.wgt_entry,
        "acc_bytes": DEPTH * config.acc_entry,
        "uop_bytes": DEPTH * config.port_bytes,
    }
    return replace(config, **{name: min(size, MOST[name]) for name, size in sizes.items()})


@lru_cache(maxsize=1024)
def _loops(template: AnyTemplate, tile: Tile, config: Config, store: LoopStore | None) -> PrimFunc:
    def scheduled() -> PrimFunc:
        with checked_at_the_end():
            schedule = template.schedule(tile, config)
        schedule.check()
        return to_loops(schedule.mod, config)

    if store is None:
        return scheduled()
    return store.loops(repr((type(template).__qualname__, template, tile, config.hash)), scheduled)
