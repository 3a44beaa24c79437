"""The instruction set. What each instruction does is executable in ``sim/semantics.py``.

Three engines run decoupled: LOAD, COMPUTE (GEMM and ALU) and STORE. They stand in a ring,
LOAD → COMPUTE → STORE → LOAD, and a dependency queue of tokens runs each way between neighbours:
``pop_prev`` waits for a token from the engine before, ``push_next`` gives one to the engine after.
Tokens are popped when an instruction starts and pushed when it finishes. With ``vector_engine``
there is a fourth engine, VECTOR, which executes ALU: LOAD → COMPUTE → VECTOR → STORE → LOAD. Then
``pop_across`` and ``push_across`` exchange tokens with the engine that stands opposite in the ring.

Memories: INP holds int8 vectors of ``block_in`` lanes, WGT int8 tiles of ``block_out × block_in``,
ACC int32 vectors of ``block_out`` lanes, UOP micro-ops. ACC8 is ACC seen through int8: a LOAD
widens each lane and a STORE requantizes it. A config with ``table_bytes`` has TAB, too: tables of
256 results of 16 bits, one for each int8, in entries of a port word. Where a config has
``forwarding``, a STORE may write its results into INP, where GEMM reads them, and not to DRAM.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import ClassVar

from vdla.isa.config import Config
from vdla.isa.fields import Field, OptionFlag, Record, Width
from vdla.support.numbers import ceil_div


class Mem(IntEnum):
    """Memory that a LOAD or STORE addresses on chip."""

    INP = 0
    WGT = 1
    ACC = 2
    ACC8 = 3
    UOP = 4
    TAB = 5  # only where the config has tables

    @property
    def buffer(self) -> str:
        """The physical buffer, as ``Config.depth`` names it."""
        return "acc" if self is Mem.ACC8 else self.name.lower()


class Init(IntEnum):
    """Value that a GEMM's first micro-ops start their accumulator from."""

    ACC = 0
    ZERO = 1
    BIAS = 2


class AluOp(IntEnum):
    """ALU operations on x = acc[dst] and y = acc[src] or the immediate."""

    ADD = 0
    MIN = 1
    MAX = 2
    SHR = 3
    MUL = 4
    WADD = 5
    RQ = 6
    TABLE = 7  # only where the config has tables
    SCALE = 8  # this one and those after it: only where the config has reciprocal units
    RECIPROCAL = 9
    RSQRT = 10


DRAM_BITS = 32
STRIDE_BITS = 20
PAD_BITS = 6
OPCODE_BITS = 3
SIDES = ("prev", "next", "across")  # of an engine, in the order of the token flags
SHR_BITS = 6  # the shift amount of SHR, signed
MUL_BITS = 25  # the multiplier operand of MUL: one DSP48E1 input, signed
WADD_BITS = 18  # both operands of WADD, signed
WEIGHT_BITS = 24  # both weights of WADD, signed
TABLE_BITS = 8  # the number of a table in TABLE's immediate, unsigned

# The low bits that an ALU operation takes of an operand, as a signed number, where they are fewer
# than the 32 of an ACC lane. x is acc[dst], y acc[src] or the immediate; WADD's y is acc[src].
# What TABLE takes of its operands is an index: it has no place here.
ALU_OPERAND_BITS: dict[AluOp, dict[str, int]] = {
    AluOp.SHR: {"y": SHR_BITS},
    AluOp.MUL: {"y": MUL_BITS},
    AluOp.WADD: {"x": WADD_BITS, "y": WADD_BITS, "imm": WEIGHT_BITS},
}


SERIAL = (AluOp.RECIPROCAL, AluOp.RSQRT)  # computed bit by bit, by the reciprocal units
ALWAYS_ACC_SRC = (AluOp.WADD, AluOp.TABLE, *SERIAL)  # their y is acc[src], whatever use_imm says
NO_X = (AluOp.TABLE, *SERIAL)  # they don't read acc[dst]


def memories(config: Config) -> tuple[Mem, ...]:
    """Memories that a LOAD of the config may name."""
    return tuple(memory for memory in Mem if memory not in _absent_memories(config))


def stored_memories(config: Config) -> tuple[Mem, ...]:
    """Memories that a STORE of the config may name."""
    return (Mem.INP, Mem.ACC, Mem.ACC8) if config.forwarding else (Mem.ACC, Mem.ACC8)


def operations(config: Config) -> tuple[AluOp, ...]:
    """Operations of the config's ALU."""
    return tuple(op for op in AluOp if op not in _absent_operations(config))


def _absent_memories(config: Config) -> tuple[int, ...]:
    return () if config.tables else (Mem.TAB,)


def _absent_operations(config: Config) -> tuple[int, ...]:
    of_tables = () if config.tables else (AluOp.TABLE,)
    of_reciprocals = () if config.reciprocal_units else (AluOp.SCALE, *SERIAL)
    return (*of_tables, *of_reciprocals)


def _operation_bits(config: Config) -> int:
    """Bits that hold the config's last operation, three at least."""
    return max(int(max(operations(config))).bit_length(), 3)


def count(*buffers: str) -> Width:
    """Bits that count up to and including the depth of the deepest of some buffers."""
    return lambda c: max(c.depth(b) for b in buffers).bit_length()


def _uop_index(c: Config) -> int:
    return (c.uop_depth - 1).bit_length()


def _uop_count(c: Config) -> int:
    return c.uop_depth.bit_length()


def _source(c: Config) -> int:
    return max(c.index_bits("inp"), c.index_bits("acc"))


def _pitch(c: Config) -> int:
    """No bits where a window has one row."""
    return c.index_bits("inp") if c.window_rows > 1 else 0


class Index(Field):
    """An entry of a buffer, or a number of entries less than it has."""

    def __init__(self, buffer: str, doc: str, *, default: int = 0) -> None:
        super().__init__(lambda c: c.index_bits(buffer), doc, default=default)
        self.buffer = buffer  # as ``Config.depth`` names it


class DramBase(Field):
    """The DRAM address of an instruction's first entry: a multiple of the memory port's bytes."""

    def __init__(self) -> None:
        super().__init__(
            DRAM_BITS,
            "byte address of the first entry: a multiple of port_bytes, or the fault ADDRESS",
        )

    def multiple(self, config: Config) -> int:
        """Bytes of a beat."""
        return config.port_bytes


def _has_across(config: Config) -> bool:
    """Whether an engine has another one across the ring."""
    return bool(config.fourth_engines)


class Instruction(Record):
    """The fields every instruction starts with."""

    opcode: ClassVar[int]
    mnemonic: ClassVar[str]
    option: ClassVar[str] = ""  # the parameter of the configs that have the instruction; "": all

    op = Field(OPCODE_BITS, "opcode")
    pop_prev = Field(1, "wait for a token from the previous engine")
    pop_next = Field(1, "wait for a token from the next engine")
    pop_across = OptionFlag("wait for a token from the engine across the ring", present=_has_across)
    push_prev = Field(1, "give a token to the previous engine when finished")
    push_next = Field(1, "give a token to the next engine when finished")
    push_across = OptionFlag(
        "give a token to the engine across the ring when finished", present=_has_across
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "opcode"):
            cls.mnemonic = cls.__name__.upper()
            BY_OPCODE[cls.opcode] = cls

    def __init__(self, **values: int) -> None:
        super().__init__(**{**values, "op": self.opcode})

    def encode(self, config: Config) -> bytes:
        """The instruction as it lies in DRAM, little-endian."""
        return self.pack(config).to_bytes(instruction_bytes(config), "little")

    def is_legal(self, config: Config) -> bool:
        """Whether the config knows the instruction and every enumerated field's value; else it is
        a fault."""
        known = self.exists(config)
        return known and all(
            self.__dict__[f.name] in f.legal(config) for f in self.fields if f.names
        )

    @classmethod
    def exists(cls, config: Config) -> bool:
        """Whether the config's machine has the instruction."""
        return not cls.option or bool(getattr(config, cls.option))


BY_OPCODE: dict[int, type[Instruction]] = {}


class Load(Instruction):
    """DRAM → buffer: a 3-D strided copy with padding.

    The tile of ``z × (pad_y0 + y + pad_y1) × (pad_x0 + x + pad_x1)`` entries lies densely in the
    buffer from ``sram_base``. Its inner ``z × y × x`` entries come from DRAM, the rest are filled
    with ``pad_value``. ACC8 widens int8 lanes to int32 and subtracts ``zero`` from them. Lanes of
    TAB are results of 16 bits.
    """

    opcode = 0
    memory = Field(3, "destination", names=tuple(m.name for m in Mem), absent=_absent_memories)
    sram_base = Field(
        lambda c: max(c.index_bits(b) for b in ("inp", "wgt", "acc", "uop", "tab")), "first entry"
    )
    dram_base = DramBase()
    x_size = Field(count("inp", "wgt", "acc", "uop", "tab"), "entries of a row")
    y_size = Field(count("inp", "wgt", "acc", "uop", "tab"), "rows of a plane")
    z_size = Field(count("inp", "wgt", "acc", "uop", "tab"), "planes")
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

    INP, in a config with ``forwarding``, stands for the same bytes, written into INP and not to
    DRAM. ``dram_base`` is then the byte of INP where the first entry goes, and strides count
    entries of ``block_out`` bytes, as in DRAM.
    """

    opcode = 1
    memory = Field(
        3,
        "ACC stores int32 lanes, ACC8 int8; INP (with forwarding) int8 into INP",
        names=tuple(m.name for m in Mem),
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
    def forwards(self) -> bool:
        """Whether it writes INP, and not DRAM."""
        return self.memory == Mem.INP

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

    With ``window``, a bit behind ``init`` where the config has ``window_taps`` = T, output o takes
    its lanes i < 2·T from elsewhere: lane ``(2·⌊o / 2⌋ + i mod 2) mod block_in`` of the vector that
    the micro-op ⌊i / 2⌋ steps before this one read. So each output sees both channels of its pair
    at T places of a row, as a depthwise convolution does. The vectors before an instruction's first
    micro-op are zero.

    Where the config has ``window_rows`` = 2, such a micro-op reads a second vector, too, which is
    ``inp[src + pitch]``; ``pitch`` lies behind ``window``. Lane 2·T + i, for i < 2·T, comes from
    these vectors as lane i does from the first ones. So each output sees T places of two rows.
    """

    opcode = 2
    init = Field(2, "start of micro-ops marked first", names=tuple(i.name for i in Init))
    window = OptionFlag("lanes below 2·T come from the window", present=lambda c: c.window_taps > 0)
    pitch = Field(
        _pitch, "added to src for the window's second row; nothing reads it without ``window``"
    )
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

    ADD x + y · MIN · MAX · SHR x >> y, left when y < 0 (y: low 6 bits, signed) ·
    MUL x × y (y: low 25 bits, signed) · WADD x × weight + y × imm (x, y: low 18 bits, imm: low 24
    bits, all signed; y is always acc[src]) · RQ min(max(rq(x, y) + zero, low), high) ·
    TABLE tab[n × 256 + (y & 255)], signed (y is always acc[src], n: imm's low 8 bits, unsigned).
    Sums and products wrap at 32 bits.

    With ``reciprocal_units``, where ``alu_op`` has a fourth bit: SCALE rq(x, y) ·
    RECIPROCAL the scale word of 1 / y · RSQRT the scale word of 1 / √y (y is always acc[src]).
    """

    opcode = 3
    alu_op = Field(
        _operation_bits,
        "operation",
        names=tuple(o.name for o in AluOp),
        absent=_absent_operations,
    )
    use_imm = Field(1, "y is the immediate")
    init = Field(1, "micro-ops marked first give y")
    imm = Field(
        32, "immediate; RQ, SCALE: packed scale, WADD: weight of y, TABLE: number", signed=True
    )
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


INSTRUCTIONS: tuple[type[Instruction], ...] = (Load, Store, Gemm, Alu, Finish)


@cache
def instruction_set(config: Config) -> tuple[type[Instruction], ...]:
    """The instructions that the config's machine has."""
    return tuple(cls for cls in INSTRUCTIONS if cls.exists(config))


def kind_of(opcode: int, config: Config) -> type[Instruction] | None:
    """The instruction of a config that has an opcode, if there is one."""
    cls = BY_OPCODE.get(opcode)
    return cls if cls is not None and cls.exists(config) else None


@cache
def instruction_bytes(config: Config) -> int:
    """Bytes of every instruction: the widest, rounded up to whole 64-bit words and beats."""
    bits = max(cls.bits(config) for cls in instruction_set(config))
    unit = max(8, config.port_bytes)
    return ceil_div(bits, 8 * unit) * unit
