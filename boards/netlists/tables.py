"""Tables of a circuit for ``copies.cpp``: what it evaluates, in which order, and what it keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.boards.board import BoardError
from vdla.boards.netlists.circuit import CLOCKS, HIGH, LOW, MOST_INPUTS, Circuit, Net, Port, Ram

Numbers = NDArray[np.int32]
SMALL_RAM, MULTIPLIER = 5, 6  # kinds of what is evaluated; a gate's is the number of its inputs
WORD_BYTES = (1, 2, 4, 8)
HALF = 32  # bits of a number here
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Tables(NamedTuple):
    """Arrays as the structures of ``copies.cpp`` have them, one row for each."""

    runs: Numbers
    gates: Numbers
    registers: Numbers
    small_rams: Numbers
    multipliers: Numbers
    rams: Numbers
    initial: NDArray[np.uint64]
    small_words: NDArray[np.uint16]


class Step(NamedTuple):
    """Something that is evaluated: its kind, its number among these, and its nets."""

    kind: int
    number: int
    inputs: Sequence[Net]
    outputs: Sequence[Net]


def tables_of(circuit: Circuit) -> Tables:
    """The tables of a simplified circuit.

    Raises:
        BoardError: gates go round in a circle.
    """
    spare = circuit.nets  # the net of outputs that nobody reads
    levels = _levels(_steps(circuit), circuit)
    order = sorted(levels, key=lambda item: (item[0], item[1].kind))
    runs: list[list[int]] = []
    gates: list[list[int]] = []
    small: list[list[int]] = []
    multipliers: list[list[int]] = []
    last = (-1, -1)
    for level, step in order:
        rows = {SMALL_RAM: small, MULTIPLIER: multipliers}.get(step.kind, gates)
        if (level, step.kind) != last:
            runs.append([step.kind, len(rows), 0])
            last = (level, step.kind)
        runs[-1][2] += 1
        rows.append(_row(circuit, step, spare))
    initial = np.zeros(spare + 1, np.uint64)
    initial[HIGH] = ALL
    for gate in circuit.gates:
        if not gate.inputs and gate.table:
            initial[gate.output] = ALL
    for register in circuit.registers:
        if register.initial:
            initial[register.output] = ALL
    words = [w for _, step in order if step.kind == SMALL_RAM
             for w in circuit.small_rams[step.number].words]  # fmt: skip
    registers = [
        (CLOCKS.index(r.clock), r.output, r.data, r.enable, r.reset, int(r.level))
        for r in circuit.registers
    ]
    return Tables(
        _array(runs), _array(gates), _array(registers), _array(small), _array(multipliers),
        _array([number for ram in circuit.rams for number in _ram(ram)]),
        initial, np.array(words, np.uint16),
    )  # fmt: skip


def _steps(circuit: Circuit) -> list[Step]:
    gates = circuit.gates
    return [
        *(Step(len(g.inputs), n, g.inputs, (g.output,)) for n, g in enumerate(gates) if g.inputs),
        *(Step(SMALL_RAM, n, r.read, r.outputs) for n, r in enumerate(circuit.small_rams)),
        *(Step(MULTIPLIER, n, (*m.a, *m.b, *m.signs), m.product)
          for n, m in enumerate(circuit.multipliers)),
    ]  # fmt: skip


def _levels(steps: Sequence[Step], circuit: Circuit) -> list[tuple[int, Step]]:
    """Steps with their levels: each is above all that its inputs come from."""
    source = {net: number for number, step in enumerate(steps) for net in step.outputs}
    before = [{source[net] for net in step.inputs if net in source} for step in steps]
    readers: dict[int, list[int]] = defaultdict(list)
    for number, numbers in enumerate(before):
        for each in numbers:
            readers[each].append(number)
    left = [len(numbers) for numbers in before]
    level = [0] * len(steps)
    ready = [number for number, count in enumerate(left) if count == 0]
    for number in ready:
        for each in readers[number]:
            level[each] = max(level[each], level[number] + 1)
            left[each] -= 1
            if left[each] == 0:
                ready.append(each)
    if len(ready) < len(steps):
        raise BoardError("netlist: expected gates without circles, found one of "
                         f"{len(steps) - len(ready)} gates")  # fmt: skip
    return list(zip(level, steps, strict=True))


def _row(circuit: Circuit, step: Step, spare: Net) -> list[int]:
    """A step's row of its table."""
    if step.kind == SMALL_RAM:
        ram = circuit.small_rams[step.number]
        clock = CLOCKS.index(ram.clock)
        return [clock, ram.enable, *ram.outputs, *ram.read, *ram.write, *ram.data]
    if step.kind == MULTIPLIER:
        each = circuit.multipliers[step.number]
        return [*each.signs, *each.a, *each.b, *each.product]
    gate = circuit.gates[step.number]
    return [gate.output, gate.table, *gate.inputs, *[LOW] * (MOST_INPUTS - len(gate.inputs))]


def _ram(ram: Ram) -> Iterable[int]:
    """A RAM's numbers, one behind the other."""
    nbytes = next(size for size in WORD_BYTES if 8 * size >= ram.width)
    bits = max(len(port.address) for port in ram.ports)
    yield from (ram.width, bits, nbytes, int(ram.outside), len(ram.ports))
    for port in ram.ports:
        yield from _port(port)
    yield len(ram.words)
    for row, word in ram.words.items():
        yield from (row, _signed(word & 0xFFFF_FFFF), _signed(word >> HALF))


def _port(port: Port) -> Iterable[int]:
    chunk = len(port.data) // len(port.writes) if port.writes else 0
    yield from (CLOCKS.index(port.clock), int(port.mode), port.enable, chunk)
    for nets in (port.address, port.writes, port.data, port.outputs):
        yield from (len(nets), *nets)


def _signed(word: int) -> int:
    """The number of 32 bits with a sign that has the same bits."""
    return word - (1 << HALF) if word >> (HALF - 1) else word


def _array(rows: Sequence[object]) -> Numbers:
    return np.ascontiguousarray(np.array(rows, np.int32).reshape(-1))
