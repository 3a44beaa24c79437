"""Files of one layer between two quantizations, as tools write them, in every pair of features.

``FEATURES`` are what files differ in; ``rows`` makes files in which every two values of two
features meet, unless nobody writes them together. All scales are powers of two, and floats have few
bits: onnxruntime's result is the right one in every bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.analysis.ort import ort_run

F = np.float32
FEATURES: Mapping[str, tuple[str, ...]] = {
    "layer": ("conv", "depthwise", "matmul", "gemm"),
    "data": ("int8", "uint8"),
    "data zero": ("scalar", "vector", "missing"),
    "weights": ("int8", "uint8", "int4", "uint4"),
    "zeros": ("missing", "one", "each"),
    "scales": ("one", "each", "negative", "dead"),
    "path": ("plain", "late", "moved", "identity"),
    "bias": ("none", "float", "product", "own scale", "node"),
    "limit": ("none", "relu", "clip", "leaky"),
    "range": ("whole", "limited"),
    "domain": ("", "com.microsoft"),
    "opset": ("13", "17", "21"),
}
Row = Mapping[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]
CANDIDATES = 60
FEW = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4}
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


def is_written(row: Row) -> bool:
    """Whether a file has such features at once: few bits are ONNX's own from opset 21 on, int8 data
    have a zero point, and what quantizes floats has a positive scale."""
    few = row.get("weights") in FEW and row.get("domain") == "" and row.get("opset") in ("13", "17")
    bare = (row.get("data"), row.get("data zero")) == ("int8", "missing")
    odd = row.get("path") == "late" and row.get("scales") in ("negative", "dead")
    late = row.get("path") == "late" and row.get("zeros") == "missing"
    return not (few or bare or odd or late)


def pairs_of(row: Row) -> set[Pair]:
    """The pairs of features that meet in a file."""
    return set(combinations(row.items(), 2))


def rows(seed: int = 0) -> Iterator[Row]:
    """Features of files, until every pair has met."""
    draw = Random(seed)
    left = {
        ((a, x), (b, y))
        for a, b in combinations(FEATURES, 2)
        for x in FEATURES[a]
        for y in FEATURES[b]
        if is_written({a: x, b: y})
    }
    while left:
        wanted = dict(draw.choice(sorted(left)))
        some = [
            row
            for _ in range(CANDIDATES)
            if is_written(row := {n: wanted.get(n) or draw.choice(v) for n, v in FEATURES.items()})
        ]
        best = max(some, key=lambda row: len(pairs_of(row) & left))
        left -= pairs_of(best)
        yield best


class File:
    """The file of a row, and an input for it."""

    def __init__(self, row: Row, seed: int = 0) -> None:
        self.row, self.rng = row, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        rank = 4 if row["layer"] in ("conv", "depthwise") else 2 if row["layer"] == "gemm" else 3
        self.shape = {4: (1, 8, 5, 5), 3: (1, 6, 16), 2: (3, 16)}[rank]
        self.count = 8 if rank == 4 else 12
        self.result = {4: (1, 8, 5, 5), 3: (1, 6, 12), 2: (3, 12)}[rank]
        self.x = (self.rng.integers(-40, 40, self.shape) / 16).astype(F)

    def constant(self, array: np.ndarray) -> str:
        """An initializer."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        """A node; its result."""
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, domain=domain, **attributes))
        return name

    def requantized(self, data: str, scale: float, zero: int) -> str:
        """Quantized, perhaps limited, and dequantized."""
        row, dtype = self.row, self.row["data"]
        low = 0 if dtype == "int8" else 128
        zero = {"missing": 0, "scalar": zero + low, "vector": zero + low}[row["data zero"]]
        shape = (1,) if row["data zero"] == "vector" else ()
        quant = [self.constant(np.full(shape, scale, F))]
        if row["data zero"] != "missing":
            quant.append(self.constant(np.full(shape, zero, dtype)))
        data = self.node("QuantizeLinear", data, *quant, domain=row["domain"])
        if row["range"] == "limited":
            least = np.iinfo(dtype).min
            bounds = max(zero - 63, least), zero + 64
            ends = [self.constant(np.array(end, dtype)) for end in bounds]
            data = self.node("Clip", data, *ends)
        return self.node("DequantizeLinear", data, *quant, domain=row["domain"])

    def model(self) -> onnx.ModelProto:
        """The file."""
        y = self.limited(self.layer(self.requantized("x", 2.0**-4, 3)))
        most = np.abs(*ort_run(self.written(y), {"x": self.x}, fuse=False).values()).max()
        return self.written(self.requantized(y, 2.0 ** np.ceil(np.log2(most / 64)), 4))

    def written(self, output: str) -> onnx.ModelProto:
        """The nodes so far, with an output."""
        ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
                for name, shape in (("x", self.shape), (output, self.result))]  # fmt: skip
        graph = helper.make_graph(self.nodes, "dialect", ends[:1], ends[1:], self.weights)
        opsets = [("", int(self.row["opset"])), ("com.microsoft", 1)]
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid(*each) for each in opsets], ir_version=10
        )

    def layer(self, data: str) -> str:
        """The layer with its bias."""
        kind, bias = self.row["layer"], self.row["bias"]
        weight, scale = self.weight()
        given = []
        if bias in ("product", "own scale"):
            step = np.abs(scale) * 2.0**-4 if bias == "product" else np.full(self.count, 2.0**-6)
            step = np.where(step, step, 2.0**-12).astype(F)
            integers = self.rng.integers(-90, 90, self.count).astype(np.int32)
            own = [self.constant(integers), self.constant(step)]
            given = [self.node("DequantizeLinear", *own, domain=self.row["domain"], axis=0)]
        elif bias in ("float", "node"):
            given = [self.constant((self.rng.integers(-99, 99, self.count) / 64).astype(F))]
        inside = [] if bias == "node" else given
        if kind == "matmul":
            y = self.node("MatMul", data, weight)
            return self.node("Add", given[0], y) if given else y
        if kind == "gemm":
            y = self.node("Gemm", data, weight, *inside, transB=1)
            return self.node("Add", y, given[0]) if bias == "node" else y
        group = self.count if kind == "depthwise" else 1
        y = self.node("Conv", data, weight, *inside, group=group, pads=[1] * 4)
        if bias != "node":
            return y
        column = self.constant(numpy_helper.to_array(self.weights[-1]).reshape(-1, 1, 1))
        return self.node("Add", y, column)

    def weight(self) -> tuple[str, np.ndarray]:
        """Dequantized weights as the layer reads them, and their scale for each channel."""
        row, dtype, count = self.row, self.row["weights"], self.count
        kernel = {"conv": (8, 3, 3), "depthwise": (1, 3, 3)}.get(row["layer"], (16,))
        shape = (count, *kernel)
        low, high = LIMITS[dtype]
        integers = np.resize(self.rng.permutation(np.arange(low, high + 1)), shape)
        zeros = np.zeros(count, int)
        if row["zeros"] != "missing":
            zeros = np.resize([low + 5, high - 3, (low + high) // 2], count)
        step = 2.0**-7 if dtype in ("int8", "uint8") else 2.0**-3
        scale = np.full(count, step, F)
        if row["scales"] != "one":
            scale = scale * np.resize(np.array([1, 0.5, 2], F), count)
        if row["scales"] in ("negative", "dead"):
            scale[1::3] = -scale[1::3] if row["scales"] == "negative" else 0
        each = row["scales"] != "one" or row["zeros"] == "each"
        if not each:
            zeros[:] = zeros[0]
        turned = (row["path"] == "moved") != (row["layer"] == "matmul")
        axis = 1 if turned and row["layer"] == "matmul" else 0
        integers = integers.T if axis else integers
        quant = [self.constant(scale if each else scale[0])]
        if row["zeros"] != "missing":
            quant.append(self.constant(self.typed(zeros if each else zeros[0])))
        return self.moved(integers, quant, axis), scale

    def typed(self, array: np.ndarray) -> np.ndarray:
        """Integers in the weights' type."""
        dtype = self.row["weights"]
        return np.asarray(array).astype(FEW.get(dtype, dtype))

    def moved(self, integers: np.ndarray, quant: list[str], axis: int) -> str:
        """The weights behind the nodes that a file has for them."""
        row, domain = self.row, self.row["domain"]
        if row["path"] == "late":
            scale, zero = (numpy_helper.to_array(w) for w in self.weights[-2:])
            lay = [-1 if n == axis else 1 for n in range(integers.ndim)]
            spread = [each.astype(F).reshape(lay if each.ndim else ()) for each in (scale, zero)]
            real = self.constant(((integers - spread[1]) * spread[0]).astype(F))
            data = self.node("QuantizeLinear", real, *quant, domain=domain, axis=axis)
        else:
            moved = row["path"] == "moved" and row["layer"] != "matmul"
            lay = (*integers.shape[:1], integers[0].size) if moved else integers.shape
            data = self.constant(self.typed(integers.reshape(lay)))
        few = row["weights"] in FEW  # onnxruntime has no Identity of these
        if row["path"] == "identity" and not few:
            data = self.node("Identity", data)
        real = self.node("DequantizeLinear", data, *quant, domain=domain, axis=axis)
        if row["path"] == "identity" and few:
            real = self.node("Identity", real)
        if row["path"] == "moved" and row["layer"] != "matmul":
            return self.node("Reshape", real, self.constant(np.array(integers.shape)))
        if row["layer"] == "matmul" and not axis:
            return self.node("Transpose", real, perm=[1, 0])
        return real

    def limited(self, data: str) -> str:
        """The layer's function."""
        limit = self.row["limit"]
        if limit == "none":
            return data
        if limit == "leaky":
            return self.node("LeakyRelu", data, alpha=0.25)
        ends = [self.constant(np.array(end, F)) for end in (0, 20)]
        return self.node("Relu", data) if limit == "relu" else self.node("Clip", data, *ends)
