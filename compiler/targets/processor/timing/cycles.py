"""Cycles of a function on one core, as long as its data is in the nearest cache.

An innermost loop, and each block that is in none, takes the longest of

* what its micro-operations take to issue,
* for what they keep the busiest unit,
* for a loop: the latency of what one step needs of the one before; on a processor that issues
  instructions in order, the latency of the longest chain within a step,

times the steps. Neighbouring blocks don't overlap. Calls of other functions of the text take what
those take; calls of a library what the machine's description says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.targets.processor.timing.counts import Counts
from vdla.compiler.targets.processor.timing.instructions import (
    Block,
    Function,
    Instruction,
)
from vdla.compiler.targets.processor.timing.machine import Machine, Price

WIDTHS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4}
WIDTHS |= {"double": 8, "ptr": 8}
PARALLEL = re.compile(
    r"@vdla_parallel\(ptr \S+, ptr (?:nonnull )?@(\"[^\"]+\"|[-\w.$]+),.* i32 (\d+)\)"
)
CALLEE = re.compile(r'@("[^"]+"|[-\w.$]+)\(')
FILLS = re.compile(r"llvm\.mem(set|cpy|move)")


@dataclass(frozen=True)
class Work:
    """Work of a function: cycles, and bytes that its instructions load and store."""

    cycles: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.cycles + other.cycles, self.bytes + other.bytes)

    def times(self, factor: float) -> Work:
        """So many runs of it."""
        return Work(factor * self.cycles, factor * self.bytes)


class Cycles:
    """The work of the functions of an LLVM text on a machine."""

    def __init__(self, functions: Mapping[str, Function], machine: Machine) -> None:
        self.functions, self.machine = functions, machine
        self._prices: dict[str, Price] = {}
        self._known: dict[tuple[str, int], Work] = {}

    def of(self, name: str, tasks: int = 1) -> Work:
        """The work of a function; of the mean of its ``tasks`` calls, where it is a loop's step
        that threads share."""
        key = name, tasks
        if key not in self._known:
            self._known[key] = Work()  # a function that calls itself
            self._known[key] = self._whole(self.functions[name], tasks)
        return self._known[key]

    def _whole(self, function: Function, tasks: int) -> Work:
        counts = Counts(function, tasks)
        total, within = Work(), set[str]()
        for loop in counts.loops:
            if any(other.parent is loop for other in counts.loops):
                continue
            labels = [label for label in counts.order if label in loop.blocks]
            within |= loop.blocks
            steps = counts.runs[loop.header]
            if steps:
                shares = [counts.runs[label] / steps for label in labels]
                blocks = [function.blocks[label] for label in labels]
                total += self._step(blocks, shares, in_loop=True).times(steps)
        for label, block in function.blocks.items():
            if label not in within and counts.runs[label]:
                total += self._step([block], [1.0]).times(counts.runs[label])
        return total

    def _step(
        self, blocks: Sequence[Block], shares: Sequence[float], in_loop: bool = False
    ) -> Work:
        """The work of some blocks that overlap, each of which runs a share of a time; the first is
        the header of a loop that they are."""
        uops, ports, calls, moved = 0.0, dict[str, float](), Work(), 0.0
        for block, share in zip(blocks, shares, strict=True):
            for each in block.instructions:
                if not each.form:
                    continue
                called = self._call(each) if each.operation == "call" else None
                if called is not None:
                    calls += called.times(share)
                    continue
                price = self.price(each.form)
                uops += share * price.uops
                moved += share * _moved(each.form)
                for unit, busy in price.ports.items():
                    ports[unit] = ports.get(unit, 0.0) + share * busy
        cycles = max(uops / self.machine.issue, max(ports.values(), default=0.0))
        whole = [each for block in blocks for each in block.instructions]
        if self.machine.in_order:
            cycles = max(cycles, self._longest(whole))
        elif in_loop:
            cycles = max(cycles, self._recurrence(whole, blocks[0]))
        return calls + Work(cycles, moved)

    def price(self, form: str) -> Price:
        """The price of a form of instruction."""
        if form not in self._prices:
            self._prices[form] = self.machine.price(form)
        return self._prices[form]

    def _call(self, each: Instruction) -> Work | None:
        """The work of a call; None where it is an instruction of the processor."""
        parallel, own = PARALLEL.search(each.text), Work(self.machine.call_cycles)
        if parallel:
            tasks = int(parallel[2])
            return own + self.of(parallel[1].strip('"'), tasks).times(tasks)
        callee = CALLEE.search(each.text)
        name = callee[1].strip('"') if callee else ""
        if name in self.functions:
            return own + self.of(name)
        if name.startswith("llvm."):
            return self._fill(each) if FILLS.match(name) else None
        return Work(self.machine.calls.get(name, self.machine.call_cycles))

    def _fill(self, each: Instruction) -> Work:
        """Filling or copying memory, by its bytes where they are known."""
        size = re.search(r"i(?:32|64) (\d+)", each.text)
        size_bytes = int(size[1]) if size else 64
        cycles = self.machine.call_cycles + size_bytes / self.machine.caches[0].bytes_per_cycle
        return Work(cycles, size_bytes)

    def _longest(self, instructions: Sequence[Instruction]) -> float:
        """The latency of the longest chain of instructions."""
        ends: dict[str, float] = {}
        for each in instructions:
            if each.name and each.operation != "phi":
                start = max((ends.get(name, 0.0) for name in each.operands), default=0.0)
                ends[each.name] = start + self._latency(each)
        return max(ends.values(), default=0.0)

    def _recurrence(self, instructions: Sequence[Instruction], header: Block) -> float:
        """The longest latency from a loop's variable to its next value."""
        longest = 0.0
        for phi in header.instructions:
            if phi.operation != "phi":
                break
            ends = {phi.name: 0.0}
            for each in instructions:
                own = [ends[name] for name in each.operands if name in ends]
                if own and each is not phi and each.name:
                    ends.setdefault(each.name, max(own) + self._latency(each))
            longest = max(longest, *(ends.get(name, 0.0) for name in phi.operands), 0.0)
        return longest

    def _latency(self, each: Instruction) -> float:
        return self.price(each.form).latency if each.form else 0.0


def _moved(form: str) -> float:
    """The bytes that an instruction loads or stores."""
    operation, _, kind = form.partition(" ")
    if operation == "loaded":
        return WIDTHS.get(kind.split()[-1].rstrip(">"), 8)
    if operation not in ("load", "store"):
        return 0.0
    lanes, _, element = kind.strip("<>").rpartition(" x ")
    return int(lanes or 1) * WIDTHS.get(element, 8)
