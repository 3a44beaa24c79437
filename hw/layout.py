"""Layouts and widths that derive from ``isa``: no bit position is written down in this room."""

from __future__ import annotations

from amaranth import Cat, Const, Shape, Signal, Value, signed, unsigned
from amaranth.lib import data
from amaranth.utils import exact_log2

from vdla.isa.config import Config
from vdla.isa.fields import Record
from vdla.isa.instructions import Alu, AluOp, instruction_bytes


def layout(record: type[Record], config: Config) -> data.StructLayout:
    """The fields of an instruction class or of ``Uop``, lowest bit first."""
    return data.StructLayout(
        {f.name: signed(w) if f.signed else unsigned(w) for f, _, w in record.layout(config)}
    )


def instruction_bits(config: Config) -> int:
    """Bits of an instruction word."""
    return 8 * instruction_bytes(config)


def operation_shape(config: Config) -> Shape:
    """Shape of an operation of the ALU."""
    return unsigned(Alu.alu_op.width(config))


def is_operation(op: Value, *operations: AluOp) -> Value:
    """Whether what holds an operation of the ALU holds one of these."""
    return op.matches(*(Const(int(each), len(op)) for each in operations))


def is_other_operation(op: Value, *operations: AluOp) -> Value:
    """Whether what holds an operation of the ALU holds none of these."""
    first, *others = (op != Const(int(each), len(op)) for each in operations)
    for other in others:
        first &= other
    return first


def lanes(width: int, count: int, *, is_signed: bool = True) -> data.ArrayLayout:
    """A vector of ``count`` lanes, lane 0 in the lowest bits."""
    return data.ArrayLayout(Shape(width, is_signed), count)


def valid_register(shape: data.StructLayout, marks: int, name: str) -> data.View:
    """A register; only its first ``marks`` bits, which say whether the rest counts, are reset.

    A reset of all registers would be the longest net of the chip, and of no use.
    """
    rest = Signal(shape.size - marks, name=name, reset_less=True)
    return data.View(shape, Cat(Signal(marks, name=f"{name}_marks"), rest))


def beats(config: Config, buffer: str) -> int:
    """Beats of one DRAM entry of ``inp``, ``wgt``, ``acc``, ``acc8`` or ``uop``."""
    return config.entry(buffer) // config.port_bytes


def scaled(value: Value, factor: int) -> Value:
    """``value × factor`` as shifts and adds: a constant must not cost a multiplier."""
    terms = [value << bit for bit in range(factor.bit_length()) if factor >> bit & 1]
    total: Value = Const(0)
    for term in terms:
        total = total + term
    return total


def is_at_least(value: Value, least: int) -> Value:
    """Whether a value is ``least`` or more: a constant where its shape leaves no choice, since
    tools complain of such a comparison."""
    if least <= 0 and not value.shape().signed:
        return Const(1)
    if least >= 1 << len(value):
        return Const(0)
    if least & (least - 1) == 0 and not value.shape().signed:
        return value[exact_log2(least) :].any()
    return value >= least


def subtract_selected(direct: Value, chosen: Value, carry: Value | int = 0) -> Value:
    """``direct - chosen - 1 + carry``, signed, where a multiplexer gives ``chosen``: no extra LUTs.

    An FPGA adds with a LUT per bit, which compares the two operands' bits, in front of a carry
    chain, which also gets one of the operands directly. The LUT has inputs to spare, so a
    multiplexer fits into it, but only that of the operand that the carry chain doesn't get.
    Synthesis gives the carry chain the first operand of a difference; of a sum it may be either.
    So this is written as a difference, and ``add_selected`` is made of it.
    """
    return (
        Cat(Const(carry, 1) if isinstance(carry, int) else carry, _as_signed(direct)).as_signed()
        - Cat(Const(1, 1), _as_signed(chosen)).as_signed()
    )[1:].as_signed()


def add_selected(direct: Value, chosen: Value, carry: Value | int = 0) -> Value:
    """``direct + chosen + carry``, signed, for what is chosen among several (see
    ``subtract_selected``)."""
    return subtract_selected(direct, ~_as_signed(chosen), carry)


def _as_signed(value: Value) -> Value:
    return value if value.shape().signed else Cat(value, Const(0, 1)).as_signed()


def add_sticky(total: Value, step: Value | int) -> Value:
    """A sum that remembers in its top bit that it has left its range: indices never wrap."""
    bits = len(total) - 1
    there = total[:bits] + step
    return Cat(there[:bits], total[bits] | there[bits:].any())
