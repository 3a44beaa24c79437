"""Places and ends of bursts: each has at most ``burst_beats``, within its 4 KiB page.

1. Units number places in DRAM by **beats** of ``port_bytes``; fetch lets no address between two
   pass. The DMA gets bytes.
2. AXI4 forbids bursts across pages (Arm IHI 0022, section A3.4.1). A run of beats is cut greedily,
   as docs/timing.md, section 2, says; fetch, LOAD and STORE all cut this way (``Bursts``).
3. What there is to know of a burst is worked out in the cycle before, into registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.utils import exact_log2

from vdla.hw.layout import add_sticky
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import DRAM_BITS

PAGE_BITS = (PAGE_BYTES - 1).bit_length()
PAGES_BITS = DRAM_BITS - PAGE_BITS + 1  # of a number of pages, up to all there are


def offset_bits(config: Config) -> int:
    """Bits of a byte address within a beat."""
    return (config.port_bytes - 1).bit_length()


def beat_bits(config: Config) -> int:
    """Bits of a beat's number."""
    return DRAM_BITS - offset_bits(config)


def to_bytes(config: Config, beat: Value) -> Value:
    """The byte address of a beat, in DRAM_BITS."""
    return Cat(Const(0, offset_bits(config)), beat[: beat_bits(config)])


def cut(config: Config, beat: Value, left: Value) -> tuple[Value, Value]:
    """Beats of the burst at ``beat`` when ``left`` beats of its run are still to move, and whether
    these are all that is left.

    No carry runs through the whole of either number: only within reach of the page's end can the
    page limit the burst, and only a small ``left`` can.
    """
    reach = (config.burst_beats - 1).bit_length()
    block = beat[reach : PAGE_BITS - offset_bits(config)]
    return _cut(config, beat[:reach], block.all(), left)


def _cut(config: Config, at: Value, in_last: Value, left: Value) -> tuple[Value, Value]:
    """``cut`` of a burst that begins ``at`` a beat of its block, the page's last if ``in_last``."""
    reach = (config.burst_beats - 1).bit_length()  # of the limit, in bits
    to_end = ((1 << reach) - at)[: reach + 1]
    limit = Const(config.burst_beats, reach + 1)
    if config.burst_beats < 1 << reach:
        to_end = Mux(to_end < limit, to_end, limit)
    most = Mux(in_last, to_end, limit)
    few, many = left[: reach + 1], left[reach + 1 :].any()
    if reach == 0:  # bursts of one beat: one bit can't be more
        return Mux(many, most, few), ~many
    beats = Mux(many | (few > most), most, few)
    return beats, ~many & (few <= most)


def is_outside(beat: Value, config: Config, dram_pages: Value) -> Value:
    """Whether a burst there would be a fault: beyond DRAM.

    The comparison takes long, so it is made when the place is, and kept with it.
    """
    return beat[PAGE_BITS - offset_bits(config) :] >= dram_pages


@dataclass(frozen=True)
class Run:
    """Beats that lie together.

    ``place`` is that of the first, in beats, ``outside``: a burst there would be a fault.
    ``one_by_one``: each beat is a burst of its own, where a unit has such runs.
    """

    place: Value
    beats: Value
    outside: Value
    one_by_one: Value | None = None


class Bursts:
    """Bursts of one run after the other: ``place``, ``beats``, ``ends_run`` and ``outside`` of the
    next one, all registers.

    ``is_outside`` says of a place within the run whether a burst there would be a fault.
    """

    def __init__(
        self, m: Module, config: Config, run_bits: int, is_outside: Callable[[Value], Value]
    ) -> None:
        self.m, self.config, self.is_outside = m, config, is_outside
        self.place = Signal(beat_bits(config) + 1, name="place", reset_less=True)
        self.beats = Signal(range(config.burst_beats + 1), name="beats", reset_less=True)
        self.ends_run = Signal(name="ends_run", reset_less=True)
        self.outside = Signal(name="outside", reset_less=True)
        self.one_by_one = Signal(name="one_by_one", reset_less=True)
        # Complement of the beats left of the run, those of the next burst too: it counts up.
        self._asked = Signal(run_bits, name="asked", reset_less=True)

    def go(self, moves: Value, begins: Value, run: Run) -> None:
        """To the next burst if it ``moves``: the first of ``run`` if that ``begins``, else the one
        behind this one in its run. ``moves`` may be late."""
        place = add_sticky(self.place, self.beats)
        left = ~(self._asked + self.beats)[: len(self._asked)]
        first, following = cut(self.config, run.place, run.beats), self._cut_following(place, left)
        if run.one_by_one is not None:
            first = _unless(run.one_by_one, run.beats, first)
            following = _unless(self.one_by_one, left, following)
        pairs = [
            (self.place, run.place, place),
            (self._asked, ~run.beats, ~left),
            (self.beats, first[0], following[0]),
            (self.ends_run, first[1], following[1]),
            (self.outside, run.outside, self.is_outside(place)),
        ]
        with self.m.If(moves):
            self.m.d.sync += [mine.eq(Mux(begins, new, next_)) for mine, new, next_ in pairs]
        if run.one_by_one is not None:
            with self.m.If(moves & begins):
                self.m.d.sync += self.one_by_one.eq(run.one_by_one)

    def _cut_following(self, place: Value, left: Value) -> tuple[Value, Value]:
        """``cut`` of the burst behind this one, at ``place``.

        This one has the greatest length, or ends with its page. So the next one begins in the next
        block of ``burst_beats`` beats, at the same place in it or at its first beat: no carry runs
        before the page is looked at. It does where that length is no power of two.
        """
        config, most = self.config, self.config.burst_beats
        if most & (most - 1):
            return cut(config, place, left)
        reach = exact_log2(most)
        block = self.place[reach : PAGE_BITS - offset_bits(config)]
        at = Mux(self.beats == most, self.place[:reach], 0)
        in_last = ~block[0] & block[1:].all() if len(block) else Const(1)
        return _cut(config, at, in_last, left)


def _unless(one_by_one: Value, left: Value, burst: tuple[Value, Value]) -> tuple[Value, Value]:
    """A burst's beats and whether they are all that is ``left``, or of one beat."""
    return Mux(one_by_one, 1, burst[0]), Mux(one_by_one, left == 1, burst[1])
