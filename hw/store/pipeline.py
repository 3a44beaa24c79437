"""STORE's pipeline: makes beats of vectors, requantized or as they are, for the write buffer.

    lanes → operands, products, sum → by 16s, shifted, moved → limited
      0         1        2        3      4       5       6        7     cycles after a step's lanes

1. There are as many multipliers as the port has bytes, or a half or a quarter (``store_groups``). A
   narrow beat is as many lanes as the port has bytes, so it takes as many steps as there are
   groups, a raw one is a quarter of the lanes.
2. A raw vector's beats pass as many stages unchanged, beside the multipliers. The lanes give zeros
   for a raw vector, whose limits are zero, and the way beside them gives zeros for a narrow one. So
   the OR of both is the beat. Of a narrow one, the lanes of the steps before its last are kept.
3. No stage ever waits: room in the write buffer is taken before a vector is read.
"""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.utils import ceil_log2, exact_log2

from vdla.hw.fifo import Fifo
from vdla.hw.requantize import Requantize, delayed, scaler, split
from vdla.hw.store.held import Held
from vdla.hw.store.vectors import BUFFER_VECTORS, LIMIT_BITS, LIMITS
from vdla.isa.config import INT32_BYTES, Config
from vdla.isa.numbers import MANTISSA_BITS, SHIFT_BITS
from vdla.isa.options.lanes import store_lanes

LANES_TO_BUFFER = 7  # cycles from a step's lanes to the write buffer


class Pipeline:
    """``beat`` is the oldest in the write buffer, ``beat_waits`` whether there is one.

    ``sent`` says that it moves, and leaves the buffer.
    """

    def __init__(self, m: Module, config: Config, held: Held, sent: Value) -> None:
        self.m, self.config, self.held = m, config, held
        # A group of lanes is one narrow step, or so many raw ones.
        self.units, raw_steps = store_lanes(config), INT32_BYTES // held.beats.groups
        number, within = held.number, exact_log2(raw_steps)
        group = Mux(held.limits.narrow, number, number >> within)
        self.lanes, self.scales = (
            _part(v, group, held.beats.narrow_steps) for v in (held.vector, held.scales)
        )
        self.raw = _part(self.lanes, number[:within], raw_steps)
        self._limit()
        fifo = self._buffer(sent)
        self.beat, self.beat_waits = fifo.r_data, fifo.r_rdy

    def _limit(self) -> None:
        """The lanes' beat: limits and zero come with the stage that needs them."""
        m = self.m
        before = delayed(m, self.held.limits.as_value(), LANES_TO_BUFFER - 2, "limits_before")
        after = delayed(m, before, 1, "limits")
        self.limits_before, limits = (data.View(LIMITS, value) for value in (before, after))
        self.narrow = Cat(
            self._requantize(lane).limited(limits.low, limits.high) for lane in range(self.units)
        )
        if self.held.beats.groups > 1:
            self.narrow = self._collect(self.narrow)

    def _collect(self, lanes: Value) -> Value:
        """A narrow beat, with the groups of lanes before its last; these are zero elsewhere."""
        m, bits = self.m, 8 * self.config.port_bytes
        goes_on = (self.held.left != 0) & self.held.limits.narrow & ~self._ends_beat()
        goes_on = delayed(m, goes_on, LANES_TO_BUFFER - 1, "goes_on", reset_less=False)
        kept = Signal(bits - len(lanes), name="collected", reset_less=True)
        whole = Cat(kept, lanes)
        m.d.sync += kept.eq(Mux(goes_on, whole[len(lanes) :], 0))
        return whole

    def _ends_beat(self) -> Value:
        """Whether a narrow vector's step is the last one of a beat."""
        return self.held.number[: exact_log2(self.held.beats.groups)].all()

    def _requantize(self, lane: int) -> Requantize:
        """One lane of a step; six cycles from the lane to what the limits are for."""
        m, scale = self.m, self.scales[32 * lane :]
        shift = scale[MANTISSA_BITS : MANTISSA_BITS + SHIFT_BITS]
        multiply, requantize = scaler(m, lane, LIMIT_BITS, shift, self.limits_before.zero)
        low, high = split(self.lanes[32 * lane : 32 * lane + 32])
        m.d.comb += [
            multiply.low.eq(low),
            multiply.high.eq(high),
            multiply.factor.eq(scale[:MANTISSA_BITS]),
            multiply.high_factor.eq(scale[:MANTISSA_BITS]),
        ]
        return requantize

    def _buffer(self, sent: Value) -> Fifo:
        """The write buffer, which gets each beat when it has passed."""
        m, held, bits = self.m, self.held, 8 * self.config.port_bytes
        beat = Signal(bits, reset_less=True)
        completes = (held.left != 0) & (~held.limits.narrow | self._ends_beat())
        enters = delayed(m, completes, LANES_TO_BUFFER, "enters", reset_less=False)
        raw = delayed(m, self.raw, LANES_TO_BUFFER - 2, "raw")
        raw = delayed(m, Mux(self.limits_before.narrow, 0, raw), 1, "raw_or_zero")
        m.d.sync += beat.eq(raw | self.narrow)
        m.submodules.buffer = buffer = Fifo(width=bits, depth=BUFFER_VECTORS * held.beats.raw)
        m.d.comb += [
            buffer.w_en.eq(enters),
            buffer.w_data.eq(beat),
            buffer.r_en.eq(sent),
        ]
        return buffer


def _part(whole: Value, number: Value, parts: int) -> Value:
    """One of the equal parts of a value: with no more bits of ``number`` than it takes."""
    bits = len(whole) // parts
    which = number[: ceil_log2(parts)]
    return Array(whole[i * bits : (i + 1) * bits] for i in range(parts))[which]
