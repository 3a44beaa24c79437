"""Tables of functions: TAB as a scope whose entries are tables, and looking results up."""

from __future__ import annotations

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.declared import Declared
from vdla.compiler.targets.accelerator.description.intrinsics import add_intrinsics
from vdla.compiler.targets.accelerator.description.lowering import Emit, Lowering, declare
from vdla.compiler.targets.accelerator.description.memory import ACC, add_scope
from vdla.compiler.targets.accelerator.description.transfers import load
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Alu
from vdla.isa.options import tables as isa
from vdla.isa.options.tables import TABLE, TABLE_RESULTS, tables

TAB = add_scope(isa.TAB, lambda config: (TABLE_RESULTS,), tables)  # tables of results of 16 bits


def _look_up(name: str, config: Config) -> TensorIntrin:
    """``dst = table[y & 255]``: the result that a table has for an int8, which y is."""
    y = te.placeholder((config.block_out,), "int32", "y")
    table = te.placeholder((TABLE_RESULTS,), "int16", "table")
    dst = te.compute(y.shape, lambda l: table[y[l] & (TABLE_RESULTS - 1)].astype("int32"), "dst")
    roles = {"dst": "dst", "y": "y", "imm": "table"}
    lowering = Lowering((Emit(Alu, {"alu_op": TABLE}, roles),), inplace="y")
    return declare(name, dst, (), {dst: ACC, y: ACC, table: TAB}, lowering, config)


(_OPTION,) = isa.OPTIONS
add_intrinsics(
    Declared("load_tab", "a table from DRAM", load(isa.TAB, TAB, "int16"), _OPTION),
    before="load_acc8",
)
add_intrinsics(
    Declared("alu_table", "the result of a table for the low 8 bits of y", _look_up, _OPTION),
    before="alu_add_reduce",
)


def no_tables(config: Config, purpose: str = "functions") -> str | None:
    """Reason for which a config has no tables for a purpose; None where it has."""
    if tables(config):
        return None
    return f"config {config.name} has no tables for {purpose} (table_bytes = 0)"


def no_two_tables(config: Config) -> str | None:
    """Reason for which a config hasn't two tables at once; None where it has."""
    if tables(config) > 1:
        return None
    return f"config {config.name} has no two tables for functions"
