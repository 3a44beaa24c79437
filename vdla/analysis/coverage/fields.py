"""Each value, or kind of value, of every field of an instruction that started."""

from __future__ import annotations

from collections.abc import Iterator

from vdla.analysis.case import Outcome
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.fields import Field
from vdla.isa.instructions import (
    INSTRUCTIONS,
    Finish,
    Gemm,
    Index,
    Instruction,
    Load,
    Mem,
    instruction_set,
    memories,
)
from vdla.sim.stream import Stream

BASES = ("sram_base", "scale_base", "uop_begin", "dst_base", "src_base", "wgt_base", "bias_base")
COUNTS = ("x_size", "y_size", "z_size", "extent_0", "extent_1", "extent_2", "uop_count")


def field_goals(config: Config) -> Iterator[str]:
    """The goals: every kind of every field but the opcode; FINISH has nothing to set."""
    for cls in instruction_set(config):
        if cls is not Finish:
            for f, _, _ in cls.layout(config)[1:]:
                yield from (f"fields: {cls.mnemonic} {f.name} {each}" for each in kinds(f, config))


def fields(stream: Stream, outcome: Outcome) -> Iterator[str]:
    """Goals reached by the fields of the instructions that started."""
    for index, each in enumerate(stream.instructions):
        if outcome.start[index] >= 0 and type(each) in INSTRUCTIONS:
            for f, _, _ in each.layout(stream.config)[1:]:
                yield f"fields: {each.mnemonic} {f.name} {kind(f, each, stream.config)}"


def kinds(f: Field, config: Config) -> tuple[str, ...]:
    """The kinds of values of a field; ``kind`` says which one a value is of."""
    if f.names:
        return tuple(f.names[value] for value in f.legal(config))
    if f.is_flag:
        return "clear", "set"
    if f.signed:
        return "lowest", "negative", "zero", "positive", "highest"
    if f.name == "dram_base":
        return "at a page", "within a page", "at a page's last beat"
    if f.name in COUNTS:
        return "zero", "one", "more"
    if f.name in BASES:
        return "first", "within", "last"
    return "zero", "one", "more", "highest"


def kind(f: Field, each: Instruction, config: Config) -> str:
    """Which of ``kinds`` the value in an instruction is of, or ``"illegal"``."""
    value = int(getattr(each, f.name))
    low, high = f.bounds(config)
    if f.names:
        return f.names[value] if value in f.legal(config) else "illegal"
    if f.is_flag:
        return ("clear", "set")[value]
    if f.signed:
        ends = {low: "lowest", high: "highest", 0: "zero"}
        return ends.get(value, "positive" if value > 0 else "negative")
    if f.name == "dram_base":
        return {0: "at a page", PAGE_BYTES - config.port_bytes: "at a page's last beat"}.get(
            value % PAGE_BYTES, "within a page"
        )
    if f.name in COUNTS:
        return ("zero", "one", "more")[min(value, 2)]
    if f.name in BASES:
        return {0: "first", _last(f, each, config): "last"}.get(value, "within")
    return {0: "zero", 1: "one", high: "highest"}.get(value, "more")


def _last(f: Field, each: Instruction, config: Config) -> int:
    """The last index that a base can name."""
    if f.name == "uop_begin":
        return config.uop_depth - 1
    if isinstance(f, Index):
        return config.depth(f.buffer) - 1
    if f.name == "sram_base" and isinstance(each, Load) and each.memory in memories(config):
        return config.depth(Mem(each.memory).buffer) - 1
    return config.depth("inp" if isinstance(each, Gemm) else "acc") - 1
