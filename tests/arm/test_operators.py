"""Host operators for ARM, run by the runtime that a board has, against the same for this machine.

Integers and IEEE operations have to be equal bit for bit, with two exceptions.

- Functions of the C library, which is of another version here and there and promises only a few
  units in the last place, and those that we compute ourselves, with one instruction for a product
  and a sum where the processor has it.
- NEON of the Cortex-A9 takes subnormal numbers for zero. LLVM knows, and leaves float32 arithmetic
  to the VFP; but comparisons it does with NEON, so that ReLU and max pool may give 0 for them.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulated import compare
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.all_operators import I8, IMAGE, NAMES, OPERATORS, PAIR, REALS, F, alone
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import BY_OP
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.ops.dynamic_matmul import DynamicMatMul
from vdla.compiler.graph.types import Requant

LIBRARY_ULPS = 4  # of float32, by which two C libraries may differ
LIBRARY_APART = 1e-6  # what that comes to where the results are near 1
EXACT = {
    "sqrt", "abs", "neg", "floor", "ceil", "round", "sign", "reciprocal", "relu", "softsign",
    "leaky_relu", "thresholded_relu", "shrink", "hard_sigmoid", "hard_swish",
}  # fmt: skip
COMPARED = {"relu", "max pool"}
SUMS = {"convolution", "dense"}  # a Cortex-A9 rounds products before it adds them
ELSEWHERE = {
    ops.QConv2d, QAttention, ops.QDense, ops.Unary, ops.Binary, ops.QConcatView,
    ops.QTakeView, ops.Softmax, ops.Fused, ops.Custom,
    ops.Interpolate, ops.QInterpolate,
}  # fmt: skip
NOT_YET = {  # compiled as the others, and so far held against numpy alone
    "ArgReduce", "Cast", "Cumulate", "Decode", "Einsum", "Encode", "Gather", "GatherElements",
    "GatherND", "MatMul", "MatMulInteger", "Reduce", "ScatterElements", "ScatterND", "Take", "TopK",
    "Where",
}  # fmt: skip


def test_every_operator_is_here():
    here = {type(node) for node, _ in OPERATORS.values()}
    later = {BY_OP[name] for name in NOT_YET}
    control = {kind for kind in BY_OP.values() if issubclass(kind, ops.Control)}  # jumps of a plan
    assert here | ELSEWHERE | later == set(BY_OP.values()) - control - {
        ops.External,
        ops.Open,
        DynamicMatMul,
    }
    assert not here & ELSEWHERE
    assert not later & (here | ELSEWHERE)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_equal_bit_for_bit(name, board):
    node, types = OPERATORS[name]
    oldest = board.target.cpu == "cortex-a9"
    apart = 1e-5 if oldest and name in SUMS else 0.0
    compare(board, node, alone(node, types), flushed=oldest and name in COMPARED, apart=apart)


def test_quantize_at_ties_and_limits(board):
    x = np.array([0.5, 1.5, -0.5, -2.5, 1e30, -1e30, np.inf, -np.inf, -0.0, 1e-45], F)
    node = ops.Quantize(**NAMES, scale=(1.0,), zero_point=(-3,))
    compare(board, node, alone(node, {"x": (F, 10), "y": (I8, 10)}), {"x": x})


@settings(max_examples=6)
@given(
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    per_group=st.tuples(st.integers(1, 20), st.integers(1, 9)),
    groups=st.integers(1, 3),
    zero=st.integers(-128, 127),
    residual=st.booleans(),
    table=st.booleans(),
    seed=st.integers(0, 99),
)
def test_convolutions(board, strides, pads, kernel, per_group, groups, zero, residual, table, seed):
    out = [(n + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i, n in enumerate((8, 7))]
    assume(min(out) > 0)
    rng = np.random.default_rng(seed)
    c, o = (n * groups for n in per_group)
    constants = {
        "w": rng.integers(-128, 128, (o, per_group[0], *kernel)).astype(I8),
        "b": rng.integers(-5000, 5000, o).astype("int32"),
    }
    scale = tuple(float(s) for s in rng.uniform(0.0005, 0.02, o).astype(F))
    common = {**NAMES, "weight": "w", "bias": "b", "groups": groups, "strides": strides}
    epilogue: tuple[ops.Step, ...] = ()
    types = {"x": (I8, 2, c, 8, 7), "y": (I8, 2, o, *out)}
    if residual:
        types["r"] = types["y"] if seed % 2 else (I8, 1, o, 1, 1)
        total = Requant((0.7, 1.3), 3, 3)
        epilogue += (ops.AddStep(addend="r", zeros=(5, -4), requant=total),)
    if table:
        epilogue += (ops.TableStep(table="t"),)
        constants["t"] = rng.integers(-128, 128, 256).astype(I8)
    requant = Requant(scale, 5, -100, 101)
    node = ops.QConv2d(**common, pads=pads, zeros=(zero,), requant=requant, epilogue=epilogue)
    compare(board, node, alone(node, types, constants), seed=seed)


def test_dense(board):
    rng = np.random.default_rng(3)
    constants = {
        "w": rng.integers(-128, 128, (9, 40)).astype(I8),
        "b": rng.integers(-5000, 5000, 9).astype("int32"),
    }
    node = ops.QDense(
        **NAMES, weight="w", bias="b", zeros=(-7,), requant=Requant((0.003,) * 9, 2, -120)
    )
    compare(board, node, alone(node, {"x": (I8, 3, 40), "y": (I8, 3, 9)}, constants))


@pytest.mark.parametrize("dtype", [I8, F])
def test_interpolations(dtype, board):
    whole = np.array([[4, 0, 0], [3, 1, 0], [1, 3, 0], [0, 3, 1], [0, 1, 3], [0, 0, 4]], "int32")
    names = {**NAMES, "rows": "r", "columns": "c"}
    node = ops.Interpolate(**names)
    if dtype == I8:
        node = ops.QInterpolate(**names, zeros=(3,), requant=Requant((0.05,), -2))
    types = {"x": (dtype, 2, 5, 3, 3), "y": (dtype, 2, 5, 6, 6)}
    graph = alone(node, types, {"r": whole, "c": whole})
    compare(board, node, graph, apart=0.0 if dtype == I8 else 1e-5)


@pytest.mark.parametrize("function", ops.Unary.FUNCTIONS)
def test_unary(function, board):
    node = ops.Unary(**NAMES, function=function, alpha=0.3, beta=0.4)
    x = np.random.default_rng(5).uniform(0.1, 3, (3, 700)).astype(F)
    x -= 0 if function in ("log", "sqrt") else 1.5
    graph = alone(node, {"x": (F, 3, 700), "y": (F, 3, 700)})
    compare(board, node, graph, {"x": x}, apart=LIBRARY_APART * (function not in EXACT))


@pytest.mark.parametrize("function", ops.Binary.FUNCTIONS)
def test_binary(function, board):
    node = ops.Binary(**PAIR, function=function)
    rng = np.random.default_rng(6)
    known = {"z": rng.uniform(0.5, 2, (5, 1, 1)).astype(F)}
    if function == "pow":
        known["x"] = rng.uniform(0.5, 2, IMAGE).astype(F)
    graph = alone(node, {**REALS, "z": (F, 5, 1, 1)})
    compare(board, node, graph, known, ulps=LIBRARY_ULPS * (function == "pow"))


def test_softmax(board):
    node = ops.Softmax(**NAMES, axis=1)
    compare(board, node, alone(node, {"x": (F, 7, 10), "y": (F, 7, 10)}), ulps=LIBRARY_ULPS)
