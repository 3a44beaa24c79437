"""The instruction set. What each instruction does is executable in ``sim/semantics.py``.

Three engines run decoupled: LOAD, COMPUTE (GEMM and ALU) and STORE. They stand in a ring,
LOAD → COMPUTE → STORE → LOAD, and a dependency queue of tokens runs each way between neighbours:
``pop_prev`` waits for a token from the engine before, ``push_next`` gives one to the engine after.
Tokens are popped when an instruction starts and pushed when it finishes. With ``vector_engine``
there is a fourth engine, VECTOR, which executes ALU: LOAD → COMPUTE → VECTOR → STORE → LOAD. Then
``pop_across`` and ``push_across`` exchange tokens with the engine that stands opposite in the ring.

Memories: INP holds int8 vectors of ``block_in`` lanes, WGT int8 tiles of ``block_out × block_in``,
ACC int32 vectors of ``block_out`` lanes, UOP micro-ops. ACC8 is ACC seen through int8: a LOAD
widens each lane and a STORE requantizes it. Options of a config add memories, operations, fields
and engines: each option's file in ``isa/options`` has all that it adds.
"""

from __future__ import annotations

from enum import IntEnum

from vdla.isa.config import Config
from vdla.isa.fields import (
    BY_OPCODE,
    DRAM_BITS,
    OPCODE_BITS,
    SIDES,
    STRIDE_BITS,
    DramBase,
    Field,
    Index,
    Instruction,
    Record,
    count,
    instruction_bytes,
    instruction_set,
    kind_of,
)
from vdla.isa.operations import MUL_BITS, SHR_BITS, WADD_BITS, WEIGHT_BITS, AluOp
from vdla.isa.options import OPTIONS, memories, operations, stored_memories
from vdla.isa.scratchpads import Mem

# The whole instruction set: an option's file needs some of it before the rest is there.
__all__ = [
    "BY_OPCODE", "DRAM_BITS", "INSTRUCTIONS", "MUL_BITS", "OPCODE_BITS", "PAD_BITS", "SHR_BITS",
    "SIDES", "STRIDE_BITS", "WADD_BITS", "WEIGHT_BITS", "Alu", "AluOp", "Finish", "Gemm", "Index",
    "Init", "Instruction", "Load", "LoopNest", "Mem", "Store", "Unknown", "Uop",
    "instruction_bytes", "instruction_set", "kind_of", "memories", "operations", "stored_memories",
]  # fmt: skip


class Init(IntEnum):
    """Value that a GEMM's first micro-ops start their accumulator from."""

    ACC = 0
    ZERO = 1
    BIAS = 2


PAD_BITS = 6


def _absent_memories(config: Config) -> tuple[int, ...]:
    return tuple(set(Mem) - set(memories(config)))


def _absent_operations(config: Config) -> tuple[int, ...]:
    return tuple(set(AluOp) - set(operations(config)))


def _operation_bits(config: Config) -> int:
    """Bits that hold the config's last operation, three at least."""
    return max(int(max(operations(config))).bit_length(), 3)


def _uop_index(c: Config) -> int:
    return (c.uop_depth - 1).bit_length()


def _uop_count(c: Config) -> int:
    return c.uop_depth.bit_length()


def _source(c: Config) -> int:
    return max(c.index_bits("inp"), c.index_bits("acc"))


_LOADED = tuple({memory.buffer for memory in Mem})


class Load(Instruction):
    """DRAM → buffer: a 3-D strided copy with padding.

    The tile of ``z × (pad_y0 + y + pad_y1) × (pad_x0 + x + pad_x1)`` entries lies densely in the
    buffer from ``sram_base``. Its inner ``z × y × x`` entries come from DRAM, the rest are filled
    with ``pad_value``. ACC8 widens int8 lanes to int32 and subtracts ``zero`` from them.
    """

    opcode = 0
    reads, writes = ("dram",), ("inp", "wgt", "acc", "uop")
    memory = Field(3, "destination", names=Mem.names(), absent=_absent_memories)
    sram_base = Field(lambda c: max(c.index_bits(b) for b in _LOADED), "first entry")
    dram_base = DramBase()
    x_size = Field(count(*_LOADED), "entries of a row")
    y_size = Field(count(*_LOADED), "rows of a plane")
    z_size = Field(count(*_LOADED), "planes")
    x_stride = Field(STRIDE_BITS, "entries from one to the next in DRAM", default=1)
    y_stride = Field(STRIDE_BITS, "entries from row to row in DRAM")
    z_stride = Field(STRIDE_BITS, "entries from plane to plane in DRAM")
    pad_x0 = Field(PAD_BITS, "padding entries before each row")
    pad_x1 = Field(PAD_BITS, "padding entries after each row")
    pad_y0 = Field(PAD_BITS, "padding rows before each plane")
    pad_y1 = Field(PAD_BITS, "padding rows after each plane")
    pad_value = Field(8, "what padding holds, in every lane", signed=True)
    zero = Field(8, "zero point that ACC8 subtracts from loaded lanes", signed=True)


class Store(Instruction):
    """ACC → DRAM: a 3-D strided copy; ACC8 requantizes on the way.

    ACC8 writes ``min(max(rq(acc, scale[z]) + zero, low), high)`` per lane, where ``scale[z]`` is
    the vector ``acc[scale_base + z]`` of packed scales: one scale per output channel.
    """

    opcode = 1
    reads, writes = ("acc",), ("dram",)
    memory = Field(
        3,
        "ACC stores int32 lanes, ACC8 int8; INP (with forwarding) int8 into INP",
        names=Mem.names(),
        legal=stored_memories,
        absent=_absent_memories,
    )
    sram_base = Index("acc", "first entry")
    dram_base = DramBase()
    x_size = Field(count("acc"), "entries of a row")
    y_size = Field(count("acc"), "rows of a plane")
    z_size = Field(count("acc"), "planes")
    y_pitch = Field(count("acc"), "entries from row to row in ACC")
    z_pitch = Field(count("acc"), "entries from plane to plane in ACC")
    x_stride = Field(STRIDE_BITS, "entries from one to the next in DRAM", default=1)
    y_stride = Field(STRIDE_BITS, "entries from row to row in DRAM")
    z_stride = Field(STRIDE_BITS, "entries from plane to plane in DRAM")
    scale_base = Index("acc", "ACC entry with the scales of plane 0")
    zero = Field(8, "output zero point", signed=True)
    low = Field(8, "least output", signed=True, default=-128)
    high = Field(8, "greatest output", signed=True, default=127)

    @property
    def stays_on_chip(self) -> bool:
        """Whether it writes a memory on chip, and not DRAM."""
        return self.memory not in (Mem.ACC, Mem.ACC8)

    @property
    def written(self) -> str:
        """Form that each vector becomes, as ``Config.entry`` names it: ACC's int32 or
        ACC8's bytes.
        """
        return "acc" if self.memory == Mem.ACC else "acc8"


class LoopNest(Instruction):
    """Fields of the micro-op loop nest that GEMM and ALU share."""

    uop_begin = Field(_uop_index, "first micro-op")
    uop_count = Field(_uop_count, "micro-ops per iteration")
    extent_0 = Field(count("acc"), "iterations of the outermost loop", default=1)
    extent_1 = Field(count("acc"), "iterations of the middle loop", default=1)
    extent_2 = Field(count("acc"), "iterations of the innermost loop", default=1)
    dst_base = Index("acc", "added to every dst")
    dst_0 = Index("acc", "dst step of loop 0")
    dst_1 = Index("acc", "dst step of loop 1")
    dst_2 = Index("acc", "dst step of loop 2")
    src_base = Field(_source, "added to every src")
    src_0 = Field(_source, "src step of loop 0")
    src_1 = Field(_source, "src step of loop 1")
    src_2 = Field(_source, "src step of loop 2")

    def extents(self) -> tuple[int, int, int]:
        """The three loop extents, outermost first."""
        return self.extent_0, self.extent_1, self.extent_2

    def steps(self) -> int:
        """Micro-ops the instruction runs: its cycles when nothing stalls it."""
        return self.extent_0 * self.extent_1 * self.extent_2 * self.uop_count


class Gemm(LoopNest):
    """One matrix–vector product per micro-op, accumulated.

    ``acc[dst] = start + wgt[wgt] · inp[src]``, wrapping at 32 bits. ``start`` is ``acc[dst]``,
    except for micro-ops marked ``first`` when ``init`` is ZERO or BIAS: then it is 0 or
    ``acc[bias]``, so that a reduction costs no pass to clear or to bias its accumulators.
    """

    opcode = 2
    reads, writes = ("inp", "wgt", "acc", "uop"), ("acc",)
    init = Field(2, "start of micro-ops marked first", names=tuple(i.name for i in Init))
    wgt_base = Index("wgt", "added to every wgt")
    wgt_0 = Index("wgt", "wgt step of loop 0")
    wgt_1 = Index("wgt", "wgt step of loop 1")
    wgt_2 = Index("wgt", "wgt step of loop 2")
    bias_base = Index("acc", "ACC entry of the first bias")
    bias_0 = Index("acc", "bias step of loop 0")
    bias_1 = Index("acc", "bias step of loop 1")
    bias_2 = Index("acc", "bias step of loop 2")


class Alu(LoopNest):
    """One vector operation per micro-op: ``acc[dst] = f(x, y)`` in every lane.

    x is ``acc[dst]``; y is ``acc[src]``, or ``imm`` when ``use_imm`` is set. With ``init`` set,
    micro-ops marked ``first`` give y itself, so that a reduction needs no pass to start it.

    The table of operations below has what each computes. Some take no more than the low bits of an
    operand, as a signed number, and for some y is always ``acc[src]``. Sums and products wrap at 32
    bits.
    """

    opcode = 3
    reads, writes = ("acc", "uop"), ("acc",)
    alu_op = Field(
        _operation_bits,
        "operation",
        names=AluOp.names(),
        absent=_absent_operations,
    )
    use_imm = Field(1, "y is the immediate")
    init = Field(1, "micro-ops marked first give y")
    imm = Field(32, "immediate; of WADD the weight of y", signed=True)
    weight = Field(WEIGHT_BITS, "WADD: the weight of x", signed=True)
    zero = Field(9, "RQ: added to the requantized value", signed=True)
    low = Field(9, "RQ: least result", signed=True, default=-128)
    high = Field(9, "RQ: greatest result", signed=True, default=127)


class Finish(Instruction):
    """Ends the program once every engine is idle. Its token flags are zero."""

    opcode = 4


class Unknown(Instruction):
    """Bits with an opcode that no instruction has: where the machine finds them it stops."""

    mnemonic = "UNKNOWN"

    def __init__(self, op: int) -> None:
        Record.__init__(self, op=op)

    def is_legal(self, config: Config) -> bool:
        """Never."""
        return False


class Uop(Record):
    """One micro-op: indices that the instruction's bases and loop steps are added to."""

    first = Field(1, "the first step of a reduction: see ``init``")
    dst = Index("acc", "ACC entry written")
    src = Field(_source, "INP entry (GEMM) or ACC entry (ALU) read")
    wgt = Index("wgt", "WGT entry read by GEMM")

    def encode(self, config: Config) -> bytes:
        """The micro-op as it lies in DRAM, little-endian."""
        return self.pack(config).to_bytes(config.uop_entry, "little")

    @classmethod
    def decode(cls, data: bytes, config: Config) -> Uop:
        """The inverse of ``encode``."""
        return cls.unpack(int.from_bytes(data, "little"), config)


for _option in OPTIONS:
    for _added in _option.fields:
        _cls = next(cls for cls in BY_OPCODE.values() if cls.mnemonic == _added.instruction)
        _cls.insert(_added.name, _added.field, _added.behind)

INSTRUCTIONS: tuple[type[Instruction], ...] = tuple(cls for _, cls in sorted(BY_OPCODE.items()))
