"""Checks of single instructions: the fields, the flags and what LOAD and STORE reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import (
    Finish,
    Instruction,
    Load,
    Mem,
    Store,
    instruction_bytes,
    instruction_set,
)
from vdla.isa.instructions import memories as known_memories
from vdla.sim.checker.finding import Finding, line_of, name_of
from vdla.sim.checker.footprint import (
    L_DRAM,
    L_MEMORY,
    L_SRAM,
    S_MEMORY,
    dram_ends,
    inp_ends,
    load_footprint,
    rows_of,
    stays_on_chip,
    store_footprint,
)
from vdla.sim.stream import POPS, PUSHES, Rows, Stream

Tensors = Mapping[str, tuple[int, int]]  # by name, the first byte and the one after the last


def check_finish(instructions: Sequence[Instruction]) -> list[Finding]:
    """A FINISH that isn't there, or that isn't the last instruction alone."""
    ends = [i for i, each in enumerate(instructions) if isinstance(each, Finish)]
    last = len(instructions) - 1
    if not ends:
        return [Finding("finish", max(last, 0), f"expected FINISH at {last + 1}, found the end")]
    return [
        Finding("finish", i, f"expected the only FINISH at {last}, found one at {i}")
        for i in ends
        if i != last or len(ends) > 1
    ]


def check_opcodes(config: Config, instructions: Sequence[Instruction]) -> list[Finding]:
    """Instructions that the config's machine doesn't have: it stops at the first."""
    findings, known = [], [cls.opcode for cls in instruction_set(config)]
    for i, each in enumerate(instructions):
        expected = _one_of("opcode", known)
        if each.option and not each.exists(config):
            expected, actual = f"a config with {each.option}", config.name
        elif each.op not in known:
            actual = str(each.op)
        else:
            continue
        text = f"{each.mnemonic} {i}: expected {expected}, found {actual}"
        findings.append(Finding("field", i, text))
    return findings


def check_fields(stream: Stream) -> list[Finding]:
    """Values that a field can't encode, or that name nothing."""
    findings = []
    for cls in instruction_set(stream.config):
        at, rows = rows_of(stream, cls)
        for i, f in enumerate(cls.fields):
            low, high = f.bounds(stream.config)
            wrong, expected = (rows[:, i] < low) | (rows[:, i] > high), f"{low} ≤ {f.name} ≤ {high}"
            if legal := f.legal(stream.config):
                wrong, expected = ~np.isin(rows[:, i], legal), _one_of(f.name, legal)
            for k in np.flatnonzero(wrong):
                text = f"{name_of(stream, int(at[k]))}: expected {expected}, found {rows[k, i]}"
                findings.append(Finding("field", int(at[k]), text))
    return findings


def _one_of(name: str, legal: Sequence[int]) -> str:
    """Values that a field should hold, in words; an option that is off may leave a gap."""
    if len(legal) == legal[-1] - legal[0] + 1:
        return f"{legal[0]} ≤ {name} ≤ {legal[-1]}"
    return f"{name} in {', '.join(map(str, legal))}"


def check_flags(stream: Stream) -> list[Finding]:
    """Token flags of FINISH, which has no queues."""
    last = len(stream.instructions) - 1
    if not stream.rows[last, [*POPS, *PUSHES]].any():
        return []
    return [Finding("field", last, f"{name_of(stream, last)}: expected no token flags, found some")]


def check_addresses(stream: Stream, dram_bytes: int) -> list[Finding]:
    """Buffer and DRAM addresses of LOAD and STORE, and where the stream itself lies."""
    config = stream.config
    size = instruction_bytes(config) * len(stream.instructions)
    findings = []
    if stream.base % config.port_bytes:
        text = f"expected the stream at a multiple of {config.port_bytes}"
        findings.append(Finding("align", 0, f"{text}, found {stream.base:#x}"))
    if stream.base < 0 or stream.base + size > dram_bytes:
        text = f"expected the stream within DRAM of {dram_bytes:#x} bytes"
        findings.append(Finding("range", 0, f"{text}, found its end at {stream.base + size:#x}"))
    at, rows = rows_of(stream, Load)
    entries, words = load_footprint(rows)
    ends = np.where(entries > 0, rows[:, L_SRAM] + entries, 0)
    findings += _outside(stream, at, rows[:, L_MEMORY], ends)
    findings += _dram_outside(stream, at, rows, words, dram_bytes)
    at, rows = rows_of(stream, Store)
    entries, scales, words = store_footprint(rows)
    memories = np.where(stays_on_chip(rows), Mem.ACC, rows[:, S_MEMORY])  # what they read
    findings += _outside(stream, at, memories, entries)
    findings += _outside(stream, at, memories, scales)
    findings += _dram_outside(stream, at, rows, words, dram_bytes)
    findings += _inp_outside(stream, at, inp_ends(stream, rows, words))
    return findings


def check_tensors(stream: Stream, tensors: Tensors) -> list[Finding]:
    """LOADs and STOREs that reach in DRAM beyond the tensor in which they begin."""
    findings = []
    for cls, footprint in ((Load, load_footprint), (Store, store_footprint)):
        at, rows = rows_of(stream, cls)
        first, ends = rows[:, L_DRAM], dram_ends(stream, rows, footprint(rows)[-1])
        inside = ends == 0
        for low, high in tensors.values():
            inside |= (low <= first) & (ends <= high)
        for k in np.flatnonzero(~inside):
            index = int(at[k])
            text = f"{name_of(stream, index)}: expected bytes of one tensor in DRAM, found"
            text += f" {first[k]:#x}..{ends[k] - 1:#x}{_tensor_at(int(first[k]), tensors)}"
            findings.append(Finding("tensor", index, f"{text}; {line_of(stream, index)}"))
    return findings


def _tensor_at(address: int, tensors: Tensors) -> str:
    """Place of the tensor that has the byte at an address, for a message."""
    for name, (low, high) in tensors.items():
        if low <= address < high:
            return f", where {name} is {low:#x}..{high - 1:#x}"
    return ", which begin in none"


def _outside(stream: Stream, at: Rows, memories: Rows, ends: Rows) -> list[Finding]:
    """Instructions whose buffer entries end beyond the buffer."""
    depths = np.array([stream.config.depth(m.buffer) for m in Mem] + [0] * 2, np.int64)
    known = np.isin(memories, known_memories(stream.config))
    findings = []
    for k in np.flatnonzero((ends > depths[memories]) & known):
        index, memory = int(at[k]), Mem(int(memories[k]))
        text = f"{name_of(stream, index)}: expected entries of {memory.buffer.upper()} below"
        text += f" {depths[memory]}, found {ends[k] - 1}"
        findings.append(Finding("range", index, f"{text}; {line_of(stream, index)}"))
    return findings


def _dram_outside(
    stream: Stream, at: Rows, rows: Rows, span: Rows, dram_bytes: int
) -> list[Finding]:
    """LOADs or STOREs with a misaligned DRAM address, or with one beyond the memory."""
    first, word = rows[:, L_DRAM], stream.config.port_bytes
    ends = dram_ends(stream, rows, span)
    findings = []
    for k in np.flatnonzero(first % word != 0):
        text = f"{name_of(stream, int(at[k]))}: expected dram_base to be a multiple of"
        text += f" {word}, found {first[k]:#x}"
        findings.append(Finding("align", int(at[k]), text))
    for k in np.flatnonzero(ends > dram_bytes):
        text = f"{name_of(stream, int(at[k]))}: expected DRAM addresses below {dram_bytes:#x}"
        text += f", found {ends[k] - 1:#x}; {line_of(stream, int(at[k]))}"
        findings.append(Finding("range", int(at[k]), text))
    return findings


def _inp_outside(stream: Stream, at: Rows, ends: Rows) -> list[Finding]:
    """STOREs to INP that reach beyond its last byte."""
    findings, size = [], stream.config.depth("inp") * stream.config.inp_entry
    for k in np.flatnonzero(ends > size):
        index = int(at[k])
        text = f"{name_of(stream, index)}: expected bytes of INP below {size:#x}"
        text += f", found {ends[k] - 1:#x}; {line_of(stream, index)}"
        findings.append(Finding("range", index, text))
    return findings
