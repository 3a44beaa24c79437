"""Memory of temporaries: what functions take at once is what is said."""

from __future__ import annotations

import re
import signal
import subprocess
from dataclasses import replace

import pytest
from raw_runs import c_compiler

from tests.support.all_operators import OPERATORS, alone
from vdla import te
from vdla.compiler.targets.processor.codegen.emit_memory import STACK_BYTES
from vdla.compiler.targets.processor.codegen.llvm import compile_ir, compile_object
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


def chain():
    """A function of two temporaries."""
    x = te.placeholder((300, 300), "float32", "x")
    y = te.compute((300, 300), lambda i, j: x[j, i] + 1.0, "y")
    z = te.compute((300, 300), lambda i, j: y[j, i] * y[i, j], "z")
    return te.create_prim_func([x], te.compute((300, 300), lambda i, j: z[j, i], "out"), "f")


def test_a_chain_of_temporaries():
    """Of three in a row, all lie side by side."""
    assert allocated([chain()]) == [360000, 360000]
    assert scratch_bytes(chain(), SERIAL) == 720000


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_no_more(name):
    node, types = OPERATORS[name]
    function = node_function(node, alone(node, types), "f", SERIAL).func
    sizes = allocated([function])
    assert (scratch_bytes(function, SERIAL) > 0) == bool(sizes)
    assert scratch_bytes(function, SERIAL) <= sum(-(-n // 16) * 16 for n in sizes)


@pytest.mark.parametrize(("result", "code"), [("0", -signal.SIGILL), ("arena[n++]", 0)])
def test_a_function_that_gets_no_memory_ends_the_program(tmp_path, result, code):
    """It would write to wherever it got."""
    (tmp_path / "f.o").write_bytes(compile_object([chain()], find_processor("x86_64")))
    (tmp_path / "main.c").write_text(
        "#include <stddef.h>\nvoid f(void **buffers);\n"
        "static float arena[2][90000], x[90000], out[90000];\nstatic int n;\n"
        f"void *malloc(size_t size) {{ return (void *)({result}); }}\n"
        "void free(void *memory) {}\n"
        "int main(void) { void *buffers[] = {x, out, 0}; f(buffers); return out[7] != 1; }\n"
    )
    command = [c_compiler(), "-fno-builtin", "main.c", "f.o", "-lpthread", "-lm", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"]).returncode == code
