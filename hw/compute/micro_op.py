"""Fields that the stages keep of a micro-op, and of the instruction that it belongs to.

1. A micro-op counts only if it is ``valid``. One that is ``null`` stands for an instruction without
   micro-ops: it passes as a bubble, which reads and writes nothing.
2. ``last`` marks the last micro-op of its instruction, which finishes with it.
3. Each micro-op takes along what later stages need of its instruction (``operation``), since the
   next instruction may be in the loop nest by then.
4. A pipeline for GEMM and ALU keeps what either needs, one for a single of them no more than that.
5. Options have a word in it (``seams.py``): fields of the instruction, places that are read, marks.
"""

from __future__ import annotations

from collections.abc import Iterable

from amaranth import Const, ShapeLike, Value
from amaranth.lib import data

from vdla.hw.compute.seams import MicroOpHooks, Place
from vdla.hw.hooks import hooks_of
from vdla.hw.interfaces import pushes
from vdla.hw.layout import layout, operation_shape
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import Engine, ring_of

EARLY = 2  # stage that has the operands that READ reads, in registers
LATE_READ = 6  # stage of the accumulator's read
COMBINE = 8
WRITE = 9
ALU_FIELDS = ("imm", "weight", "zero", "low", "high")  # that the ALU takes as they are


class MicroOps:
    """Layouts of an engine's micro-ops, stage by stage, and the width of each index stream.

    ``gemm`` and ``alu`` say what the engine executes. GEMM alone ``looks``: it has the stage LOOK.
    ``hooks`` are those of options, of ALU's before GEMM's, and ``places`` all that these read.
    """

    def __init__(self, config: Config, engine: Engine) -> None:
        self.config, self.engine = config, engine
        executor = ring_of(config).executor
        self.gemm, self.alu = (executor[cls] == engine for cls in (isa.Gemm, isa.Alu))
        self.looks = self.gemm and not self.alu
        self.index_bits = {
            "dst": config.index_bits("acc"),
            "src": max(config.index_bits("inp"), config.index_bits("acc")),
        }
        if self.gemm:
            self.index_bits |= {"wgt": config.index_bits("wgt"), "bias": config.index_bits("acc")}
        mine = (h for h in hooks_of(MicroOpHooks, config) if executor[h.instruction] == engine)
        self.hooks = sorted(mine, key=lambda hook: hook.instruction is isa.Gemm)
        self.kept = {
            cls: _names(hook.kept for hook in self.hooks if hook.instruction is cls)
            for cls in (isa.Alu, isa.Gemm)
        }
        self.places: dict[str, Place] = {}
        for hook in self.hooks:
            self.places |= hook.places
        self.operation = self._operation()

    def _operation(self) -> data.StructLayout:
        """Fields that the stages need of an instruction."""
        config = self.config
        fields: dict[str, ShapeLike] = {}
        if self.gemm and self.alu:
            fields["is_alu"] = 1
        if self.gemm:
            fields["init"] = isa.Gemm.init.width(config)
            fields |= {name: layout(isa.Gemm, config)[name].shape for name in self.kept[isa.Gemm]}
        if self.alu:
            fields |= {"alu_init": 1, "op": operation_shape(config), "use_imm": 1}
            kept = (*ALU_FIELDS, *self.kept[isa.Alu])
            fields |= {name: layout(isa.Alu, config)[name].shape for name in kept}
        fields |= {**dict.fromkeys(pushes(config), 1), "index": INDEX_BITS}
        return data.StructLayout(fields)

    def is_alu(self, operation: data.View) -> Value:
        """Whether an instruction is an ALU; a constant where the engine executes one kind."""
        return operation.is_alu if self.gemm and self.alu else Const(self.alu)

    def issued(self) -> data.StructLayout:
        """A micro-op in F1 or F2, if ``valid``: its loops' sums. The scratchpad gives its own
        fields."""
        sums = {name: bits + 1 for name, bits in self.index_bits.items()}
        select = max((self.config.uops_per_word - 1).bit_length(), 1)
        marks = {"valid": 1, "null": 1, "last": 1, "beyond": 1, "select": select}
        sums |= {name: sums[place.beside] + 1 for name, place in self.places.items()}
        return data.StructLayout({**marks, **sums, "operation": self.operation})

    def arrived(self) -> data.StructLayout:
        """A micro-op in READ, if ``valid``: what it reads and writes."""
        marks = ("valid", "null", "last", "beyond", "first")
        reads = ("reads_y", "early", "late", "accumulates") if self.alu else ("late", "chained")
        added = _names(hook.marks for hook in self.hooks)
        # Bit n is for what is in stage n + 1: whether that writes its operand.
        hazards = ("src", "dst") if self.alu else ()
        return data.StructLayout(
            {
                **dict.fromkeys((*marks, *reads, *added), 1),
                **self.index_bits,
                **{name: self.config.index_bits(p.memory) for name, p in self.places.items()},
                **{f"{name}_unwritten": WRITE for name in hazards},
                **{f"{name}_waits": 1 for name in hazards},
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


def _names(of_hooks: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The names that hooks give, one behind the other."""
    return tuple(name for names in of_hooks for name in names)
