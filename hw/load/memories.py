"""How many beats an entry has, for a memory that only the instruction knows.

1. The memory chooses among constants, so no size costs a multiplier.
2. Memories whose constants are equal share one input of the multiplexer.
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth import Array, Const, Value

from vdla.hw.layout import beats, scaled
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import Mem


def to_acc(memory: Value) -> Value:
    """Whether entries go to ACC, as they are or widened."""
    return memory.matches(Mem.ACC, Mem.ACC8)


def times_factor(memory: Value, value: Value, factor: Callable[[str], int]) -> Value:
    """``value`` times the ``factor`` of the memory: a choice among the factors that differ."""
    factors = [factor(each.name.lower()) for each in Mem]
    distinct = sorted(set(factors))
    which = Array(Const(distinct.index(f), range(len(distinct))) for f in factors)[memory]
    return Array(scaled(value, f) for f in distinct)[which]


def beats_of(config: Config, memory: Value, entries: Value) -> Value:
    """Beats of so many DRAM entries of the memory."""
    return times_factor(memory, entries, lambda name: beats(config, name))


def beats_of_entry(config: Config, memory: Value) -> Value:
    """Beats of one DRAM entry of the memory."""
    return beats_of(config, memory, Const(1))


def longest_run(config: Config) -> int:
    """Beats of the longest run of any memory: the largest ``x_size``, less one, fits too."""
    largest = max(beats(config, each.name.lower()) for each in Mem)
    return (1 << isa.Load.x_size.width(config)) * largest
