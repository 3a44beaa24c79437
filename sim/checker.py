"""The static checker: does every legal execution of a program end, and end the same?

A program is executed once, serially, in an order its tokens allow. Engines, token queues and
command queues form a network in which an enabled step stays enabled, so if this order comes to its
end every order does, and if it stands still every order does: that decides **deadlock**.

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
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.isa.asm import format_instruction
from vdla.isa.config import Config, load_config
from vdla.isa.instructions import (
    INSTRUCTIONS,
    Alu,
    AluOp,
    Engine,
    Finish,
    Gemm,
    Init,
    Instruction,
    Load,
    Mem,
    Store,
    instruction_bytes,
)
from vdla.sim.semantics import load_rows
from vdla.sim.stream import (
    ENGINE_OF,
    Bytes,
    Rows,
    Stream,
    cache_lock,
    column,
    decode_uops,
    inline,
    jit,
    uop_layout,
)

LIMIT = 200  # findings of the compiled pass that are kept
ADDRESS_SPACE = 1 << 32

Numbers = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a program.

    ``kind`` is ``finish`` (no FINISH at the end, or more), ``field`` (a value no instruction may
    hold), ``align``, ``range`` (an address or index outside its memory), ``uop`` (micro-ops that
    the program itself computes), ``conflict``, ``deadlock`` or ``leftover`` (a token nobody pops).
    """

    kind: str
    index: int
    text: str


def check(
    config: Config,
    instructions: Sequence[Instruction],
    dram: Bytes | None = None,
    base: int = 0,
) -> list[Finding]:
    """Everything found wrong with a program whose stream lies at ``base``; empty when it is sound.

    ``dram`` is the memory image before the run: it bounds addresses and holds the micro-ops.

    Raises:
        ValueError: the program loads micro-ops, but no ``dram`` is given.
    """
    if found := _check_finish(instructions):
        return found
    _warm_up()
    return _check(config, instructions, dram, base)


@cache
def _warm_up() -> None:
    """Compiles the loops; one process at a time, since numba's cache doesn't bear two."""
    with cache_lock():
        _check(load_config("tiny"), [Finish()], None, 0)


def _check(
    config: Config, instructions: Sequence[Instruction], dram: Bytes | None, base: int
) -> list[Finding]:
    stream = Stream.of(config, instructions, base)
    if dram is None and np.any(_rows_of(stream, Load)[1][:, _L_MEMORY] == Mem.UOP):
        raise ValueError("expected the DRAM image that holds the program's micro-ops, found none")
    found = _check_fields(stream) + _check_flags(stream)
    found += _check_addresses(stream, ADDRESS_SPACE if dram is None else len(dram))
    sound = np.ones(len(instructions), np.bool_)
    sound[[each.index for each in found]] = False
    tables = _tables(stream, np.zeros(0, np.uint8) if dram is None else dram, sound)
    order = _order(stream)
    limit = min(config.token_queue, len(instructions))
    started = np.zeros(3, np.int64)
    _run(tables, order, limit, config.command_queue, started)
    found += (_describe(stream, row) for row in tables.found[: tables.found[-1, 0]])
    found += _check_tokens(stream, order, started, limit)
    return sorted(found, key=lambda each: each.index)


# Checks of single instructions ----------------------------------------------------------------


def _check_finish(instructions: Sequence[Instruction]) -> list[Finding]:
    ends = [i for i, each in enumerate(instructions) if isinstance(each, Finish)]
    last = len(instructions) - 1
    if not ends:
        return [Finding("finish", max(last, 0), f"expected FINISH at {last + 1}, found the end")]
    return [
        Finding("finish", i, f"expected the only FINISH at {last}, found one at {i}")
        for i in ends
        if i != last or len(ends) > 1
    ]


def _rows_of(stream: Stream, cls: type[Instruction]) -> tuple[Rows, Rows]:
    """Indices and rows of the instructions of a class."""
    at = np.flatnonzero(stream.rows[:, 0] == cls.opcode)
    return at, stream.rows[at]


def _name(stream: Stream, index: int) -> str:
    return f"{stream.instructions[index].mnemonic} {index}"


def _check_fields(stream: Stream) -> list[Finding]:
    """Values that a field can't encode, or that name nothing."""
    found = []
    for cls in INSTRUCTIONS:
        at, rows = _rows_of(stream, cls)
        for i, f in enumerate(cls.fields):
            low, high = f.bounds(stream.config)
            if f.legal:
                low, high = min(f.legal), max(f.legal)
            for k in np.flatnonzero((rows[:, i] < low) | (rows[:, i] > high)):
                text = f"{_name(stream, int(at[k]))}: expected {low} ≤ {f.name} ≤ {high}"
                found.append(Finding("field", int(at[k]), f"{text}, found {rows[k, i]}"))
    return found


def _check_flags(stream: Stream) -> list[Finding]:
    last = len(stream.instructions) - 1
    if not stream.rows[last, 1:5].any():
        return []
    return [Finding("field", last, f"{_name(stream, last)}: expected no token flags, found some")]


def _check_addresses(stream: Stream, dram_bytes: int) -> list[Finding]:
    """Buffer and DRAM addresses of LOAD and STORE, and where the stream itself lies."""
    config = stream.config
    size = instruction_bytes(config) * len(stream.instructions)
    found = []
    if stream.base % config.port_bytes:
        text = f"expected the stream at a multiple of {config.port_bytes}"
        found.append(Finding("align", 0, f"{text}, found {stream.base:#x}"))
    if stream.base < 0 or stream.base + size > dram_bytes:
        text = f"expected the stream within DRAM of {dram_bytes:#x} bytes"
        found.append(Finding("range", 0, f"{text}, found its end at {stream.base + size:#x}"))
    at, rows = _rows_of(stream, Load)
    entries, words = _load_reach(rows)
    found += _outside(stream, at, rows[:, _L_MEMORY], rows[:, _L_SRAM] + entries)
    found += _dram_outside(stream, at, rows, words, dram_bytes)
    at, rows = _rows_of(stream, Store)
    entries, scales, words = _store_reach(rows)
    found += _outside(stream, at, rows[:, _S_MEMORY], entries)
    found += _outside(stream, at, rows[:, _S_MEMORY], scales)
    found += _dram_outside(stream, at, rows, words, dram_bytes)
    return found


def _load_reach(rows: Rows) -> tuple[Rows, Rows]:
    """Buffer entries a LOAD writes, and DRAM entries from its base to the last it reads."""
    x, y, z = (rows[:, c] for c in (_L_X, _L_Y, _L_Z))
    entries = z * (y + rows[:, _L_Y0] + rows[:, _L_Y1]) * (x + rows[:, _L_X0] + rows[:, _L_X1])
    return entries, _dram_reach(rows, (_L_X, _L_Y, _L_Z), (_L_XS, _L_YS, _L_ZS))


def _store_reach(rows: Rows) -> tuple[Rows, Rows, Rows]:
    """Ends of the ACC entries and of the scales a STORE reads, and its reach in DRAM."""
    x, y, z = (rows[:, c] for c in (_S_X, _S_Y, _S_Z))
    some = x * y * z > 0
    last = (z - 1) * rows[:, _S_ZP] + (y - 1) * rows[:, _S_YP] + x
    scaled = some & (rows[:, _S_MEMORY] == Mem.ACC8)
    words = _dram_reach(rows, (_S_X, _S_Y, _S_Z), (_S_XS, _S_YS, _S_ZS))
    return some * (rows[:, _S_SRAM] + last), scaled * (rows[:, _S_SCALE] + z), words


def _dram_reach(rows: Rows, sizes: Sequence[int], strides: Sequence[int]) -> Rows:
    last = np.ones(len(rows), np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        last += (rows[:, size] - 1) * rows[:, stride]
    reach: Rows = last * np.all(rows[:, list(sizes)] > 0, axis=1)
    return reach


def _outside(stream: Stream, at: Rows, memories: Rows, ends: Rows) -> list[Finding]:
    """Instructions whose buffer entries end beyond the buffer."""
    depths = np.array([stream.config.depth(m.buffer) for m in Mem] + [0] * 3, np.int64)
    found = []
    for k in np.flatnonzero((ends > depths[memories]) & (memories < len(Mem))):
        index, memory = int(at[k]), Mem(int(memories[k]))
        text = f"{_name(stream, index)}: expected entries of {memory.buffer.upper()} below"
        text += f" {depths[memory]}, found {ends[k] - 1}"
        found.append(Finding("range", index, f"{text}; {_line(stream, index)}"))
    return found


def _dram_outside(
    stream: Stream, at: Rows, rows: Rows, reach: Rows, dram_bytes: int
) -> list[Finding]:
    """LOADs or STOREs with a misaligned DRAM address, or with one beyond the memory."""
    config = stream.config
    sizes = np.array([config.entry(m.name.lower()) for m in Mem] + [0] * 3, np.int64)
    first = rows[:, _L_DRAM]
    ends = (reach > 0) * (first + reach * sizes[rows[:, _L_MEMORY]])
    found = []
    for k in np.flatnonzero((reach > 0) & (first % config.port_bytes != 0)):
        text = f"{_name(stream, int(at[k]))}: expected dram_base to be a multiple of"
        text += f" {config.port_bytes}, found {first[k]:#x}"
        found.append(Finding("align", int(at[k]), text))
    for k in np.flatnonzero(ends > dram_bytes):
        text = f"{_name(stream, int(at[k]))}: expected DRAM addresses below {dram_bytes:#x}"
        text += f", found {ends[k] - 1:#x}; {_line(stream, int(at[k]))}"
        found.append(Finding("range", int(at[k]), text))
    return found


# Tables of the compiled pass ------------------------------------------------------------------

_INP, _WGT, _ACC, _UOP, _DRAM = range(5)  # memories, as the tables number them
_MEMORIES = ("INP", "WGT", "ACC", "UOP", "DRAM")
_CONFLICT, _INDEX_RANGE, _UOP_RANGE, _COMPUTED, _STREAM = range(5)  # kinds of raw findings
_READ, _WRITE = 0, 1


class Tables(NamedTuple):
    """What the compiled pass works on. Instructions of an engine are numbered from 1."""

    rows: Rows
    sound: Mask  # instructions whose own checks passed: the others touch nothing
    dram: Bytes
    uop_raw: Bytes
    uop_layout: Rows
    uops: Rows
    depth: Rows  # [memory] entries; for DRAM the bytes of a port word
    offset: Rows  # [memory] where its entries lie in ``read`` and ``written``
    beats: Rows  # [Mem] port words of an entry
    stream_words: Rows  # first and last + 1 port word that fetch reads
    read: Rows  # [engine, entry] its last instruction that read the entry
    written: Rows
    dram_read: Numbers  # [port word] the last LOAD that read it
    dram_written: Numbers
    clock: Rows  # [engine] instructions that finished before the current one starts
    found: Rows  # kind, instruction, other engine, its number, memory, entry, accesses; last: count


def _tables(stream: Stream, dram: Bytes, sound: Mask) -> Tables:
    config = stream.config
    depths = [config.depth(m) for m in ("inp", "wgt", "acc", "uop")]
    words = _dram_end(stream, sound) // config.port_bytes + 1
    size = instruction_bytes(config) * len(stream.instructions)
    ends = np.array([stream.base, stream.base + size], np.int64) // config.port_bytes
    return Tables(
        rows=stream.rows,
        sound=sound,
        dram=dram,
        uop_raw=np.zeros((config.depth("uop"), config.entry("uop")), np.uint8),
        uop_layout=uop_layout(config),
        uops=np.zeros((config.uop_depth, 4), np.int64),
        depth=np.array([*depths, config.port_bytes], np.int64),
        offset=np.cumsum([0, *depths]),
        beats=np.array([config.entry(m.name.lower()) // config.port_bytes for m in Mem]),
        stream_words=ends,
        read=np.zeros((3, sum(depths)), np.int64),
        written=np.zeros((3, sum(depths)), np.int64),
        dram_read=np.zeros(words, np.int32),
        dram_written=np.zeros(words, np.int32),
        clock=np.zeros(3, np.int64),
        found=np.zeros((LIMIT + 1, 8), np.int64),
    )


def _dram_end(stream: Stream, sound: Mask) -> int:
    """The first byte after everything that sound LOADs and STOREs reach."""
    config, end = stream.config, 0
    sizes = np.array([config.entry(m.name.lower()) for m in Mem] + [0] * 3, np.int64)
    for cls in (Load, Store):
        at, rows = _rows_of(stream, cls)
        rows = rows[sound[at]]
        reach = _load_reach(rows)[-1] if cls is Load else _store_reach(rows)[-1]
        ends = (reach > 0) * (rows[:, _L_DRAM] + reach * sizes[rows[:, _L_MEMORY]])
        end = max(end, int(ends.max(initial=0)))
    return end


def _order(stream: Stream) -> Rows:
    """Per engine its instructions in program order; -1 after the last."""
    lists = [stream.engine(engine) for engine in Engine]
    order = np.full((3, max(map(len, lists)) + 1), -1, np.int64)
    for row, indices in zip(order, lists, strict=True):
        row[: len(indices)] = indices
    return order


# The compiled pass ----------------------------------------------------------------------------

_POP_PREV, _POP_NEXT = column(Load, "pop_prev"), column(Load, "pop_next")
_PUSH_PREV, _PUSH_NEXT = column(Load, "push_prev"), column(Load, "push_next")
_LOAD, _COMPUTE, _STORE = (int(engine) for engine in Engine)
_LOAD_OP, _STORE_OP, _GEMM_OP = Load.opcode, Store.opcode, Gemm.opcode

_L_MEMORY, _L_SRAM = column(Load, "memory"), column(Load, "sram_base")
_L_DRAM = column(Load, "dram_base")  # STORE has memory and dram_base in the same columns
_L_X, _L_Y, _L_Z = (column(Load, f"{a}_size") for a in "xyz")
_L_XS, _L_YS, _L_ZS = (column(Load, f"{a}_stride") for a in "xyz")
_L_X0, _L_X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
_L_Y0, _L_Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
_L_PAD = column(Load, "pad_value")
_S_MEMORY, _S_SRAM = column(Store, "memory"), column(Store, "sram_base")
_S_X, _S_Y, _S_Z = (column(Store, f"{a}_size") for a in "xyz")
_S_YP, _S_ZP = column(Store, "y_pitch"), column(Store, "z_pitch")
_S_XS, _S_YS, _S_ZS = (column(Store, f"{a}_stride") for a in "xyz")
_S_SCALE = column(Store, "scale_base")
_C_UOP, _C_COUNT = column(Gemm, "uop_begin"), column(Gemm, "uop_count")
_C_E0, _C_E1, _C_E2 = (column(Gemm, f"extent_{i}") for i in range(3))
_C_DST, _C_SRC = column(Gemm, "dst_base"), column(Gemm, "src_base")
_G_INIT, _G_WGT, _G_BIAS = (column(Gemm, f) for f in ("init", "wgt_base", "bias_base"))
_A_OP, _A_USE_IMM = column(Alu, "alu_op"), column(Alu, "use_imm")
_MEM_UOP, _MEM_ACC8 = int(Mem.UOP), int(Mem.ACC8)
_BIAS, _WADD = int(Init.BIAS), int(AluOp.WADD)
_TABLE_OF = np.array([_INP, _WGT, _ACC, _ACC, _UOP], np.int64)  # [Mem] which memory

# Queue 2e holds what engine e pops from its prev, queue 2e + 1 what it pops from its next.
_TO_PREV = np.array([2 * ((e + 2) % 3) + 1 for e in range(3)], np.int64)
_TO_NEXT = np.array([2 * ((e + 1) % 3) for e in range(3)], np.int64)


@jit
def _run(t: Tables, order: Rows, limit: int, queue: int, started: Rows) -> None:
    """Executes serially as far as tokens and queues allow; ``started`` counts per engine."""
    last = t.rows.shape[0] - 1
    dispatched = 0
    issued = np.zeros(3, np.int64)
    pushed, popped = np.zeros(6, np.int64), np.zeros(6, np.int64)
    token_clocks = np.zeros((6, limit, 3), np.int64)
    clocks = np.zeros((3, 3), np.int64)
    while True:
        while dispatched < last:
            engine = ENGINE_OF[t.rows[dispatched, 0]]
            if issued[engine] - started[engine] >= queue:
                break
            issued[engine] += 1
            dispatched += 1
        engine = _first_ready(t.rows, order, issued, started, pushed, popped, limit)
        if engine < 0:
            return
        index = order[engine, started[engine]]
        started[engine] += 1
        _pop(t.rows, index, engine, popped, token_clocks, clocks)
        for other in range(3):
            t.clock[other] = clocks[engine, other]
        if t.sound[index]:
            _access(t, index, engine, started[engine])
        _push(t.rows, index, engine, started[engine], pushed, token_clocks, clocks)


@inline
def _first_ready(
    rows: Rows, order: Rows, issued: Rows, started: Rows, pushed: Rows, popped: Rows, limit: int
) -> int:
    """The engine whose next instruction can start; of several, the earliest in the program."""
    best, index = -1, rows.shape[0]
    for engine in range(3):
        if started[engine] < issued[engine]:
            row = order[engine, started[engine]]
            from_prev, from_next = 2 * engine, 2 * engine + 1
            to_prev, to_next = _TO_PREV[engine], _TO_NEXT[engine]
            if (
                row < index
                and pushed[from_prev] - popped[from_prev] >= rows[row, _POP_PREV]
                and pushed[from_next] - popped[from_next] >= rows[row, _POP_NEXT]
                and limit - (pushed[to_prev] - popped[to_prev]) >= rows[row, _PUSH_PREV]
                and limit - (pushed[to_next] - popped[to_next]) >= rows[row, _PUSH_NEXT]
            ):
                best, index = engine, row
    return best


@inline
def _pop(
    rows: Rows, index: int, engine: int, popped: Rows, token_clocks: Rows, clocks: Rows
) -> None:
    for side in range(2):
        if rows[index, _POP_PREV + side]:
            queue = 2 * engine + side
            slot = popped[queue] % token_clocks.shape[1]
            popped[queue] += 1
            for other in range(3):
                clocks[engine, other] = max(clocks[engine, other], token_clocks[queue, slot, other])


@inline
def _push(
    rows: Rows,
    index: int,
    engine: int,
    number: int,
    pushed: Rows,
    token_clocks: Rows,
    clocks: Rows,
) -> None:
    for side in range(2):
        if rows[index, _PUSH_PREV + side]:
            queue = _TO_NEXT[engine] if side else _TO_PREV[engine]
            slot = pushed[queue] % token_clocks.shape[1]
            pushed[queue] += 1
            for other in range(3):
                token_clocks[queue, slot, other] = clocks[engine, other]
            token_clocks[queue, slot, engine] = number


@jit
def _access(t: Tables, index: int, engine: int, number: int) -> None:
    """Everything one instruction reads and writes."""
    opcode = t.rows[index, 0]
    if opcode == _LOAD_OP:
        _load(t, index, number)
    elif opcode == _STORE_OP:
        _store(t, index, number)
    elif _nest_fits(t, index):
        _nest(t, index, number)


@jit
def _load(t: Tables, index: int, number: int) -> None:
    row = t.rows[index]
    memory, beats = _TABLE_OF[row[_L_MEMORY]], t.beats[row[_L_MEMORY]]
    first = row[_L_DRAM] // t.depth[_DRAM]
    for z in range(row[_L_Z]):
        for y in range(row[_L_Y]):
            for x in range(row[_L_X]):
                entry = z * row[_L_ZS] + y * row[_L_YS] + x * row[_L_XS]
                for word in range(first + entry * beats, first + (entry + 1) * beats):
                    _read_dram(t, index, number, word)
    height = row[_L_Y0] + row[_L_Y] + row[_L_Y1]
    width = row[_L_X0] + row[_L_X] + row[_L_X1]
    for entry in range(row[_L_SRAM], row[_L_SRAM] + row[_L_Z] * height * width):
        _touch(t, index, _LOAD, number, memory, entry, _WRITE)
    if memory == _UOP:
        n = load_rows(row, t.dram, t.uop_raw, int(row[_L_PAD] & 0xFF))
        raw = t.uop_raw[row[_L_SRAM] : row[_L_SRAM] + n].reshape(-1)
        decode_uops(raw, t.uop_layout, t.uops, row[_L_SRAM] * t.uop_layout[4, 1])


@jit
def _store(t: Tables, index: int, number: int) -> None:
    row = t.rows[index]
    beats, first = t.beats[row[_S_MEMORY]], row[_L_DRAM] // t.depth[_DRAM]
    some = row[_S_X] * row[_S_Y] > 0
    for z in range(row[_S_Z]):
        if some and row[_S_MEMORY] == _MEM_ACC8:
            _touch(t, index, _STORE, number, _ACC, row[_S_SCALE] + z, _READ)
        for y in range(row[_S_Y]):
            for x in range(row[_S_X]):
                at = row[_S_SRAM] + z * row[_S_ZP] + y * row[_S_YP] + x
                _touch(t, index, _STORE, number, _ACC, at, _READ)
                entry = z * row[_S_ZS] + y * row[_S_YS] + x * row[_S_XS]
                for word in range(first + entry * beats, first + (entry + 1) * beats):
                    _write_dram(t, index, number, word)


@jit
def _nest_fits(t: Tables, index: int) -> bool:
    """Whether a GEMM or ALU stays within its memories; reports where it doesn't."""
    row = t.rows[index]
    if row[_C_E0] * row[_C_E1] * row[_C_E2] * row[_C_COUNT] == 0:
        return False  # nothing to access
    end = row[_C_UOP] + row[_C_COUNT]
    if end > t.uops.shape[0]:
        _report(t.found, _UOP_RANGE, index, 0, 0, _UOP, end - 1, _READ, _READ)
        return False
    fits = _index_fits(t, index, _C_DST, 1, _ACC)
    if row[0] == _GEMM_OP:
        fits &= _index_fits(t, index, _C_SRC, 2, _INP)
        fits &= _index_fits(t, index, _G_WGT, 3, _WGT)
        if row[_G_INIT] == _BIAS:
            fits &= _index_fits(t, index, _G_BIAS, -1, _ACC)
    elif not row[_A_USE_IMM] or row[_A_OP] == _WADD:
        fits &= _index_fits(t, index, _C_SRC, 2, _ACC)
    return fits


@jit
def _index_fits(t: Tables, index: int, base: int, field: int, memory: int) -> bool:
    """Checks the largest index that a base, its loop steps and a micro-op field make."""
    row = t.rows[index]
    largest = row[base]
    for loop in range(3):
        largest += (row[_C_E0 + loop] - 1) * row[base + 1 + loop]
    most = 0
    if field >= 0:
        for u in range(row[_C_UOP], row[_C_UOP] + row[_C_COUNT]):
            most = max(most, t.uops[u, field])
    if largest + most < t.depth[memory]:
        return True
    _report(t.found, _INDEX_RANGE, index, 0, 0, memory, largest + most, _READ, _READ)
    return False


@jit
def _nest(t: Tables, index: int, number: int) -> None:
    """A read of dst needs no record beside its write: a write conflicts with all a read does."""
    row = t.rows[index]
    first, end = row[_C_UOP], row[_C_UOP] + row[_C_COUNT]
    per_word = t.uop_layout[4, 1]
    for word in range(first // per_word, (end - 1) // per_word + 1):
        _touch(t, index, _COMPUTE, number, _UOP, word, _READ)
    gemm = row[0] == _GEMM_OP
    reads_src = gemm or not row[_A_USE_IMM] or row[_A_OP] == _WADD
    source = _INP if gemm else _ACC
    read, written = t.read[_COMPUTE], t.written[_COMPUTE]
    to_dst, to_src, to_wgt = t.offset[_ACC], t.offset[source], t.offset[_WGT]
    for i0 in range(row[_C_E0]):
        for i1 in range(row[_C_E1]):
            for i2 in range(row[_C_E2]):
                dst, src = _at(row, _C_DST, i0, i1, i2), _at(row, _C_SRC, i0, i1, i2)
                wgt = _at(row, _G_WGT, i0, i1, i2)
                if row[_G_INIT] == _BIAS and gemm:
                    _read_bias(t, index, number, _at(row, _G_BIAS, i0, i1, i2))
                for u in range(first, end):  # most entries are touched again and again
                    to, at, tile = dst + t.uops[u, 1], src + t.uops[u, 2], wgt + t.uops[u, 3]
                    if written[to_dst + to] != number:
                        _touch(t, index, _COMPUTE, number, _ACC, to, _WRITE)
                    if reads_src and read[to_src + at] != number:
                        _touch(t, index, _COMPUTE, number, source, at, _READ)
                    if gemm and read[to_wgt + tile] != number:
                        _touch(t, index, _COMPUTE, number, _WGT, tile, _READ)


@inline
def _read_bias(t: Tables, index: int, number: int, entry: int) -> None:
    """One iteration's bias, which every micro-op marked first starts from."""
    row = t.rows[index]
    for u in range(row[_C_UOP], row[_C_UOP] + row[_C_COUNT]):
        if t.uops[u, 0]:
            _touch(t, index, _COMPUTE, number, _ACC, entry, _READ)
            return


@inline
def _at(row: Rows, base: int, i0: int, i1: int, i2: int) -> int:
    at: int = row[base] + i0 * row[base + 1] + i1 * row[base + 2] + i2 * row[base + 3]
    return at


@jit
def _touch(
    t: Tables, index: int, engine: int, number: int, memory: int, entry: int, access: int
) -> None:
    """Checks one access to a buffer against the other engines' last ones, and enters it."""
    at = t.offset[memory] + entry
    for step in range(1, 3):
        other = (engine + step) % 3
        last, theirs = t.written[other, at], _WRITE
        if access == _WRITE and last <= t.clock[other]:
            last, theirs = t.read[other, at], _READ
        if last > t.clock[other]:
            _report(t.found, _CONFLICT, index, other, last, memory, entry, theirs, access)
    if access == _WRITE:
        t.written[engine, at] = number
    else:
        t.read[engine, at] = number


@inline
def _read_dram(t: Tables, index: int, number: int, word: int) -> None:
    store = int(np.int64(t.dram_written[word]))
    if store > t.clock[_STORE]:
        _report(t.found, _CONFLICT, index, _STORE, store, _DRAM, word, _WRITE, _READ)
    if store and t.rows[index, _L_MEMORY] == _MEM_UOP:
        _report(t.found, _COMPUTED, index, _STORE, store, _DRAM, word, _WRITE, _READ)
    t.dram_read[word] = number


@inline
def _write_dram(t: Tables, index: int, number: int, word: int) -> None:
    load = int(np.int64(t.dram_read[word]))
    if load > t.clock[_LOAD]:
        _report(t.found, _CONFLICT, index, _LOAD, load, _DRAM, word, _READ, _WRITE)
    if t.stream_words[0] <= word < t.stream_words[1]:
        _report(t.found, _STREAM, index, _COMPUTE, 0, _DRAM, word, _READ, _WRITE)
    t.dram_written[word] = number


@jit
def _report(
    found: Rows,
    kind: int,
    index: int,
    other: int,
    number: int,
    memory: int,
    entry: int,
    theirs: int,
    ours: int,
) -> None:
    """Keeps a finding: of one instruction, the first per memory, other engine and accesses."""
    count = found[-1, 0]
    if count == LIMIT:
        return
    at = count - 1
    while at >= 0 and found[at, 1] == index:
        same = found[at, 0] == kind and found[at, 2] == other and found[at, 4] == memory
        if same and found[at, 6] == theirs and found[at, 7] == ours:
            return
        at -= 1
    row = found[count]
    row[0], row[1], row[2], row[3] = kind, index, other, number
    row[4], row[5], row[6], row[7] = memory, entry, theirs, ours
    found[-1, 0] += 1


# Findings in words ----------------------------------------------------------------------------


def _line(stream: Stream, index: int) -> str:
    return f"{index} is `{format_instruction(stream.instructions[index])}`"


def _describe(stream: Stream, raw: Rows) -> Finding:
    kind, index, engine, number, memory, entry, theirs, ours = map(int, raw)
    name = _name(stream, index)
    if kind in (_INDEX_RANGE, _UOP_RANGE):
        depth = stream.config.uop_depth
        if kind == _INDEX_RANGE:
            depth = stream.config.depth(_MEMORIES[memory].lower())
        what = "micro-ops" if kind == _UOP_RANGE else f"indices of {_MEMORIES[memory]}"
        text = f"{name}: expected {what} below {depth}, found {entry}; {_line(stream, index)}"
        return Finding("range", index, text)
    place = _place(stream, memory, entry)
    if kind == _STREAM:
        text = f"{name} writes {place}, which lies in the instruction stream that fetch reads"
        return Finding("conflict", index, f"{text}; {_line(stream, index)}")
    other = int(stream.engine(Engine(engine))[number - 1])
    if kind == _COMPUTED:
        text = f"{name} loads micro-ops from {place} that {_name(stream, other)} writes: they are"
        return Finding("uop", index, f"{text} not known before the run; {_line(stream, index)}")
    accesses = {index: ours, other: theirs}
    return Finding("conflict", index, _conflict_text(stream, accesses, place))


def _place(stream: Stream, memory: int, entry: int) -> str:
    if memory == _DRAM:
        return f"DRAM[{entry * stream.config.port_bytes:#x}]"
    return f"{_MEMORIES[memory]}[{entry}]"


def _conflict_text(stream: Stream, accesses: dict[int, int], place: str) -> str:
    """Names both instructions, and the flags that would order them as the program has them."""
    first, second = sorted(accesses)
    one, two = _name(stream, first), _name(stream, second)
    before = stream.instructions[first].engine
    verb = "writes" if accesses[second] == _WRITE else "reads"
    yet = "may still read" if accesses[first] == _READ else "may not have written yet"
    forward = stream.instructions[second].engine == before.next
    push, pop = ("push_next", "pop_prev") if forward else ("push_prev", "pop_next")
    return (
        f"{two} {verb} {place} that {one} {yet}: no token from {before.name} orders them; "
        f"{one} would {push} and {two} {pop}; {_line(stream, first)}; {_line(stream, second)}"
    )


def _check_tokens(stream: Stream, order: Rows, started: Rows, limit: int) -> list[Finding]:
    """Deadlock, when instructions are left; otherwise tokens left in a queue."""
    if started.sum() == len(stream.instructions) - 1:
        return _leftovers(stream)
    heads = [int(order[engine, started[engine]]) for engine in Engine]
    blocked = _undispatched(stream, started)
    found = []
    for engine, head in zip(Engine, heads, strict=True):
        if head >= 0 and (blocked is None or head < blocked):
            reasons = _lacks(stream, head, started, limit)
            text = f"deadlock: {engine.name} stands at {_name(stream, head)}: {'; '.join(reasons)}"
            found.append(Finding("deadlock", head, f"{text}; {_line(stream, head)}"))
    if blocked is not None:
        engine = stream.instructions[blocked].engine
        text = f"deadlock: {_name(stream, blocked)} is never dispatched: {engine.name}'s queue of"
        text += f" {stream.config.command_queue} is full, with {_name(stream, heads[engine])} first"
        found.append(Finding("deadlock", blocked, f"{text}; {_line(stream, blocked)}"))
    return found


def _undispatched(stream: Stream, started: Rows) -> int | None:
    """The instruction at which fetch stands because a command queue is full."""
    issued = [0, 0, 0]
    for index, each in enumerate(stream.instructions[:-1]):
        if issued[each.engine] - started[each.engine] >= stream.config.command_queue:
            return index
        issued[each.engine] += 1
    return None


def _lacks(stream: Stream, head: int, started: Rows, limit: int) -> list[str]:
    """The tokens and slots that an instruction can't start without."""
    each, engine = stream.instructions[head], stream.instructions[head].engine
    reasons = []
    for other, pop, push in (
        (engine.prev, "pop_prev", "push_next"),
        (engine.next, "pop_next", "push_prev"),
    ):
        pushers, poppers = _flagged(stream, other, push), _flagged(stream, engine, pop)
        taken = int(np.searchsorted(poppers, head))
        given = int(np.searchsorted(pushers, _reached(stream, other, started)))
        if getattr(each, pop) and given <= taken:
            source = "no instruction gives"
            if taken < len(pushers):
                source = f"{_name(stream, int(pushers[taken]))} would give"
            reasons.append(f"the token it pops from {other.name} is one that {source}")
    for other, push, pop in (
        (engine.prev, "push_prev", "pop_next"),
        (engine.next, "push_next", "pop_prev"),
    ):
        pushers, poppers = _flagged(stream, engine, push), _flagged(stream, other, pop)
        given = int(np.searchsorted(pushers, head))
        taken = int(np.searchsorted(poppers, _reached(stream, other, started)))
        if getattr(each, push) and given - taken >= limit:
            reasons.append(f"the queue it pushes to {other.name} holds {limit} tokens, all taken")
    return reasons


def _flagged(stream: Stream, engine: Engine, flag: str) -> Rows:
    """An engine's instructions that have a token flag."""
    indices = stream.engine(engine)
    flagged: Rows = indices[stream.rows[indices, column(Load, flag)] != 0]
    return flagged


def _reached(stream: Stream, engine: Engine, started: Rows) -> int:
    """The index of the first instruction that an engine hasn't started."""
    indices = stream.engine(engine)
    count = int(started[engine])
    return int(indices[count]) if count < len(indices) else len(stream.instructions)


def _leftovers(stream: Stream) -> list[Finding]:
    found = []
    for engine in Engine:
        for other, push, pop in (
            (engine.prev, "push_prev", "pop_next"),
            (engine.next, "push_next", "pop_prev"),
        ):
            pushers, poppers = _flagged(stream, engine, push), _flagged(stream, other, pop)
            for index in map(int, pushers[len(poppers) :]):
                text = f"{_name(stream, index)} {push}: {other.name} pops {len(poppers)} tokens"
                text += f" of {len(pushers)}, and never this one; {_line(stream, index)}"
                found.append(Finding("leftover", index, text))
    return found
