"""A board in Python with the simulator's cycles and counters, and with faults of real boards."""

from fake_board import DONE, FAULT, FakeLine

from vdla.analysis.case import Case
from vdla.analysis.machines import simulate
from vdla.isa.identity import Identity
from vdla.isa.instructions import instruction_bytes
from vdla.isa.registers import register

MEMORY_BYTES = 32 << 20


class SimulatedLine(FakeLine):
    """A line to a board whose programs take the cycles of a config's memory, and count as it does.

    Its scratchpads are cleared before each program, as the simulator's are. ``count`` changes the
    counters that a program leaves, ``end`` the DRAM: both are called with what there is.
    """

    def __init__(self, config, count=lambda causes: causes, end=lambda dram: None):
        super().__init__(config, memory=MEMORY_BYTES)
        self.count, self.end = count, end

    def close(self):
        """Lets nothing go."""

    def _run(self):
        start = self.get("DRAM_BASE")
        dram = self.memory[start : start + self.get("DRAM_SIZE")]
        base, length = self.get("PROGRAM_BASE"), self.get("PROGRAM_LENGTH")
        raw = dram[base : base + length * instruction_bytes(self.config)].tobytes()
        case = Case(self.config, raw, base, dram, Identity.of(self.config))
        outcome = simulate(case, self.config.memory)
        dram[:] = outcome.memories["dram"]
        self.end(dram)
        self.set("STATUS", FAULT if outcome.fault else DONE)
        self.set("FAULT_CAUSE", outcome.fault)
        self.set("CYCLES_LOW", outcome.cycles)
        for name, cycles in self.count(outcome.causes).items():
            self.registers[register(name).offset] = cycles


class StuckData(SimulatedLine):
    """A data line of the memory's words of 16 bits that is stuck at 0."""

    def __init__(self, config, line):
        super().__init__(config)
        self.line = line

    def _act(self, op, address, count, words):
        if op == 3:
            mask = ~(1 << self.line | 1 << self.line + 16) & 0xFFFFFFFF
            words = b"".join(
                (int.from_bytes(words[i : i + 4], "little") & mask).to_bytes(4, "little")
                for i in range(0, len(words), 4)
            )
        return super()._act(op, address, count, words)


class Misplacing(SimulatedLine):
    """A memory that has some addresses at others: ``place(address)`` says where."""

    def __init__(self, config, place):
        super().__init__(config)
        self.place = place

    def _act(self, op, address, count, words):
        return super()._act(op, self.place(address) if op in (2, 3) else address, count, words)


class Dying(SimulatedLine):
    """A line that goes silent after so many requests."""

    def __init__(self, config, requests):
        super().__init__(config)
        self.left = requests

    def _reply(self, *answer):
        if self.left:
            self.left -= 1
            super()._reply(*answer)


class Unplugged(SimulatedLine):
    """A line whose port goes away after so many requests."""

    def __init__(self, config, requests):
        super().__init__(config)
        self.left = requests

    def write(self, data):
        if not self.left:
            raise OSError(5, "Input/output error")
        self.left -= 1
        super().write(data)

    def close(self):
        """Fails as a port does that isn't there any more."""
        raise OSError(5, "Input/output error")
