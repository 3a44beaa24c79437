"""The static checker: does every legal execution of a program end, and end the same?

A program is executed once, serially, in an order its tokens allow. Engines, token queues and
command queues form a network in which an enabled step stays enabled, so if this order comes to its
end every order does, and if it stands still every order does: that decides **deadlock**.
``progress.py`` decides it alone, in a few milliseconds, for every stream that the compiler writes.

On the way each instruction carries a vector clock: how many instructions of each engine have
finished before it can start, in *any* execution. Finishing is in order per engine, so

    clock(start of i)  = max(clock(start of the instruction before i), clock(tokens i pops))
    clock(token of i)  = clock(start of i), with i itself for its own engine

Tables hold, per entry of every memory and per engine, the last instruction that read and wrote it.
An access that meets a conflicting one of another engine beyond its clock is a **conflict**: in some
execution they happen the other way round. Footprints are exact, micro-op by micro-op.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Instruction, Load, Mem
from vdla.sim.checker.execution import execute
from vdla.sim.checker.finding import Finding
from vdla.sim.checker.footprint import L_MEMORY, rows_of
from vdla.sim.checker.single import (
    Tensors,
    check_addresses,
    check_fields,
    check_finish,
    check_flags,
    check_opcodes,
    check_tensors,
)
from vdla.sim.checker.words import describe, describe_tokens
from vdla.sim.stream import Bytes, Stream

__all__ = ["Finding", "Tensors", "check"]

ADDRESS_SPACE = 1 << 32


def check(
    config: Config,
    instructions: Sequence[Instruction],
    dram: Bytes | None = None,
    base: int = 0,
    tensors: Tensors | None = None,
) -> list[Finding]:
    """Everything found wrong with a program; empty when it is sound.

    Args:
        config: the accelerator.
        instructions: the program.
        dram: the memory image before the run: it bounds addresses and holds the micro-ops.
        base: the byte address of the stream.
        tensors: the first byte of every tensor in DRAM and the byte after its last one, by name;
            each LOAD and STORE then has to stay inside one of them.

    Raises:
        ValueError: the program loads micro-ops, but no ``dram`` is given.
    """
    if result := check_finish(instructions) or check_opcodes(config, instructions):
        return result
    stream = Stream.of(config, instructions, base)
    if dram is None and np.any(rows_of(stream, Load)[1][:, L_MEMORY] == Mem.UOP):
        raise ValueError("expected the DRAM image that holds the program's micro-ops, found none")
    result = check_fields(stream) + check_flags(stream)
    result += check_addresses(stream, ADDRESS_SPACE if dram is None else len(dram))
    if tensors is not None:
        result += check_tensors(stream, tensors)
    sound = np.ones(len(instructions), np.bool_)
    sound[[each.index for each in result]] = False
    raw, started = execute(stream, np.zeros(0, np.uint8) if dram is None else dram, sound)
    result += [describe(stream, row) for row in raw]
    result += describe_tokens(stream, started)
    return sorted(result, key=lambda each: each.index)
