"""exp, log, tanh and erf of float32: near the true values, and C's at the ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen import llvm

TRUE = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": np.vectorize(math.erf)}
ENDS = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 88.72, 88.73, 89, -87.4,
     -103, -104, -150, 1e-20, 0.5, -0.5, 0.49999, 4, -4, 9, -9, 1],
    np.float32,
)  # fmt: skip


def computed(name, x, vectors):
    """The function of every element, in vectors or one by one."""
    a = te.placeholder(x.shape, "float32", "a")
    out = te.compute(x.shape, lambda i: getattr(te, name)(a[i]), "out")
    s = create_schedule(out, [a])
    if vectors:
        _, lanes = s[out].split(s[out].axis[0], factor=16)
        s[out].vectorize(lanes)
    found = np.zeros_like(x)
    llvm.jit([s.lower()])["main"](x, found)
    return found


@pytest.mark.parametrize("name", TRUE)
def test_a_text_has_a_function_once_and_machine_code_no_call_of_it(name):
    a = te.placeholder((64,), "float32", "a")
    once = te.compute((64,), lambda i: getattr(te, name)(a[i]), "once")
    out = te.compute((64,), lambda i: getattr(te, name)(once[i]) + once[i], "out")
    functions = [te.create_prim_func([a], out, f"f{n}") for n in range(3)]
    text, assembly = llvm.compile_ir(functions), llvm.compile_assembly(functions)
    call, whole = f'call float @"vdla.{name}"(', f'float @"vdla.{name}"('
    assert (text.count(call), text.count(whole)) == (6, 7)
    assert f"vdla.{name}" not in assembly


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("name", TRUE)
def test_within_some_units_in_the_last_place(name, vectors):
    rng = np.random.default_rng(0)
    ranges = [rng.uniform(-10, 10, 20000), rng.uniform(-110, 90, 20000), rng.normal(0, 0.01, 20000)]
    x = np.concatenate([*ranges, np.exp(rng.uniform(-100, 88, 20000))]).astype(np.float32)
    with np.errstate(all="ignore"):
        true = TRUE[name](x.astype(np.float64))
        nearest = true.astype(np.float32)
    found, finite = computed(name, x, vectors), np.isfinite(nearest)
    unit = np.spacing(np.abs(nearest[finite])).astype(np.float64)
    assert (np.abs(found[finite] - true[finite]) / unit).max() < (
        6 if name in ("tanh", "erf") else 4
    )
    np.testing.assert_array_equal(found[~finite], nearest[~finite])


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("name", TRUE)
def test_the_ends(name, vectors):
    x = np.resize(ENDS, 32)
    with np.errstate(all="ignore"):
        want = TRUE[name](x.astype(np.float64)).astype(np.float32)
    found = computed(name, x, vectors)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=0)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(want[known]))


def test_a_fused_multiply_and_add_rounds_once():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(4096).astype(np.float32) for _ in range(2))
    z = (-x.astype(np.float64) * y).astype(np.float32)  # what is left is the product's error
    a, b, c = (te.placeholder((4096,), "float32", n) for n in "abc")
    out = te.compute((4096,), lambda i: te.fma(a[i], b[i], c[i]), "out")
    func = create_schedule(out, [a, b, c]).lower()
    found = np.zeros_like(x)
    llvm.jit([func])["main"](x, y, z, found)
    np.testing.assert_array_equal(found, (x.astype(np.float64) * y + z).astype(np.float32))
    assert np.count_nonzero(found) > 4000
    (interpreted,) = tir.evaluate(func, x, y, z)
    np.testing.assert_array_equal(interpreted, found)
