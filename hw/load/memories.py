"""The memories that LOAD writes, as their rows say, and counts of an entry's beats and steps.

1. ACC takes whole entries, as they are or widened. Memories whose entries are ``results`` take one
   result in each step. Others are ``direct``: they take the beats as they come.
2. The memory chooses among constants, so no size costs a multiplier.
3. Memories whose constants are equal share one input of the multiplexer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_

from amaranth import Array, Const, Value

from vdla.hw.layout import beats, scaled
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import Mem, memories


def to_acc(memory: Value) -> Value:
    """Whether entries go to ACC, as they are or widened."""
    return memory.matches(Mem.ACC, Mem.ACC8)


def direct(config: Config) -> tuple[str, ...]:
    """Memories that take single beats."""
    others = {Mem.ACC.buffer, *stepped(config)}
    buffers = dict.fromkeys(each.buffer for each in memories(config))
    return tuple(buffer for buffer in buffers if buffer not in others)


def stepped(config: Config) -> dict[str, Mem]:
    """Memories that take one result in each step, by their buffers' names."""
    return {each.buffer: each for each in memories(config) if each.results(config)}


def takes_results(config: Config, memory: Value) -> Value:
    """Whether a memory takes results, of a config that has such memories."""
    return reduce(or_, (memory == row for row in stepped(config).values()))


def takes_beats(config: Config, memory: Value) -> Value:
    """Whether a memory doesn't take results, of a config that has memories that do."""
    return reduce(and_, (memory != row for row in stepped(config).values()))


def times_factor(
    config: Config, memory: Value, value: Value, factor: Callable[[str], int]
) -> Value:
    """``value`` times the ``factor`` of the memory: a choice among the factors that differ."""
    factors = {each.value: factor(each.name.lower()) for each in memories(config)}
    distinct = sorted(set(factors.values()))
    numbers = (distinct.index(factors.get(n, distinct[0])) for n in range(max(factors) + 1))
    which = Array(Const(number, range(len(distinct))) for number in numbers)[memory]
    return Array(scaled(value, f) for f in distinct)[which]


def beats_of(config: Config, memory: Value, entries: Value) -> Value:
    """Beats of so many DRAM entries of the memory."""
    return times_factor(config, memory, entries, lambda name: beats(config, name))


def steps_of_entry(config: Config, memory: Value) -> Value:
    """Steps in which an entry of the memory is written: its results, or its beats."""
    rows = stepped(config)

    def steps(name: str) -> int:
        return rows[name].results(config) if name in rows else beats(config, name)

    return times_factor(config, memory, Const(1), steps)


def longest_run(config: Config) -> int:
    """Beats of the longest run of any memory: the largest ``x_size``, less one, fits too."""
    largest = max(beats(config, each.name.lower()) for each in memories(config))
    return (1 << isa.Load.x_size.width(config)) * largest
