"""Protocol monitors: AXI's rules on every channel, and what the core promises beyond them.

They watch every cycle of every test; a broken rule fails the test that runs.

1. What is shown stays, with its payload, until it is taken.
2. Bursts: whole beats, incrementing, in order, at most ``burst_beats``, within one page and within
   the program's DRAM. No new one is shown unless a program runs.
3. Write data: no beat without an address, WLAST with the last beat and no other, all strobes set.
4. Read data and answers belong to a burst that is open. A register access has one answer.
5. In reset nothing is shown, from the third cycle on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from cocotb.triggers import RisingEdge

from vdla.isa.config import PAGE_BYTES

ADDRESS = ("addr", "len", "id", "size", "burst", "lock")
INCREMENTING = 1
FETCH, LOAD = 0, 1  # IDs of reads
RESET_LAG = 2  # cycles of aresetn in which the core may still show something
BUS = {
    "aw": ADDRESS,
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
    "ar": ADDRESS,
    "r": ("id", "last", "resp", "data"),
}
REGISTERS = {
    "aw": ("addr",),
    "w": ("data", "strb"),
    "b": ("resp",),
    "ar": ("addr",),
    "r": ("resp", "data"),
}


@dataclass
class Burst:
    """An open burst: its first address, the beats it has, the beats that have moved."""

    address: int
    beats: int
    moved: int = 0


class Channel:
    """One channel: ``shown`` in this cycle, ``taken`` in this cycle, ``fresh`` when first shown."""

    def __init__(self, dut, prefix, name, payload):
        self.name = f"{prefix}_{name}"
        self.valid, self.ready = (getattr(dut, f"{self.name}{end}") for end in ("valid", "ready"))
        self.payload = [getattr(dut, f"{self.name}{field}") for field in payload]
        self.forget()

    def forget(self):
        self.shown = self.taken = self.held = None
        self.fresh = False

    def sample(self):
        if not self.valid.value:
            assert self.held is None, f"{self.name}: VALID fell before READY"
            self.shown = self.taken = None
            return
        self.shown = tuple([int(each.value) for each in self.payload])
        assert self.held in (None, self.shown), f"{self.name}: {self.held} became {self.shown}"
        self.fresh = self.held is None
        ready = bool(self.ready.value)
        self.taken, self.held = (self.shown, None) if ready else (None, self.shown)


class Monitor:
    """All channels of the core. ``bursts`` are those taken since ``expect``: (address, beats) in
    DRAM, by ``fetch``, ``load`` and ``store``."""

    def __init__(self, dut, config):
        self.dut, self.config = dut, config
        self.bus = {name: Channel(dut, "m_axi", name, fields) for name, fields in BUS.items()}
        self.registers = {
            name: Channel(dut, "s_axi", name, fields) for name, fields in REGISTERS.items()
        }
        self.channels = [*self.bus.values(), *self.registers.values()]
        self.in_reset = 0
        self.window = range(0)
        self._forget()

    def _forget(self):
        for channel in self.channels:
            channel.forget()
        self.reads = {FETCH: deque(), LOAD: deque()}
        self.writes = deque()  # bursts whose beats haven't all moved
        self.early = 0  # beats taken before their address: one at most
        self.unanswered = deque()
        self.accesses = {"aw": 0, "w": 0, "ar": 0}  # register accesses without an answer
        self.was_running = False
        self.cycles = self.counted = 0
        self.at_read = (False, 0)  # when a register was read last: running, counted
        self.at_write = False  # when one was written last: running
        self.expect(self.window)

    def expect(self, window):
        """A program's DRAM on the bus from now on."""
        self.window = window
        self.bursts = {"fetch": [], "load": [], "store": []}
        self.first_error = None  # of the beats and answers taken: who, and its address in DRAM

    @property
    def quiet(self):
        """Nothing is open or unanswered."""
        shown = any(self.bus[name].held for name in ("ar", "aw", "w"))
        return not (shown or any(self.reads.values()) or self.writes or self.unanswered)

    async def watch(self):
        """Runs for ever."""
        edge = RisingEdge(self.dut.aclk)
        while True:
            await edge
            if not self.dut.aresetn.value:
                self._watch_reset()
                continue
            self.in_reset = 0
            for channel in self.channels:
                channel.sample()
            self._count()
            self._address("ar")
            self._address("aw")
            self._write_data()
            self._answers()
            self._register_accesses()

    def _watch_reset(self):
        self.in_reset += 1
        if self.in_reset > RESET_LAG:
            shown = [self.bus[name] for name in ("ar", "aw", "w")]
            shown += [self.registers[name] for name in ("b", "r")]
            assert not any(channel.valid.value for channel in shown)
            assert not self.dut.irq.value
        self._forget()

    def _count(self):
        """``cycles`` that a program has run for before this one; the core counts one later."""
        running = bool(self.dut.trace_running.value)
        self.counted = self.cycles
        self.cycles += self.was_running
        if running and not self.was_running:
            self.cycles = self.counted = 0
        self.was_running = running

    def _address(self, name):
        channel, config = self.bus[name], self.config
        if channel.shown is None:
            return
        address, beats, identity, size, burst, lock = channel.shown
        beats += 1
        assert self.was_running or not channel.fresh, f"{name}: a burst while nothing runs"
        assert (1 << size, burst, lock) == (config.port_bytes, INCREMENTING, 0)
        assert beats <= config.burst_beats
        last = address + beats * config.port_bytes - 1
        assert address % config.port_bytes == 0
        assert address // PAGE_BYTES == last // PAGE_BYTES, f"{name}: crosses a page: {address:#x}"
        assert address in self.window, f"{name}: outside DRAM: {address:#x}"
        if channel.taken is None:
            return
        whose = ("fetch", "load")[identity] if name == "ar" else "store"
        self.bursts[whose].append((address - self.window.start, beats))
        if name == "ar":
            self.reads[identity].append(Burst(address, beats))
        else:
            self.writes.append(Burst(address, beats, self.early))
            self.early = 0
            self._close_write()

    def _write_data(self):
        channel = self.bus["w"]
        if channel.taken is None:
            return
        _, strobes, last = channel.taken
        assert strobes == (1 << self.config.port_bytes) - 1
        if self.writes:
            burst = self.writes[0]
            burst.moved += 1
            assert last == (burst.moved == burst.beats), "WLAST elsewhere than at AWLEN + 1"
            self._close_write()
        else:
            address = self.bus["aw"]
            assert address.shown, "a beat without an address"
            assert not self.early, "two beats before their address"
            assert last == (address.shown[1] == 0), "WLAST elsewhere than at AWLEN + 1"
            self.early = 1

    def _close_write(self):
        if self.writes and self.writes[0].moved == self.writes[0].beats:
            self.unanswered.append(self.writes.popleft())

    def _answers(self):
        if (taken := self.bus["r"].taken) is not None:
            identity, last, response, _ = taken
            assert self.reads[identity], f"a beat for nobody: ID {identity}"
            burst = self.reads[identity][0]
            self._note_error(("fetch", "load")[identity], burst, response)
            burst.moved += 1
            assert last == (burst.moved == burst.beats)
            if last:
                self.reads[identity].popleft()
        if (taken := self.bus["b"].taken) is not None:
            assert self.unanswered, "an answer to nothing"
            self._note_error("store", self.unanswered.popleft(), taken[1])

    def _note_error(self, who, burst, response):
        if response and self.first_error is None:
            at = burst.address + burst.moved * self.config.port_bytes * (who != "store")
            self.first_error = who, at - self.window.start

    def _register_accesses(self):
        taken = {name: channel.taken is not None for name, channel in self.registers.items()}
        if taken["r"]:
            assert self.accesses["ar"] > 0
            self.accesses["ar"] -= 1
        if taken["b"]:
            assert min(self.accesses["aw"], self.accesses["w"]) > 0
            self.accesses["aw"] -= 1
            self.accesses["w"] -= 1
        for name in self.accesses:
            self.accesses[name] += taken[name]
        if taken["w"]:
            self.at_write = self.was_running
        if taken["ar"]:
            self.at_read = self.was_running, self.counted
