"""Results of ALU operations in plain Python, one line each: what tests hold both machines to.

The ISA's rows say when an operation reads what (``isa/operations.py``); these lines say what comes
of it. Simulator and RTL have each its own way to it.
"""

from __future__ import annotations

from vdla.isa.instructions import AluOp
from vdla.isa.numbers import reciprocal, rq, rsqrt


def result(op, x, y, imm=0, weight=0, zero=0, low=0, high=0):
    """The exact result of an operation without a memory of its own; its low 32 bits count."""
    return {
        AluOp.ADD: lambda: x + y,
        AluOp.MIN: lambda: min(x, y),
        AluOp.MAX: lambda: max(x, y),
        AluOp.SHR: lambda: x >> signed(y, 6) if signed(y, 6) >= 0 else x << -signed(y, 6),
        AluOp.MUL: lambda: x * signed(y, 25),
        AluOp.WADD: lambda: signed(x, 18) * weight + signed(y, 18) * signed(imm, 24),
        AluOp.RQ: lambda: min(max(rq(x, word(y)) + zero, low), high),
        AluOp.SCALE: lambda: rq(x, word(y)),
        AluOp.RECIPROCAL: lambda: reciprocal(y),
        AluOp.RSQRT: lambda: rsqrt(y),
    }[op]()


def signed(value, bits):
    """The low bits of a number, as a signed one."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def word(value):
    """A lane as a scale word."""
    return value & 0xFFFFFFFF
