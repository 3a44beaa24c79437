"""Operators of every kind, a graph of one node each: for tests that run them on other machines."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.byte_sum import QByteSum
from vdla.compiler.graph.ops.exchange import QExchange
from vdla.compiler.graph.ops.image_matmul import QMatMul, QWideMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.maximum import QMaximum
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.ops.multiply import QMultiply
from vdla.compiler.graph.ops.normalize import QNormalize
from vdla.compiler.graph.ops.recurrent import (
    QGates,
    QGruReset,
    QGruState,
    QLstmCell,
    QLstmState,
    QNarrow,
)
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.ops.wide import Dequantize16, QBytes, Quantize16, QWideConv2d, QWideSum
from vdla.compiler.graph.ops.wide_normalize import QWideNormalize
from vdla.compiler.graph.types import Requant, TensorType

F, I8, U8, I32 = "float32", "int8", "uint8", "int32"
IMAGE = (2, 5, 7, 6)


def alone(node, types, constants=None) -> Graph:
    """The node as a graph; ``types`` are dtype and shape by tensor."""
    constants = constants or {}
    tensors = {
        name: kind if isinstance(kind, TensorType) else TensorType(tuple(kind[1:]), kind[0])
        for name, kind in types.items()
    }
    tensors.update({n: TensorType(a.shape, str(a.dtype)) for n, a in constants.items()})
    inputs = tuple(n for n in node.inputs if n not in constants)
    return Graph(inputs, ("y",), (node,), tensors, constants)


# name: node, its tensors
NAMES = {"name": "n", "data": "x", "output": "y"}
PAIR = {"name": "n", "a": "x", "b": "z", "output": "y"}
INTEGERS = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
REALS = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
STEPS = {"scale": (0.1, 0.2, 0.3, 0.4, 0.5), "zero_point": (1, -2, 3, -4, 5), "axis": 1}
HALVED = {"kernel": (2, 2), "strides": (2, 2)}
PACKED = TensorType((2, 20, 7, 6), I8, block=16)
NORM = {**NAMES, "factor": "f", "offset": "o", "epsilon": 0.1, "zeros": (5,)}
JOINED = {"name": "n", "parts": ("x", "z"), "output": "y", "axis": 1}
PERM = {**NAMES, "perm": (0, 2, 3, 1)}
OPERATORS = {
    "quantize": (ops.Quantize(**NAMES, **STEPS), {**REALS, "y": (I8, *IMAGE)}),
    "dequantize": (ops.Dequantize(**NAMES, **STEPS), {**REALS, "x": (U8, *IMAGE)}),
    "dequantize int32": (
        ops.Dequantize(**NAMES, scale=(1e-3,), zero_point=(-7,)), {**REALS, "x": ("int32", *IMAGE)},
    ),
    "flip sign": (ops.FlipSign(**NAMES), {**INTEGERS, "y": (U8, *IMAGE)}),
    "pack": (ops.Pack(**NAMES, block=16), {"x": (I8, *PACKED.shape), "y": PACKED}),
    "unpack": (ops.Unpack(**NAMES, block=16), {"x": PACKED, "y": (I8, *PACKED.shape)}),
    "taps": (
        ops.Im2col(**NAMES, kernel=(3, 3), pads=(1, 1, 1, 1), strides=(2, 2), fill=-3),
        {"x": (I8, 1, 3, 9, 8), "y": (I8, 1, 27, 5, 4)},
    ),
    "clip int8": (ops.QClip(**NAMES, zeros=(4,), requant=Requant((0.77,), -9, -9)), INTEGERS),
    "add int8": (
        ops.QAdd(**PAIR, zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)),
        {**INTEGERS, "z": (I8, *IMAGE)},
    ),
    "minimum int8": (
        QMinimum(**PAIR, zeros=(3, -8), requant=Requant((0.31, 1.7), 1, -99)),
        {**INTEGERS, "z": (I8, *IMAGE)},
    ),
    "table int8": (
        ops.QTable(**NAMES, table="t"), {**INTEGERS, "t": (I8, 256)},
    ),
    "maximum int8": (
        QMaximum(**PAIR, zeros=(3, -8), requant=Requant((0.31, 1.7), 1, -99)),
        {**INTEGERS, "z": (I8, *IMAGE)},
    ),
    "multiply int8": (
        QMultiply(**PAIR, zeros=(3, -8), requant=Requant((0.0073,), 1, -99)),
        {**INTEGERS, "z": (I8, *IMAGE)},
    ),
    "gate int8": (
        QMultiply(**PAIR, zeros=(3, -8), requant=Requant((0.0073,), 1)),
        {**INTEGERS, "z": (I8, *IMAGE[:2], 1, 1)},
    ),
    "product of images int8": (
        QMatMul(**PAIR, zeros=(3, -8), requant=Requant((0.00073,), 1)),
        {"x": (I8, 2, 9, 1, 7), "z": (I8, 2, 9, 1, 5), "y": (I8, 2, 5, 1, 7)},
    ),
    "product of images int32": (
        QWideMatMul(**PAIR), {"x": (I8, 2, 9, 1, 7), "z": (I8, 2, 9, 1, 5), "y": (I32, 2, 5, 1, 7)},
    ),
    "transpose image int8": (
        QTransposeImage(**NAMES), {"x": (I8, 2, 9, 1, 7), "y": (I8, 2, 7, 1, 9)},
    ),
    "softmax int8": (
        QSoftmax(**NAMES, step=0.05, zeros=(0,), requant=Requant((1 / 256,), -128)),
        {"x": (I8, 2, 9, 1, 7), "y": (I8, 2, 9, 1, 7)},
    ),
    "layer norm int8": (
        QNormalize(**NORM, centered=True, requant=Requant((0.01,), -3), shift=-9),
        {"x": (I8, 2, 9, 1, 7), "f": (I32, 9), "o": (I32, 9), "y": (I8, 2, 7, 1, 9)},
    ),
    "rms norm int8": (
        QNormalize(**NORM, centered=False, requant=Requant((0.01,), -3), shift=-9),
        {"x": (I8, 2, 9, 1, 7), "f": (I32, 9), "o": (I32, 9), "y": (I8, 2, 7, 1, 9)},
    ),
    "batch norm int8": (
        ops.QBatchNorm(
            **NAMES, zeros=(4,), requant=Requant((0.3, -1.2, 0.01, 7.0, 0.0), -9, -9),
            offsets=(3.0, 0.4, -9.0, 80.0, 5.5),
        ),
        INTEGERS,
    ),
    "max pool int8": (
        ops.QMaxPool(**NAMES, **HALVED), {"x": (I8, 1, 3, 8, 8), "y": (I8, 1, 3, 4, 4)},
    ),
    "average pool int8": (
        ops.QAvgPool(**NAMES, **HALVED, zeros=(3,), requant=Requant((0.4,), -2)),
        {"x": (I8, 1, 3, 8, 8), "y": (I8, 1, 3, 4, 4)},
    ),
    "average pool int8 of several divisors": (
        ops.QAvgPool(
            **NAMES, kernel=(3, 3), pads=(1, 1, 1, 1), zeros=(3,), requant=Requant((0.05,), -2),
        ),
        {"x": (I8, 1, 3, 8, 8), "y": (I8, 1, 3, 8, 8)},
    ),
    "concat int8": (
        ops.QConcat(**JOINED, zeros=(4, -1), requant=Requant((1.0, 0.6), 4)),
        {"x": (I8, *IMAGE), "z": (I8, *IMAGE), "y": (I8, 2, 10, 7, 6)},
    ),
    "concat": (
        ops.Concat(**JOINED), {"x": (F, *IMAGE), "z": (F, *IMAGE), "y": (F, 2, 10, 7, 6)},
    ),
    "interleave int8": (
        ops.QInterleave(name="node", output="y", parts=("x", "z"), rows=1, columns=2),
        {"x": (I8, *IMAGE), "z": (I8, *IMAGE), "y": (I8, 2, 5, 7, 12)},
    ),
    "interleave": (
        ops.Interleave(name="node", output="y", parts=("x", "z"), rows=2, columns=1),
        {"x": (F, *IMAGE), "z": (F, *IMAGE), "y": (F, 2, 5, 14, 6)},
    ),
    "reshape int8": (ops.QReshape(**NAMES), {**INTEGERS, "y": (I8, 10, 42)}),
    "reshape": (ops.Reshape(**NAMES), {**REALS, "y": (F, 420)}),
    "take int8": (
        ops.QTake(
            **NAMES,
            shape=(2, 5, 7, 12),
            places=(*range(2), *range(5), *range(7), *(i // 2 for i in range(12))),
        ),
        {**INTEGERS, "y": (I8, 2, 5, 7, 12)},
    ),
    "transpose int8": (ops.QTranspose(**PERM), {**INTEGERS, "y": (I8, 2, 7, 6, 5)}),
    "transpose": (ops.Transpose(**PERM), {**REALS, "y": (F, 2, 7, 6, 5)}),
    "relu": (ops.Relu(**NAMES), REALS),
    "clip": (ops.Clip(**NAMES, low=-1.0, high=np.inf), REALS),
    "add": (ops.Add(**PAIR), {**REALS, "z": (F, 5, 1, 1)}),
    "batch norm": (
        ops.BatchNorm(**NAMES, factor="f", offset="o"), {**REALS, "f": (F, 5), "o": (F, 5)},
    ),
    "convolution": (
        ops.Conv2d(**NAMES, weight="w", bias="b", pads=(1, 1, 1, 1), strides=(2, 1)),
        {"x": (F, 1, 4, 7, 6), "w": (F, 3, 4, 3, 3), "b": (F, 3), "y": (F, 1, 3, 4, 6)},
    ),
    "dense": (
        ops.Dense(**NAMES, weight="w"), {"x": (F, 3, 40), "w": (F, 9, 40), "y": (F, 3, 9)},
    ),
    "vectors as pixels": (
        QExchange(**NAMES), {"x": (I8, 7, 9), "y": (I8, 1, 9, 1, 7)},
    ),
    "view": (
        ops.QView(**NAMES, shape=(8, 4, 1, 3), lanes=4),
        {"x": (I8, 2, 8, 1, 6), "y": (I8, 8, 4, 1, 3)},
    ),
    "pixels as vectors": (
        QExchange(**NAMES), {"x": (I8, 1, 9, 1, 7), "y": (I8, 7, 9)},
    ),
    "gates": (
        QGates(
            name="n", output="y", data="x", weight="w", bias="b", factor="f", before=3, after=12,
            addend="z",
        ),
        {
            "x": (I8, 3, 20), "w": (I8, 4, 9, 20), "b": (I32, 4, 9), "f": (I32, 4, 9),
            "z": (I32, 12, 9), "y": (I32, 12, 9),
        },
    ),
    "quantize 16": (
        Quantize16(**NAMES, **STEPS, low=-32768, high=32767), {**REALS, "y": ("int16", *IMAGE)},
    ),
    "dequantize 16": (Dequantize16(**NAMES, **STEPS), {**REALS, "x": ("uint16", *IMAGE)}),
    "bytes": (QBytes(**NAMES), {"x": (I32, *IMAGE), "y": (I8, 2 * IMAGE[0], *IMAGE[1:])}),
    "wide convolution": (
        QWideConv2d(
            name="n", output="y", data="x", weight="w", bias="b", bytes=True, pads=(1, 1, 1, 1),
            requant=Requant((2.0**-9,) * 8, 3),
        ),
        {"x": (I8, 4, 5, 7, 6), "w": (I8, 8, 5, 3, 3), "b": (I32, 2, 8), "y": (I8, 2, 8, 7, 6)},
    ),
    "wide sum": (
        QWideSum(name="n", output="y", terms=("x", "z"), zeros=(3, 0), weights=(90, 7), shift=4),
        {"x": (I8, *IMAGE), "z": (I32, *IMAGE), "y": (I32, *IMAGE)},
    ),
    "wide sum with a constant": (
        QWideSum(
            name="n", output="y", terms=("x",), zeros=(3,), weights=(90,), shift=4, offset="o",
        ),
        {"x": (I8, *IMAGE), "o": (I32, 1, IMAGE[1], 1, 1), "y": (I32, *IMAGE)},
    ),
    "byte sum": (
        QByteSum(
            name="n", output="y", terms=("x", "z"), bytes=(True, False), zeros=(0, 3),
            weights=(90, 7), shift=4, offset="o",
        ),
        {
            "x": (I8, 2, *IMAGE[1:]), "z": (I8, 1, *IMAGE[1:]), "o": (I32, IMAGE[1]),
            "y": (I8, 2, *IMAGE[1:]),
        },
    ),
    "wide normalization": (
        QWideNormalize(
            name="n", output="y", data="x", factor="f", offset="o", centered=True, epsilon=9.0,
            shift=3, requant=Requant((2.0**-6,), 3),
        ),
        {"x": (I8, 4, 20, 1, 9), "f": (I32, 20), "o": (I32, 20), "y": (I8, 2, 9, 1, 20)},
    ),
    "lstm cell": (
        QLstmCell(name="n", output="y", gates="x", cell="z"),
        {"x": (I32, 12, 9), "z": (I32, 3, 9), "y": (I32, 3, 9)},
    ),
    "lstm state": (
        QLstmState(name="n", output="y", gates="x", cell="z", requant=Requant((2.0**-23,), 3)),
        {"x": (I32, 12, 9), "z": (I32, 3, 9), "y": (I8, 3, 9)},
    ),
    "gru reset": (
        QGruReset(name="n", output="y", gates="x", state="z", requant=Requant((2.0**-23,), 3)),
        {"x": (I32, 6, 9), "z": (I32, 3, 9), "y": (I8, 3, 9)},
    ),
    "gru state": (
        QGruState(name="n", output="y", gates="x", fresh="b", state="z", inner="f"),
        {name: (I32, 6 if name == "x" else 3, 9) for name in "xbzfy"},
    ),
    "narrow": (
        QNarrow(**NAMES, requant=Requant((2.0**-8,), -3)), {"x": (I32, 3, 9), "y": (I8, 3, 9)},
    ),
    "max pool": (ops.MaxPool(**NAMES, **HALVED), {"x": (F, 1, 3, 8, 8), "y": (F, 1, 3, 4, 4)}),
    "average pool": (ops.AvgPool(**NAMES, **HALVED), {"x": (F, 1, 3, 8, 8), "y": (F, 1, 3, 4, 4)}),
}  # fmt: skip
