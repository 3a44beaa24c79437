"""Faults planted in a netlist's circuit, as a synthesis or a router might make them.

    table       one bit of a gate's table is wrong
    net         an input of a gate, a register or a RAM has another register's net
    multiplier  a factor's sign is taken wrongly, or a register of a factor or product is left out

A fault takes the place of what is sound in some copies; every other copy is as before. It is
*reached* once something differs at its place: a bit of a table that no program reads is none.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from vdla.boards.netlists.circuit import CORE, Circuit, Gate, Multiplier, Net, Register

TABLE, NET, MULTIPLIER = "table", "net", "multiplier"
KINDS = (TABLE, NET, MULTIPLIER)
PLACE, SEEN = "fault {}", "reached {}"  # an input that is high in its copy; an output of its copy


@dataclass(frozen=True)
class Fault:
    """A fault: of which kind, and where, in the words of the circuit."""

    kind: str
    where: str


def plant(circuit: Circuit, kinds: Sequence[str], seed: int) -> list[Fault]:
    """Plants faults of these kinds in a simplified circuit of a chip, each behind an input PLACE
    that is high in the copies that are to have it. Gives what they are."""
    rng = random.Random(seed)
    multipliers = list(circuit.multipliers)
    makers = {TABLE: _table, NET: _net, MULTIPLIER: _multiplier}
    gates = [n for n, gate in enumerate(circuit.gates) if len(gate.inputs) > 1]
    registers = len(circuit.registers)
    faults = []
    for number, kind in enumerate(kinds):
        here = circuit.net()
        circuit.inputs[PLACE.format(number)] = here
        draw = _Draw(rng, gates, registers, multipliers)
        where, differs = makers[kind](circuit, here, draw)
        _watch(circuit, number, differs)
        faults.append(Fault(kind, where))
    return faults


@dataclass(frozen=True)
class _Draw:
    """Places among which one is drawn: gates and registers by their number, multipliers."""

    rng: random.Random
    gates: Sequence[int]
    registers: int
    multipliers: Sequence[Multiplier]


def _table(circuit: Circuit, here: Net, draw: _Draw) -> tuple[str, Net]:
    """A gate's bit."""
    at = draw.rng.choice(draw.gates)
    gate = circuit.gates[at]
    bit = draw.rng.randrange(1 << len(gate.inputs))
    sound = circuit.net()
    wrong = circuit.gate(gate.table ^ 1 << bit, *gate.inputs)
    circuit.gates[at] = gate._replace(output=sound)
    circuit.chosen(here, sound, wrong, output=gate.output)
    return f"bit {bit} of gate {at}", circuit.gate(0b0110, sound, wrong)


def _net(circuit: Circuit, here: Net, draw: _Draw) -> tuple[str, Net]:
    """An input of a gate or a register: another register's net."""
    other = circuit.registers[draw.rng.randrange(draw.registers)].output
    if draw.rng.random() < len(draw.gates) / (len(draw.gates) + draw.registers):
        at = draw.rng.choice(draw.gates)
        inputs = list(circuit.gates[at].inputs)
        pin = draw.rng.randrange(len(inputs))
        own, inputs[pin] = inputs[pin], circuit.chosen(here, inputs[pin], other)
        circuit.gates[at] = circuit.gates[at]._replace(inputs=tuple(inputs))
        where = f"input {pin} of gate {at}"
    else:
        at = draw.rng.randrange(draw.registers)
        own = circuit.registers[at].data
        new = circuit.chosen(here, own, other)
        circuit.registers[at] = circuit.registers[at]._replace(data=new)
        where = f"data of register {at}"
    return where, circuit.gate(0b0110, own, other)


def _multiplier(circuit: Circuit, here: Net, draw: _Draw) -> tuple[str, Net]:
    """A multiplier's sign, or its registers."""
    at = draw.rng.randrange(len(draw.multipliers))
    each = draw.multipliers[at]
    ways = {"sign of a": each.signs[:1], "sign of b": each.signs[1:]}
    registers = {register.output: n for n, register in enumerate(circuit.registers)}
    data = {register.data: n for n, register in enumerate(circuit.registers)}
    rows = {
        "registers of a": [registers[net] for net in each.a if net in registers],
        "registers of b": [registers[net] for net in each.b if net in registers],
        "registers of the product": [data[net] for net in each.product if net in data],
    }
    choices = [*ways, *(name for name, numbers in rows.items() if numbers)]
    way = draw.rng.choice(choices)
    if way in ways:
        signs = list(circuit.multipliers[at].signs)
        which = 0 if way == "sign of a" else 1
        signs[which] = circuit.gate(0b0110, signs[which], here)
        circuit.multipliers[at] = circuit.multipliers[at]._replace(signs=(signs[0], signs[1]))
        factor = each.a if which == 0 else each.b
        return f"{way} of multiplier {at}", factor[-1]
    differs = [_leave_out(circuit, here, number) for number in rows[way]]
    return f"{way} of multiplier {at}", _any(circuit, differs)


def _leave_out(circuit: Circuit, here: Net, number: int) -> Net:
    """Leaves a register out in a copy; gives the net that says that this makes a difference."""
    register = circuit.registers[number]
    held = circuit.net()
    circuit.registers[number] = register._replace(output=held)
    circuit.chosen(here, held, register.data, output=register.output)
    return circuit.gate(0b0110, held, register.data)


def _any(circuit: Circuit, nets: Sequence[Net]) -> Net:
    """The net that is high where any of these is."""
    left = list(nets)
    while len(left) > 1:
        some, left = left[:4], left[4:]
        left.append(circuit.gate((1 << (1 << len(some))) - 2, *some))
    return left[0]


def _watch(circuit: Circuit, number: int, differs: Net) -> None:
    """Keeps whether a fault has made a difference at its place since power-up."""
    seen, on = circuit.net(), circuit.net()
    circuit.gates.append(Gate(on, (seen, differs), 0b1110))
    circuit.registers.append(Register(CORE, seen, on))
    circuit.outputs[SEEN.format(number)] = seen
