"""PTX of kernels: that NVIDIA's assembler takes it, and its numbers on this machine's processor."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.host_kernels import GPU, run_on_host
from tests.support.kernel_numbers import (
    FLOATS,
    INTEGERS,
    check_equal,
    random,
    reciprocals,
    requantization,
)
from tests.support.kernels import SCHEDULES, plain, softmax, tiled
from tests.support.ptxas import assemble, check_assembles
from vdla import te
from vdla.compiler.build import Options, compile_model
from vdla.compiler.targets.errors import NoCodeError, TargetError
from vdla.compiler.targets.gpu.codegen.kernel import Kernel
from vdla.compiler.targets.gpu.codegen.ptx import ptx
from vdla.compiler.targets.gpu.codegen.values import has_code
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.lower import kernel_sources, kernels_of, lower_function
from vdla.compiler.targets.gpu.named import named_gpu
from vdla.compiler.tir.interp import run
from vdla.compiler.tir.ir import FLOAT_CALLS, Buffer, Seq
from vdla.isa.config import load_config
from vdla.runtime.kernels import PTX

ARCHITECTURES = ("sm_80", "sm_90a", "sm_120")
TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 0.0}
SIZE = 60


def text(s, architecture="sm_80"):
    """The PTX of a schedule."""
    gpu = Gpu(language=PTX, architecture=architecture)
    return kernels_of([lower_function(s.mod, gpu)], gpu).source


def check(s, *arrays):
    """A schedule's kernels on this machine's processor equal the interpreter."""
    wanted = [a.copy() for a in arrays]
    run(s.mod, wanted)
    run_on_host(s.mod, list(arrays))
    check_equal(arrays, wanted, TOLERANCE)


# --- every operator of every type ---


def operators(dtype):
    # Products by 8 are exact: what is rounded once or twice may lie on either side of an integer.
    yield lambda a, b: a + b
    yield lambda a, b: a - b * a
    yield lambda a, b: te.minimum(a, b) + te.maximum(a, b)
    yield lambda a, b: te.select(te.any(a < b, te.equal(a, b)), a, b)
    yield lambda a, b: te.select(te.all(a >= b, te.not_equal(a, b)), a, b)
    yield lambda a, b: (a > b).astype("int8") + (a <= b).astype("int8")
    yield lambda a, b: a < b
    yield lambda a, b: a.astype("bool")
    yield lambda a, b: te.abs(a)
    yield lambda a, b: a.astype("float32") + b.astype("float32")
    yield lambda a, b: a.astype("float64") + b.astype("float64")
    if dtype in INTEGERS:
        yield lambda a, b: te.floordiv(a, b)
        yield lambda a, b: te.floormod(a, b)
        yield lambda a, b: te.floordiv(a, 3) + te.floormod(a, 3)
        yield lambda a, b: (a & b) | (a ^ b)
        yield lambda a, b: (a >> 1) + (b << 1)
        yield lambda a, b: (a >> b) + (b << a)
        for other in INTEGERS:
            yield lambda a, b, other=other: a.astype(other)
        return
    yield lambda a, b: a / b
    yield lambda a, b: a.astype("int32") - (b + b).astype("int8").astype("int32")
    yield lambda a, b: a.astype("uint8").astype("uint64") + (b * 8.0).astype("uint64")
    yield lambda a, b: (a * 8.0).astype("uint32").astype("float16")
    yield lambda a, b: te.sqrt(a) + te.floor(a * 8.0) + te.rint(b * 8.0)
    if dtype != "float64":
        yield lambda a, b: te.exp(a) + te.log(b)
        yield lambda a, b: te.tanh(a) + te.erf(b) + te.sigmoid(a)
    if dtype == "float32":
        yield lambda a, b: te.fma(a, b, a)


def each_operator(dtype):
    """One function with a kernel for each operator."""
    a, b = (te.placeholder((SIZE,), dtype, name) for name in "AB")
    outs = [
        te.compute((SIZE,), lambda i, f=f: f(a[i], b[i]), f"out{n}")
        for n, f in enumerate(operators(dtype))
    ]
    s = te.create_schedule(outs)
    for out in outs:
        (i,) = s[out].axis
        s[out].bind(i, te.thread_axis("threadIdx.x"))
    return s, outs


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_operators_of_each_type(dtype):
    s, outs = each_operator(dtype)
    a, b = (random((SIZE,), dtype) for _ in "ab")
    b[::7] = 0 if dtype in INTEGERS else b[::7]
    a[::5] = b[::5]
    check(s, a, b, *(np.zeros(SIZE, out.dtype) for out in outs))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_operators_of_each_type_assemble(dtype, tmp_path):
    check_assembles(text(each_operator(dtype)[0]), "sm_80", tmp_path)


@pytest.mark.parametrize("op", [te.floordiv, te.floormod, lambda a, b: a >> b, lambda a, b: a << b])
def test_all_pairs_of_bytes(op):
    x, y = (te.placeholder((256,), "int8", name) for name in "XY")
    out = te.compute((256, 256), lambda i, j: op(x[i], y[j]), "out")
    s = te.create_schedule(out)
    s[out].bind(s[out].axis[0], te.thread_axis("threadIdx.x"))
    every = np.arange(-128, 128).astype(np.int8)
    check(s, every, every.copy(), np.zeros((256, 256), np.int8))


def test_floats_without_numbers():
    a, b = (te.placeholder((49,), "float32", name) for name in "AB")
    outs = [
        te.compute((49,), lambda i, f=f: f(a[i], b[i]), f"out{n}")
        for n, f in enumerate(
            (
                te.maximum,
                te.minimum,
                lambda a, b: a < b,
                lambda a, b: te.not_equal(a, b),
                lambda a, b: a / b,
                lambda a, b: a.astype("bool"),
                lambda a, b: te.exp(a),
                lambda a, b: te.log(a),
                lambda a, b: te.tanh(a),
                lambda a, b: te.rint(a),
            )
        )
    ]
    s = te.create_schedule(outs)
    for out in outs:
        s[out].bind(s[out].axis[0], te.thread_axis("blockIdx.x"))
    nan, inf = float("nan"), float("inf")
    every = np.array([nan, inf, -inf, 0.0, -0.0, 2.5, -1.5], "f")
    check(s, np.repeat(every, 7), np.tile(every, 7), *(np.zeros(49, o.dtype) for o in outs))


def test_requantization_is_exact():
    s, arrays = requantization()
    check(s, *arrays)


def test_reciprocals_are_exact():
    s, arrays = reciprocals()
    check(s, *arrays)


def test_what_could_leave_its_buffer_is_loaded_where_its_condition_holds():
    """Padding, and an index out of memory."""
    x = te.placeholder((8,), "float32", "X")
    at = te.placeholder((12,), "int32", "at")
    padded = te.compute(
        (12,),
        lambda i: te.select(te.all(i >= 2, i < 10), te.select(x[i - 2] > 0.3, x[i - 2], 1.0), 0.0),
        "padded",
    )
    chosen = te.compute((12,), lambda i: te.select(at[i] < 8, x[at[i]], 7.0), "chosen")
    s = te.create_schedule([padded, chosen])
    for out in (padded, chosen):
        s[out].bind(s[out].axis[0], te.thread_axis("threadIdx.x"))
    places = np.array([0, 7, 8, 1 << 30, 3, 2, 1, 1 << 30, 4, 5, 6, 7], np.int32)
    arrays = {"X": random((8,), "float32"), "at": places}
    check(s, *(arrays.get(p.name, np.zeros(p.shape, p.dtype)) for p in s.mod.params))


# --- kernels of several threads ---


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    s = SCHEDULES[name]()
    check(s, *(random(p.shape, p.dtype) for p in s.mod.params))


ASSEMBLED = [
    *((name, "sm_80") for name in SCHEDULES),
    *((name, each) for name in ("tiled ahead", "softmax") for each in ARCHITECTURES[1:]),
]


@pytest.mark.parametrize(("name", "architecture"), ASSEMBLED)
def test_schedules_assemble(name, architecture, tmp_path):
    check_assembles(text(SCHEDULES[name](), architecture), architecture, tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "int8", "float64"])
def test_products_of_each_type(dtype, tmp_path):
    s = tiled(16, 8, 2, 4, dtype=dtype, unroll=True, ahead=True)
    check_assembles(text(s), "sm_80", tmp_path)
    if dtype == "float16":  # sums are rounded when they are stored
        return
    check(s, *(random(p.shape, p.dtype) for p in s.mod.params))


def test_tiles_are_in_registers_and_shared_memory(tmp_path):
    source = text(tiled())
    said = check_assembles(source, "sm_80", tmp_path)
    assert "0 bytes stack frame" in said
    assert "4096 bytes smem" in said
    assert ".reqntid 16, 16, 1" in source
    assert "ld.shared" in source
    assert "st.shared" in source
    assert ".local" not in source


def test_barriers_are_where_the_kernel_has_them():
    assert "bar.sync" in text(tiled())
    assert "bar" not in text(SCHEDULES["naive"]())


def test_products_and_sums_are_rounded_each():
    source = text(tiled())
    assert re.search(r"mul\.rn\.f32", source)
    assert re.search(r"add\.rn\.f32", source)
    assert "fma" not in source
    assert "div.rn.f32" in text(softmax())


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_of_floats_is_ieee_s(dtype):
    """No approximations, subnormal numbers stay, and each operation says how it rounds: without
    that the assembler may join a product and a sum."""
    source = text(each_operator(dtype)[0])
    assert "approx" not in source
    assert "ftz" not in source
    found = re.findall(r"\b(?:add|sub|mul|fma|div|sqrt|rcp)\.([\w.]*f(?:16|32|64))\b", source)
    assert found
    assert set(found) <= {"rn.f16", "rn.f32", "rn.f64"}


def test_a_product_is_added_at_once_where_it_says_so():
    x = te.placeholder((8,), "float32", "X")
    s = plain(te.compute((8,), lambda i: te.fma(x[i], x[i], x[i]), "out"))
    assert "fma.rn.f32" in text(s)


def test_roots_are_rounded_to_the_nearest():
    x = te.placeholder((8,), "float32", "X")
    assert "sqrt.rn.f32" in text(plain(te.compute((8,), lambda i: te.sqrt(x[i]), "out")))


def test_the_assembler_refuses_what_is_wrong(tmp_path):
    source = text(tiled()).replace("add.rn.f32", "add.rn.f99", 1)
    assert assemble(source, "sm_80", tmp_path).returncode != 0


# --- what has no code ---


FEW = "abs, floor, fma, rint, sqrt"
MANY = "abs, erf, exp, floor, fma, log, rint, sqrt, tanh"
LIBRARY = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
MISSING = [
    *(("float32", op, MANY) for op in (*LIBRARY, "pow")),
    *(("float16", op, MANY) for op in ("sin", "pow")),
    *(("float64", op, FEW) for op in (*LIBRARY, "pow", "exp", "log", "tanh", "erf")),
]


@pytest.mark.parametrize(("dtype", "op", "known"), MISSING, ids=lambda value: value.split(",")[0])
def test_functions_of_a_library_have_no_code(dtype, op, known):
    x = te.placeholder((8,), dtype, "X")
    function = (lambda value: te.power(value, value)) if op == "pow" else getattr(te, op)
    s = plain(te.compute((8,), lambda i: function(x[i]), "out"))
    line = (
        f"expected a function that kernels in PTX have of {dtype} ({known}), found {op}; those in "
        "OpenCL C have it"
    )
    with pytest.raises(NoCodeError) as error:
        lower_function(s.mod, GPU)
    assert str(error.value) == f"main: {line}"
    sources = kernel_sources(lower_function(s.mod, Gpu()))
    with pytest.raises(NoCodeError) as error:
        ptx(sources, "sm_80")
    assert str(error.value) == f"main_0: {line}"


def test_every_function_has_code_or_a_reason():
    """Those with code are in ``operators``, those without in ``MISSING``."""
    for dtype, count in (("float32", len(LIBRARY) + 1), ("float64", len(LIBRARY) + 5)):
        missing = {op for op in FLOAT_CALLS if not has_code(op, dtype)}
        assert missing == {op for kind, op, _ in MISSING if kind == dtype}
        assert len(missing) == count


def test_buffers_that_an_int_does_not_count_have_no_code():
    wide = Buffer("wide", (2**31,), "int8")
    with pytest.raises(NoCodeError, match="f_0: expected buffers of at most 2147483647 elements"):
        ptx([Kernel("f_0", [wide], Seq(()))], "sm_80")


@pytest.mark.parametrize("architecture", ["", "sm_8", "sm_77", "sm_80; rm", "gfx90a"])
def test_architectures_that_llvm_does_not_know(architecture):
    for call in (lambda: ptx([], architecture), lambda: named_gpu(architecture)):
        with pytest.raises(TargetError) as error:
            call()
        assert str(error.value) == (
            "gpu: expected opencl, or an architecture of NVIDIA's that LLVM knows, as sm_80, found "
            f"{architecture!r}"
        )


def test_gpus_by_name():
    assert named_gpu("opencl") == Gpu()
    for name in ARCHITECTURES:
        assert named_gpu(name) == Gpu(language=PTX, architecture=name)


def test_a_model_leaves_to_the_processor_what_has_no_code(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(sine_and_root(), path)
    options = Options("gpu", gpu=Gpu(language=PTX, architecture="sm_80"))
    module = compile_model(path, load_config("tiny"), options)
    rows = {row["name"]: row for row in module.metadata["placement"]}
    assert rows["sine"]["device"] == "cpu"
    assert rows["sine"]["reason"] == (
        "no kernels for the GPU: gpu_sine: expected a function that kernels in PTX have of "
        f"float32 ({MANY}), found sin; those in OpenCL C have it"
    )
    assert rows["root"]["device"] == "gpu"
    assert (module.kernels.language, module.kernels.architecture) == (PTX, "sm_80")
    assert ".target sm_80" in module.kernels.source


def sine_and_root():
    """Two outputs of one input, each by an operator of its own."""
    nodes = [
        helper.make_node("Sin", ["x"], ["s"], "sine"),
        helper.make_node("Sqrt", ["x"], ["r"], "root"),
    ]
    x, s, r = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xsr")
    graph = helper.make_graph(nodes, "g", [x], [s, r])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
