"""Which elements of a product's matrices lanes have: the compiler's, held against the manual's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.fragments import LANES, SHAPES
from tests.support.host_kernels import run_on_host
from tests.support.kernels import on_tensor_cores
from tests.support.tensor_cores import TensorCore, calls_on_host
from vdla.compiler.targets.gpu.codegen import emit_mma
from vdla.compiler.targets.gpu.description import ANY
from vdla.compiler.targets.gpu.lower import lower_function
from vdla.compiler.targets.gpu.mma import MMA, mma_f16, mma_s8
from vdla.compiler.targets.gpu.passes import lanes
from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.interp import run
from vdla.compiler.tir.ir import Const, For, Load, Store, const
from vdla.compiler.tir.visitor import substitute_expr, walk

INTRINSICS = {"mma_f16": mma_f16, "mma_s8": mma_s8}


def deals(name):
    """Row and column of each item of each lane, by matrix, as the compiler deals one product."""
    intrin = INTRINSICS[name]
    mma = intrin.lowering
    loops, lane = lowered(on_tensor_cores(intrin, 16, 8, mma.depth))
    (loop,) = (each for each in loops if MMA in dict(each.annotations))
    _, a, b = emit_mma.product_parts("main", loop)
    left = flat(emit_mma.a_fragment(loop, a, lane, mma))
    right = flat(emit_mma.b_fragment(loop, b, lane, mma))
    return {
        "C": [stored(loops, {lane: n}) for n in range(LANES)],
        "C of the product": [summed(loop, a, b, {lane: n}) for n in range(LANES)],
        "A": [[place(x.indices, {lane: n}) for x in left] for n in range(LANES)],
        "B": [[place(x.indices, {lane: n}) for x in right] for n in range(LANES)],
    }


def lowered(s):
    """The loops of a kernel, and the lane's variable."""
    loops = [x for x in walk(lower_function(s.mod, ANY).body) if isinstance(x, For)]
    (lane,) = (loop.var for loop in loops if loop.thread_tag == "threadIdx.x")
    return loops, lane


def stored(loops, lane):
    """Where a lane stores what it has of C, by element."""
    found = {}
    half, odd = (loop for loop in loops if loop.kind == "unrolled" and loop.extent == 2)
    assert isinstance(odd.body, Store)
    assert isinstance(odd.body.value, Load)
    for y in range(2):
        for x in range(2):
            where = {**lane, half.var: y, odd.var: x}
            (element,) = place(odd.body.value.indices, where)
            found[element] = place(odd.body.indices, where)
    return [found[e] for e in range(4)]


def summed(loop, a, b, lane):
    """Whose row's and column's products a lane adds to each element of C."""
    for_element = [{**lane, loop.var: e, loop.body.var: 0} for e in range(4)]
    return [(place(a.indices, at)[0], place(b.indices, at)[1]) for at in for_element]


def place(indices, values):
    """Some indices, of variables' values."""
    where = {var: const(value, "int32") for var, value in values.items()}
    found = [simplify(substitute_expr(index, where)) for index in indices]
    assert all(isinstance(index, Const) for index in found)
    return tuple(index.value for index in found)


def flat(registers):
    """The items of some registers, from the lowest."""
    return [item for register in registers for item in register]


def check(name):
    """Raises AssertionError at the first item that isn't where the manual has it."""
    manual = SHAPES[name].places()
    for matrix, found in deals(name).items():
        for lane, (items, wanted) in enumerate(zip(found, manual[matrix[0]], strict=True)):
            for i, (at, expected) in enumerate(zip(items, wanted, strict=True)):
                where = f"{name}, {matrix}, lane {lane}, item {i}"
                assert at == expected, f"{where}: expected {expected}, found {at}"


@pytest.mark.parametrize("name", SHAPES)
def test_lanes_have_what_the_manual_gives_them(name):
    check(name)


@pytest.mark.parametrize("name", SHAPES)
def test_the_manual_gives_each_element_to_one_lane(name):
    depth = SHAPES[name].depth
    sizes = {"A": 16 * depth, "B": depth * 8, "C": 16 * 8}
    for matrix, lanes_ in SHAPES[name].places().items():
        everything = [at for items in lanes_ for at in items]
        assert len(everything) == len(set(everything)) == sizes[matrix]


# --- the calls that PTX has, answered by the manual's model ---


def products(name, monkeypatch):
    """A product as the interpreter computes it, and as the manual's tensor core does."""
    s = on_tensor_cores(INTRINSICS[name])
    random = np.random.default_rng(11)
    arrays = [random.integers(-8, 8, p.shape).astype(p.dtype) for p in s.mod.params]
    wanted = [a.copy() for a in arrays]
    run(s.mod, wanted)
    core = TensorCore(SHAPES[name])
    calls_on_host(monkeypatch)
    run_on_host(s.mod, arrays, core.link)
    assert core.calls == 4 * 64 // SHAPES[name].depth
    return wanted[2], arrays[2]


@pytest.mark.parametrize("name", SHAPES)
def test_the_manual_s_tensor_core_computes_what_the_interpreter_does(name, monkeypatch):
    wanted, found = products(name, monkeypatch)
    np.testing.assert_array_equal(found, wanted)


# --- planted faults: a wrong fragment layout ---

A, B, ROW, COLUMN = emit_mma.a_fragment, emit_mma.b_fragment, lanes.row, lanes.column


def reordered(fragment, *order):
    """A fragment with its registers in another order."""
    return lambda *args: [fragment(*args)[n] for n in order]


def backwards(fragment):
    """A fragment with the items of each register from the highest."""
    return lambda *args: [register[::-1] for register in fragment(*args)]


FAULTS = {
    "A's row halves swapped": (emit_mma, "a_fragment", reordered(A, 1, 0, 3, 2), "A"),
    "A's column halves swapped": (emit_mma, "a_fragment", reordered(A, 2, 3, 0, 1), "A"),
    "A's rows before its columns": (emit_mma, "a_fragment", reordered(A, 0, 2, 1, 3), "A"),
    "A's items from the highest": (emit_mma, "a_fragment", backwards(A), "A"),
    "B's row halves swapped": (emit_mma, "b_fragment", reordered(B, 1, 0), "B"),
    "B's items from the highest": (emit_mma, "b_fragment", backwards(B), "B"),
    "C's row halves swapped": (lanes, "row", lambda lane, half: ROW(lane, 1 - half), "C"),
    "C's rows side by side": (lanes, "row", lambda lane, half: lane // 4 * 2 + half, "C"),
    "C's columns far apart": (lanes, "column", lambda lane, odd: lane % 4 + odd * 4, "C"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_layout_is_found_by_its_matrix(fault, name, monkeypatch):
    module, function, wrong, matrix = FAULTS[fault]
    monkeypatch.setattr(module, function, wrong)
    with pytest.raises(AssertionError, match=rf"{name}, {matrix}, lane \d+, item \d: "):
        check(name)


def test_a_wrong_layout_is_said_with_its_place(monkeypatch):
    monkeypatch.setattr(emit_mma, "a_fragment", FAULTS["A's row halves swapped"][2])
    with pytest.raises(AssertionError) as error:
        check("mma_f16")
    assert str(error.value).startswith("mma_f16, A, lane 0, item 0: expected (0, 0), found (8, 0)")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if FAULTS[fault][-1] != "C"])
def test_a_wrong_layout_of_factors_gives_wrong_numbers(fault, monkeypatch):
    """Of C it doesn't: the fragments of A and B follow the elements of C that a lane has."""
    module, function, wrong, _ = FAULTS[fault]
    monkeypatch.setattr(module, function, wrong)
    wanted, found = products("mma_s8", monkeypatch)
    assert not np.array_equal(found, wanted)
