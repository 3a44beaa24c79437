"""What COMPUTE's stages keep of a micro-op, and of the instruction that it belongs to.

1. A micro-op counts only if it is ``valid``. One that is ``null`` stands for an instruction without
   micro-ops: it passes as a bubble, which reads and writes nothing.
2. ``last`` marks the last micro-op of its instruction, which finishes with it.
3. Each micro-op takes along what later stages need of its instruction (``operation``), since the
   next instruction may be in the loop nest by then.
"""

from __future__ import annotations

from amaranth.lib import data

from vdla.hw.interfaces import pushes
from vdla.hw.layout import layout
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import AluOp
from vdla.isa.registers import INDEX_BITS

TABLE_READ = 4  # stage of the read of TAB
LATE_READ = 5  # stage of the accumulator's read
COMBINE = 6
WRITE = 7
STREAMS = ("dst", "src", "wgt", "bias")  # the index streams of a loop nest
ALU_FIELDS = ("imm", "weight", "zero", "low", "high")  # that the ALU takes as they are


class MicroOps:
    """Layouts of a config's micro-ops, stage by stage, and the width of each index stream."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.index_bits = {
            "dst": config.index_bits("acc"),
            "src": max(config.index_bits("inp"), config.index_bits("acc")),
            "wgt": config.index_bits("wgt"),
            "bias": config.index_bits("acc"),
        }
        self.operation = self._operation()

    def _operation(self) -> data.StructLayout:
        """What the stages need of an instruction."""
        config = self.config
        return data.StructLayout(
            {
                "is_alu": 1,
                "init": isa.Gemm.init.width(config),
                **({"window": 1} if config.window_taps else {}),
                "alu_init": 1,
                "op": AluOp,
                "use_imm": 1,
                **{name: layout(isa.Alu, config)[name].shape for name in ALU_FIELDS},
                **dict.fromkeys(pushes(config), 1),
                "index": INDEX_BITS,
            }
        )

    def issued(self) -> data.StructLayout:
        """A micro-op in F1, if ``valid``: its loops' sums. The scratchpad gives its own fields."""
        sums = {name: bits + 1 for name, bits in self.index_bits.items()}
        select = max((self.config.uops_per_word - 1).bit_length(), 1)
        marks = {"valid": 1, "null": 1, "last": 1, "beyond": 1, "select": select}
        return data.StructLayout({**marks, **sums, "operation": self.operation})

    def arrived(self) -> data.StructLayout:
        """A micro-op in READ, if ``valid``: what it reads and writes."""
        marks = ("valid", "null", "last", "beyond", "first")
        reads = ("reads_y", "early", "late", "accumulates")
        return data.StructLayout(
            {
                **dict.fromkeys((*marks, *reads), 1),
                **self.index_bits,
                # Bit n is for what was in stage n + 1 when it came to READ: whether that writes its
                # operand, and whether it is still to write.
                "src_unwritten": WRITE,
                "dst_unwritten": WRITE,
                "unwritten": WRITE,
                "operation": self.operation,
            }
        )

    def passed(self) -> data.StructLayout:
        """A micro-op in the back end. ``writes``: it has a result; ``skipped``: not written."""
        return data.StructLayout(
            {
                "valid": 1,
                "writes": 1,
                "skipped": 1,
                "last": 1,
                "late": 1,
                "first": 1,
                "dst": self.index_bits["dst"],
                "late_at": self.index_bits["dst"],
                "operation": self.operation,
            }
        )
