"""Sizes of an ACC vector on its way through STORE.

A raw vector leaves as int32 lanes, a narrow one as requantized bytes, a quarter as many beats.
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth import Mux, Value, signed
from amaranth.lib import data

from vdla.hw.layout import beats
from vdla.isa.config import Config
from vdla.isa.instructions import Mem
from vdla.isa.options import stored_memories
from vdla.isa.options.lanes import store_groups

BUFFER_VECTORS = 4  # raw vectors the write buffer holds
LIMIT_BITS = 8  # of zero, low and high

# What a vector takes along for its lanes: whether it is requantized, to which zero and limits.
LIMITS = data.StructLayout(
    {"narrow": 1, **{name: signed(LIMIT_BITS) for name in ("zero", "low", "high")}}
)


class VectorBeats(NamedTuple):
    """Beats of a vector, raw and narrow; a narrow one takes ``groups`` steps, of so many lanes each
    as there are multipliers."""

    raw: int
    narrow: int
    groups: int = 1

    @property
    def narrow_steps(self) -> int:
        """Steps of a narrow vector; a raw one has one for each beat."""
        return self.narrow * self.groups

    def of(self, narrow: Value) -> Value:
        """Beats of a vector that is ``narrow``, or isn't."""
        return Mux(narrow, self.narrow, self.raw)

    def steps(self, narrow: Value) -> Value:
        """Steps of a vector that is ``narrow``, or isn't."""
        return Mux(narrow, self.narrow_steps, self.raw)


def is_narrow(config: Config, memory: Value) -> Value:
    """Whether a STORE that names the memory requantizes its vectors: for any memory but ACC."""
    narrow, *others = (each for each in stored_memories(config) if each is not Mem.ACC)
    return memory != Mem.ACC if others else memory == narrow


def vector_beats(config: Config) -> VectorBeats:
    """Beats of a vector of this config."""
    return VectorBeats(beats(config, "acc"), beats(config, "acc8"), store_groups(config))
