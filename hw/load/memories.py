"""Counts of an entry's beats and steps, for a memory that only the instruction knows.

1. The memory chooses among constants, so no size costs a multiplier.
2. Memories whose constants are equal share one input of the multiplexer.
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth import Array, Const, Value

from vdla.hw.layout import beats, scaled
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import Mem, memories
from vdla.isa.options.tables import results_per_word


def to_acc(memory: Value) -> Value:
    """Whether entries go to ACC, as they are or widened."""
    return memory.matches(Mem.ACC, Mem.ACC8)


def times_factor(
    config: Config, memory: Value, value: Value, factor: Callable[[str], int]
) -> Value:
    """``value`` times the ``factor`` of the memory: a choice among the factors that differ."""
    factors = [factor(each.name.lower()) for each in memories(config)]
    distinct = sorted(set(factors))
    which = Array(Const(distinct.index(f), range(len(distinct))) for f in factors)[memory]
    return Array(scaled(value, f) for f in distinct)[which]


def beats_of(config: Config, memory: Value, entries: Value) -> Value:
    """Beats of so many DRAM entries of the memory."""
    return times_factor(config, memory, entries, lambda name: beats(config, name))


def steps_of_entry(config: Config, memory: Value) -> Value:
    """Steps in which an entry of the memory is written: its beats, or the results of TAB."""
    tab = Mem.TAB.name.lower()

    def steps(name: str) -> int:
        return results_per_word(config) if name == tab else beats(config, name)

    return times_factor(config, memory, Const(1), steps)


def longest_run(config: Config) -> int:
    """Beats of the longest run of any memory: the largest ``x_size``, less one, fits too."""
    largest = max(beats(config, each.name.lower()) for each in memories(config))
    return (1 << isa.Load.x_size.width(config)) * largest
