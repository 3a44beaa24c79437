"""Native code computes what the interpreter computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernel_numbers import corners
from vdla import te
from vdla.compiler import tir
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.targets.processor.description.processor import PROCESSORS
from vdla.compiler.tir import Buffer, For, PrimFunc, Store, Var
from vdla.compiler.tir.ir import binary, const
from vdla.compiler.tir.ops import rq

RNG = np.random.default_rng(0)


def both(inputs, out, *arrays):
    """(native result, interpreted result)."""
    func = te.create_prim_func(inputs, out)
    (expected,) = tir.evaluate(func, *arrays)
    found = np.zeros_like(expected)
    llvm.jit([func])["main"](*arrays, found)
    return found, expected


def test_sizes_of_the_hosts_pointers():
    found = {name: target.size_bits for name, target in PROCESSORS.items()}
    assert found == {
        "native": 64, "x86-64-v3": 64, "x86-64-v4": 64, "sapphirerapids": 64,
        "cortex-a9": 32, "cortex-a53": 64,
        "cortex-a72": 64, "cortex-a76": 64, "neoverse-v1": 64, "x86_64": 64, "aarch64-linux": 64,
        "arm-linux": 32, "riscv64-linux": 64, "thumbv7em": 32, "wasm32": 32,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    "op",
    [
        "add",
        "sub",
        "mul",
        "floordiv",
        "floormod",
        "min",
        "max",
        "lt",
        "ge",
        "eq",
        "bitand",
        "bitor",
        "bitxor",
    ],
)
def test_integer_operators(op, dtype):
    a, b = te.placeholder((64,), dtype, "a"), te.placeholder((64,), dtype, "b")
    out = te.compute((64,), lambda i: binary(op, a[i], b[i]), "out")
    low, high = tir.ir.INT_RANGES[dtype]
    x = RNG.integers(low, high, 64, endpoint=True, dtype=dtype)
    y = RNG.integers(max(low, -9), 9, 64, endpoint=True, dtype=dtype)
    y[y == 0] = 3
    y[y == np.array(-1).astype(dtype)] = 5  # the most negative number by -1 overflows
    np.testing.assert_array_equal(*both([a, b], out, x, y))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max", "lt", "ne"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_operators(op, dtype):
    a, b = te.placeholder((33,), dtype, "a"), te.placeholder((33,), dtype, "b")
    out = te.compute((33,), lambda i: binary(op, a[i], b[i]), "out")
    x, y = (RNG.standard_normal(33).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(*both([a, b], out, x, y))


@pytest.mark.parametrize("divisor", [2, 3, 7])
def test_indices_below_zero_are_divided_towards_minus_infinity(divisor):
    """As subscripts, where the quotient of an index that is never negative needs no rounding."""
    a = te.placeholder((40,), "int32", "a")
    out = te.compute(
        (20,), lambda i: a[(11 - i) // divisor + 12] * 100 + a[(11 - i) % divisor], "out"
    )
    x = RNG.integers(-99, 99, 40, dtype=np.int32)
    found, expected = both([a], out, x)
    np.testing.assert_array_equal(found, expected)
    want = [x[(11 - i) // divisor + 12] * 100 + x[(11 - i) % divisor] for i in range(20)]
    np.testing.assert_array_equal(found, want)


def test_an_index_that_is_never_negative_is_divided_without_a_sign():
    """Which takes fewer instructions."""
    a = te.placeholder((7,), "int32", "a")
    out = te.compute((20,), lambda i: a[i // 3], "out")
    text = llvm.compile_ir([te.create_prim_func([a], out)])
    assert " udiv " in text
    assert " sdiv " not in text


@pytest.mark.parametrize(
    "source", ["int8", "uint16", "int32", "uint64", "float16", "float32", "bool"]
)
@pytest.mark.parametrize(
    "target", ["int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "bool"]
)
def test_casts(source, target):
    a = te.placeholder((32,), source, "a")
    out = te.compute((32,), lambda i: te.cast(a[i], target), "out")
    x = RNG.integers(0, 100, 32).astype(source)
    np.testing.assert_array_equal(*both([a], out, x))


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "tanh",
        "erf",
        "floor",
        "rint",
        "abs",
        "sigmoid",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_functions(name, dtype):
    a = te.placeholder((50,), dtype, "a")
    out = te.compute((50,), lambda i: getattr(te, name)(a[i]), "out")
    low = 0.1 if name in ("log", "sqrt") else 1 if name == "acosh" else -4
    low, high = (-0.9, 0.9) if name in ("asin", "acos", "atanh") else (low, 4)
    found, expected = both([a], out, np.linspace(low, high, 50, dtype=dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_absolute_integers(dtype):
    a = te.placeholder((64,), dtype, "a")
    out = te.compute((64,), lambda i: te.abs(a[i]), "out")
    low, high = tir.ir.INT_RANGES[dtype]
    x = RNG.integers(low, high, 64, endpoint=True, dtype=dtype)
    x[:4] = low, high, 0, 1
    np.testing.assert_array_equal(*both([a], out, x))


def test_rounding_is_half_to_even():
    a = te.placeholder((6,), "float32", "a")
    out = te.compute((6,), lambda i: te.rint(a[i]), "out")
    found, _ = both([a], out, np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4], "float32"))
    assert found.tolist() == [0, 2, 2, 0, -2, 2]


@settings(max_examples=20, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.integers(-(1 << 31), (1 << 31) - 1),
            st.integers(0, (1 << 24) - 1),
            st.integers(0, 63),
        ),
        min_size=64,
        max_size=64,
    )
)
def test_rq_is_exact(cases):
    x = np.array([c[0] for c in cases], "int32")
    word = np.array([c[1] | c[2] << 24 for c in cases]).astype(np.uint32).view(np.int32)
    found = np.zeros(64, "int32")
    RQ["rq"](x, word, found)
    np.testing.assert_array_equal(found, rq(x, word))


def rq_function():
    a, s = te.placeholder((64,), "int32", "a"), te.placeholder((64,), "int32", "s")
    out = te.compute((64,), lambda i: te.rq(a[i], s[i]), "out")
    return llvm.jit([te.create_prim_func([a, s], out, "rq")])


RQ = rq_function()


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt"])
def test_reciprocals_are_exact(name):
    a = te.placeholder((300,), "int32", "a")
    out = te.compute((300,), lambda i: getattr(te, name)(a[i]), "out")
    np.testing.assert_array_equal(*both([a], out, corners(300)))


def test_selects_do_not_load_what_they_do_not_choose():
    a = te.placeholder((4,), "int32", "a")
    out = te.compute(
        (1 << 16,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), a[i - 1], -1), "out"
    )
    np.testing.assert_array_equal(*both([a], out, np.arange(4, dtype="int32")))


def test_large_temporaries():
    a = te.placeholder((300, 300), "int32", "a")
    b = te.compute((300, 300), lambda y, x: a[x, y] + 1, "b")
    c = te.compute((300, 300), lambda y, x: b[x, y] * 2, "c")
    np.testing.assert_array_equal(*both([a], c, RNG.integers(0, 9, (300, 300)).astype("int32")))


def test_loop_kinds():
    a = te.placeholder((8, 12), "int32", "a")
    out = te.compute((8, 12), lambda y, x: a[y, x] * y + x, "out")
    s = te.create_schedule(out)
    y, x = s[out].axis
    yo, yi = s[out].split(y, factor=3)
    s[out].parallel(yo)
    s[out].unroll(yi)
    s[out].vectorize(x)
    data = RNG.integers(-9, 9, (8, 12)).astype("int32")
    found = np.zeros_like(data)
    llvm.jit([s.mod])["main"](data, found)
    np.testing.assert_array_equal(found, data * np.arange(8)[:, None] + np.arange(12))


def test_objects():
    a = te.placeholder((4,), "int32", "a")
    out = te.compute((4,), lambda i: a[i] + 1, "out")
    group = [te.create_prim_func([a], out, name) for name in ("first", "second")]
    assert llvm.compile_object(group)[:4] == b"\x7fELF"
    arm = llvm.compile_object(group, llvm.Processor("aarch64-linux-gnu", "cortex-a53"))
    assert arm[:4] == b"\x7fELF"
    assert arm[18] == 183  # EM_AARCH64


def test_errors():
    a = te.placeholder((4,), "int32", "a")
    out = te.compute((4,), lambda i: a[i] + 1, "out")
    func = te.create_prim_func([a], out)
    native = llvm.jit([func])["main"]
    x = np.zeros(4, "int32")
    local = Buffer("acc", (4,), "int32", "vdla.acc")
    i = Var("i")
    scoped = PrimFunc("f", (local,), For(i, 4, "serial", Store(local, (i,), const(0))))
    for action, text in (
        (lambda: native(x), "main: expected 2 arrays, found 1"),
        (lambda: native(x, np.zeros(4, "int8")), "main: out: expected int32[4], found int8[4]"),
        (
            lambda: native(x, np.zeros(8, "int32")[::2]),
            "main: out: expected an aligned C-contiguous array",
        ),
        (lambda: llvm.compile_ir([scoped]), "f: acc: expected scope global, found 'vdla.acc'"),
        (
            lambda: llvm.compile_object([func], llvm.Processor("moon-unknown-none")),
            "target: expected a triple that LLVM knows, found 'moon-unknown-none'",
        ),
    ):
        with pytest.raises(llvm.CodegenError) as error:
            action()
        assert str(error.value) == text


def test_intrinsics_have_no_native_code_until_expanded():
    src = te.placeholder((4,), "int32", "src")
    inc = te.decl_intrin("inc", te.compute((4,), lambda l: src[l] + 1, "dst"))
    a = te.placeholder((3, 4), "int32", "a")
    out = te.compute((3, 4), lambda y, l: a[y, l] + 1, "out")
    s = te.create_schedule(out)
    s[out].tensorize(s[out].axis[1], inc)
    with pytest.raises(llvm.CodegenError) as error:
        llvm.compile_ir([s.mod])
    assert str(error.value) == (
        "main: inc: a tensor intrinsic has no native code; expand it first (tir.expand_intrinsics)"
    )
    expanded = PrimFunc("main", s.mod.params, tir.expand_intrinsics(s.mod.body))
    x, found = np.arange(12, dtype="int32").reshape(3, 4), np.zeros((3, 4), "int32")
    llvm.jit([expanded])["main"](x, found)
    np.testing.assert_array_equal(found, x + 1)


@given(st.lists(st.floats(width=64) | st.floats(width=16), min_size=8, max_size=8))
def test_float64_becomes_float16_rounded_once(narrowed, values):
    """Also what lies a little beside the middle of two float16, where float32 has the middle."""
    x = np.array(values)
    with np.errstate(all="ignore"):
        middle = (np.float16(x) + np.nextafter(np.float16(x), np.float16(np.inf), dtype="f2")) / 2.0
        x = np.concatenate([x, middle.astype("f8") * (1 + 2.0**-40)])
        found = np.zeros(16, np.float16)
        narrowed(x, found)
        np.testing.assert_array_equal(found, x.astype(np.float16))


@pytest.fixture(scope="module")
def narrowed():
    x = te.placeholder((16,), "float64", "x")
    out = te.compute((16,), lambda i: x[i].astype("float16"), "out")
    return llvm.jit([te.create_prim_func([x], out)])["main"]
