"""STORE: reads ACC, requantizes on the way, and writes bursts.

    read → data → lanes → operands, products, sum → shifted, moved → limited → write buffer
     0      1      2         3        4        5      6       7          8          cycle

1. The reader takes ACC's second read port, and COMPUTE waits: before each plane of an ACC8 store
   the scales, then one vector as often as the write buffer takes its beats (one a cycle).
2. A vector is held from cycle 1 on while its beats pass the pipeline, one a cycle; a raw vector's
   beats pass the same stages unchanged.
3. Room in the write buffer is taken when a vector is read and given back beat by beat.
4. The burst side works on the oldest instruction whose beats haven't all moved. The first beat of a
   burst waits while ``writes_in_flight`` bursts are unanswered; after ``stop`` it waits for ever.
5. An instruction finishes when its last burst has been answered, one a cycle.
6. Addresses only grow and never wrap, in DRAM and in ACC.
"""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import ceil_log2, exact_log2

from vdla.hw.bursts import (
    PAGES_BITS,
    beat_bits,
    burst_beats,
    is_outside,
    offset_bits,
    to_bytes,
)
from vdla.hw.count import Count
from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import Cause, Fault, activity, command, fault, read_port, write_request
from vdla.hw.layout import add_sticky, beats, layout, scaled
from vdla.hw.loops import Countdown, Loop, Nest
from vdla.hw.requantize import Requantize, delayed, scaler, split
from vdla.isa import instructions as isa
from vdla.isa.config import INT32_BYTES, Config
from vdla.isa.instructions import Mem
from vdla.isa.numbers import MANTISSA_BITS, SHIFT_BITS
from vdla.isa.registers import INDEX_BITS

IN_FLIGHT = 8  # instructions started and not finished
BUFFER_VECTORS = 4  # raw vectors the write buffer holds
LIMIT_BITS = 8  # of zero, low and high
LANES_TO_BUFFER = 6  # cycles from a beat's lanes to the write buffer


class Store(Component):
    """STORE's reader, its pipeline, its burst side.

    An answer belongs to ``oldest`` if one that has sent everything ``waits``, else to the one that
    sends, whose number ``burst_fault`` has. ``fault`` is the reader's.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.layout = layout(isa.Store, config)
        self.raw_beats, self.out_beats = beats(config, "acc"), beats(config, "acc8")
        limits = {name: signed(LIMIT_BITS) for name in ("zero", "low", "high")}
        self.limits = data.StructLayout({"narrow": 1, **limits})
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "fault": Out(fault()),
                "burst_fault": Out(fault()),
                "waits": Out(1),
                "oldest": Out(INDEX_BITS),
                "acc": Out(read_port(config.depth("acc"), 8 * config.acc_entry)),
                "write": Out(write_request(config)),
                "dram_pages": In(PAGES_BITS),
                "stop": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The reader of ACC, the requantizing pipeline, and the side that sends bursts."""
        m = Module()
        self.head = data.View(self.layout, self.command.word[: isa.Store.bits(self.config)])
        self.now = Signal(self.layout, reset_less=True)  # the reader's instruction
        self.now_index = Signal(INDEX_BITS, reset_less=True)
        self.reads_scale, self.reads_vector = Signal(), Signal()
        self.sent = Signal()  # a beat moves
        beyond = self._reader(m)
        beat_there = self._pipeline(m)
        outside = self._burst_side(m, beat_there)
        m.d.comb += [
            self.fault.valid.eq(beyond),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(self.now_index),
            self.burst_fault.valid.eq(outside),
            self.burst_fault.cause.eq(Fault.ADDRESS),
            self.burst_fault.index.eq(self.sender.index),
        ]
        return m

    # Reader ------------------------------------------------------------------------------------

    def _reader(self, m: Module) -> Value:
        """Reads scales and vectors; returns whether this cycle's read goes beyond ACC."""
        config, head, now = self.config, self.head, self.now
        # Whether it reads is known at the start of the cycle: COMPUTE's hold waits for it.
        works, rested, fits = Signal(), Signal(init=1), Signal(init=1)
        active, narrow = Signal(name="active"), Signal()
        due = Signal(name="scale_due")
        in_flight = Count(m, "in_flight", IN_FLIGHT)
        in_flight.move(self.command.start, self.command.finish)
        pause = Signal(range(self.raw_beats))  # cycles until the next read
        room = Signal(
            range(BUFFER_VECTORS * self.raw_beats + 1), init=BUFFER_VECTORS * self.raw_beats
        )
        length = Mux(narrow, self.out_beats, self.raw_beats)
        ready = works & rested & (due | fits)
        moves, begins, entry, scale = self._walk_acc(m, due, ~works)
        may_start = self.command.ready & ~in_flight.full
        m.d.comb += [
            self.reads_scale.eq(ready & due),
            self.reads_vector.eq(ready & ~due),
            self.acc.enable.eq(ready),
            self.acc.address.eq(Mux(due, scale, entry)),
            self.command.start.eq(may_start & begins & moves),
        ]
        next_narrow, next_pause = Signal(), Signal.like(pause)
        untaken = room - Mux(self.reads_vector, length, 0)
        enough = [
            Mux(self.sent, untaken >= beats - 1, untaken >= beats)
            for beats in (self.raw_beats, self.out_beats)
        ]
        m.d.comb += [
            next_narrow.eq(Mux(moves & begins, head.memory == Mem.ACC8, narrow)),
            next_pause.eq(Mux(self.reads_vector, length - 1, Mux(pause == 0, 0, pause - 1))),
        ]
        m.d.sync += [
            narrow.eq(next_narrow),
            fits.eq(Mux(next_narrow, enough[1], enough[0])),
            room.eq(untaken + self.sent),
            pause.eq(next_pause),
            rested.eq(next_pause == 0),
        ]
        with m.If(moves & begins):
            empty = (head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)
            m.d.sync += [
                now.eq(head),
                self.now_index.eq(self.command.index),
                active.eq(may_start),
                works.eq(may_start & ~empty),
            ]
        waits = works & rested & ~(due | fits)
        reading = Mux(waits, Cause.MEMORY, Cause.BUSY)
        left_over = Mux(may_start, Cause.BUSY, Cause.MEMORY)  # it starts, where nothing is read
        m.d.comb += [
            self.activity.idle.eq(~active & ~self.command.ready & ~in_flight.some),
            self.activity.cause.eq(Mux(active, reading, left_over)),
        ]
        depth = config.depth("acc")
        return ready & Mux(due, scale >= depth, entry >= depth)

    def _walk_acc(self, m: Module, due: Value, unused: Value) -> tuple[Value, Value, Value, Value]:
        """Whether the walk goes on, and with the next instruction; the vector, its scales."""
        head, now = self.head, self.now
        bits = len(head.sram_base) + 1
        vectors = [Signal(bits, name=f"{a}_at", reset_less=True) for a in "xyz"]
        scale = Signal(bits, name="scale", reset_less=True)
        loops = [Loop(m, a, now[f"{a}_size"]) for a in "xyz"]
        x, y, _ = loops
        moves = unused | self.reads_vector
        begins = unused | Cat(loop.end for loop in loops).all()
        steps = [Const(1), now.y_pitch, now.z_pitch]
        first = head.sram_base, [head[f"{a}_size"] for a in "xyz"]
        Nest(loops, vectors, steps).advance(m, moves, begins, first)
        plane_ends = x.end & y.end
        with m.If(moves & (begins | plane_ends)):
            m.d.sync += scale.eq(Mux(begins, head.scale_base, add_sticky(scale, 1)))
            m.d.sync += due.eq(Mux(begins, head.memory, now.memory) == Mem.ACC8)
        with m.If(self.reads_scale):
            m.d.sync += due.eq(0)
        return moves, begins, vectors[0], scale

    # Pipeline ----------------------------------------------------------------------------------

    def _pipeline(self, m: Module) -> Value:
        """From ACC to the write buffer; returns whether a beat waits there."""
        config = self.config
        port_bits = 8 * config.port_bytes
        scales, vector = (
            Signal(8 * config.acc_entry, name=n, reset_less=True) for n in ("scales", "vector")
        )
        scale_arrives, vector_arrives, is_raw = Signal(), Signal(), Signal()
        m.d.comb += is_raw.eq(self.now.memory == Mem.ACC)
        arriving, held = (
            Signal(self.limits, name=n, reset_less=True) for n in ("arriving", "held")
        )
        left = Signal(range(self.raw_beats + 1))  # beats of the held vector still to pass
        number = Signal(range(self.raw_beats), reset_less=True)
        m.d.sync += [
            scale_arrives.eq(self.reads_scale),
            vector_arrives.eq(self.reads_vector),
            arriving.narrow.eq(~is_raw),
            # Between limits of zero nothing is left of raw lanes.
            *(arriving[name].eq(Mux(is_raw, 0, self.now[name])) for name in ("low", "high")),
            arriving.zero.eq(self.now.zero),
        ]
        with m.If(scale_arrives):
            m.d.sync += scales.eq(self.acc.data)
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), number.eq(number + 1)]
        with m.If(vector_arrives):
            m.d.sync += [
                vector.eq(self.acc.data),
                held.eq(arriving),
                left.eq(Mux(arriving.narrow, self.out_beats, self.raw_beats)),
                number.eq(0),
            ]
        # A group of lanes makes one narrow beat, or INT32_BYTES raw ones.
        within = exact_log2(INT32_BYTES)
        group = Mux(held.narrow, number, number >> within)
        lanes, lane_scales = (_part(v, group, self.out_beats) for v in (vector, scales))
        raw = _part(lanes, number[:within], INT32_BYTES)
        before = delayed(m, held.as_value(), LANES_TO_BUFFER - 2, "limits_before")
        after = delayed(m, before, 1, "limits")
        limits_before, limits = (data.View(self.limits, value) for value in (before, after))
        narrow = Cat(
            self._requantize(m, lane, lanes, lane_scales, limits_before.zero).limited(
                limits.low, limits.high
            )
            for lane in range(config.port_bytes)
        )
        beat = Signal(port_bits, reset_less=True)
        enters = delayed(m, left != 0, LANES_TO_BUFFER, "enters", reset_less=False)
        raw = delayed(m, raw, LANES_TO_BUFFER - 2, "raw")
        raw = delayed(m, Mux(limits_before.narrow, 0, raw), 1, "raw_or_zero")
        m.d.sync += beat.eq(raw | narrow)
        m.submodules.buffer = buffer = Fifo(width=port_bits, depth=BUFFER_VECTORS * self.raw_beats)
        m.d.comb += [
            buffer.w_en.eq(enters),
            buffer.w_data.eq(beat),
            buffer.r_en.eq(self.sent),
            self.write.data.eq(buffer.r_data),
        ]
        return buffer.r_rdy

    def _requantize(
        self, m: Module, lane: int, lanes: Value, scales: Value, zero: Value
    ) -> Requantize:
        """One lane of a beat; five cycles from the lane to what the limits are for."""
        scale = scales[32 * lane :]
        shift = scale[MANTISSA_BITS : MANTISSA_BITS + SHIFT_BITS]
        multiply, requantize = scaler(m, lane, LIMIT_BITS, shift, zero)
        low, high = split(lanes[32 * lane : 32 * lane + 32])
        m.d.comb += [
            multiply.low.eq(low),
            multiply.high.eq(high),
            multiply.factor.eq(scale[:MANTISSA_BITS]),
        ]
        return requantize

    # Burst side --------------------------------------------------------------------------------

    def _burst_side(self, m: Module, beat_there: Value) -> Value:
        """Sends beats; returns whether the burst to be opened would be out of bounds."""
        config, write = self.config, self.write
        self._context(m)
        # The instruction whose beats move.
        now = Signal(self.walk.shape(), name="walk", reset_less=True)
        active = Signal(name="sends")
        run = Countdown(m, "run", now.run)  # of beats
        place = Signal(beat_bits(config) + 1, reset_less=True)  # the beat that it stores to next
        burst_left = Signal(range(config.burst_beats + 1))
        opens = Signal(init=1)  # the next beat is a burst's first
        unanswered = Count(m, "unanswered", config.writes_in_flight)
        shown = Signal()
        length = burst_beats(config, place, run.left)
        outside = Signal()  # whether ``place`` is: known with it, since the check takes long
        offered = active & ~self.sender.empty & beat_there
        offered &= ~opens | ~unanswered.full
        m.d.comb += [
            write.valid.eq(offered & ~(opens & (outside | (self.stop & ~shown)))),
            write.first.eq(opens),
            write.last.eq(Mux(opens, length == 1, burst_left == 1)),
            write.address.eq(to_bytes(config, place)),
            write.beats.eq(length),
            self.sent.eq(write.valid & write.ready),
        ]
        moves = ~active | self.sent
        following, last_run = self._walk_dram(m, now, moves, run.end, ~active)
        begins = ~active | (run.end & last_run)  # what comes next is the next walk
        m.d.comb += [
            self.takes.eq(begins & moves),
            self.passes.eq((self.sent & run.end & last_run) | (self.sending & self.sender.empty)),
        ]
        m.d.sync += shown.eq(write.valid & ~write.ready)
        unanswered.move(self.sent & opens, write.answered)
        with m.If(self.sent):
            m.d.sync += [
                burst_left.eq(Mux(opens, length, burst_left) - 1),
                opens.eq(write.last),
            ]
        run.go(moves, begins, self.walk.run)
        there = Mux(run.end, following, add_sticky(place, 1))
        with m.If(begins):
            m.d.sync += now.eq(self.walk)
        with m.If(begins & moves):
            m.d.sync += active.eq(self.walk_waits)
        with m.If(moves):
            outside_there = is_outside(there, config, self.dram_pages)
            m.d.sync += [
                place.eq(Mux(begins, self.walk.base, there)),
                outside.eq(Mux(begins, self.walk.outside, outside_there)),
            ]
        self._finish(m, self.sent & opens)
        return offered & opens & outside

    def _walk_dram(
        self, m: Module, now: data.View, moves: Value, run_ends: Value, unused: Value
    ) -> tuple[Value, Value]:
        """Goes to the next run, x before y before z: where it is, and whether this is the last."""
        bits = beat_bits(self.config) + 1
        bases = [Signal(bits, name=f"base_{a}", reset_less=True) for a in "xyz"]
        loops = [Loop(m, f"runs_{a}", now[f"{a}_runs"]) for a in "xyz"]
        x_ends, y_ends, z_ends = (loop.end for loop in loops)
        last = x_ends & y_ends & z_ends
        begins = unused | (run_ends & last)
        strides = [now[f"{a}_stride"] for a in "xyz"]
        first = self.walk.base, [self.walk[f"{a}_runs"] for a in "xyz"]
        small, large = self.out_beats, self.raw_beats

        def scale(stride: Value) -> Value:
            return Mux(now.narrow, scaled(stride, small), scaled(stride, large))

        nest = Nest(loops, bases, strides, scale)
        return nest.advance(m, moves, begins, first, run_ends), last

    def _context(self, m: Module) -> None:
        """The started instructions whose beats haven't all moved, and where those go.

        Each is in the queue ``context``, in which it waits for its turn to send and to finish, and
        in the queue ``walks``, which gives the addresses of its beats. An empty instruction (one of
        its sizes is 0) has no beats, so it is in the first queue alone. A walk is taken at the
        soonest in the cycle after it was queued, which is early enough for the first beat.
        """
        head, config, start = self.head, self.config, self.command.start
        dense, narrow = head.x_stride == 1, head.memory == Mem.ACC8
        empty = (head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)
        entries = Mux(dense, head.x_size, 1)
        run = Mux(narrow, scaled(entries, self.out_beats), scaled(entries, self.raw_beats))
        base = head.dram_base[offset_bits(config) :]
        walk: dict[str, Value] = {
            "base": base,
            "outside": is_outside(base, config, self.dram_pages),
            "run": run,
            "x_runs": Mux(dense, 1, head.x_size),
            "y_runs": head.y_size,
            "z_runs": head.z_size,
            "narrow": narrow,
            **{f"{a}_stride": head[f"{a}_stride"] for a in "xyz"},
        }
        sender: dict[str, Value] = {
            "empty": empty,
            "push_prev": head.push_prev,
            "push_next": head.push_next,
            "index": self.command.index,
        }
        self.passes = Signal()  # the oldest instruction has nothing more to send
        self.sender, self.sending = self._queue(m, "context", sender, start, self.passes)
        self.takes = Signal(name="takes_walk")  # the next walk begins, if there is one
        self.walk, self.walk_waits = self._queue(m, "walks", walk, start & ~empty, self.takes)

    def _queue(
        self, m: Module, name: str, fields: dict[str, Value], put: Value, take: Value
    ) -> tuple[data.View, Value]:
        """A queue of what is in flight: the oldest entry, and whether there is one."""
        entry = data.StructLayout({field: len(value) for field, value in fields.items()})
        m.submodules[name] = fifo = Fifo(width=entry.size, depth=IN_FLIGHT)
        m.d.comb += [
            fifo.w_en.eq(put),
            fifo.w_data.eq(Cat(*fields.values())),
            fifo.r_en.eq(take),
        ]
        return data.View(entry, fifo.r_data), fifo.r_rdy

    def _finish(self, m: Module, opened: Value) -> None:
        """Instructions that have sent everything wait until their last burst is answered."""
        sender = self.sender
        # A target is less than a buffer of bursts ahead of the answers, or behind them.
        width = self.config.writes_in_flight.bit_length() + IN_FLIGHT.bit_length() + 1
        bursts, answered, ahead = Signal(width), Signal(width), Signal(width)
        m.d.sync += [
            bursts.eq(bursts + opened),
            answered.eq(answered + self.write.answered),
        ]
        entry: dict[str, Value] = {
            "target": (bursts + opened)[:width],
            **{name: sender[name] for name in ("push_prev", "push_next", "index")},
        }
        oldest, waits = self._queue(m, "waiting", entry, self.passes, self.command.finish)
        m.d.comb += [
            ahead.eq(answered - oldest.target),
            self.command.finish.eq(waits & ~ahead[-1]),
            self.command.push_prev.eq(oldest.push_prev),
            self.command.push_next.eq(oldest.push_next),
            self.waits.eq(waits),
            self.oldest.eq(oldest.index),
        ]


def _part(whole: Value, number: Value, parts: int) -> Value:
    """One of the equal parts of a value: with no more bits of ``number`` than it takes."""
    bits = len(whole) // parts
    which = number[: ceil_log2(parts)]
    return Array(whole[i * bits : (i + 1) * bits] for i in range(parts))[which]
