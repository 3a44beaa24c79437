"""Loops of operators, each scheduled once, and the entries of the buffers that they take.

Loops don't depend on how much the buffers hold, but for schedules that ask (``ASKS_DEPTHS``). So
configs that differ in that alone share them, and those of the tile that is chosen, because the
buffers hold it, are those that its kernel is made of. Entries are remembered by geometry: layers
that differ in numbers alone take as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from vdla.compiler.schedule.schedule import checked_at_the_end
from vdla.compiler.targets.accelerator.codegen.allocate import footprint
from vdla.compiler.targets.accelerator.description.memory import depth
from vdla.compiler.targets.accelerator.lower import to_loops
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, N, T, Template, Tile
from vdla.compiler.tir.ir import PrimFunc
from vdla.isa.config import Config
from vdla.isa.parameters import parameters

DEPTH = 1 << 16  # entries of each buffer of the config that loops are made for
MOST = {f.name: f.metadata["high"] for f in parameters(Config)}  # legal values of its parameters


@dataclass(frozen=True)
class Layer:
    """A template that is equal to all of its geometry."""

    template: AnyTemplate = field(compare=False)
    geometry: AnyTemplate

    @classmethod
    def of(cls, template: Template[N, T]) -> Self:
        """The layer of a template."""
        return cls(template, template.geometry)


def loops_of(template: Template[N, T], tile: T, config: Config) -> PrimFunc:
    """The loops of an operator, for any config of such depths.

    Raises:
        CodegenError, IntrinsicError: no instruction of the config expresses an access.
        ScheduleError: the operator's schedule isn't well formed.
    """
    return _loops(template, tile, config_of_loops(template, config))


def is_held(template: Template[N, T], tile: T, config: Config) -> bool:
    """Whether the buffers of a config hold what the loops of a tile allocate.

    Raises:
        CodegenError, IntrinsicError, ScheduleError: as ``loops_of``.
    """
    needed = _entries(Layer.of(template), tile, config_of_loops(template, config))
    return all(count <= depth(scope, config) for scope, count in needed.items())


def config_of_loops(template: Template[N, T], config: Config) -> Config:
    """The config that loops are made for: it has no pace, and buffers of DEPTH entries, or as many
    as there can be, where nothing asks for them."""
    if template.ASKS_DEPTHS:
        return config.untimed
    sizes = {
        "inp_bytes": DEPTH * config.inp_entry,
        "wgt_bytes": DEPTH * config.wgt_entry,
        "acc_bytes": DEPTH * config.acc_entry,
        "uop_bytes": DEPTH * config.port_bytes,
    }
    most = {name: min(size, MOST[name]) for name, size in sizes.items()}
    return replace(config.untimed, **most)


@lru_cache(maxsize=1024)
def _loops(template: Template[N, T], tile: T, config: Config) -> PrimFunc:
    with checked_at_the_end():
        schedule = template.schedule(tile, config)
    schedule.check()
    return to_loops(schedule.mod, config)


@lru_cache(maxsize=1 << 14)
def _entries(layer: Layer, tile: Tile, config: Config) -> Mapping[str, int]:
    return footprint(_loops(layer.template, tile, config), config)
