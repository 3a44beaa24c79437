"""What each instruction does to the memories: one class per instruction.

Effects depend only on the instruction and the memories, never on time, so the machine runs them
in the order in which the timing says they finish. The manual's words are in ``isa``; the exact
arithmetic (wrapping, rounding, saturation) is here and in ``isa/numbers.py``.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import TABLE_RESULTS, Config
from vdla.isa.instructions import (
    ALWAYS_ACC_SRC,
    MUL_BITS,
    SHR_BITS,
    TABLE_BITS,
    WADD_BITS,
    WEIGHT_BITS,
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    Mem,
    Store,
)
from vdla.isa.numbers import MANTISSA_BITS, MAX_SHIFT, RECIPROCAL_BITS
from vdla.sim.compiled import inline, jit
from vdla.sim.gemm import multiply
from vdla.sim.nest import (
    COUNT,
    DST,
    EXTENT_0,
    EXTENT_1,
    EXTENT_2,
    SRC,
    UOP_BEGIN,
    is_empty,
    leads_beyond,
)
from vdla.sim.stream import Bytes, Rows, column, decode_uops, uop_layout

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int16 = NDArray[np.int16]
Lanes = NDArray[np.signedinteger[Any]]

_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_I32_MIN, _I32_MAX = -(1 << 31), (1 << 31) - 1
_ADD, _MIN, _MAX, _SHR, _MUL, _WADD, _RQ, _TABLE, *_LATER = (int(op) for op in AluOp)
_SCALE, _RECIPROCAL, _RSQRT = _LATER
_FROM_ACC = sum(1 << op for op in ALWAYS_ACC_SRC)


class State:
    """The memories of one accelerator and the DRAM behind it.

    ``inp`` is int8 [entries, block_in], ``wgt`` int8 [entries, block_out, block_in], ``acc`` int32
    [entries, block_out], ``uop`` int64 rows (first, dst, src, wgt), ``tab`` int16 [entries,
    results_per_word], ``dram`` a flat byte array.
    """

    def __init__(self, config: Config, dram: Bytes) -> None:
        self.config, self.dram = config, dram
        self.inp = np.zeros((config.depth("inp"), config.block_in), np.int8)
        self.wgt = np.zeros((config.depth("wgt"), config.block_out, config.block_in), np.int8)
        self.acc = np.zeros((config.depth("acc"), config.block_out), np.int32)
        self.uop = np.zeros((config.uop_depth, 4), np.int64)
        self.uop_raw = np.zeros((config.depth("uop"), config.entry("uop")), np.uint8)
        self.uop_layout = uop_layout(config)
        self.tab = np.zeros((config.depth("tab"), config.results_per_word), np.int16)


class Effect(Protocol):
    """The effect of one instruction class."""

    def execute(self, state: State, row: Rows) -> None:
        """Runs one instruction, given its row of field values."""


class LoadEffect:
    """DRAM → buffer, padded; ACC8 widens and subtracts the zero point."""

    def execute(self, state: State, row: Rows) -> None:
        """Copies rows from DRAM to the buffer that the instruction names; UOPs are decoded, too."""
        memory = Mem(int(row[_L_MEMORY]))
        zero, pad = int(row[_L_ZERO]), int(row[_L_PAD_VALUE])
        byte = pad & 0xFF
        if memory == Mem.INP:
            load_rows(row, state.dram, state.inp.view(np.uint8), byte)
        elif memory == Mem.WGT:
            tiles = state.wgt.reshape(len(state.wgt), -1)
            load_rows(row, state.dram, tiles.view(np.uint8), byte)
        elif memory == Mem.UOP:
            load_rows(row, state.dram, state.uop_raw, byte)
            load_uops(state, row)
        elif memory == Mem.TAB:
            _load_wide(row, state.dram.view(np.int16), state.tab, pad, 0, 2)
        elif memory == Mem.ACC:
            _load_wide(row, state.dram.view(np.int32), state.acc, pad, 0, 4)
        else:
            _load_wide(row, state.dram.view(np.int8), state.acc, pad - zero, zero, 1)


def load_uops(state: State, row: Rows) -> None:
    """Refreshes the decoded micro-ops that a LOAD of UOP just wrote."""
    first, n = int(row[_L_SRAM]), tile_entries(row)
    per_word = state.config.uops_per_word
    decode_uops(
        state.uop_raw[first : first + n].reshape(-1), state.uop_layout, state.uop, first * per_word
    )


class StoreEffect:
    """ACC → DRAM or INP; ACC8 and INP requantize each lane with its channel's scale."""

    def execute(self, state: State, row: Rows) -> None:
        """Copies vectors of ACC to DRAM: whole, or a byte for each lane; or such bytes to INP."""
        memory = Mem(int(row[_S_MEMORY]))
        if memory == Mem.ACC:
            _store_raw(row, state.acc, state.dram.view(np.int32))
        elif memory == Mem.INP:
            _store_requantized(row, state.acc, state.inp.reshape(-1))
        else:
            _store_requantized(row, state.acc, state.dram.view(np.int8))


class GemmEffect:
    """acc[dst] = start + wgt[wgt] · inp[src] over the micro-op nest, or with a window of inp."""

    def execute(self, state: State, row: Rows) -> None:
        """Multiplies and adds, one matrix and vector for each micro-op of each iteration."""
        config = state.config
        shape = config.window_rows, config.window_taps, config.block_in
        window = np.zeros(shape, np.int8) if row[_G_WINDOW] else None
        multiply(row, state.uop, state.inp, state.wgt, state.acc, window)


class AluEffect:
    """acc[dst] = f(x, y) over the micro-op nest."""

    def execute(self, state: State, row: Rows) -> None:
        """Combines two vectors of ACC for each micro-op of each iteration."""
        _alu(row, state.uop, state.acc, state.tab.reshape(-1))


class FinishEffect:
    """Nothing: FINISH only ends the program."""

    def execute(self, state: State, row: Rows) -> None:
        """Leaves the state as it is."""
        return


EFFECTS: dict[type[Instruction], Effect] = {
    Load: LoadEffect(),
    Store: StoreEffect(),
    Gemm: GemmEffect(),
    Alu: AluEffect(),
    Finish: FinishEffect(),
}
_BY_OPCODE = [EFFECTS[cls] for cls in sorted(EFFECTS, key=lambda cls: cls.opcode)]


def execute(state: State, row: Rows) -> None:
    """Runs one instruction, given its row of field values, on the memories.

    Raises:
        IndexError: its micro-ops lead beyond a memory, which is left as it is.
    """
    _BY_OPCODE[row[0]].execute(state, row)


def tile_entries(row: Rows) -> int:
    """Buffer entries a LOAD writes, padding included."""
    y = row[_L_Y] + row[_L_PAD_Y0] + row[_L_PAD_Y1]
    x = row[_L_X] + row[_L_PAD_X0] + row[_L_PAD_X1]
    return int(row[_L_Z] * y * x)


# Columns --------------------------------------------------------------------------------------

_L_MEMORY = column(Load, "memory")
_L_SRAM = column(Load, "sram_base")
_L_DRAM = column(Load, "dram_base")
_L_X, _L_Y, _L_Z = (column(Load, f"{a}_size") for a in "xyz")
_L_XS, _L_YS, _L_ZS = (column(Load, f"{a}_stride") for a in "xyz")
_L_PAD_X0, _L_PAD_X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
_L_PAD_Y0, _L_PAD_Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
_L_PAD_VALUE, _L_ZERO = column(Load, "pad_value"), column(Load, "zero")

_S_MEMORY = column(Store, "memory")
_S_SRAM, _S_DRAM = column(Store, "sram_base"), column(Store, "dram_base")
_S_X, _S_Y, _S_Z = (column(Store, f"{a}_size") for a in "xyz")
_S_YP, _S_ZP = column(Store, "y_pitch"), column(Store, "z_pitch")
_S_XS, _S_YS, _S_ZS = (column(Store, f"{a}_stride") for a in "xyz")
_S_SCALE, _S_ZERO = column(Store, "scale_base"), column(Store, "zero")
_S_LOW, _S_HIGH = column(Store, "low"), column(Store, "high")

_G_WINDOW = column(Gemm, "window")

_A_OP, _A_USE_IMM = column(Alu, "alu_op"), column(Alu, "use_imm")
_A_INIT, _A_IMM, _A_WEIGHT = column(Alu, "init"), column(Alu, "imm"), column(Alu, "weight")
_A_ZERO, _A_LOW, _A_HIGH = column(Alu, "zero"), column(Alu, "low"), column(Alu, "high")


# Compiled loops -------------------------------------------------------------------------------


@jit
def load_rows(row: Rows, dram: Bytes, buffer: Bytes, pad: int) -> int:
    """Runs a LOAD that keeps bytes as they are; returns the entries written."""
    size = buffer.shape[1]
    at = row[_L_SRAM]
    for z in range(row[_L_Z]):
        for y in range(-row[_L_PAD_Y0], row[_L_Y] + row[_L_PAD_Y1]):
            inside = 0 <= y < row[_L_Y]
            source = row[_L_DRAM] + size * (z * row[_L_ZS] + y * row[_L_YS])
            for x in range(-row[_L_PAD_X0], row[_L_X] + row[_L_PAD_X1]):
                if inside and 0 <= x < row[_L_X]:
                    first = source + size * x * row[_L_XS]
                    for i in range(size):
                        buffer[at, i] = dram[first + i]
                else:
                    for i in range(size):
                        buffer[at, i] = pad
                at += 1
    return int(at - row[_L_SRAM])


@jit
def _load_wide(
    row: Rows, dram: Lanes, buffer: Lanes, pad: int, zero: int, address_bytes: int
) -> None:
    """Loads lanes, less ``zero``: int32 (address_bytes 4) or int8 (1) into ACC, int16 (2) into
    TAB."""
    size = buffer.shape[1]
    base = row[_L_DRAM] // address_bytes
    at = row[_L_SRAM]
    for z in range(row[_L_Z]):
        for y in range(-row[_L_PAD_Y0], row[_L_Y] + row[_L_PAD_Y1]):
            inside = 0 <= y < row[_L_Y]
            source = base + size * (z * row[_L_ZS] + y * row[_L_YS])
            for x in range(-row[_L_PAD_X0], row[_L_X] + row[_L_PAD_X1]):
                if inside and 0 <= x < row[_L_X]:
                    first = source + size * x * row[_L_XS]
                    for i in range(size):
                        buffer[at, i] = np.int32(dram[first + i]) - zero
                else:
                    for i in range(size):
                        buffer[at, i] = pad
                at += 1


@jit
def _store_raw(row: Rows, acc: Int32, dram: Int32) -> None:
    size = acc.shape[1]
    for z in range(row[_S_Z]):
        for y in range(row[_S_Y]):
            for x in range(row[_S_X]):
                at = row[_S_SRAM] + z * row[_S_ZP] + y * row[_S_YP] + x
                to = z * row[_S_ZS] + y * row[_S_YS] + x * row[_S_XS]
                first = row[_S_DRAM] // 4 + to * size
                for i in range(size):
                    dram[first + i] = acc[at, i]


@jit
def _store_requantized(row: Rows, acc: Int32, to_bytes: Int8) -> None:
    """Stores into the bytes of DRAM or of INP."""
    size = acc.shape[1]
    zero, low, high = row[_S_ZERO], row[_S_LOW], row[_S_HIGH]
    for z in range(row[_S_Z]):
        scale = acc[row[_S_SCALE] + z]
        for y in range(row[_S_Y]):
            for x in range(row[_S_X]):
                at = row[_S_SRAM] + z * row[_S_ZP] + y * row[_S_YP] + x
                to = z * row[_S_ZS] + y * row[_S_YS] + x * row[_S_XS]
                first = row[_S_DRAM] + to * size
                for i in range(size):
                    value = requantize(acc[at, i], scale[i]) + zero
                    to_bytes[first + i] = np.int8(min(max(value, low), high))


@inline
def requantize(x: int, word: int) -> int:
    """``rq`` of isa/numbers.py on int64."""
    word64 = np.int64(word)
    shift = (word64 >> MANTISSA_BITS) & MAX_SHIFT
    product = np.int64(x) * (word64 & _MANTISSA_MASK)
    half_less_one = ((np.int64(1) << shift) - 1) >> 1  # right for a shift of 63 too
    value = product
    if shift != 0:  # adding the quotient's lowest bit makes ties go to even
        value = (product + half_less_one + ((product >> shift) & 1)) >> shift
    return int(min(max(value, np.int64(_I32_MIN)), np.int64(_I32_MAX)))


@inline
def reciprocal(y: int) -> int:
    """``reciprocal`` of isa/numbers.py on int64."""
    if y <= 0:
        return 0
    shift = RECIPROCAL_BITS + math.frexp(float(y))[1] - 1
    return int((np.int64(1) << shift) // np.int64(y) | np.int64(shift) << MANTISSA_BITS)


@inline
def rsqrt(y: int) -> int:
    """``rsqrt`` of isa/numbers.py on int64.

    The radicand has 48 bits at most, so that float64 holds it, and its root isn't rounded up to a
    whole number.
    """
    if y <= 0:
        return 0
    half = (math.frexp(float(y))[1] - 1) // 2
    root = np.int64(math.sqrt(float(np.int64(y) << 2 * (RECIPROCAL_BITS - half))))
    mantissa = (np.int64(1) << 2 * RECIPROCAL_BITS) // root
    return int(mantissa | np.int64(RECIPROCAL_BITS + half) << MANTISSA_BITS)


@inline
def _signed(value: int, bits: int) -> int:
    """The low ``bits`` of a value, sign-extended."""
    return int((np.int64(value) << (64 - bits)) >> (64 - bits))


@inline
def _operate(op: int, x: int, y: int, row: Rows, results: Int16) -> int:
    if op == _ADD:
        return x + y
    if op == _MIN:
        return min(x, y)
    if op == _MAX:
        return max(x, y)
    if op == _SHR:
        amount = _signed(y, SHR_BITS)
        return x >> amount if amount >= 0 else x << -amount
    if op == _MUL:
        return x * _signed(y, MUL_BITS)
    if op == _WADD:
        weight = _signed(row[_A_IMM], WEIGHT_BITS)
        return int(_signed(x, WADD_BITS) * row[_A_WEIGHT] + _signed(y, WADD_BITS) * weight)
    if op == _TABLE:
        return int(np.int64(results[_first_result(row) + (y & (TABLE_RESULTS - 1))]))
    if op == _SCALE:
        return requantize(x, y)
    if op == _RECIPROCAL:
        return reciprocal(y)
    if op == _RSQRT:
        return rsqrt(y)
    return int(min(max(requantize(x, y) + row[_A_ZERO], row[_A_LOW]), row[_A_HIGH]))


@inline
def _first_result(row: Rows) -> int:
    """Where the table of a TABLE begins."""
    return int((row[_A_IMM] & ((1 << TABLE_BITS) - 1)) * TABLE_RESULTS)


@inline
def _reads_beyond(row: Rows, uops: Rows, results: int) -> bool:
    """Whether a micro-op of a TABLE reads a table beyond the last; one that starts from y doesn't
    read any."""
    if row[_A_OP] != _TABLE or _first_result(row) < results:
        return False
    for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
        if uops[u, 0] == 0 or row[_A_INIT] == 0:
            return True
    return False


@jit
def _alu(row: Rows, uops: Rows, acc: Int32, results: Int16) -> None:
    if is_empty(row):
        return
    lanes = acc.shape[1]
    op = row[_A_OP]
    immediate = row[_A_USE_IMM] != 0 and not (_FROM_ACC >> op) & 1
    leaves = not immediate and leads_beyond(row, SRC, uops, 2, acc.shape[0])
    leaves = leaves or leads_beyond(row, DST, uops, 1, acc.shape[0])
    if leaves or _reads_beyond(row, uops, results.shape[0]):
        raise IndexError("an entry within its memory")
    for i0 in range(row[EXTENT_0]):
        for i1 in range(row[EXTENT_1]):
            for i2 in range(row[EXTENT_2]):
                d0 = row[DST] + i0 * row[DST + 1] + i1 * row[DST + 2] + i2 * row[DST + 3]
                s0 = row[SRC] + i0 * row[SRC + 1] + i1 * row[SRC + 2] + i2 * row[SRC + 3]
                for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
                    dst, src = d0 + uops[u, 1], s0 + uops[u, 2]
                    start = uops[u, 0] != 0 and row[_A_INIT] != 0
                    for i in range(lanes):
                        y = int(row[_A_IMM]) if immediate else int(np.int64(acc[src, i]))
                        x = int(np.int64(acc[dst, i]))
                        value = y if start else _operate(op, x, y, row, results)
                        acc[dst, i] = np.int32(value & 0xFFFFFFFF)
