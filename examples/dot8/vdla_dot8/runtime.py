"""Runs dot8's code: an interpreter that counts a cycle for each statement that is executed."""

from vdla.compiler.tir import interp
from vdla.compiler.tir.ir import Evaluate, For, Store
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.visitor import stmt_children
from vdla_dot8.instructions import dot8


def load(code):
    """Makes the code of one node ready; what is returned runs it over arrays, and counts cycles."""
    func = parse(code.decode(), [dot8()])
    cycles = statements(func.body)

    def run(arrays):
        interp.run(func, [a.reshape(p.shape) for a, p in zip(arrays, func.params, strict=True)])
        return cycles

    return run


def statements(stmt):
    """Number of instructions and stores that a statement executes."""
    own = isinstance(stmt, Evaluate | Store)
    inner = sum(statements(child) for child in stmt_children(stmt))
    return own + inner * (stmt.extent if isinstance(stmt, For) else 1)
