"""Effects of each instruction on the memories.

Effects depend only on the instruction and the memories, never on time, so the machine runs them
in the order in which the timing says they finish. The manual's words are in ``isa``. What a LOAD or
STORE moves is in ``transfers.py``, what GEMM and ALU compute in ``gemm.py`` and ``alu.py``. Options
add instructions (``run_more``), memories to load (``load_more``) and to store to (``store_more``).
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm, Load, Mem, Store
from vdla.sim.alu import combine
from vdla.sim.compiled import compiled, inline, prepare
from vdla.sim.compiled.seams import seam
from vdla.sim.gemm import multiply
from vdla.sim.memories import ADDED, Memories
from vdla.sim.stream import COLUMNS, Bytes, Rows, column, uop_layout
from vdla.sim.transfers import load_lanes, load_rows, load_uops, store_bytes, store_lanes

ALL_RAN = -1


_added = cache(lambda names: namedtuple("Added", names))  # one type for a set of options


class State:
    """The memories of one accelerator and the DRAM behind it.

    ``inp`` is int8 [entries, block_in], ``wgt`` int8 [entries, block_out, block_in], ``acc`` int32
    [entries, block_out], ``uop`` int64 rows (first, dst, src, wgt), ``dram`` a flat byte array. Its
    size is a multiple of 4. ``options`` has the arrays of memories that options add, by their
    names. Behind the rows of the buffer ``uop`` has ``spare_uops`` more, which no LOAD writes.
    """

    def __init__(self, config: Config, dram: Bytes, spare_uops: int = 0) -> None:
        self.config, self.dram = config, dram
        self.inp = np.zeros((config.depth("inp"), config.block_in), np.int8)
        self.wgt = np.zeros((config.depth("wgt"), config.block_out, config.block_in), np.int8)
        self.acc = np.zeros((config.depth("acc"), config.block_out), np.int32)
        self.uop = np.zeros((config.uop_depth + spare_uops, 4), np.int64)
        self.uop_raw = np.zeros((config.depth("uop"), config.entry("uop")), np.uint8)
        self.options = {name: make(config) for name, make in ADDED.items()}
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
            dram=dram,
            dram8=dram.view(np.int8),
            dram16=dram.view(np.int16),
            dram32=dram.view(np.int32),
            value=np.zeros(config.block_out, np.int32),
            options=_added(tuple(self.options))(**self.options),
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
_INP, _WGT, _ACC, _ACC8, _UOP = (
    int(m) for m in (Mem.INP, Mem.WGT, Mem.ACC, Mem.ACC8, Mem.UOP)
)  # fmt: skip
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
            ran = multiply(row, of)
        elif row[0] == _ALU:
            ran = combine(row, of)
        else:
            run_more(row[0], row, of)
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
    elif memory == _ACC:
        load_lanes(row, of.dram32, of.acc, pad, 0, 4)
    elif memory == _ACC8:
        load_lanes(row, of.dram8, of.acc, pad - zero, zero, 1)
    else:
        load_more(memory, row, of)


@inline
def _store(row: Rows, of: Memories) -> None:
    """ACC → DRAM; ACC8 requantizes each lane with its channel's scale."""
    memory = row[_S_MEMORY]
    if memory == _ACC:
        store_lanes(row, of.acc, of.dram32)
    elif memory == _ACC8:
        store_bytes(row, of.acc, of.dram8)
    else:
        store_more(memory, row, of)


@seam("choice")
def run_more(opcode: int, row: Rows, of: Memories) -> None:
    """The effect of an option's instruction."""


@seam("choice")
def load_more(memory: int, row: Rows, of: Memories) -> None:
    """DRAM → a memory that an option adds."""


@seam("choice")
def store_more(memory: int, row: Rows, of: Memories) -> None:
    """ACC → a memory that an option lets STORE name."""
