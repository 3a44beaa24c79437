"""ALU operations: a row each. Every list of operations, in every room, derives from these rows.

    acc[dst] = f(x, y) in every lane; x is acc[dst], y is acc[src] or the immediate

A row says what the machine must know of an operation besides its result: when it reads x and y, how
many of their bits it takes, what its immediate means, and whether it is computed bit by bit. How
the result comes about stands twice, in ``sim/alu.py`` and in ``hw/alu.py``: two witnesses, which
lockstep compares. Rows of operations that only some configs have are in ``isa/options``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

from vdla.isa.rows import Row

SHR_BITS = 6  # the shift amount of SHR, signed
MUL_BITS = 25  # the multiplier operand of MUL: one DSP48E1 input, signed
WADD_BITS = 18  # both operands of WADD, signed
WEIGHT_BITS = 24  # both weights of WADD, signed

# What instructions without options do, as ``sim/semantics.py`` does it over a fixed battery of
# operands: a digest. It is part of the ISA's hash. tests/sim/test_semantics.py works it out again,
# and says what to write here when it has changed.
SEMANTICS = "b55bed2d"


class X(Enum):
    """Time at which an operation reads x, docs/timing.md §5.4."""

    NONE = "none"
    EARLY = "early"  # in READ, since it is multiplied or shifted
    LATE = "late"  # as an accumulator: forwarded from the micro-ops before it


class AluOp(Row):
    """An ALU operation.

    Attributes:
        words: its result, for the manual.
        x: when it reads x.
        y_from_acc: whether y is always acc[src], whatever ``use_imm`` says.
        bits: the low bits that it takes of ``x``, ``y`` or ``imm`` as a signed number, where they
            are fewer than the 32 of a lane.
        imm: kind of number that its immediate, or its y, is: "number", "scale", or one that an
            option knows.
        serial: whether READ holds while units compute it.
        memory: the buffer that it looks a result up in, for each lane; "": none.
    """

    words: str
    x: X = X.LATE
    y_from_acc: bool = False
    bits: Mapping[str, int] = MappingProxyType({})
    imm: str = "number"
    serial: bool = False
    memory: str = ""


AluOp.add(0, "ADD", words="x + y")
AluOp.add(1, "MIN", words="the less of x and y")
AluOp.add(2, "MAX", words="the greater of x and y")
AluOp.add(3, "SHR", words="x >> y, left when y < 0", x=X.EARLY, bits={"y": SHR_BITS})
AluOp.add(4, "MUL", words="x × y", x=X.EARLY, bits={"y": MUL_BITS})
AluOp.add(
    5, "WADD", words="x × weight + y × imm", x=X.EARLY, y_from_acc=True,
    bits={"x": WADD_BITS, "y": WADD_BITS, "imm": WEIGHT_BITS},
)  # fmt: skip
AluOp.add(6, "RQ", words="min(max(rq(x, y) + zero, low), high)", x=X.EARLY, imm="scale")


def bits_of(operations: Iterable[AluOp]) -> int:
    """A set of operations as a number: bit n is the operation n."""
    return sum(1 << op for op in operations)
