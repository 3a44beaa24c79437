"""``vdla.prim_func``: functions of Python print, parse and build as their texts do."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import vdla
from vdla.compiler.tir.ir import PrimFunc
from vdla.support.errors import UserError

ROWS, LANES = 6, 4


@vdla.prim_func(target="tiny")
def added(A: vdla.Buffer((ROWS, LANES), "int32"), C: vdla.Buffer((ROWS, LANES), "int32")):
    """Adds 3, on the accelerator."""
    acc = vdla.alloc((ROWS, LANES), "int32", scope=vdla.ACC)
    copy = vdla.alloc((ROWS, LANES), "int32", scope=vdla.ACC)
    for i in range(ROWS):
        vdla.load_acc(dst=copy[i, 0], src=A[i, 0])
    for i in range(ROWS):
        vdla.alu_add_imm(dst=acc[i, 0], x=copy[i, 0], imm=3)
    for i in range(ROWS):
        vdla.store32(out=C[i, 0], acc=acc[i, 0])


@vdla.prim_func
def product(
    A: vdla.Buffer((8, 16), "int8", value_range=(-9, 9)),
    B: vdla.Buffer((16, 8), "int8"),
    C: vdla.Buffer((8, 8), "int32"),
):
    for y in vdla.parallel(8):
        for x in vdla.vectorized(8):
            C[y, x] = 0
        for k in range(16):
            for x in vdla.vectorized(8):
                C[y, x] += vdla.int32(A[y, k]) * vdla.int32(B[k, x])


def test_on_the_accelerator_it_is_its_text():
    assert isinstance(added, PrimFunc)
    text, script = str(added), added.script()
    assert text.startswith(
        "func added(A: int32[6, 4], C: int32[6, 4]):\n    alloc acc: int32[6, 4]"
    )
    assert script.startswith('@vdla.prim_func(target="tiny")\ndef added(A: vdla.Buffer((6, 4), ')
    assert vdla.parse(text, "tiny") == added == vdla.parse(script, "tiny")
    assert hash(vdla.parse(text, "tiny")) == hash(added)
    assert added != vdla.parse(text.replace("imm=3", "imm=4"), "tiny")
    a = np.arange(24, dtype=np.int32).reshape(6, 4)
    runs = []
    for program in (added, vdla.parse(text, "tiny"), vdla.parse(script, "tiny")):
        c = np.zeros_like(a)
        runs.append(vdla.build(program, ["A", "C"], "tiny")(a, c).cycles)
        np.testing.assert_array_equal(c, a + 3)
    assert len(set(runs)) == 1


def test_on_a_processor():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (8, 16), np.int8), rng.integers(-128, 127, (16, 8), np.int8)
    c = np.zeros((8, 8), np.int32)
    kernel = vdla.build(product, target="cpu")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(int) @ b.astype(int))
    text = vdla.build(vdla.parse(product.script(), "cpu"), target="cpu").passes["llvm"]
    assert text == kernel.passes["llvm"]


def test_on_a_gpu(gpu):
    N = 64

    @vdla.prim_func(target="cpu", name="double it")
    def doubled(A: vdla.Buffer((N,), "float32"), C: vdla.Buffer((N,), "float32")):
        for b in vdla.thread(N // 16, tag="blockIdx.x"):
            for t in vdla.thread(16, tag="threadIdx.x"):
                C[b * 16 + t] = A[b * 16 + t] * 2.0

    assert vdla.parse(str(doubled), "cpu") == doubled
    kernel = vdla.build(vdla.parse(doubled.script().replace("double it", "doubled"), "cpu"),
                        target="gpu")  # fmt: skip
    a, c = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    kernel(a, c)
    np.testing.assert_array_equal(c, 2 * a)


def test_ptx_of_a_function():
    @vdla.prim_func(target="cpu")
    def doubled(A: vdla.Buffer((64,), "float32"), C: vdla.Buffer((64,), "float32")):
        for b in vdla.thread(4, tag="blockIdx.x"):
            for t in vdla.thread(16, tag="threadIdx.x"):
                C[b * 16 + t] = A[b * 16 + t] * 2.0

    ptx = vdla.build(doubled, target="sm_80").passes["ptx"]
    assert ptx == vdla.build(vdla.parse(str(doubled), "cpu"), target="sm_80").passes["ptx"]


FILE = """import vdla

def made(n):
    @vdla.prim_func
    def filled(A: vdla.Buffer((n,), "int8"),
               B: vdla.Buffer((4,), "int8")):
        for i in range(8):
            # é
            A[i] = 1
    return filled
"""


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_refusal_points_into_the_file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(FILE)
    module = loaded(path)
    assert str(module.made(8)).endswith("A[i] = int8(1)")
    with pytest.raises(vdla.ParseError) as raised:
        module.made(7)
    assert str(raised.value) == (
        f"{path}, line 9, column 13: filled: A[i]: expected index 0 in 0..6, found i in 0..7; "
        "guard the access with te.select, or clamp the index with te.minimum and te.maximum\n"
        "                A[i] = 1\n"
        "                ^"
    )
    assert (raised.value.line, raised.value.column) == (9, 13)
    with pytest.raises(vdla.ParseError) as raised:
        module.made("x")
    assert str(raised.value).startswith(f"{path}, line 5, column 19: buffer A: expected a shape of")


def test_a_function_without_source():
    with pytest.raises(UserError) as raised:
        exec("@vdla.prim_func\ndef f(A: vdla.Buffer((4,), 'int8')):\n    pass", {"vdla": vdla})
    assert str(raised.value) == (
        "prim_func f: expected a function with source in a file, found none; write it to a file, "
        "or give its text to vdla.parse"
    )
    with pytest.raises(UserError, match=r"^prim_func: expected a function, found 3$"):
        vdla.prim_func(3)


def test_a_text_of_python_is_parsed_with_its_imports():
    text = "import vdla\n\n\n" + added.script()
    assert vdla.parse(text, "tiny") == added
    with pytest.raises(
        vdla.ParseError, match=r"^line 4, column 9: expected a buffer of C, found A"
    ):
        vdla.parse('import vdla\n@vdla.prim_func\ndef f(C: vdla.Buffer(4, "int8")):\n    '
                   "    A[0] = 1", "cpu")  # fmt: skip
