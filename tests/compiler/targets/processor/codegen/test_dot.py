"""Products of bytes, by every instruction that this processor has, against numpy."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.support.bare_programs import EMULATORS, Program, module_of, processor_of
from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen.emit_dot import NEON
from vdla.compiler.targets.processor.codegen.llvm import (
    CodegenError,
    compile_assembly,
    compile_ir,
    jit,
)
from vdla.compiler.targets.processor.description.intrinsics import WORD_BYTES, dot4
from vdla.compiler.targets.processor.description.processor import (
    AVX_VNNI,
    V3,
    V4,
    Processor,
    find_processor,
)
from vdla.compiler.targets.processor.passes import with_inits

WORDS = 3
ARM = {"usdot": "neoverse-v1", "sdot": "cortex-a76", "multiply": "cortex-a72"}
NEEDED = {"vpdpbusd": ("avx512vnni", "avx512vl"), "pmaddwd": ("avx512bw",), "multiply": ()}


def product(instruction, lanes):
    """``y[l] = b[l] + Σ x[n, k] * w[n, l, k]``, a function."""
    x = te.placeholder((WORDS, WORD_BYTES), "uint8", "x")
    w = te.placeholder((WORDS, lanes, WORD_BYTES), "int8", "w")
    b = te.placeholder((lanes,), "int32", "b")
    n, k = te.reduce_axis((0, WORDS), "n"), te.reduce_axis((0, WORD_BYTES), "k")
    y = te.compute(
        (lanes,),
        lambda l: te.sum(
            x[n, k].astype("int32") * w[n, l, k].astype("int32"), axis=[n, k], init=b[l]
        ),
        "y",
    )
    s = create_schedule(y, [x, w, b], "f")
    (l,) = s[y].axis
    n, k = s[y].reduce_axis
    s[y].reorder(n, l, k)
    s[y].tensorize(l, dot4(instruction, lanes))
    return with_inits(s.mod)


@pytest.fixture(scope="module", params=list(NEEDED))
def functions(request):
    """An instruction's name, and compiled functions by their lanes."""
    found = llvm.get_host_cpu_features()
    if not all(found.get(name) for name in NEEDED[request.param]):
        pytest.skip(f"no {request.param}")
    return request.param, {n: jit([product(request.param, n)])["f"] for n in (2, 4, 8, 16)}


def bytes_of(dtype, *shape):
    """Arrays with the ends of their range, where 16 bits would overflow."""
    limits = np.iinfo(dtype)
    ends = st.sampled_from([int(limits.min), int(limits.max)])
    return arrays(dtype, shape, elements=ends | st.integers(int(limits.min), int(limits.max)))


@settings(max_examples=40)
@given(data=st.data(), lanes=st.sampled_from([2, 4, 8, 16]))
def test_sums_are_exact(functions, data, lanes):
    x = data.draw(bytes_of("uint8", WORDS, WORD_BYTES))
    w = data.draw(bytes_of("int8", WORDS, lanes, WORD_BYTES))
    b = data.draw(bytes_of("int32", lanes))
    found = np.zeros(lanes, np.int32)
    functions[1][lanes](x, w, b, found)
    sums = np.einsum("nk,nlk->l", x.astype(np.int64), w.astype(np.int64))
    np.testing.assert_array_equal(found, (b + sums).astype(np.int32))


@pytest.mark.parametrize(
    ("instruction", "lanes", "called"),
    [
        ("vpdpbusd", 16, "llvm.x86.avx512.vpdpbusd.512"),
        ("vpdpbusd", 8, "llvm.x86.avx512.vpdpbusd.256"),
        ("pmaddwd", 16, "llvm.x86.avx512.pmaddw.d.512"),
        ("pmaddwd", 8, "llvm.x86.avx2.pmadd.wd"),
        ("pmaddwd", 4, "llvm.x86.sse2.pmadd.wd"),
        ("pmaddwd", 2, None),  # no such instruction
        ("multiply", 8, None),
    ],
)
def test_instructions(instruction, lanes, called):
    any_of_them = Processor("x86_64-unknown-linux-gnu", "icelake-server", V4 + ",+avx512vnni")
    text = compile_ir([product(instruction, lanes)], any_of_them)
    assert (called is None) == ("llvm.x86." not in text)
    assert called is None or called in text


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("instruction", ARM)
def test_instructions_of_arm(instruction, lanes, tmp_path):
    """Each one on the least machine that has it, emulated."""
    machine = ARM[instruction]
    text = compile_ir([product(instruction, lanes)], find_processor(machine))
    called = instruction != "multiply" and lanes in NEON
    assert called == (f"llvm.aarch64.neon.{instruction}" in text)
    emulator = EMULATORS.get(machine, EMULATORS["aarch64-linux"])
    if emulator.absent:
        pytest.skip(emulator.absent)
    module = module_of([product(instruction, lanes)], processor_of(machine))
    program = Program(machine if machine in EMULATORS else "aarch64-linux", module, tmp_path)
    rng = np.random.default_rng(lanes)
    x = rng.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), (WORDS, WORD_BYTES))
    w = rng.choice(np.array([-128, -127, -1, 0, 127], np.int8), (WORDS, lanes, WORD_BYTES))
    b = rng.integers(-(2**31), 2**31, lanes, np.int32)
    (sums,) = program.run({"f.0": x, "f.1": w, "f.2": b}).values()
    wanted = b + np.einsum("nk,nlk->l", x.astype(np.int64), w.astype(np.int64))
    np.testing.assert_array_equal(sums, wanted.astype(np.int32))


def test_a_processor_without_registers_of_64_bytes():
    """AVX-VNNI is VNNI's instruction on AVX2's registers."""
    processor = Processor("x86_64-unknown-linux-gnu", "alderlake", V3 + ",+avxvnni")
    assert (processor.vectors, processor.kind) == (AVX_VNNI, "x86-64-v3 vnni")
    text = compile_assembly([product("vpdpbusd", 8)], processor)
    assert "{vex}\tvpdpbusd" in text
    assert "zmm" not in text


@pytest.mark.parametrize(
    ("instruction", "name", "line"),
    [
        ("vpdpbusd", "x86-64-v4", "expected pmaddwd or multiply on x86-64-v4, found vpdpbusd"),
        ("pmaddwd", "cortex-a53", "expected multiply on cortex-a53, found pmaddwd"),
        ("usdot", "cortex-a76", "expected sdot or multiply on cortex-a76, found usdot"),
    ],
)
def test_instructions_that_a_processor_lacks(instruction, name, line):
    with pytest.raises(CodegenError) as caught:  # LLVM would end the process
        compile_ir([product(instruction, 4)], find_processor(name))
    assert str(caught.value) == f"f: dot4x4: {line}"
