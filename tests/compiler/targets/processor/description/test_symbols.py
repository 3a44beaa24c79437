"""What objects leave open is what the description says, for every expression and operator."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest

from tests.support.all_expressions import all_expressions
from tests.support.all_operators import OPERATORS, alone
from vdla.compiler.targets.processor.codegen.llvm import compile_object
from vdla.compiler.targets.processor.description.processor import PROCESSORS, find_processor
from vdla.compiler.targets.processor.description.symbols import (
    SYMBOLS,
    linker_symbols,
    open_symbols,
)
from vdla.compiler.targets.processor.functions import node_function

QUICK = ("riscv64-linux", "thumbv7em", "wasm32")  # each takes some 3 seconds
# The names of libm that JavaScript's Math, or a program for a bare machine, has to give.
WASM32 = (
    "acos acosf acosh acoshf asin asinf asinh asinhf atan atanf atanh atanhf cos cosf cosh coshf "
    "erf exp fma fmaf free log malloc pow powf sin sinf sinh sinhf tan tanf tanh"
)


def undefined(code: bytes, folder) -> set[str]:
    """The symbols that an object file leaves open."""
    tool = shutil.which("llvm-nm") or (None if code.startswith(b"\0asm") else shutil.which("nm"))
    if tool is None:
        pytest.skip("no llvm-nm: apt-get install llvm")
    path = folder / "code.o"
    path.write_bytes(code)
    done = subprocess.run(
        [tool, "-u", path], capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line.split()[-1] for line in done.stdout.splitlines()}


@cache
def functions():
    """The functions of all expressions, which no processor changes."""
    return all_expressions()


@pytest.mark.parametrize("name", [
    n if n in QUICK else pytest.param(n, marks=pytest.mark.long)
    for n, p in PROCESSORS.items() if not p.is_native
])  # fmt: skip
def test_expressions_leave_open_what_is_listed(name, tmp_path):
    target = find_processor(name)
    code = compile_object(functions(), target)
    assert undefined(code, tmp_path) <= open_symbols(target) | linker_symbols(target)


@pytest.mark.parametrize("name", QUICK)
def test_operators_leave_open_what_is_listed(name, tmp_path):
    target = find_processor(name)
    kernels = [
        node_function(node, alone(node, types), f"f{n}", target)
        for n, (node, types) in enumerate(OPERATORS.values())
    ]
    code = compile_object([kernel.func for kernel in kernels], target)
    assert undefined(code, tmp_path) <= open_symbols(target) | linker_symbols(target)


def test_webassembly_calls_an_allocator_and_mathematics_alone():
    assert " ".join(sorted(SYMBOLS["wasm32"])) == WASM32
