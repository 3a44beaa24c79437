"""Products of bytes in tile registers, emulated by what the SDM says of each instruction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.amx import Tiles, emulated
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.codegen.llvm import (
    CodegenError,
    compile_assembly,
    compile_ir,
    jit,
)
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import (
    AMX,
    NATIVE,
    VNNI,
    find_processor,
)
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.source import from_source, to_source
from vdla.compiler.tir.printer import show

AMX_MACHINE = find_processor("sapphirerapids")


def integer_product(shape, n, dtype="uint8", processor=NATIVE):
    """The function of a product of bytes by constants, its constants, and the constants' matrix."""
    rng = np.random.default_rng(n)
    weight = rng.choice(np.array([-128, -1, 0, 1, 127], np.int8), (shape[-1], n))
    zeros = np.array([3], np.dtype(dtype)), np.zeros(1, np.int8)
    fields = {"a": "a", "b": "b", "a_zero": "az", "b_zero": "bz"}
    node = ops.MatMulInteger(name="p", output="y", **fields)
    known = {"b": weight, "az": zeros[0], "bz": zeros[1]}
    tensors = {name: TensorType(v.shape, str(v.dtype)) for name, v in known.items()}
    tensors |= {"a": TensorType(shape, dtype), "y": TensorType((*shape[:-1], n), "int32")}
    graph = Graph(("a",), ("y",), (node,), tensors, known)
    return node_function(node, graph, "f", processor), known


@pytest.mark.parametrize(
    ("shape", "n"),
    [
        ((32, 64), 32),  # four tiles of sums, one step
        ((16, 128), 16),  # one of them
        ((40, 100), 70),  # neither rows nor steps nor columns are whole
        ((2, 33, 200), 17),  # a stack
        ((8, 3), 16),
        ((300, 1100), 40),  # several bands
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_their_sums(shape, n, dtype, monkeypatch):
    monkeypatch.setattr(description, "_native_vectors", lambda: AMX)
    function, known = integer_product(shape, n, dtype)
    ends = np.iinfo(dtype)
    choices = np.array([ends.min, ends.min + 1, 1, ends.max], dtype)
    a = np.random.default_rng(0).choice(choices, shape)
    constants = {**known, **function.constants}
    args = [a if name == "a" else constants[name] for name in function.args[:-1]]
    found, tiles = np.full((*shape[:-1], n), 7, np.int32), Tiles()
    with emulated(function.func, tiles) as run:
        run(*args, found)
    want = (a.astype(np.int64) - 3) @ known["b"].astype(np.int64)
    np.testing.assert_array_equal(found, want)
    assert tiles.count["ldtilecfg"] == tiles.count["tilerelease"] > 0
    assert tiles.registers is None


def test_instructions():
    """Of each tile of sums one product in a step, of whose operands each is loaded once."""
    function, _ = integer_product((40, 100), 70, processor=AMX_MACHINE)
    text = compile_assembly([function.func], AMX_MACHINE)
    counts = {name: text.count(f"\t{name}\t") for name in ("tdpbusd", "tileloadd", "tilestored")}
    assert counts == {"tdpbusd": 4, "tileloadd": 8, "tilestored": 4}
    assert '@"syscall"(i64 158, i64 4131, i64 18)' in compile_ir([function.func], AMX_MACHINE)


@pytest.mark.parametrize(("rows", "columns"), [(7, 32), (40, 8)])
def test_few_sums_are_made_in_vectors(rows, columns):
    function, _ = integer_product((rows, 64), columns, processor=AMX_MACHINE)
    text = compile_ir([function.func], AMX_MACHINE)
    assert "vpdpbusd" in text
    assert "tdpbusd" not in text
    assert "syscall" not in text


def test_machines_without_tiles(monkeypatch):
    function, _ = integer_product((16, 64), 16, processor=AMX_MACHINE)
    expected = "f: tiles16x1x1: expected a processor with AMX, found x86-64-v4"
    with pytest.raises(CodegenError, match=f"^{expected}$"):
        compile_ir([function.func], find_processor("x86-64-v4"))


def test_a_text_for_a_machine_without_tiles_has_loops():
    function, known = integer_product((40, 100), 70, processor=AMX_MACHINE)
    (again,) = from_source(to_source([function.func]), NATIVE)
    a = np.random.default_rng(0).integers(0, 256, (40, 100)).astype(np.uint8)
    constants = {**known, **function.constants, "a": a}
    found = np.zeros((40, 70), np.int32)
    jit([again])["f"](*(constants[name] for name in function.args[:-1]), found)
    want = (a.astype(np.int64) - 3) @ known["b"].astype(np.int64)
    np.testing.assert_array_equal(found, want)
    (same,) = from_source(to_source([function.func]), AMX_MACHINE)
    assert show(same) == show(function.func)


def test_another_system_grants_none():
    machine = replace(AMX_MACHINE, triple="x86_64-pc-windows-msvc")
    assert machine.vectors == VNNI


@pytest.mark.parametrize(
    ("features", "vectors"),
    [
        ("avx512f avx512bw avx512vl avx512vnni amx-tile amx-int8", AMX),
        ("avx512f avx512bw avx512vl avx512vnni amx-tile", VNNI),
    ],
)
def test_which_machines_have_them(features, vectors):
    assert description._x86_vectors(set(features.split())) == vectors
