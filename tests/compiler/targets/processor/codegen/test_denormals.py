"""Denormal numbers are zeros while a function runs, or not, and its caller keeps its own mode."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace

import llvmlite.binding as binding
import numpy as np
import pytest

from vdla import te
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.targets.processor.codegen.denormals import BITS, mode_text
from vdla.compiler.targets.processor.description.processor import (
    FLUSH,
    KEEP,
    NATIVE,
    PROCESSORS,
    Processor,
)

FLUSHING = replace(NATIVE, denormals=FLUSH)
MAC = Processor("arm64-apple-macosx", denormals=FLUSH)
NUMBERS = {
    dtype: np.array([0, 1, -2, kind.tiny, -kind.tiny, kind.smallest_subnormal, -kind.tiny / 2])
    .astype(dtype)
    .repeat(600)
    for dtype, kind in (("float32", np.finfo("float32")), ("float64", np.finfo("float64")))
}  # fmt: skip

pytestmark = pytest.mark.skipif(NATIVE.machine not in BITS, reason="a processor without the bits")


def doubled(dtype, parallel=False):
    """A function ``y[i] = x[i] + x[i]``."""
    x = te.placeholder(NUMBERS[dtype].shape, dtype, "x")
    y = te.compute(x.shape, lambda i: x[i] + x[i], "y")
    schedule = te.create_schedule(y)
    if parallel:
        schedule[y].parallel(*schedule[y].axis)
    return schedule.mod


def without(x):
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.zeros_like(x), x)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("denormals", [FLUSH, KEEP])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_function_on_threads(dtype, denormals, threads):
    func, x = doubled(dtype, parallel=True), NUMBERS[dtype]
    call = llvm.jit([func], threads, replace(NATIVE, denormals=denormals))[func.name]
    want = 2 * (without(x) if denormals == FLUSH else x)
    for _ in range(3):
        y = np.full_like(x, 7)
        call(x, y)
        np.testing.assert_array_equal(y, want)
        assert (x + x != 0).sum() == (x != 0).sum()  # in the caller's thread, by numpy


@pytest.mark.skipif(NATIVE.machine != "x86_64", reason="reads MXCSR")
@pytest.mark.parametrize("mode", [0x1F80, 0x9FC0, 0x3F80])  # usual; FTZ and DAZ; rounds down
def test_a_callers_register_is_as_it_was(mode):
    text = """
        declare void @llvm.x86.sse.stmxcsr(ptr)
        declare void @llvm.x86.sse.ldmxcsr(ptr)
        define void @get(ptr %at) { call void @llvm.x86.sse.stmxcsr(ptr %at) ret void }
        define void @put(ptr %at) { call void @llvm.x86.sse.ldmxcsr(ptr %at) ret void }
    """
    module = binding.parse_assembly(text)
    engine = binding.create_mcjit_compiler(module, llvm.target_machine(NATIVE))
    engine.finalize_object()
    get, put = (
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address(name))
        for name in ("get", "put")
    )
    func, x = doubled("float32"), NUMBERS["float32"]
    call, y = llvm.jit([func], 1, FLUSHING)[func.name], np.zeros_like(x)
    before, own, after = ctypes.c_uint32(), ctypes.c_uint32(mode), ctypes.c_uint32()
    get(ctypes.addressof(before))
    try:
        put(ctypes.addressof(own))
        call(x, y)
        get(ctypes.addressof(after))
    finally:
        put(ctypes.addressof(before))
    assert after.value == mode
    np.testing.assert_array_equal(y, 2 * without(x))


@pytest.mark.parametrize(
    ("processor", "instructions"),
    [
        (PROCESSORS["x86-64-v3"], ("v?stmxcsr", "v?ldmxcsr")),
        (PROCESSORS["cortex-a9"], ("vmrs.*fpscr", "vmsr.*fpscr")),
        (PROCESSORS["cortex-a53"], ("mrs.*FPCR", "msr.*FPCR")),
        (MAC, ("mrs.*FPCR", "msr.*FPCR")),
        (PROCESSORS["riscv64-linux"], ()),
        (PROCESSORS["thumbv7em"], ()),
        (PROCESSORS["wasm32"], ()),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_instructions_of_each_processor(processor, instructions):
    """A function reads the register and writes it twice; so do a row of them and a pool's
    thread."""
    funcs = [doubled("float32")]
    kept = llvm.compile_assembly(funcs, replace(processor, denormals=KEEP))
    flushed = llvm.compile_assembly(funcs, replace(processor, denormals=FLUSH))
    for instruction, each in zip(instructions, (1, 2), strict=False):
        pattern = re.compile(instruction, re.IGNORECASE)
        assert not pattern.search(kept)
        assert len(pattern.findall(flushed)) == 3 * each
    if not instructions:
        assert flushed == kept


def test_functions_that_do_nothing():
    module = binding.parse_assembly(mode_text(NATIVE))
    module.verify()
    assert [function.name for function in module.functions] == ["vdla_flush", "vdla_restore"]
