"""Float16 where neither a processor nor LLVM has all that it takes: WebAssembly."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from vdla.compiler.targets.processor.codegen import builtins
from vdla.compiler.targets.processor.codegen.halves import without_half_vectors

COMPARED = """\
define <4 x i1> @f(<4 x half> %x, <4 x half> %"a b") {
entry:
  %0 = fcmp nnan olt <4 x half> %x, splat (half 0xH3C00)
  %"c d" = fcmp uno <4 x half> %"a b", <half 0xH0000, half 0xH3C00, half 0xH0000, half 0xH4000>
  %plain = fcmp oeq <4 x half> %x, zeroinitializer
  %1 = or <4 x i1> %0, %"c d"
  %2 = or <4 x i1> %1, %plain
  ret <4 x i1> %2
}
"""


@pytest.fixture(scope="module")
def conversions():
    """Float32 of a float16, and back, compiled for this machine under other names."""
    text = builtins.HALVES.replace("@__", "@own_").replace("weak_odr hidden", "")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    kinds = {
        "own_extendhfsf2": (ctypes.c_float, ctypes.c_uint16),
        "own_truncsfhf2": (ctypes.c_uint16, ctypes.c_float),
    }
    yield [
        ctypes.CFUNCTYPE(*kind)(engine.get_function_address(name)) for name, kind in kinds.items()
    ]
    engine.close()


def test_every_float16(conversions):
    """There and back: numbers as numpy has them, of NaN that they are some."""
    extended, truncated = conversions
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16)
    wide = np.array([extended(int(b)) for b in bits], np.float32)
    np.testing.assert_array_equal(wide, halves.astype(np.float32))
    back = np.array([truncated(float(x)) for x in wide], np.uint16)
    number = ~np.isnan(halves)
    np.testing.assert_array_equal(back[number], bits[number])
    assert np.isnan(back[~number].view(np.float16)).all()


def test_rounding_to_float16(conversions):
    """Ties between neighbours, their surroundings, and any bits."""
    _, truncated = conversions
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    ties = ((halves[:-1] + halves[1:]) / 2).astype(np.float32)
    limit = np.float32(65520)  # halfway to where the next float16 would be
    rng = np.random.default_rng(1)
    some = rng.integers(0, 1 << 32, 20000, np.uint64).astype(np.uint32).view(np.float32)
    some = some[~np.isnan(some)]
    x = np.concatenate([
        rng.choice(ties, 3000), [limit, np.nextafter(limit, np.float32(0)), np.inf, 0.0], some,
    ]).astype(np.float32)  # fmt: skip
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0)), -x])
    found = np.array([truncated(float(v)) for v in x], np.uint16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype(np.float16).view(np.uint16))


def test_vectors_are_compared_as_float32():
    module = without_half_vectors(llvm.parse_assembly(COMPARED))
    module.verify()
    lines = [line.strip() for line in str(module).splitlines() if "fcmp" in line]
    assert [line.split(" = ")[1].split(">")[0] for line in lines] == [
        "fcmp nnan olt <4 x float", "fcmp uno <4 x float", "fcmp oeq <4 x float",
    ]  # fmt: skip
    assert str(module).count("fpext <4 x half>") == 6


WIDENED = """\
define <4 x double> @f(<4 x half> %x) {
  %1 = fpext <4 x half> %x to <4 x double>
  ret <4 x double> %1
}
"""


def test_vectors_become_float64_in_two_steps():
    module = without_half_vectors(llvm.parse_assembly(WIDENED))
    module.verify()
    lines = [line for line in str(module).splitlines() if "fpext" in line]
    assert [line.split(" = ")[1].replace("  ", " ").split(" to ")[1] for line in lines] == [
        "<4 x float>", "<4 x double>",
    ]  # fmt: skip


def test_other_modules_stay():
    module = llvm.parse_assembly("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
    assert without_half_vectors(module) is module
