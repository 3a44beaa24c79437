"""A board in Python: the serial link's rules, registers, memory, and a line that may fail."""

from collections import deque
from random import Random

import numpy as np

from vdla.isa.config import load_config
from vdla.isa.encoding import decode
from vdla.isa.identity import Identity
from vdla.isa.instructions import instruction_bytes
from vdla.isa.registers import IDENTITY, VERSION, Fault, register
from vdla.runtime.board import link
from vdla.runtime.board.link import Op, Status
from vdla.sim.machine import FaultError, SimulationError, run_stream
from vdla.sim.stream import Stream

TINY = load_config("tiny")
RUNNING, DONE, FAULT = (register("STATUS").field(n).mask for n in ("RUNNING", "DONE", "FAULT"))


class FakeLine:
    """What a ``serial.Serial`` is to the transport. ``spoil(bytes)`` changes what passes.

    The board behind it runs programs on the simulator, so a program that never ends never does.
    """

    def __init__(self, config=TINY, spoil=lambda data: data, memory=1 << 20):
        self.config, self.spoil, self.timeout = config, spoil, None
        self.memory = np.random.default_rng(0).integers(0, 256, memory, np.uint8)
        self.registers = {register("ID").offset: IDENTITY, register("VERSION").offset: VERSION}
        isa, own = Identity.of(config).words
        self.set("ISA_HASH", isa)
        self.set("CONFIG_HASH", own)
        self.arrived, self.replies = bytearray(), deque()
        self.latest = None  # tag and status of what was done last
        self.done = []  # every write to a register: its name and value

    def set(self, name, value):
        self.registers[register(name).offset] = value

    def get(self, name):
        return self.registers.get(register(name).offset, 0)

    # The line -----------------------------------------------------------------------------------

    def reset_input_buffer(self):
        self.arrived.clear()  # so long a pause makes the board forget, too
        self.replies.clear()

    def write(self, data):
        self.arrived += self.spoil(bytes(data))
        self._serve()

    def read(self, size):
        return bytes(self.replies.popleft() for _ in range(min(size, len(self.replies))))

    # The board ----------------------------------------------------------------------------------

    def _serve(self):
        while self.arrived and self.arrived[0] != link.REQUEST_SYNC:
            del self.arrived[0]
        if len(self.arrived) < link.REQUEST_HEADER:
            return
        _, tag, op, last = self.arrived[:4]
        size = (last + 1) * link.WORD if op & 1 else 0
        whole = link.REQUEST_HEADER + size + link.CHECKSUM
        if len(self.arrived) < whole:
            return
        frame, self.arrived = bytes(self.arrived[:whole]), self.arrived[whole:]
        try:
            body = link.check(frame)
        except link.FrameError:
            return self._reply(tag, Status.BAD_CHECKSUM, last)
        if op & 1 and self.latest and self.latest[0] == tag:
            return self._reply(tag, self.latest[1], last)
        address = int.from_bytes(body[4:8], "little")
        status, words = self._act(op, address, last + 1, body[8:])
        self.latest = tag, status
        return self._reply(tag, status, last, words)

    def _reply(self, tag, status, last, words=b""):
        self.replies.extend(self.spoil(link.reply(tag, status, last + 1, words)))

    def _act(self, op, address, count, words):
        if op in (Op.READ_MEMORY, Op.WRITE_MEMORY):
            end = address + count * link.WORD
            if end > len(self.memory):
                return Status.BAD_ADDRESS, b""
            if op == Op.WRITE_MEMORY:
                self.memory[address:end] = np.frombuffer(words, np.uint8)
                return Status.OK, b""
            return Status.OK, self.memory[address:end].tobytes()
        offsets = range(address, address + count * link.WORD, link.WORD)
        if op == Op.WRITE_REGISTERS:
            for offset, word in zip(offsets, np.frombuffer(words, "<u4").tolist(), strict=True):
                self._write(offset, word)
            return Status.OK, b""
        found = [self.registers.get(offset, 0) for offset in offsets]
        return Status.OK, np.array(found, "<u4").tobytes()

    def _write(self, offset, value):
        self.registers[offset] = value
        self.done.append((offset, value))
        if offset == register("CONTROL").offset:
            if value == register("CONTROL").field("RESET").mask:
                self.set("STATUS", 0)
            else:
                self._run()

    def _run(self):
        for of_program, of_core, fault in (
            ("PROGRAM_ISA", "ISA_HASH", Fault.PROGRAM_ISA),
            ("PROGRAM_CONFIG", "CONFIG_HASH", Fault.PROGRAM_CONFIG),
        ):
            if self.get(of_program) != self.get(of_core):
                self.set("STATUS", FAULT)
                self.set("FAULT_CAUSE", fault)
                return
        start = self.get("DRAM_BASE")
        dram = self.memory[start : start + self.get("DRAM_SIZE")]
        base, length = self.get("PROGRAM_BASE"), self.get("PROGRAM_LENGTH")
        size = instruction_bytes(self.config)
        found = [
            decode(dram[at : at + size].tobytes(), self.config)
            for at in range(base, base + size * length, size)
        ]
        try:
            run = run_stream(Stream.of(self.config, found, base), dram)
        except FaultError as error:
            self.set("STATUS", FAULT)
            self.set("FAULT_CAUSE", error.fault)
            self.set("FAULT_INSTRUCTION", base + size * error.instruction)
        except SimulationError:
            self.set("STATUS", RUNNING)
        else:
            self.set("STATUS", DONE)
            self.set("CYCLES_LOW", run.cycles)


class Trouble:
    """Loses, flips or doubles bytes: a share of all, until ``enough`` have been."""

    def __init__(self, share, seed, kinds=("lose", "flip", "double"), enough=10**9):
        self.random, self.share, self.kinds, self.left = Random(seed), share, kinds, enough

    def __call__(self, data):
        out = bytearray()
        for byte in data:
            if self.left and self.random.random() < self.share:
                self.left -= 1
                kind = self.random.choice(self.kinds)
                out += {"lose": b"", "flip": bytes([byte ^ 1 << self.random.randrange(8)]),
                        "double": bytes([byte, byte])}[kind]  # fmt: skip
            else:
                out.append(byte)
        return bytes(out)
