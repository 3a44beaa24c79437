"""Effects of each instruction on the memories.

Effects depend only on the instruction and the memories, never on time, so the machine runs them
in the order in which the timing says they finish. The manual's words are in ``isa``. What a LOAD or
STORE moves is in ``transfers.py``, what GEMM and ALU compute in ``gemm.py`` and ``alu.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm, Load, Mem, Store
from vdla.isa.options.tables import results_per_word
from vdla.isa.options.window import window_rows, window_taps
from vdla.sim.alu import combine
from vdla.sim.compiled import compiled, inline, prepare
from vdla.sim.gemm import multiply
from vdla.sim.stream import COLUMNS, Bytes, Rows, column, uop_layout
from vdla.sim.transfers import load_lanes, load_rows, load_uops, store_bytes, store_lanes

Int8 = NDArray[np.int8]
Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]

ALL_RAN = -1


class Memories(NamedTuple):
    """Memories that the compiled loop works on; some in two or three forms of the same bytes."""

    inp: Int8  # [entry, block_in]
    inp_rows: Bytes  # [entry, byte]
    inp_bytes: Int8
    wgt: Int8  # [entry, block_out, block_in]
    wgt_rows: Bytes  # [entry, byte]
    acc: Int32  # [entry, block_out]
    uop: Rows  # [micro-op] its first, dst, src, wgt
    uop_rows: Bytes  # [entry, byte]
    uop_layout: Rows
    tab: Int16  # [entry, result]
    results: Int16
    dram: Bytes
    dram8: Int8
    dram16: Int16
    dram32: Int32
    window: Int8  # [row, tap, block_in] the registers of a window
    value: Int32  # [block_out] the register of GEMM


class State:
    """The memories of one accelerator and the DRAM behind it.

    ``inp`` is int8 [entries, block_in], ``wgt`` int8 [entries, block_out, block_in], ``acc`` int32
    [entries, block_out], ``uop`` int64 rows (first, dst, src, wgt), ``tab`` int16 [entries,
    results_per_word], ``dram`` a flat byte array whose size is a multiple of 4. Behind the rows of
    the buffer ``uop`` has ``spare_uops`` more, which no LOAD writes.
    """

    def __init__(self, config: Config, dram: Bytes, spare_uops: int = 0) -> None:
        self.config, self.dram = config, dram
        self.inp = np.zeros((config.depth("inp"), config.block_in), np.int8)
        self.wgt = np.zeros((config.depth("wgt"), config.block_out, config.block_in), np.int8)
        self.acc = np.zeros((config.depth("acc"), config.block_out), np.int32)
        self.uop = np.zeros((config.uop_depth + spare_uops, 4), np.int64)
        self.uop_raw = np.zeros((config.depth("uop"), config.entry("uop")), np.uint8)
        self.tab = np.zeros((config.depth("tab"), results_per_word(config)), np.int16)
        window = window_rows(config), window_taps(config), config.block_in
        self.memories = Memories(
            inp=self.inp,
            inp_rows=self.inp.view(np.uint8),
            inp_bytes=self.inp.reshape(-1),
            wgt=self.wgt,
            wgt_rows=self.wgt.reshape(len(self.wgt), -1).view(np.uint8),
            acc=self.acc,
            uop=self.uop,
            uop_rows=self.uop_raw,
            uop_layout=uop_layout(config),
            tab=self.tab,
            results=self.tab.reshape(-1),
            dram=dram,
            dram8=dram.view(np.int8),
            dram16=dram.view(np.int16),
            dram32=dram.view(np.int32),
            window=np.zeros(window, np.int8),
            value=np.zeros(config.block_out, np.int32),
        )

    def run(self, rows: Rows, order: Rows) -> int:
        """Runs instructions, given their rows of field values and the order of their indices.

        Returns:
            The index of the instruction that it stopped at, since its micro-ops lead beyond a
            memory, which is left as it is; ALL_RAN where there is none.
        """
        return int(_run(rows, order, self.memories))

    def prepare(self) -> None:
        """Has the loop ready that ``run`` runs."""
        prepare(_run, np.zeros((1, COLUMNS), np.int64), np.zeros(1, np.int64), self.memories)


def execute(state: State, row: Rows) -> None:
    """Runs one instruction, given its row of field values, on the memories.

    Raises:
        IndexError: its micro-ops lead beyond a memory, which is left as it is.
    """
    if state.run(row[None], np.zeros(1, np.int64)) != ALL_RAN:
        raise IndexError("expected micro-ops that lead to entries of a memory, found one beyond")


# The compiled loop ------------------------------------------------------------------------------

_LOAD, _STORE, _GEMM, _ALU = Load.opcode, Store.opcode, Gemm.opcode, Alu.opcode
_INP, _WGT, _ACC, _UOP, _TAB = (int(m) for m in (Mem.INP, Mem.WGT, Mem.ACC, Mem.UOP, Mem.TAB))
_L_MEMORY, _L_PAD, _L_ZERO = (column(Load, f) for f in ("memory", "pad_value", "zero"))
_S_MEMORY = column(Store, "memory")


@compiled("simulator's arithmetic")
def _run(rows: Rows, order: Rows, of: Memories) -> int:
    """Runs ``rows`` in an order; the index of the first that can't, or ALL_RAN."""
    for index in order:
        row, ran = rows[index], True
        if row[0] == _LOAD:
            _load(row, of)
        elif row[0] == _STORE:
            _store(row, of)
        elif row[0] == _GEMM:
            ran = multiply(row, of.uop, of.inp, of.wgt, of.acc, of.window, of.value)
        elif row[0] == _ALU:
            ran = combine(row, of.uop, of.acc, of.results)
        if not ran:
            return int(index)
    return ALL_RAN


@inline
def _load(row: Rows, of: Memories) -> None:
    """DRAM → buffer, padded; ACC8 widens and subtracts the zero point. UOPs are decoded, too."""
    memory, pad, zero = row[_L_MEMORY], row[_L_PAD], row[_L_ZERO]
    if memory == _INP:
        load_rows(row, of.dram, of.inp_rows, pad & 0xFF)
    elif memory == _WGT:
        load_rows(row, of.dram, of.wgt_rows, pad & 0xFF)
    elif memory == _UOP:
        load_uops(row, of.dram, of.uop_rows, of.uop_layout, of.uop)
    elif memory == _TAB:
        load_lanes(row, of.dram16, of.tab, pad, 0, 2)
    elif memory == _ACC:
        load_lanes(row, of.dram32, of.acc, pad, 0, 4)
    else:
        load_lanes(row, of.dram8, of.acc, pad - zero, zero, 1)


@inline
def _store(row: Rows, of: Memories) -> None:
    """ACC → DRAM or INP; ACC8 and INP requantize each lane with its channel's scale."""
    if row[_S_MEMORY] == _ACC:
        store_lanes(row, of.acc, of.dram32)
    elif row[_S_MEMORY] == _INP:
        store_bytes(row, of.acc, of.inp_bytes)
    else:
        store_bytes(row, of.acc, of.dram8)
