"""Programs on a board's netlist: 64 boards at once, each spoken to over its serial line.

The host writes a program's registers and START as it would those of a real board, lets clocks pass,
and reads STATUS, the cycles, the fault and the counters. A program's DRAM is put into the SDRAM's
words, and taken from there: over the line it would be thousands of times as slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.boards import find_module
from vdla.boards.board import Board, BoardError
from vdla.boards.models.sdram import Broken
from vdla.boards.netlists import ecp5, gowin
from vdla.boards.netlists.around import circuit_around, joined
from vdla.boards.netlists.cells import read_module
from vdla.boards.netlists.circuit import CORE, FAST, Circuit, simplified
from vdla.boards.netlists.copies import COPIES, Copies
from vdla.boards.netlists.reader import LATE, LOCKED, OSCILLATOR, Reader, Times
from vdla.boards.soc.sdram.chip import Chip, whole_clocks
from vdla.boards.soc.uart import divisor_of
from vdla.boards.wiring import Clocks
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.registers import (
    BUSY,
    START,
    Cause,
    Fault,
    counter,
    program_registers,
    register,
)
from vdla.isa.ring import numbered
from vdla.runtime.board import link
from vdla.runtime.board.link import FrameError, Op, Status

FAMILIES = {"LFE5": ecp5, "GW2A": gowin}  # by a device's first letters
LINE = ("uart_0__rx__io", "uart_0__tx__io")
CLOCK_PIN = "sdram_0__clk__io"
LOCK_CLOCKS = 16  # until a PLL is locked, in which its clocks are there already
SPARE_CLOCKS = 4000  # of a request's, for what the board does between its bytes
REST_CLOCKS = 256  # behind a program: the last words arrive
FRAME_BITS = 10  # of a byte on the line
ALL = (1 << COPIES) - 1
SHOWN = ("STATUS", "FAULT_CAUSE", "FAULT_INSTRUCTION", "CYCLES_LOW", "CYCLES_HIGH")

Bytes = NDArray[np.uint8]


class Program(NamedTuple):
    """A program in its DRAM, whole pages of it; ``length`` instructions lie at ``base``. ``cycles``
    is how long it is given."""

    dram: Bytes
    base: int
    length: int
    identity: Identity
    cycles: int


@dataclass(frozen=True)
class Result:
    """End of a program on a netlist, as a host sees it. ``cycles`` is -1 while it still runs;
    ``trouble`` says why nothing is known of it, or is empty."""

    cycles: int
    causes: dict[str, int]
    fault: Fault
    fault_at: int
    dram: Bytes
    trouble: str = ""


def read_circuit(path: Path, board: Board, config: Config) -> Circuit:
    """The circuit of a netlist of a board's design, without its surroundings.

    Raises:
        BoardError: the file is no netlist, is for another clock, or has cells that aren't known.
    """
    family = FAMILIES[board.device[:4]]
    wiring = find_module(board.name).WIRING
    reader = Reader(read_module(path), times_of(wiring.clocks_of(config)))
    circuit = reader.read(family.KINDS)
    ways = {
        "the PLL's input": (circuit.outputs[OSCILLATOR], f"{wiring.oscillator}_0__io"),
        "the SDRAM's clock pin": (circuit.outputs.get(CLOCK_PIN), LATE),
    }
    for what, (net, name) in ways.items():
        if net != circuit.inputs.get(name):
            raise BoardError(f"{path}: expected {name} at {what}, found another net")
    return circuit


def times_of(clocks: Clocks) -> Times:
    """The clocks that a netlist's PLL must make."""
    core, chip = Fraction(clocks.hz) / 10**6, Fraction(clocks.sdram_hz) / 10**6
    late = Fraction(clocks.pll.delay(clocks.late))
    return Times({CORE: core, LATE: chip, FAST: chip}, late)


class NetlistBench:
    """Boards of one netlist, switched on and ready. Not for several threads.

    ``circuit`` is the chip's.
    """

    def __init__(self, circuit: Circuit, board: Board, config: Config) -> None:
        module = find_module(board.name)
        clocks = module.clocks_of(config)
        whole = simplified(joined(circuit, circuit_around(module.CHIP, clocks, config)))
        self.config, self.circuit = config, whole
        self._storage = next(n for n, ram in enumerate(whole.rams) if ram.outside)
        line = (whole.inputs[LINE[0]], whole.outputs[LINE[1]])
        divisor = divisor_of(clocks.hz)
        self.byte_clocks = FRAME_BITS * divisor
        self.copies = Copies(whole, *line, divisor, clocks.pads.ratio)
        self._tag = 0
        self._start(clocks, module.CHIP)

    def _start(self, clocks: Clocks, chip: Chip) -> None:
        """Switches the boards on: the PLL locks, and the memory is set up."""
        self.copies.run(LOCK_CLOCKS)
        self.copies.set(self.circuit.inputs[LOCKED], ALL)
        self.copies.run(whole_clocks(chip.power_up, clocks.hz) + SPARE_CLOCKS)
        self.copies.save()

    def fix(self, name: str, word: int) -> None:
        """Holds an input at levels, a bit for each copy, from power-up on."""
        self.copies.restore()
        self.copies.set(self.circuit.inputs[name], word)
        self.copies.save()

    def run(self, programs: Sequence[Program]) -> list[Result]:
        """Runs up to 64 programs, one on each board, from the state after power-up."""
        self.copies.restore()
        for copy, program in enumerate(programs):
            self._words(copy, program.dram.size)[:] = program.dram
        writes = [program_registers(p.identity, p.base, p.length, 0, p.dram.size) for p in programs]
        first = register("PROGRAM_ISA").offset
        words = [b"".join(v.to_bytes(link.WORD, "little") for v in w.values()) for w in writes]
        self._answers(Op.WRITE_REGISTERS, first, len(writes[0]), words)
        start = START.to_bytes(link.WORD, "little")
        self._answers(Op.WRITE_REGISTERS, register("CONTROL").offset, 1, [start] * len(words))
        self.copies.run(max(p.cycles for p in programs) + REST_CLOCKS)
        broken = self._broken()
        values = self._values(len(programs))
        drams = [self._words(copy, p.dram.size).copy() for copy, p in enumerate(programs)]
        return [
            self._result(*each) for each in zip(values, drams, broken[: len(drams)], strict=True)
        ]

    def _result(self, values: dict[str, int], dram: Bytes, broken: int) -> Result:
        """End of a program, by the registers' values."""
        if not values:
            return Result(-1, {}, Fault.NONE, 0, dram, "no sound answer over the line")
        trouble = f"a rule of the SDRAM was broken: {Broken(broken).name}" if broken else ""
        fault = values["FAULT_CAUSE"]
        if fault not in set(Fault):
            fault, trouble = Fault.NONE, f"a fault that isn't known: {fault}"
        cycles = values["CYCLES_LOW"] | values["CYCLES_HIGH"] << 32
        return Result(
            -1 if values["STATUS"] & BUSY else cycles,
            {name: values[name] for name in _counters(self.config)},
            Fault(fault),
            values["FAULT_INSTRUCTION"],
            dram,
            trouble,
        )

    def _values(self, copies: int) -> list[dict[str, int]]:
        """The registers that are shown, by name, of each copy; none where no sound answer came."""
        result: list[dict[str, int]] = [{} for _ in range(copies)]
        for names in _runs((*SHOWN, *_counters(self.config))):
            answers = self._answers(
                Op.READ_REGISTERS, register(names[0]).offset, len(names), [b""] * copies
            )
            for copy, answer in enumerate(answers):
                if answer is not None:
                    words = np.frombuffer(answer, "<u4").tolist()
                    result[copy] |= dict(zip(names, words, strict=True))
        every = len(SHOWN) + len(_counters(self.config))
        return [values if len(values) == every else {} for values in result]

    def _broken(self) -> list[int]:
        """The SDRAM's first broken rule in each copy, as a number; 0 for none."""
        nets = [(n, net) for n in range(8) if (net := self.circuit.outputs.get(f"broken[{n}]"))]
        words = [(n, self.copies.get(net)) for n, net in nets]
        return [sum((word >> copy & 1) << n for n, word in words) for copy in range(COPIES)]

    def _words(self, copy: int, size: int) -> Bytes:
        """The first bytes of a copy's SDRAM."""
        return self.copies.words(self._storage, copy, size)

    # The line -------------------------------------------------------------------------------------

    def _answers(
        self, op: Op, offset: int, count: int, words: Sequence[bytes]
    ) -> list[bytes | None]:
        """The words of each copy's answer to a request."""
        self._tag = (self._tag + 1) % 256
        frames = [link.request(self._tag, op, offset, count, each) for each in words]
        carried = 0 if words[0] else count * link.WORD
        size = link.REPLY_HEADER + carried + link.CHECKSUM
        for copy in range(COPIES):
            self.copies.receive(copy)
        self.copies.send(frames)
        clocks = (len(frames[0]) + size + 1) * self.byte_clocks + SPARE_CLOCKS
        self.copies.run(clocks, size, (1 << len(frames)) - 1)
        return [self._answer(self.copies.receive(copy), size, count) for copy in range(len(frames))]

    def _answer(self, heard: bytes, size: int, count: int) -> bytes | None:
        try:
            body = link.check(heard)
        except FrameError:
            return None
        expected = bytes([link.REPLY_SYNC, self._tag, Status.OK, count - 1])
        if len(heard) != size or body[: link.REPLY_HEADER] != expected:
            return None
        return body[link.REPLY_HEADER :]


def _counters(config: Config) -> list[str]:
    """The names of a config's counters."""
    return [counter(engine, cause) for engine in numbered(config) for cause in Cause]


def _runs(names: Iterable[str]) -> list[list[str]]:
    """Registers in runs that lie one behind the other, as one request reads them."""
    runs: list[list[str]] = []
    for name in sorted(names, key=lambda name: register(name).offset):
        follows = runs and register(runs[-1][-1]).offset + link.WORD == register(name).offset
        if follows:
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs
