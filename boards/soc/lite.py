"""Registers behind a processor's port: its AXI3 or AXI4 bursts, beat by beat on AXI4-Lite.

1. One burst each way at a time. A write's data is taken after its address, so AXI3's WID says
   nothing: beats of other writes can't come between. IDs are returned as they came.
2. Each beat is an access of its own; addresses step as AxBURST says (Arm IHI 0022, A3.4.1): fixed,
   incrementing to the next multiple of the beat's size, or wrapping.
3. A beat outside the registers' space answers DECERR, one wider than a register SLVERR; neither
   reaches the registers. A write answers the worst of its beats.
4. On a bus wider than a register, address bits choose the lane; read data is on every lane.
5. Exclusive accesses answer OKAY, which says that they weren't exclusive (A7.2.4). READY and VALID
   depend on the state alone.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import Component, In, Out, Signature

from vdla.hw.csr import ADDRESS_BITS
from vdla.hw.interfaces import axi_lite

WORD_BITS = 32
WORD_SIZE = 2  # AxSIZE of a register
FIXED, WRAP = 0b00, 0b10  # AxBURST, table A3-3
OKAY, SLVERR, DECERR = 0b00, 0b10, 0b11


def port(address_bits: int, data_bits: int, id_bits: int, length_bits: int) -> Signature:
    """A processor's port as its manager sees it: what rules 1 to 4 need of AXI3 and AXI4."""
    address = {
        "addr": Out(address_bits),
        "len": Out(length_bits),
        "size": Out(3),
        "burst": Out(2),
        "id": Out(id_bits),
        "valid": Out(1),
        "ready": In(1),
    }
    return Signature(
        {
            **{f"aw{name}": member for name, member in address.items()},
            **{f"ar{name}": member for name, member in address.items()},
            "wdata": Out(data_bits),
            "wstrb": Out(data_bits // 8),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(id_bits),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
            "rid": In(id_bits),
            "rdata": In(data_bits),
            "rresp": In(2),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )


class State(Enum, shape=2):
    """State of one direction."""

    READY = 0  # for a burst's address
    BEAT = 1  # a beat waits: a read's for the registers, a write's for its data
    ACCESS = 2  # the registers have it
    ANSWER = 3


class Burst:
    """The burst under way: what of it was taken, and the address of its next beat."""

    def __init__(self, m: Module, bus: object, channel: str, base: int) -> None:
        self.m = m
        fields = {name: getattr(bus, channel + name) for name in ("addr", "len", "size", "burst")}
        held = {
            name: Signal.like(value, name=f"{channel}_{name}") for name, value in fields.items()
        }
        self.id = Signal.like(getattr(bus, f"{channel}id"), name=f"{channel}_id")
        self.left = Signal.like(fields["len"], name=f"{channel}_left")
        self.taking = [
            *(held[name].eq(value) for name, value in fields.items()),
            self.id.eq(getattr(bus, f"{channel}id")),
            self.left.eq(fields["len"]),
        ]
        self.address, size, kind = held["addr"], held["size"], held["burst"]
        within = Signal(7, name=f"{channel}_within")  # the bytes of a beat, as a mask
        span = Signal.like(self.address, name=f"{channel}_span")  # and of the whole burst
        m.d.comb += [within.eq((1 << size) - 1), span.eq((held["len"] << size) | within)]
        after = ((self.address | within) + 1)[: len(self.address)]
        wrapped = (self.address & ~span) | (after & span)
        self.stepping = [
            self.address.eq(Mux(kind == FIXED, self.address, Mux(kind == WRAP, wrapped, after))),
            self.left.eq(self.left - 1),
        ]
        inside = self.address[ADDRESS_BITS:] == base >> ADDRESS_BITS
        self.error = Mux(inside, Mux(size > WORD_SIZE, SLVERR, OKAY), DECERR)

    def take(self) -> None:
        """A new burst."""
        self.m.d.sync += self.taking

    def step(self) -> None:
        """To the next beat."""
        self.m.d.sync += self.stepping

    @property
    def last(self) -> Value:
        """Whether no beat comes after the one that the burst is at."""
        return self.left == 0

    def register(self) -> Value:
        """The register that the beat is at."""
        return Cat(C(0, 2), self.address[2:ADDRESS_BITS])


class ToLite(Component):
    """``bus`` from the processor, ``registers`` behind it, from the address ``base`` on."""

    def __init__(self, bus: Signature, base: int) -> None:
        if base % (1 << ADDRESS_BITS):
            raise ValueError(f"base: expected whole pages, found {base:#x}")
        self.base = base
        super().__init__({"bus": In(bus), "registers": Out(axi_lite(ADDRESS_BITS))})

    def elaborate(self, platform: object) -> Module:
        """One state machine for reads and one for writes; they are independent."""
        m = Module()
        self._read(m)
        self._write(m)
        return m

    def _lane(self, burst: Burst, bits: int) -> Value:
        """The lane of the beat, of a bus of ``bits`` lanes' worth."""
        lanes = len(self.bus.wdata) // WORD_BITS
        return burst.address[2 : 2 + (lanes - 1).bit_length()] * bits

    def _read(self, m: Module) -> None:
        bus, lite = self.bus, self.registers
        burst = Burst(m, bus, "ar", self.base)
        state = Signal(State, name="read_state")
        data, answer = Signal(WORD_BITS), Signal(2)
        m.d.comb += [
            lite.araddr.eq(burst.register()),
            bus.rid.eq(burst.id),
            bus.rdata.eq(data.replicate(len(bus.rdata) // WORD_BITS)),
            bus.rresp.eq(answer),
            bus.rlast.eq(burst.last),
        ]
        with m.Switch(state):
            with m.Case(State.READY):
                m.d.comb += bus.arready.eq(1)
                with m.If(bus.arvalid):
                    burst.take()
                    m.d.sync += state.eq(State.BEAT)
            with m.Case(State.BEAT):
                m.d.comb += lite.arvalid.eq(burst.error == OKAY)
                with m.If(burst.error != OKAY):
                    m.d.sync += [data.eq(0), answer.eq(burst.error), state.eq(State.ANSWER)]
                with m.Elif(lite.arready):
                    m.d.sync += state.eq(State.ACCESS)
            with m.Case(State.ACCESS):
                m.d.comb += lite.rready.eq(1)
                with m.If(lite.rvalid):
                    m.d.sync += [data.eq(lite.rdata), answer.eq(lite.rresp)]
                    m.d.sync += state.eq(State.ANSWER)
            with m.Case(State.ANSWER):
                m.d.comb += bus.rvalid.eq(1)
                with m.If(bus.rready):
                    burst.step()
                    m.d.sync += state.eq(Mux(burst.last, State.READY, State.BEAT))

    def _write(self, m: Module) -> None:
        bus, lite = self.bus, self.registers
        burst = Burst(m, bus, "aw", self.base)
        state = Signal(State, name="write_state")
        data, strobes, worst = Signal(WORD_BITS), Signal(WORD_BITS // 8), Signal(2)
        address_due, data_due, answer = Signal(), Signal(), Signal(2)
        m.d.comb += [
            lite.awaddr.eq(burst.register()),
            lite.wdata.eq(data),
            lite.wstrb.eq(strobes),
            bus.bid.eq(burst.id),
            bus.bresp.eq(worst),
        ]

        def finish(answer: Value) -> None:
            """Ends a beat; the worst answer so far is the larger one."""
            burst.step()
            m.d.sync += state.eq(Mux(burst.last, State.ANSWER, State.BEAT))
            with m.If(answer > worst):
                m.d.sync += worst.eq(answer)

        with m.Switch(state):
            with m.Case(State.READY):
                m.d.comb += bus.awready.eq(1)
                with m.If(bus.awvalid):
                    burst.take()
                    m.d.sync += [worst.eq(OKAY), state.eq(State.BEAT)]
            with m.Case(State.BEAT):
                m.d.comb += bus.wready.eq(1)
                with m.If(bus.wvalid):
                    m.d.sync += [
                        data.eq(bus.wdata.bit_select(self._lane(burst, WORD_BITS), WORD_BITS)),
                        strobes.eq(bus.wstrb.bit_select(self._lane(burst, 4), WORD_BITS // 8)),
                    ]
                    with m.If(burst.error == OKAY):
                        m.d.sync += [address_due.eq(1), data_due.eq(1), state.eq(State.ACCESS)]
                    with m.Else():
                        finish(burst.error)
            with m.Case(State.ACCESS):
                m.d.comb += [
                    lite.awvalid.eq(address_due),
                    lite.wvalid.eq(data_due),
                    lite.bready.eq(~address_due & ~data_due),
                    answer.eq(lite.bresp),
                ]
                with m.If(lite.awready):
                    m.d.sync += address_due.eq(0)
                with m.If(lite.wready):
                    m.d.sync += data_due.eq(0)
                with m.If(lite.bready & lite.bvalid):
                    finish(answer)
            with m.Case(State.ANSWER):
                m.d.comb += bus.bvalid.eq(1)
                with m.If(bus.bready):
                    m.d.sync += state.eq(State.READY)
