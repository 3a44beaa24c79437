"""Operators on 16 bits: the accelerator, the processor and the reference agree, in every bit."""

from __future__ import annotations

import numpy as np
import pytest
from combinations import crossed
from one_node import check

from vdla.compiler.graph.ops.byte_sum import QByteSum
from vdla.compiler.graph.ops.normalize import Terms
from vdla.compiler.graph.ops.wide import MOST, QBytes, QWideConv2d, QWideSum, Steps16
from vdla.compiler.graph.ops.wide_normalize import QWideNormalize, WideMoments
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config

NAMES = {"name": "n", "output": "y"}
CONFIGS = ["tiny", "paper", "paper-full", "narrow", "wide"]
SOME = ["tiny", "paper-full"]
TERMS = [(True,), (False,), (True, True), (True, False), (False, True)]  # of 16 bits
LAYERS = {  # data without the batch, weights, window
    "dense": ((40,), (19, 40), {}),
    "pixel": ((40, 3, 5), (19, 40, 1, 1), {}),
    "window": ((16, 7, 6), (33, 16, 3, 3), {"pads": (1, 1, 1, 1)}),
    "strides": ((20, 9, 8), (8, 20, 3, 3), {"strides": (2, 2), "pads": (1, 0, 0, 1)}),
    "dilated": ((16, 9, 9), (16, 16, 3, 3), {"dilations": (2, 2)}),
    "depthwise": ((32, 6, 6), (32, 1, 3, 3), {"groups": 32, "pads": (1, 1, 1, 1)}),
    "groups": ((32, 4, 4), (64, 16, 1, 1), {"groups": 2}),
}


def image(rng, shape, wide):
    if wide:
        return rng.integers(-MOST, MOST + 1, shape).astype(np.int32)
    return rng.integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize(
    ("layer", "both", "wide", "batch", "on"),
    crossed([*LAYERS], [True, False], [True, False], [1, 2], CONFIGS),
)
def test_products(layer, both, wide, batch, on):
    config, (shape, weights, window) = load_config(on, []), LAYERS[layer]
    rng = np.random.default_rng(7)
    data = rng.integers(-128, 128, ((2 if both else 1) * batch, *shape)).astype(np.int8)
    weight, channels = rng.integers(-127, 128, weights).astype(np.int8), weights[0]
    unit = rng.uniform(0.5, 1, channels) * (900 if wide else 60) / np.prod(weights[1:]) ** 0.5 / 1e4
    bias = rng.integers(-3000, 3000, (2, channels) if both else channels).astype(np.int32)
    constants = {"w": weight, "b": bias}
    fields = {"bytes": both, "zero": 0 if both else 9, **window}
    if wide:
        steps = vars(Steps16.of(unit, (-MOST, 20000)))
        constants |= steps
        fields |= {key: key for key in steps}
    else:
        fields["requant"] = Requant(tuple(np.float32(unit).tolist()), 3, -100, 127)
    node = QWideConv2d(**NAMES, data="x", weight="w", bias="b", **fields)
    shapes = [data.shape, weight.shape, bias.shape, *[(channels,)] * (4 if wide else 0)]
    kind = TensorType(node.result_shape(shapes), "int32" if wide else "int8")
    result = check(node, {"x": data}, constants, kind, config)
    assert len(np.unique(result)) > min(20, result.size // 2)


@pytest.mark.parametrize(("shape", "on"), crossed([(1, 40), (2, 19, 3, 5), (1, 64, 9, 9)], CONFIGS))
def test_bytes(shape, on):
    data = image(np.random.default_rng(1), shape, wide=True)
    kind = TensorType((2 * shape[0], *shape[1:]), "int8")
    check(QBytes(**NAMES, data="x"), {"x": data}, {}, kind, load_config(on, []))


@pytest.mark.parametrize(
    ("terms", "wide", "shift", "on"),
    crossed(
        [(True,), (False,), (True, True), (True, False), (False, True)],
        [True, False],
        [0, 9],
        CONFIGS,
    ),
)
def test_sums(terms, wide, shift, on):
    rng, shape = np.random.default_rng(2), (1, 19, 4, 3)
    inputs = {f"t{n}": image(rng, shape, own) for n, own in enumerate(terms)}
    weights = tuple((1 << shift) + 3 * n for n in range(len(terms)))
    zeros = tuple(0 if own else 5 for own in terms)
    requant = None if wide else Requant((2.0**-shift / 300,), -4, -90, 127)
    fields = {"weights": weights, "zeros": zeros, "shift": shift, "requant": requant}
    node = QWideSum(**NAMES, terms=tuple(inputs), low=-20000, high=MOST, **fields)
    kind = TensorType(shape, "int32" if wide else "int8")
    check(node, inputs, {}, kind, load_config(on, []))


@pytest.mark.parametrize("on", SOME)
@pytest.mark.parametrize(("wide", "full"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("terms", [(True,), (True, False)])
def test_sums_with_a_constant(terms, wide, full, on):
    rng, shape, shift = np.random.default_rng(3), (2, 19, 4, 3), 5
    inputs = {f"t{n}": image(rng, shape, own) for n, own in enumerate(terms)}
    sizes = (1, *shape[1:]) if full else (1, shape[1], 1, 1)
    offset = rng.integers(-9000 << shift, 9000 << shift, sizes).astype(np.int32)
    fields = {
        "weights": tuple((1 << shift) + 3 * n for n in range(len(terms))),
        "zeros": tuple(0 if own else 5 for own in terms),
        "shift": shift,
        "requant": None if wide else Requant((2.0**-shift / 300,), -4, -90, 127),
    }
    node = QWideSum(**NAMES, terms=tuple(inputs), low=-20000, offset="o", **fields)
    kind = TensorType(shape, "int32" if wide else "int8")
    check(node, inputs, {"o": offset}, kind, load_config(on, []))


@pytest.mark.parametrize("on", SOME)
@pytest.mark.parametrize("kinds", [("b", "n"), ("b", "w"), ("b",), ("w",)])
@pytest.mark.parametrize(
    ("narrow", "moved", "within"),
    [(True, True, False), (False, False, False), (False, True, True), (False, True, False)],
)
def test_sums_of_bytes(kinds, narrow, moved, within, on):
    """``within``: no sum is beyond the limits, so that nothing limits it."""
    rng, shape, shift = np.random.default_rng(4), (19, 3, 7), 7
    makes = {
        "b": lambda: rng.integers(-127, 128, (2, *shape)).astype(np.int8),
        "w": lambda: image(rng, (1, *shape), wide=True),
        "n": lambda: image(rng, (1, *shape), wide=False),
    }
    inputs = {f"t{n}": makes[kind]() for n, kind in enumerate(kinds)}
    most = 3000 << shift
    offset = {"o": rng.integers(-most, most, shape[0]).astype(np.int32)} if moved else {}
    weight = (1 << shift) // (4 if within else 1)
    node = QByteSum(
        **NAMES, terms=tuple(inputs), bytes=tuple(kind == "b" for kind in kinds), low=-MOST + 1,
        zeros=tuple(5 if kind == "n" else 0 for kind in kinds), shift=shift,
        weights=(weight, -weight)[: len(kinds)], offset="o" if moved else None,
        requant=Requant((2.0**-shift / 300,), -4, -90, 127) if narrow else None,
    )  # fmt: skip
    kind = TensorType((1 if narrow else 2, *shape), "int8")
    check(node, inputs, offset, kind, load_config(on, []))


FULL = {
    "paper": ["table_bytes=2048", "reciprocal_units=1"],
    "paper-full": [],
    "tiny": ["reciprocal_units=1"],
}


@pytest.mark.parametrize(
    "on", ["paper-full", *(pytest.param(on, marks=pytest.mark.long) for on in ("paper", "tiny"))]
)
@pytest.mark.parametrize(
    ("channels", "pixels", "centered", "wide"),
    [(16, 9, True, False), (64, 17, True, True), (64, 9, False, True), (32, 17, False, False)],
)
def test_normalizations(channels, pixels, centered, wide, on):
    rng = np.random.default_rng(6)
    data = rng.integers(-128, 128, (4, channels, 1, pixels)).astype(np.int8)
    data[1::2] //= 40
    gamma, beta = rng.normal(9, 3, channels), rng.normal(0, 9, channels)
    unit = WideMoments(channels).unit
    terms = Terms.of(90 * gamma, 90 * beta, unit, 1.0) if wide else Terms.of(gamma, beta, unit)
    node = QWideNormalize(
        **NAMES, data="x", factor="f", offset="o", centered=centered, epsilon=30.0,
        shift=terms.shift, requant=None if wide else Requant((terms.scale,), -4),
    )  # fmt: skip
    kind = TensorType((2, pixels, 1, channels), "int32" if wide else "int8")
    constants = {"f": terms.factor, "o": terms.offset}
    result = check(node, {"x": data}, constants, kind, load_config(on, FULL[on]))
    assert len(np.unique(result)) > 30
