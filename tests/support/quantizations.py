"""Ways in which tools quantize a network, drawn from a seed, and the files that they write.

A **recipe** says which operators are quantized (as onnxruntime's ``op_types_to_quantize``), by
tensor or by channel, to which types, which edges are left out, in which units biases are, and in
how many nodes a file writes a constant. ``file_of`` writes it; ``onnxruntime_file`` has
onnxruntime's quantizer write one.

Scales of an ``exact`` recipe are powers of two, and its floats have few bits: products, sums and
changes of scale are exact in float32, so that nothing rounds but quantizations, and every device
has one right answer.
"""

from __future__ import annotations

import copy
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import helper, numpy_helper
from random_graphs import _model, _Network, sample

from vdla.analysis.ort import ort_run

HEAVY = ("Conv", "MatMul", "Gemm")
AXES = {"Conv": 0, "MatMul": -1, "Gemm": -1}  # of a weight, that has output channels
CHOICES = (
    (), (), (), HEAVY, HEAVY, ("MatMul",), ("Gemm",), ("Conv",), ("MatMul", "Gemm"),
    ("Conv", "Gemm"), ("MatMul", "Add"), ("Conv", "Relu"),
)  # fmt: skip
CHAINS = ("plain", "Constant", "Identity", "Transpose", "Reshape", "Cast", "Unsqueeze")
ROUNDING = {
    "Sigmoid", "Tanh", "HardSigmoid", "LeakyRelu", "Softmax", "LayerNormalization",
    "BatchNormalization", "AveragePool", "GlobalAveragePool",
}  # fmt: skip
BITS = 3  # behind the point, of the floats of an exact recipe


# Networks ----------------------------------------------------------------------------------------


class _Block(_Network):
    """A network that also has what files of products alone are made of. A ``plain`` one has no
    operator that rounds."""

    plain = False

    def activation(self, x: str | None = None) -> str:
        if not self.plain:
            return super().activation(x)
        x = x or self.operand()
        if self.chance(0.6):
            return self.add("Relu", [x], self.shapes[x])
        ends = [self.given(np.float32(v)) for v in (-0.5, 3.0)]
        return self.add("Clip", [x, *ends], self.shapes[x])

    def pool(self) -> str | None:
        if not self.plain:
            return super().pool()
        x = self.operand(4)
        if x is None or min(self.shapes[x][2:]) < 3:
            return None
        n, c, h, w = self.shapes[x]
        return self.add("MaxPool", [x], (n, c, h // 2, w // 2), kernel_shape=[2, 2], strides=[2, 2])

    def head(self) -> str | None:
        if not self.plain:
            return super().head()
        x = self.operand(4)
        if x is None:
            return None
        n, *rest = self.shapes[x]
        return self.add("Flatten", [x], (n, int(np.prod(rest)))) if np.prod(rest) < 1500 else None

    def product(self) -> str | None:
        """The product of two activations, each vector by each."""
        x = self.operand(3)
        if x is None:
            return None
        n, t, d = self.shapes[x]
        y = self.add("Transpose", [x], (n, d, t), perm=[0, 2, 1])
        others = [name for name, its in self.shapes.items() if its == (n, t, d)]
        return self.add("MatMul", [str(self.rng.choice(others)), y], (n, t, t))

    def gemm(self) -> str | None:
        """A Gemm with a bias, its weights as they are or transposed."""
        x = self.operand(2)
        if x is None:
            return None
        rows, k = self.shapes[x]
        n, turned = int(self.pick(k, 10, 16, 33)), self.chance(0.5)
        weight = self.constant(*((n, k) if turned else (k, n)), spread=k**-0.5)
        bias = [self.constant(n, spread=0.1)] if self.chance(0.8) else []
        return self.add("Gemm", [x, weight, *bias], (rows, n), transB=int(turned))

    def layer(self) -> str | None:
        """A product, its bias in a node of its own, perhaps a function, and what it began with."""
        x = self.operand(3) or self.operand(2)
        if x is None:
            return None
        shape = self.shapes[x]
        weight = self.constant(shape[-1], shape[-1], spread=shape[-1] ** -0.5)
        y = self.add("MatMul", [x, weight], shape)
        if self.chance(0.8):
            y = self.add("Add", [y, self.constant(shape[-1], spread=0.5)], shape)
        if self.chance(0.3):
            y = self.activation(y)
        if self.chance(0.3):
            y = self.add("Mul", [y, self.constant(shape[-1], spread=1.0)], shape)
        return self.add("Add", [y, x], shape) if self.chance(0.6) else y


OPERATORS = (
    ("conv", 4), ("residual", 4), ("binary", 3), ("activation", 3), ("gate", 1), ("concat", 2),
    ("split", 1), ("pool", 2), ("norm", 1), ("dense", 3), ("layer", 6), ("gemm", 5), ("tokens", 2),
    ("attention", 1), ("product", 1), ("reshaped", 2), ("head", 2),
)  # fmt: skip
ROUNDS = ("gate", "norm", "attention")  # operators that round, beside some functions and pools


def network(seed: int) -> onnx.ModelProto:
    """A random network of floats on an image, a sequence or vectors; two of three are plain."""
    rng = np.random.default_rng(seed)
    block = _Block(rng, integer=False)
    block.plain = block.chance(2 / 3)
    channels = block.pick(3, 8, 16, 20, 32)
    block.shapes["x"] = block.pick(
        (1, channels, 8, 8), (2, channels, 7, 9), (1, 10, channels), (2, 7, channels), (4, channels)
    )
    some = [(name, weight) for name, weight in OPERATORS if not block.plain or name not in ROUNDS]
    weights = np.array([weight for _, weight in some], float)
    for _ in range(int(rng.integers(2, 7))):
        name, _ = some[rng.choice(len(some), p=weights / weights.sum())]
        getattr(block, name)()
    if not block.nodes:
        block.layer() or block.conv()
    read = {name for node in block.nodes for name in node.input}
    outputs = [name for node in block.nodes for name in node.output if name not in read]
    return _model(block.nodes, block.constants, block.shapes, outputs)


# Recipes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How a file is quantized.

    ``operators``: the types that are quantized; empty for all. ``skipped``: the share of edges that
    a Q/DQ pair is left out of. ``bias``: "product", in units of the product, "own", or "float".
    ``chains``: the share of constants that several nodes write. ``cut``: the share of activations
    whose range is narrower than their values. ``late``: weights are quantized in the graph.
    ``tool``: onnxruntime's quantizer writes the file.
    """

    operators: tuple[str, ...] = ()
    by_channel: bool = False
    activations: str = "int8"
    weights: str = "int8"
    skipped: float = 0.0
    bias: str = "product"
    chains: float = 0.0
    cut: float = 0.0
    late: bool = False
    exact: bool = True
    tool: bool = False

    @classmethod
    def of(cls, seed: int, model: onnx.ModelProto) -> Recipe:
        """The recipe of a seed for a network; the same ever after."""
        rng = np.random.default_rng((seed, 1))
        kinds = {node.op_type for node in model.graph.node}
        some = [each for each in CHOICES if not each or kinds & {*each}]
        return cls(
            some[rng.integers(len(some))],
            bool(rng.random() < 0.5),
            str(rng.choice(["int8", "uint8"])),
            str(rng.choice(["int8", "int8", "uint8"])),
            float(rng.choice([0, 0, 0.1, 0.3])),
            str(rng.choice(["product", "own", "float"])),
            float(rng.choice([0, 0.3, 1])),
            float(rng.choice([0, 0, 0.5])),
            bool(rng.random() < 0.2),
            bool(rng.random() < 0.7),
            bool(rng.random() < 0.15),
        )


def quantized(model: onnx.ModelProto, recipe: Recipe, seed: int) -> onnx.ModelProto:
    """The file that a recipe makes of a network."""
    if recipe.tool:
        return onnxruntime_file(model, recipe, seed)
    return file_of(rounded(model) if recipe.exact else model, recipe, seed)


def inputs_of(model: onnx.ModelProto, recipe: Recipe, seed: int) -> dict[str, np.ndarray]:
    """An input that goes a bit beyond the ranges of the sample that a file is quantized by."""
    values = {name: 1.2 * array for name, array in sample(model, seed + 1).items()}
    return {name: few_bits(array, BITS + 3) for name, array in values.items()}


def is_plain(model: onnx.ModelProto) -> bool:
    """Whether no operator of a network rounds."""
    return not {node.op_type for node in model.graph.node} & ROUNDING


def few_bits(array: np.ndarray, bits: int = BITS) -> np.ndarray:
    """Floats with so many bits behind the point."""
    return (np.rint(array * 2.0**bits) / 2.0**bits).astype(np.float32)


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """A network whose floats have few bits: multiples of a power of two near its spread."""
    result = copy.deepcopy(model)
    for tensor in result.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size > 1:
            places = BITS - int(np.floor(np.log2(max(float(np.abs(array).max()), 1e-6))))
            tensor.CopyFrom(numpy_helper.from_array(few_bits(array, places), tensor.name))
    return result


def onnxruntime_file(model: onnx.ModelProto, recipe: Recipe, seed: int) -> onnx.ModelProto:
    """What onnxruntime's static quantization writes."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    samples = iter([sample(model, seed)])

    class Reader(CalibrationDataReader):
        def get_next(self):
            return next(samples, None)

    kinds = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    weights = "int8" if recipe.activations == "int8" else recipe.weights  # it has no third way
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with TemporaryDirectory() as folder:
            source, path = Path(folder) / "float.onnx", Path(folder) / "qdq.onnx"
            onnx.save(model, source)
            quantize_static(
                source,
                path,
                Reader(),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=list(recipe.operators) or None,
                per_channel=recipe.by_channel,
                activation_type=kinds[recipe.activations],
                weight_type=kinds[weights],
            )
            return onnx.load(path)
    finally:
        logger.setLevel(level)


def file_of(model: onnx.ModelProto, recipe: Recipe, seed: int) -> onnx.ModelProto:
    """The QDQ file of a network by a recipe."""
    everything = copy.deepcopy(model)
    known = {v.name: v for v in (*model.graph.value_info, *model.graph.output)}
    del everything.graph.output[:]
    everything.graph.output.extend(known.values())
    inputs = sample(model, seed)
    values = {**inputs, **ort_run(everything, inputs, fuse=False)}
    return _Writer(model, values, recipe, seed).model()


class _Writer:
    """Writes the file of a recipe; draws go by the names of tensors, so that a smaller network is
    quantized alike. ``values`` are all activations for one sample."""

    def __init__(
        self, model: onnx.ModelProto, values: Mapping[str, np.ndarray], recipe: Recipe, seed: int
    ) -> None:
        self.source, self.values, self.recipe, self.seed = model, values, recipe, seed
        self.weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.scales: dict[str, np.ndarray] = {}
        self.made: set[str] = set()

    def rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng((self.seed, zlib.crc32(name.encode())))

    def chance(self, name: str, share: float) -> bool:
        return bool(self.rng(name).random() < share)

    def model(self) -> onnx.ModelProto:
        graph = self.source.graph
        outputs = [o.name for o in graph.output]
        for node in graph.node:
            inputs = [self.operand(node, place) for place in range(len(node.input))]
            fresh = helper.make_node(
                node.op_type, inputs, [f"{n}_raw" for n in node.output], name=node.name
            )
            fresh.attribute.extend(node.attribute)
            self.nodes.append(fresh)
        for name in outputs:  # outputs keep their names
            last = self.edge(name, f"{name} output", name in self.ends())
            self.nodes.append(helper.make_node("Identity", [last], [name]))
        shapes = {n: v.shape for n, v in self.values.items() if n == "x" or n in outputs}
        return _model(self.nodes, self.constants, shapes, outputs)

    def does(self, kind: str) -> bool:
        """Whether an operator type is quantized."""
        return not self.recipe.operators or kind in self.recipe.operators

    def ends(self) -> set[str]:
        """The results of operators that are quantized."""
        return {
            o for node in self.source.graph.node if self.does(node.op_type) for o in node.output
        }

    # --- activations ---

    def operand(self, node: onnx.NodeProto, place: int) -> str:
        name = node.input[place]
        heavy = node.op_type in HEAVY and self.does(node.op_type)
        if name in self.values:
            return self.edge(name, f"{node.name} {place}", self.does(node.op_type))
        if heavy and place == 1 and not self.chance(f"{name} skipped", self.recipe.skipped / 3):
            return self.weight(name, node)
        if heavy and place == 2 and self.recipe.bias != "float":
            return self.bias(name, node)
        return self.given(name, self.weights[name]) if name else name

    def edge(self, name: str, edge: str, wanted: bool) -> str:
        """An activation as a reader sees it: behind its Q/DQ pair, where a quantized operator
        makes or reads it, or as it is."""
        raw = name if name == "x" else f"{name}_raw"
        pair = wanted or name in self.ends()
        if not pair or self.chance(edge, self.recipe.skipped):
            return raw
        if f"{name}_dq" not in self.made:
            self.round(name, raw)
        return f"{name}_dq"

    def round(self, name: str, raw: str) -> None:
        """Appends QuantizeLinear and DequantizeLinear for an activation."""
        values, unsigned = self.values[name], self.recipe.activations == "uint8"
        low, high = min(float(values.min()), 0.0), max(float(values.max()), 1e-3)
        step = self.step((high - low) / 255)
        if self.chance(f"{name} cut", self.recipe.cut):
            step /= np.float32(2)
        least = 0 if unsigned else -128
        zero = np.clip(np.rint(least - low / step), least, least + 255)
        self.scales[name] = step
        self.pair(name, raw, np.array(step), np.array(zero).astype(self.recipe.activations))
        self.made.add(f"{name}_dq")

    def step(self, size: float) -> np.float32:
        """A scale of about a size."""
        if self.recipe.exact:
            return np.float32(2.0 ** np.ceil(np.log2(max(size, 2.0**-20))))
        return np.float32(size)

    def pair(self, name: str, raw: str, scale: np.ndarray, zero: np.ndarray, **axis: int) -> None:
        ends = [self.given(f"{name}_s", scale), self.given(f"{name}_z", zero)]
        self.nodes.append(helper.make_node("QuantizeLinear", [raw, *ends], [f"{name}_q"], **axis))
        self.dequantize(name, f"{name}_q", ends, **axis)

    def dequantize(self, name: str, data: str, ends: list[str], **axis: int) -> None:
        out = [f"{name}_dq"]
        self.nodes.append(helper.make_node("DequantizeLinear", [data, *ends], out, **axis))

    # --- weights and biases ---

    def weight(self, name: str, node: onnx.NodeProto) -> str:
        if f"{name}_dq" in self.made:
            return f"{name}_dq"
        self.made.add(f"{name}_dq")
        values, axis = self.weights[name], AXES[node.op_type] % self.weights[name].ndim
        turned = [a.i for a in node.attribute if a.name == "transB"]
        if node.op_type == "Gemm" and turned == [1]:
            axis = 0
        channels = self.recipe.by_channel
        others = tuple(n for n in range(values.ndim) if n != axis) if channels else None
        sizes = np.atleast_1d(np.maximum(np.abs(values).max(others), 1e-6)) / 127
        scale = np.array([self.step(float(size)) for size in sizes], np.float32)
        zero = np.zeros(scale.shape, np.int64)
        if self.recipe.weights == "uint8":
            zero = self.rng(f"{name} zero").integers(100, 156, scale.shape)
        if not channels:
            scale, zero = scale[0], zero[0]
        self.scales[name] = np.asarray(scale)
        along = {"axis": axis} if channels else {}
        lay = [-1 if n == axis else 1 for n in range(values.ndim)] if channels else ()
        scale, zero = np.asarray(scale), np.asarray(zero).astype(self.recipe.weights)
        if self.recipe.late:
            self.pair(name, self.given(name, values), scale, zero, **along)
            return f"{name}_dq"
        limits = np.iinfo(self.recipe.weights)
        numbers = np.rint(values / scale.reshape(lay)) + zero.astype(np.int64).reshape(lay)
        least = limits.min + (self.recipe.weights == "int8")
        numbers = np.clip(numbers, least, limits.max).astype(self.recipe.weights)
        ends = [self.given(f"{name}_s", scale), self.given(f"{name}_z", zero)]
        self.dequantize(name, self.given(f"{name}_q", numbers), ends, **along)
        return f"{name}_dq"

    def bias(self, name: str, node: onnx.NodeProto) -> str:
        if f"{name}_dq" in self.made:
            return f"{name}_dq"
        parts = [self.scales.get(node.input[place]) for place in (0, 1)]
        if any(part is None for part in parts):
            return self.given(name, self.weights[name])
        self.made.add(f"{name}_dq")
        scale = np.asarray(parts[0] * parts[1], np.float32)
        if self.recipe.bias == "own":
            scale = np.full_like(scale, 2.0**-12 if self.recipe.exact else 3.1e-4)
        numbers = np.rint(self.weights[name] / scale).astype(np.int32)
        ends = [self.given(f"{name}_s", scale), self.given(f"{name}_z", np.zeros_like(scale, "i4"))]
        along = {"axis": 0} if scale.ndim else {}
        self.dequantize(name, self.given(f"{name}_q", numbers), ends, **along)
        return f"{name}_dq"

    # --- constants ---

    def given(self, name: str, array: np.ndarray) -> str:
        """A constant, as one node or several write it."""
        if name in self.made:
            return name
        self.made.add(name)
        array = np.asarray(array)
        draw = self.rng(f"{name} chain")
        way = str(draw.choice(CHAINS)) if draw.random() < self.recipe.chains else "plain"
        if array.dtype not in (np.float32, np.int8, np.uint8) or way == "plain":
            self.constants[name] = array
        elif way == "Constant" or not array.ndim:
            value = numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [name], value=value))
        else:
            self.chain(name, array, way)
        return name

    def chain(self, name: str, array: np.ndarray, way: str) -> None:
        first, second, more = f"{name}_first", [], {}
        if way == "Transpose":
            more["perm"] = list(np.argsort(range(array.ndim)[::-1]))
            array = array.transpose()
        elif way == "Reshape":
            self.constants[f"{name}_shape"] = np.array(array.shape, np.int64)
            second, array = [f"{name}_shape"], array.reshape(-1)
        elif way == "Cast":
            more["to"] = helper.np_dtype_to_tensor_dtype(array.dtype)
            array = array.astype(np.float64 if array.dtype == np.float32 else np.int32)
        elif way == "Unsqueeze":
            way, more["axes"] = "Squeeze", None
            self.constants[f"{name}_axes"] = np.array([0], np.int64)
            second, array = [f"{name}_axes"], array[np.newaxis]
            more = {}
        self.constants[first] = np.ascontiguousarray(array)
        self.nodes.append(helper.make_node(way, [first, *second], [name], **more))
