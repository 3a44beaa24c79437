"""Fields that the stages keep of a micro-op, and of the instruction that it belongs to.

1. A micro-op counts only if it is ``valid``. One that is ``null`` stands for an instruction without
   micro-ops: it passes as a bubble, which reads and writes nothing.
2. ``last`` marks the last micro-op of its instruction, which finishes with it.
3. Each micro-op takes along what later stages need of its instruction (``operation``), since the
   next instruction may be in the loop nest by then.
4. A pipeline for GEMM and ALU keeps what either needs, one for a single of them no more than that.
5. ``second`` is src + pitch, where the window has two rows: what the second one reads of INP.
"""

from __future__ import annotations

from amaranth import Const, ShapeLike, Value
from amaranth.lib import data

from vdla.hw.interfaces import pushes
from vdla.hw.layout import layout, operation_shape
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.options.reciprocals import reciprocal_units
from vdla.isa.options.window import window_rows, window_taps
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import Engine, ring_of

TABLE_READ = 4  # stage of the read of TAB
LATE_READ = 5  # stage of the accumulator's read
COMBINE = 6
WRITE = 7
ALU_FIELDS = ("imm", "weight", "zero", "low", "high")  # that the ALU takes as they are


class MicroOps:
    """Layouts of an engine's micro-ops, stage by stage, and the width of each index stream.

    ``gemm`` and ``alu`` say what the engine executes. GEMM alone ``looks``: it has the stage LOOK.
    """

    def __init__(self, config: Config, engine: Engine) -> None:
        self.config = config
        executor = ring_of(config).executor
        self.gemm, self.alu = (executor[cls] == engine for cls in (isa.Gemm, isa.Alu))
        self.looks = self.gemm and not self.alu
        self.index_bits = {
            "dst": config.index_bits("acc"),
            "src": max(config.index_bits("inp"), config.index_bits("acc")),
        }
        if self.gemm:
            self.index_bits |= {"wgt": config.index_bits("wgt"), "bias": config.index_bits("acc")}
        self.two_rows = self.gemm and window_rows(config) > 1
        self.has_units = self.alu and reciprocal_units(config) > 0
        self.operation = self._operation()

    def _operation(self) -> data.StructLayout:
        """Fields that the stages need of an instruction."""
        config = self.config
        fields: dict[str, ShapeLike] = {}
        if self.gemm and self.alu:
            fields["is_alu"] = 1
        if self.gemm:
            fields["init"] = isa.Gemm.init.width(config)
            if window_taps(config):
                fields["window"] = 1
        if self.alu:
            fields |= {"alu_init": 1, "op": operation_shape(config), "use_imm": 1}
            fields |= {name: layout(isa.Alu, config)[name].shape for name in ALU_FIELDS}
        fields |= {**dict.fromkeys(pushes(config), 1), "index": INDEX_BITS}
        return data.StructLayout(fields)

    def is_alu(self, operation: data.View) -> Value:
        """Whether an instruction is an ALU; a constant where the engine executes one kind."""
        return operation.is_alu if self.gemm and self.alu else Const(self.alu)

    def issued(self) -> data.StructLayout:
        """A micro-op in F1, if ``valid``: its loops' sums. The scratchpad gives its own fields."""
        sums = {name: bits + 1 for name, bits in self.index_bits.items()}
        select = max((self.config.uops_per_word - 1).bit_length(), 1)
        marks = {"valid": 1, "null": 1, "last": 1, "beyond": 1, "select": select}
        if self.two_rows:
            sums["second"] = sums["src"] + 1
        return data.StructLayout({**marks, **sums, "operation": self.operation})

    def arrived(self) -> data.StructLayout:
        """A micro-op in READ, if ``valid``: what it reads and writes."""
        marks = ("valid", "null", "last", "beyond", "first")
        reads = ("reads_y", "early", "late", "accumulates") if self.alu else ("late", "chained")
        units = ("serial",) if self.has_units else ()  # that compute its result
        # Bit n is for what was in stage n + 1 when it came to READ: whether that writes its
        # operand, and whether it is still to write.
        hazards = ("src_unwritten", "dst_unwritten", "unwritten") if self.alu else ()
        return data.StructLayout(
            {
                **dict.fromkeys((*marks, *reads, *units), 1),
                **self.index_bits,
                **({"second": self.config.index_bits("inp")} if self.two_rows else {}),
                **dict.fromkeys(hazards, WRITE),
                "operation": self.operation,
            }
        )

    def passed(self) -> data.StructLayout:
        """A micro-op in the back end. ``writes``: it has a result; ``skipped``: not written;
        ``chained``: what it reads late is forwarded, and takes no port."""
        return data.StructLayout(
            {
                "valid": 1,
                "writes": 1,
                "skipped": 1,
                "last": 1,
                "late": 1,
                **({"chained": 1} if self.looks else {}),
                "first": 1,
                "dst": self.index_bits["dst"],
                "late_at": self.index_bits["dst"],
                "operation": self.operation,
            }
        )
