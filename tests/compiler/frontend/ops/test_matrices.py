"""Products of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_operators import F, check_operator, check_refusal
from quantized_models import RNG, W, same_results, single


@pytest.mark.parametrize(("op", "operands", "constants", "attributes"), [
    ("Einsum", "x", {}, {"equation": "b...i->...b"}),
])  # fmt: skip
def test_operators(op, operands, constants, attributes):
    check_operator(op, operands, constants, attributes)


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed):
    w = RNG.standard_normal((5, 8) if transposed else (8, 5)).astype(np.float32)
    constants = {"w": w, "b": RNG.standard_normal((1, 5)).astype(np.float32)}
    proto = single("Gemm", (2, 5), (2, 8), ["w", "b"], constants, transB=transposed)
    same_results(proto)


def test_matmul():
    same_results(single("MatMul", (2, 5), (2, 8), ["w"], {"w": W.reshape(-1)[:40].reshape(8, 5)}))


@pytest.mark.parametrize(("op", "operands", "dtype", "attributes", "text"), [
    ("MatMul", "xw", F, {}, "expected matrices that fit each other, found [2, 3] and [2, 2]"),
])  # fmt: skip
def test_refusals(op, operands, dtype, attributes, text):
    check_refusal(op, operands, dtype, attributes, text)
