"""A circuit of gates, registers and memories: what a netlist of any family's cells comes to.

    circuit    = net… gate… register… small RAM… RAM… multiplier…
    net        = a number; 0 is always low, 1 always high
    gate       = output ← table [input × 0..4]; bit i of the table is for inputs that read as i
    register   = output ← data, at a clock where enable is high; its level where reset is
    small RAM  = 16 words × 4 bits; read at any time, written at a clock
    RAM        = words × bits; ports read and write at a clock
    multiplier = 36 bits ← 18 bits × 18 bits, each with a sign or without

A family's file (``ecp5.py``, ``gowin.py``) says what its cells are in these words; registers in
cells of other kinds become registers here. Every clock is one of ``CLOCKS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

Net = int
LOW, HIGH = 0, 1
CORE, FAST = "core", "fast"
CLOCKS = (CORE, FAST)
MOST_INPUTS = 4  # of a gate
SMALL_WORDS, SMALL_BITS = 16, 4
FACTOR_BITS = 18


class Mode(IntEnum):
    """Word that a port reads while it writes: the one before, its last one, or what it writes."""

    BEFORE = 0
    KEEP = 1
    THROUGH = 2


class Gate(NamedTuple):
    """A table of up to four inputs."""

    output: Net
    inputs: tuple[Net, ...]
    table: int


class Register(NamedTuple):
    """A bit that is kept; ``initial`` is what it has at power-up."""

    clock: str
    output: Net
    data: Net
    enable: Net = HIGH
    reset: Net = LOW
    level: bool = False
    initial: bool = False


class SmallRam(NamedTuple):
    """Sixteen words of four bits, the lowest address bit first; ``words`` are at power-up."""

    clock: str
    outputs: tuple[Net, ...]
    read: tuple[Net, ...]
    write: tuple[Net, ...]
    data: tuple[Net, ...]
    enable: Net
    words: tuple[int, ...] = (0,) * SMALL_WORDS


class Port(NamedTuple):
    """A RAM's port. Each of ``writes`` is for as many of the bits of ``data``, the lowest first."""

    clock: str
    address: tuple[Net, ...]
    enable: Net
    writes: tuple[Net, ...] = ()
    data: tuple[Net, ...] = ()
    outputs: tuple[Net, ...] = ()
    mode: Mode = Mode.BEFORE


class Ram(NamedTuple):
    """Words of ``width`` bits; ``words`` are those that aren't 0 at power-up, by their address.

    ``outside``: it isn't on the chip, and belongs to no saved state.
    """

    width: int
    ports: tuple[Port, ...]
    words: Mapping[int, int] = {}
    outside: bool = False


class Multiplier(NamedTuple):
    """Product of two numbers that have a sign where ``signs`` are high."""

    a: tuple[Net, ...]
    b: tuple[Net, ...]
    signs: tuple[Net, Net]
    product: tuple[Net, ...]


@dataclass
class Circuit:
    """A circuit; ``inputs`` and ``outputs`` are nets by name: a pad's, a port's, a PLL's."""

    nets: int = 2
    gates: list[Gate] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    small_rams: list[SmallRam] = field(default_factory=list)
    rams: list[Ram] = field(default_factory=list)
    multipliers: list[Multiplier] = field(default_factory=list)
    inputs: dict[str, Net] = field(default_factory=dict)
    outputs: dict[str, Net] = field(default_factory=dict)

    def net(self) -> Net:
        """A new net."""
        self.nets += 1
        return self.nets - 1

    def gate(self, table: int, *inputs: Net, output: Net | None = None) -> Net:
        """Adds a gate, on a new net where no output is named; gives its output."""
        net = self.net() if output is None else output
        self.gates.append(Gate(net, inputs, table))
        return net

    def inverted(self, net: Net) -> Net:
        """The complement of a net."""
        if net in (LOW, HIGH):
            return HIGH - net
        return self.gate(0b01, net)

    def both(self, *nets: Net) -> Net:
        """The net that is high where all of these are."""
        if LOW in nets:
            return LOW
        rest = [net for net in nets if net != HIGH]
        while len(rest) > 1:
            some, rest = rest[:MOST_INPUTS], rest[MOST_INPUTS:]
            rest.append(self.gate(1 << ((1 << len(some)) - 1), *some))
        return rest[0] if rest else HIGH

    def chosen(self, select: Net, low: Net, high: Net, output: Net | None = None) -> Net:
        """Adds the choice between two nets."""
        return self.gate(0b11001010, low, high, select, output=output)

    def carry(self, operand: Net, generate: Net, carry: Net, total: Net, onward: Net) -> None:
        """Adds a bit of an adder: total = operand ⊕ carry, onward = carry where operand, else
        ``generate``."""
        self.gate(0b0110, operand, carry, output=total)
        self.chosen(operand, generate, carry, output=onward)

    def registered(
        self,
        clock: str,
        data: Net,
        *,
        enable: Net = HIGH,
        reset: Net = LOW,
        output: Net | None = None,
    ) -> Net:
        """Adds a register of 0 at power-up; gives its output."""
        net = self.net() if output is None else output
        self.registers.append(Register(clock, net, data, enable, reset))
        return net

    def registers_before(
        self, clock: str, outputs: Sequence[Net], *, enable: Net = HIGH, reset: Net = LOW
    ) -> tuple[Net, ...]:
        """Adds registers that drive these nets; gives the new nets that they take."""
        nets = tuple(self.net() for _ in outputs)
        for data, output in zip(nets, outputs, strict=True):
            self.registered(clock, data, enable=enable, reset=reset, output=output)
        return nets


def number_of(bits: Iterable[str]) -> int:
    """The number whose binary digits these are, the highest first; unknown ones are 0."""
    return int("".join("1" if bit == "1" else "0" for bit in bits) or "0", 2)


def simplified(circuit: Circuit) -> Circuit:
    """The circuit without gates' constant inputs, and without gates that nothing needs."""
    constant = {LOW: 0, HIGH: 1}
    gates = {gate.output: gate for gate in circuit.gates}
    order = _resolved(gates)
    kept = []
    for gate in order:
        inputs, table = _folded(gate, constant)
        if not inputs:
            constant[gate.output] = table & 1
        kept.append(Gate(gate.output, inputs, table))
    needed = _needed(circuit, {gate.output: gate for gate in kept})
    return _with_gates(circuit, [gate for gate in kept if gate.output in needed])


def _with_gates(circuit: Circuit, gates: list[Gate]) -> Circuit:
    return Circuit(
        circuit.nets,
        gates,
        list(circuit.registers),
        list(circuit.small_rams),
        list(circuit.rams),
        list(circuit.multipliers),
        dict(circuit.inputs),
        dict(circuit.outputs),
    )


def _folded(gate: Gate, constant: Mapping[Net, int]) -> tuple[tuple[Net, ...], int]:
    """A gate's inputs that aren't constant, and its table for these."""
    places = [i for i, net in enumerate(gate.inputs) if net not in constant]
    fixed = sum(constant.get(net, 0) << i for i, net in enumerate(gate.inputs))
    table = 0
    for row in range(1 << len(places)):
        at = fixed | sum((row >> n & 1) << place for n, place in enumerate(places))
        table |= (gate.table >> at & 1) << row
    if table in (0, (1 << (1 << len(places))) - 1):
        return (), table & 1
    return tuple(gate.inputs[place] for place in places), table


def _resolved(gates: Mapping[Net, Gate]) -> list[Gate]:
    """Gates such that each comes behind those that it reads."""
    order: list[Gate] = []
    state: dict[Net, int] = {}
    for start in gates:
        stack = [start]
        while stack:
            net = stack[-1]
            if state.get(net) == 2 or net not in gates:
                stack.pop()
                continue
            if state.get(net) == 1:
                state[net] = 2
                order.append(gates[stack.pop()])
                continue
            state[net] = 1
            stack += [each for each in gates[net].inputs if state.get(each) != 2]
    return order


def _needed(circuit: Circuit, gates: Mapping[Net, Gate]) -> set[Net]:
    """Nets that something else than an unneeded gate reads."""
    stack = [*circuit.outputs.values(), *(net for each in reads(circuit) for net in each)]
    needed: set[Net] = set()
    while stack:
        net = stack.pop()
        if net not in needed:
            needed.add(net)
            if net in gates:
                stack += gates[net].inputs
    return needed


def reads(circuit: Circuit) -> Iterator[Sequence[Net]]:
    """Nets that are read by what isn't a gate."""
    for register in circuit.registers:
        yield register.data, register.enable, register.reset
    for small in circuit.small_rams:
        yield (*small.read, *small.write, *small.data, small.enable)
    for ram in circuit.rams:
        for port in ram.ports:
            yield (*port.address, port.enable, *port.writes, *port.data)
    for multiplier in circuit.multipliers:
        yield (*multiplier.a, *multiplier.b, *multiplier.signs)
