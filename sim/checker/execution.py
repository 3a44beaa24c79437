"""The compiled pass: a program executed once, serially, each access against those before it.

Options add what their instructions touch (``access_more``), and what an ALU instruction reads of
memories of their own (``nest_fits_more``, ``touch_more``).
"""

from __future__ import annotations

import numpy as np

from vdla.isa.instructions import (
    Alu,
    AluOp,
    Gemm,
    Init,
    Load,
    Mem,
    Store,
)
from vdla.isa.operations import bits_of
from vdla.isa.ring import Engine
from vdla.sim.checker.footprint import (
    L_DRAM,
    L_MEMORY,
    L_SRAM,
    L_X,
    L_X0,
    L_X1,
    L_XS,
    L_Y,
    L_Y0,
    L_Y1,
    L_YS,
    L_Z,
    L_ZS,
    S_MEMORY,
    S_SCALE,
    S_SRAM,
    S_X,
    S_XS,
    S_Y,
    S_YP,
    S_YS,
    S_Z,
    S_ZP,
    S_ZS,
)
from vdla.sim.checker.tables import (
    ACC,
    BUFFERS,
    COMPUTED,
    CONFLICT,
    DRAM,
    INDEX_RANGE,
    INP,
    LIMIT,
    READ,
    STREAM,
    UOP,
    UOP_RANGE,
    WGT,
    WRITE,
    Mask,
    Tables,
    make_tables,
)
from vdla.sim.checker.tokens import Queues, dispatch, first_ready, make_queues
from vdla.sim.compiled import compiled, inline, shared
from vdla.sim.compiled.seams import seam
from vdla.sim.nest import is_empty, place, src_reach
from vdla.sim.stream import POPS, PUSHES, Bytes, Rows, Stream, column
from vdla.sim.transfers import load_uops


def execute(stream: Stream, dram: Bytes, sound: Mask) -> tuple[Rows, Rows]:
    """Runs a program as far as it goes.

    Args:
        stream: the program.
        dram: the memory image before the run.
        sound: per instruction, whether its own checks passed: the others touch nothing.

    Returns:
        Raw findings, and per engine the number of instructions that started.
    """
    tables, queues = make_tables(stream, dram, sound), make_queues(stream, stream.config)
    engines = len(Engine)
    token_clocks = np.zeros((len(queues.pushed), queues.limit, engines), np.int64)
    _run(tables, queues, token_clocks, np.zeros((engines, engines), np.int64))
    return tables.findings[: tables.findings[-1, 0]], queues.started


# The pass ---------------------------------------------------------------------------------------

_ENGINES = len(Engine)
_LOAD, _COMPUTE, _STORE = int(Engine.LOAD), int(Engine.COMPUTE), int(Engine.STORE)
_LOAD_OP, _STORE_OP, _GEMM_OP, _ALU_OP = (cls.opcode for cls in (Load, Store, Gemm, Alu))

_C_UOP, _C_COUNT = column(Gemm, "uop_begin"), column(Gemm, "uop_count")
_C_E0, _C_E1, _C_E2 = (column(Gemm, f"extent_{i}") for i in range(3))
_C_DST, _C_SRC = column(Gemm, "dst_base"), column(Gemm, "src_base")
_G_INIT, _G_WGT, _G_BIAS = (column(Gemm, f) for f in ("init", "wgt_base", "bias_base"))
_A_OP, _A_USE_IMM = column(Alu, "alu_op"), column(Alu, "use_imm")
_MEM_ACC, _MEM_ACC8, _MEM_UOP = int(Mem.ACC), int(Mem.ACC8), int(Mem.UOP)
_BIAS = int(Init.BIAS)
_FROM_ACC = bits_of(op for op in AluOp if op.y_from_acc)
_BUFFER_OF = np.array([BUFFERS.index(each.buffer) for each in Mem], np.int64)


@compiled("checker")
def _run(t: Tables, q: Queues, token_clocks: Rows, clocks: Rows) -> None:
    """Executes serially as far as tokens and queues allow.

    ``token_clocks`` [token queue, slot, engine] and ``clocks`` [engine, engine] are room for the
    clocks of tokens, and of each engine's next instruction.
    """
    dispatched, engines = 0, len(q.started)
    while True:
        dispatched = dispatch(q, dispatched)
        engine = first_ready(q)
        if engine < 0:
            return
        index = q.order[engine, q.started[engine]]
        q.started[engine] += 1
        _pop(q, index, engine, token_clocks, clocks)
        for other in range(engines):
            t.clock[other] = clocks[engine, other]
        if t.sound[index]:
            _access(t, index, engine, q.started[engine])
        _push(q, index, engine, token_clocks, clocks)


@inline
def _pop(q: Queues, index: int, engine: int, token_clocks: Rows, clocks: Rows) -> None:
    for side in range(len(POPS)):
        if q.rows[index, POPS[side]]:
            queue = q.pops[engine, side]
            slot = q.popped[queue] % q.limit
            q.popped[queue] += 1
            for other in range(len(q.started)):
                clocks[engine, other] = max(clocks[engine, other], token_clocks[queue, slot, other])


@inline
def _push(q: Queues, index: int, engine: int, token_clocks: Rows, clocks: Rows) -> None:
    for side in range(len(PUSHES)):
        if q.rows[index, PUSHES[side]]:
            queue = q.pushes[engine, side]
            slot = q.pushed[queue] % q.limit
            q.pushed[queue] += 1
            for other in range(len(q.started)):
                token_clocks[queue, slot, other] = clocks[engine, other]
            token_clocks[queue, slot, engine] = q.started[engine]


@shared
def _access(t: Tables, index: int, engine: int, number: int) -> None:
    """Everything one instruction reads and writes."""
    opcode = t.rows[index, 0]
    if opcode == _LOAD_OP:
        _load(t, index, number)
    elif opcode == _STORE_OP:
        _store(t, index, number)
    elif opcode != _GEMM_OP and opcode != _ALU_OP:
        access_more(opcode, t, index, engine, number)
    elif _nest_fits(t, index):
        _nest(t, index, engine, number)


@shared
def _load(t: Tables, index: int, number: int) -> None:
    row = t.rows[index]
    memory, beats = _BUFFER_OF[row[L_MEMORY]], t.beats[row[L_MEMORY]]
    first = row[L_DRAM] // t.depth[DRAM]
    for z in range(row[L_Z]):
        for y in range(row[L_Y]):
            for x in range(row[L_X]):
                entry = z * row[L_ZS] + y * row[L_YS] + x * row[L_XS]
                for word in range(first + entry * beats, first + (entry + 1) * beats):
                    _read_dram(t, index, number, word)
    height = row[L_Y0] + row[L_Y] + row[L_Y1]
    width = row[L_X0] + row[L_X] + row[L_X1]
    for entry in range(row[L_SRAM], row[L_SRAM] + row[L_Z] * height * width):
        touch(t, index, _LOAD, number, memory, entry, WRITE)
    if memory == UOP:
        load_uops(row, t.dram, t.uop_raw, t.uop_layout, t.uops)


@shared
def _store(t: Tables, index: int, number: int) -> None:
    row = t.rows[index]
    narrow = row[S_MEMORY] != _MEM_ACC
    buffer = _BUFFER_OF[row[S_MEMORY]]  # ACC stands for DRAM, any other one for itself
    beats, first = t.beats[_MEM_ACC8 if narrow else _MEM_ACC], row[L_DRAM] // t.depth[DRAM]
    some = row[S_X] * row[S_Y] > 0
    for z in range(row[S_Z]):
        if some and narrow:
            touch(t, index, _STORE, number, ACC, row[S_SCALE] + z, READ)
        for y in range(row[S_Y]):
            for x in range(row[S_X]):
                at = row[S_SRAM] + z * row[S_ZP] + y * row[S_YP] + x
                touch(t, index, _STORE, number, ACC, at, READ)
                entry = z * row[S_ZS] + y * row[S_YS] + x * row[S_XS]
                for word in range(first + entry * beats, first + (entry + 1) * beats):
                    if buffer != ACC:
                        entry = word // t.beats[row[S_MEMORY]]
                        touch(t, index, _STORE, number, buffer, entry, WRITE)
                    else:
                        _write_dram(t, index, number, word)


@shared
def _nest_fits(t: Tables, index: int) -> bool:
    """Whether a GEMM or ALU stays within its memories; reports where it doesn't."""
    row = t.rows[index]
    if is_empty(row):
        return False
    end = row[_C_UOP] + row[_C_COUNT]
    if end > t.uops.shape[0]:
        report(t.findings, UOP_RANGE, index, 0, 0, UOP, end - 1, READ, READ)
        return False
    fits = _index_fits(t, index, _C_DST, 1, ACC, 0)
    if row[0] == _GEMM_OP:
        fits &= _index_fits(t, index, _C_SRC, 2, INP, src_reach(row))
        fits &= _index_fits(t, index, _G_WGT, 3, WGT, 0)
        if row[_G_INIT] == _BIAS and _any_first(t, row):
            fits &= _index_fits(t, index, _G_BIAS, -1, ACC, 0)
        return fits
    if _reads_src(row):
        fits &= _index_fits(t, index, _C_SRC, 2, ACC, 0)
    fits &= nest_fits_more(t, index)
    return fits


@seam("and")
def nest_fits_more(t: Tables, index: int) -> bool:
    """Whether an ALU instruction stays within the memories of options; reports where it doesn't."""
    return True


@seam("then")
def touch_more(t: Tables, index: int, engine: int, number: int) -> None:
    """Touches what an ALU instruction reads of the memories of options."""


@seam("choice")
def access_more(opcode: int, t: Tables, index: int, engine: int, number: int) -> None:
    """Everything that an option's instruction reads and writes."""


@inline
def _any_first(t: Tables, row: Rows) -> bool:
    """Whether a micro-op of a nest is marked first, and starts from a bias if the nest has one."""
    result = False
    for u in range(row[_C_UOP], row[_C_UOP] + row[_C_COUNT]):
        result |= t.uops[u, 0] != 0
    return result


@inline
def _reads_src(row: Rows) -> bool:
    """Whether an ALU instruction reads its src."""
    return bool(not row[_A_USE_IMM] or (_FROM_ACC >> row[_A_OP]) & 1)


@shared
def _index_fits(t: Tables, index: int, base: int, field: int, memory: int, pitch: int) -> bool:
    """Checks the largest index that a base, its loop steps, a micro-op field and a pitch make."""
    row = t.rows[index]
    largest = row[base] + pitch
    for loop in range(3):
        largest += (row[_C_E0 + loop] - 1) * row[base + 1 + loop]
    most = 0
    if field >= 0:
        for u in range(row[_C_UOP], row[_C_UOP] + row[_C_COUNT]):
            most = max(most, t.uops[u, field])
    if largest + most < t.depth[memory]:
        return True
    report(t.findings, INDEX_RANGE, index, 0, 0, memory, largest + most, READ, READ)
    return False


@shared
def _nest(t: Tables, index: int, engine: int, number: int) -> None:
    """A read of dst needs no record beside its write: a write conflicts with all a read does."""
    row = t.rows[index]
    first, end = row[_C_UOP], row[_C_UOP] + row[_C_COUNT]
    per_word = t.uop_layout[4, 1]
    for word in range(first // per_word, (end - 1) // per_word + 1):
        touch(t, index, engine, number, UOP, word, READ)
    gemm = row[0] == _GEMM_OP
    reads_src, pitch = gemm or _reads_src(row), src_reach(row) if gemm else 0
    if not gemm:
        touch_more(t, index, engine, number)
    source = INP if gemm else ACC
    read, written = t.read[engine], t.written[engine]
    to_dst, to_src, to_wgt = t.offset[ACC], t.offset[source], t.offset[WGT]
    for i0 in range(row[_C_E0]):
        for i1 in range(row[_C_E1]):
            for i2 in range(row[_C_E2]):
                dst, src = place(row, _C_DST, i0, i1, i2), place(row, _C_SRC, i0, i1, i2)
                wgt = place(row, _G_WGT, i0, i1, i2)
                if row[_G_INIT] == _BIAS and gemm:
                    _read_bias(t, index, engine, number, place(row, _G_BIAS, i0, i1, i2))
                for u in range(first, end):  # most entries are touched again and again
                    to, at, tile = dst + t.uops[u, 1], src + t.uops[u, 2], wgt + t.uops[u, 3]
                    if written[to_dst + to] != number:
                        touch(t, index, engine, number, ACC, to, WRITE)
                    if reads_src and read[to_src + at] != number:
                        touch(t, index, engine, number, source, at, READ)
                    if pitch and read[to_src + at + pitch] != number:
                        touch(t, index, engine, number, source, at + pitch, READ)
                    if gemm and read[to_wgt + tile] != number:
                        touch(t, index, engine, number, WGT, tile, READ)


@inline
def _read_bias(t: Tables, index: int, engine: int, number: int, entry: int) -> None:
    """One iteration's bias, which every micro-op marked first starts from."""
    if _any_first(t, t.rows[index]):
        touch(t, index, engine, number, ACC, entry, READ)


@shared
def touch(
    t: Tables, index: int, engine: int, number: int, memory: int, entry: int, access: int
) -> None:
    """Checks one access to a buffer against the other engines' last ones, and enters it."""
    at = t.offset[memory] + entry
    for step in range(1, _ENGINES):
        other = (engine + step) % _ENGINES
        last, theirs = t.written[other, at], WRITE
        if access == WRITE and last <= t.clock[other]:
            last, theirs = t.read[other, at], READ
        if last > t.clock[other]:
            report(t.findings, CONFLICT, index, other, last, memory, entry, theirs, access)
    if access == WRITE:
        t.written[engine, at] = number
    else:
        t.read[engine, at] = number


@inline
def _read_dram(t: Tables, index: int, number: int, word: int) -> None:
    store = int(np.int64(t.dram_written[word]))
    if store > t.clock[_STORE]:
        report(t.findings, CONFLICT, index, _STORE, store, DRAM, word, WRITE, READ)
    if store and t.rows[index, L_MEMORY] == _MEM_UOP:
        report(t.findings, COMPUTED, index, _STORE, store, DRAM, word, WRITE, READ)
    t.dram_read[word] = number


@inline
def _write_dram(t: Tables, index: int, number: int, word: int) -> None:
    load = int(np.int64(t.dram_read[word]))
    if load > t.clock[_LOAD]:
        report(t.findings, CONFLICT, index, _LOAD, load, DRAM, word, READ, WRITE)
    if t.stream_words[0] <= word < t.stream_words[1]:
        report(t.findings, STREAM, index, _COMPUTE, 0, DRAM, word, READ, WRITE)
    t.dram_written[word] = number


@shared
def report(
    findings: Rows,
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
    count = findings[-1, 0]
    if count == LIMIT:
        return
    at = count - 1
    while at >= 0 and findings[at, 1] == index:
        same = findings[at, 0] == kind and findings[at, 2] == other and findings[at, 4] == memory
        if same and findings[at, 6] == theirs and findings[at, 7] == ours:
            return
        at -= 1
    row = findings[count]
    row[0], row[1], row[2], row[3] = kind, index, other, number
    row[4], row[5], row[6], row[7] = memory, entry, theirs, ours
    findings[-1, 0] += 1
