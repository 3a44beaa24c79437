"""Memory of temporaries: what functions take at once is what is said."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support.all_operators import OPERATORS, alone
from vdla import te
from vdla.compiler.targets.processor.codegen.emit_memory import STACK_BYTES
from vdla.compiler.targets.processor.codegen.llvm import compile_ir
from vdla.compiler.targets.processor.codegen.scratch import scratch_bytes
from vdla.compiler.targets.processor.description.processor import find_processor
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.te import floormod
from vdla.compiler.tir.ir import Alloc, Buffer, For, If, PrimFunc, Seq, Store, Var, const

SERIAL, SHARED = find_processor("wasm32"), find_processor("x86_64")
OUT = Buffer("out", (1000,), "uint8")


def func(body):
    """A function of one buffer."""
    return PrimFunc("f", (OUT,), body)


def taken(size, *inside):
    """A temporary of bytes, which is written, and others within."""
    buffer = Buffer("t", (size,), "uint8")
    write = Store(buffer, (const(0, "int32"),), const(1, "uint8"))
    return Alloc(buffer, Seq((write, *inside)) if inside else write)


def loop(extent, body, kind="parallel"):
    """Steps that share nothing."""
    return For(Var("i"), extent, kind, body)


@pytest.mark.parametrize(("body", "serial", "shared"), [
    (taken(STACK_BYTES), 0, 0),
    (taken(STACK_BYTES + 1), STACK_BYTES + 16, STACK_BYTES + 16),
    (taken(20000, taken(30000), taken(40000)), 60000, 60000),
    (Seq((taken(20000), taken(30000))), 30000, 30000),
    (taken(16, taken(20000)), 20000, 20000),
    (loop(5, taken(20000), "serial"), 20000, 20000),
    (loop(5, taken(20000)), 20000, 100000),
    (loop(1000, taken(20000)), 20000, 250 * 20000),
    (loop(5, loop(3, taken(20000))), 20000, 100000),
])  # fmt: skip
def test_bytes_at_once(body, serial, shared):
    assert scratch_bytes(func(body), SERIAL) == serial
    assert scratch_bytes(func(body), SHARED) == shared


def test_the_larger_side_of_a_condition():
    i = Var("i")
    branch = If(floormod(i, 2) < 1, taken(20000), taken(40000))
    assert scratch_bytes(func(For(i, 5, "serial", branch)), SERIAL) == 40000
    half = replace(branch, orelse=None)
    assert scratch_bytes(func(For(i, 5, "serial", half)), SERIAL) == 20000


def allocated(functions):
    """The sizes that the code of functions asks malloc for."""
    return [int(n) for n in re.findall(r'@"malloc"\(i\d+ (\d+)\)', compile_ir(functions, SERIAL))]


def test_a_chain_of_temporaries():
    """Of three in a row, all lie side by side."""
    x = te.placeholder((300, 300), "float32", "x")
    y = te.compute((300, 300), lambda i, j: x[j, i] + 1.0, "y")
    z = te.compute((300, 300), lambda i, j: y[j, i] * y[i, j], "z")
    function = te.create_prim_func([x], te.compute((300, 300), lambda i, j: z[j, i], "out"), "f")
    assert allocated([function]) == [360000, 360000]
    assert scratch_bytes(function, SERIAL) == 720000


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_no_more(name):
    node, types = OPERATORS[name]
    function = node_function(node, alone(node, types), "f", SERIAL).func
    sizes = allocated([function])
    assert (scratch_bytes(function, SERIAL) > 0) == bool(sizes)
    assert scratch_bytes(function, SERIAL) <= sum(-(-n // 16) * 16 for n in sizes)
