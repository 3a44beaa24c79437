"""Random networks as ONNX models, and the fewest nodes of one that still fail.

``float_model`` draws a network of floats from a seed: convolutions, products of matrices, pools,
element-wise operators, gates, concatenations, attention. A tensor may be read several times, and
a network may have several outputs. ``quantized`` gives its QDQ form. ``shrunk`` removes nodes as
long as a predicate holds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run

OPSET = 17
STEPS = 255  # from the least to the greatest value of an int8 or uint8


# Networks of floats ------------------------------------------------------------------------------


class _Network:
    """A network that grows node by node. ``shapes`` are those of its activations, ``linear`` are
    the operators that an integer accelerator may take."""

    def __init__(self, rng: np.random.Generator, integer: bool) -> None:
        self.rng, self.integer = rng, integer
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    # --- what operators are made of ---

    def pick(self, *choices):
        """One of the choices, all equally likely."""
        return choices[self.rng.integers(len(choices))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def operand(self, rank: int | None = None, shape=None) -> str | None:
        """An activation of a rank or a shape: mostly the last one, which makes a chain."""
        names = [
            name
            for name, its in self.shapes.items()
            if (rank is None or len(its) == rank) and (shape is None or its == shape)
        ]
        if not names:
            return None
        return names[-1] if self.chance(0.7) else str(self.rng.choice(names))

    def constant(self, *shape: int, spread: float | None = None) -> str:
        """Normally distributed weights that keep the size of what they are multiplied with."""
        fan = max(int(np.prod(shape[1:])), 1)
        values = self.rng.standard_normal(shape) * (fan**-0.5 if spread is None else spread)
        return self.given(values.astype(np.float32))

    def given(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = values
        return name

    def add(self, kind: str, inputs, shape, **attributes) -> str:
        """Appends a node of one output."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        self.shapes[name] = tuple(int(n) for n in shape)
        return name

    # --- operators; each returns the name of its result, or None where no operand fits ---

    def conv(self, x: str | None = None, keep: bool = False) -> str | None:
        """A convolution, perhaps depthwise; ``keep``: its result has its operand's shape."""
        x = x or self.operand(4)
        if x is None:
            return None
        n, c, h, w = self.shapes[x]
        k = 1 if h * w == 1 else int(self.pick(1, 1, 3, 3, 3, 5))
        step = 1 if keep or min(h, w) < 6 else int(self.pick(1, 1, 1, 2))
        dilation = int(self.pick(1, 1, 1, 2)) if k == 3 and step == 1 else 1
        pad = (k - 1) * dilation // 2 if keep or self.chance(0.8) else 0
        sizes = [(s + 2 * pad - dilation * (k - 1) - 1) // step + 1 for s in (h, w)]
        if min(sizes) < 1:
            return None
        depthwise = self.chance(0.2)
        out = c if depthwise or keep else int(self.pick(c, 3, 8, 16, 17, 32, 32, 48))
        weight = self.constant(out, 1 if depthwise else c, k, k)
        bias = [self.constant(out, spread=0.1)] if self.chance(0.6) else []
        return self.add(
            "Conv", [x, weight, *bias], (n, out, *sizes), kernel_shape=[k, k], strides=[step] * 2,
            pads=[pad] * 4, dilations=[dilation] * 2, group=c if depthwise else 1,
        )  # fmt: skip

    def residual(self) -> str | None:
        """A chain of convolutions, to which what it began with is added, perhaps twice."""
        x = y = self.operand(4)
        for _ in range(int(self.rng.integers(1, 3))):
            y = self.conv(y, keep=True) if y else None
        if y is None:
            return None
        total = self.add("Add", self.rng.permutation([x, y]).tolist(), self.shapes[x])
        return self.add("Add", [total, x], self.shapes[x]) if self.chance(0.2) else total

    def binary(self) -> str | None:
        """An element-wise operator of two activations of one shape, which may be the same."""
        a = self.operand()
        b = str(self.rng.choice([n for n, its in self.shapes.items() if its == self.shapes[a]]))
        kinds = ("Add", "Add", "Mul") if self.integer else ("Add", "Add", "Sub", "Mul", "Max")
        return self.add(self.pick(*kinds), [a, b], self.shapes[a])

    def activation(self, x: str | None = None) -> str:
        x = x or self.operand()
        kind = self.pick(*(("Relu",) * 3), "Sigmoid", "Tanh", "HardSigmoid", "LeakyRelu", "Clip")
        if self.integer and self.chance(0.5):
            kind = "Relu"
        if kind == "Clip":
            ends = [self.given(np.float32(v)) for v in (-0.5, 6.0)]
            return self.add("Clip", [x, *ends], self.shapes[x])
        return self.add(kind, [x], self.shapes[x])

    def gate(self) -> str:
        """``x * sigmoid(x)``, or an image times a factor for each of its channels."""
        x = self.operand()
        shape = self.shapes[x]
        if len(shape) != 4 or self.chance(0.5):
            return self.add("Mul", [x, self.add("Sigmoid", [x], shape)], shape)
        y = self.add("GlobalAveragePool", [x], (*shape[:2], 1, 1))
        y = self.add("Sigmoid", [self.conv(y, keep=True)], (*shape[:2], 1, 1))
        return self.add("Mul", [x, y], shape)

    def concat(self) -> str | None:
        x = self.operand(4) or self.operand()
        n, _, *rest = self.shapes[x]
        fitting = [s for s, its in self.shapes.items() if (its[0], *its[2:]) == (n, *rest)]
        parts = [x, *self.rng.choice(fitting, int(self.rng.integers(1, 3))).tolist()]
        width = sum(self.shapes[p][1] for p in parts)
        return self.add("Concat", parts, (n, width, *rest), axis=1) if width <= 96 else None

    def split(self) -> str | None:
        x = self.operand(4) or self.operand()
        n, c, *rest = self.shapes[x]
        if c < 2:
            return None
        first = int(self.rng.integers(1, c))
        names = [f"t{len(self.nodes)}", f"t{len(self.nodes)}b"]
        sizes = self.given(np.array([first, c - first], np.int64))
        self.nodes.append(helper.make_node("Split", [x, sizes], names, name=names[0], axis=1))
        for name, width in zip(names, (first, c - first), strict=True):
            self.shapes[name] = (n, width, *rest)
        return names[0]

    def pool(self) -> str | None:
        x = self.operand(4)
        if x is None:
            return None
        n, c, h, w = self.shapes[x]
        k = int(self.pick(2, 2, 3))
        step = int(self.pick(1, 2, 2))
        if min(h, w) < k + step:
            return None
        kind = self.pick("MaxPool", "MaxPool", "AveragePool")
        sizes = [(s - k) // step + 1 for s in (h, w)]
        return self.add(kind, [x], (n, c, *sizes), kernel_shape=[k, k], strides=[step] * 2)

    def norm(self) -> str:
        x = self.operand()
        shape = self.shapes[x]
        if len(shape) == 4:
            c = shape[1]
            values = [self.constant(c, spread=0.3) for _ in range(3)]
            values.append(self.given(self.rng.uniform(0.5, 1.5, c).astype(np.float32)))
            return self.add("BatchNormalization", [x, *values], shape)
        scale, bias = (self.constant(shape[-1], spread=0.5) for _ in range(2))
        return self.add("LayerNormalization", [x, scale, bias], shape, axis=-1)

    def dense(self) -> str | None:
        x = self.operand(3) or self.operand(2)
        if x is None:
            return None
        *rest, k = self.shapes[x]
        n = int(self.pick(k, k, 10, 16, 33))
        weight = self.given((self.rng.standard_normal((k, n)) * k**-0.5).astype(np.float32))
        y = self.add("MatMul", [x, weight], (*rest, n))
        return (
            self.add("Add", [y, self.constant(n, spread=0.1)], (*rest, n))
            if self.chance(0.6)
            else y
        )

    def tokens(self) -> str | None:
        """An image as a matrix of places by channels."""
        x = self.operand(4)
        if x is None:
            return None
        n, c, h, w = self.shapes[x]
        if h * w > 200 or c < 2:
            return None
        flat = self.add(
            "Reshape", [x, self.given(np.array([n, c, h * w], np.int64))], (n, c, h * w)
        )
        return self.add("Transpose", [flat], (n, h * w, c), perm=[0, 2, 1])

    def attention(self) -> str | None:
        """Softmax(q k') v of products of one matrix, which may be added again."""
        x = self.operand(3)
        if x is None:
            return None
        n, t, d = self.shapes[x]
        if t > 100:
            return None
        parts = []
        for _ in range(3):
            weight = self.given((self.rng.standard_normal((d, d)) * d**-0.5).astype(np.float32))
            parts.append(self.add("MatMul", [x, weight], (n, t, d)))
        q, k, v = parts
        k = self.add("Transpose", [k], (n, d, t), perm=[0, 2, 1])
        s = self.add("MatMul", [q, k], (n, t, t))
        s = self.add("Mul", [s, self.given(np.float32(d**-0.5))], (n, t, t))
        s = self.add("Softmax", [s], (n, t, t), axis=-1)
        y = self.add("MatMul", [s, v], (n, t, d))
        return self.add("Add", [x, y], (n, t, d)) if self.chance(0.6) else y

    def reshaped(self) -> str | None:
        """An image of other sizes: resized, padded, transposed convolution, or a slice of it."""
        x = self.operand(4)
        if x is None:
            return None
        n, c, h, w = self.shapes[x]
        kind = self.pick("Resize", "Pad", "ConvTranspose", "Slice", "Transpose")
        if kind == "Resize" and h * w <= 200:
            scales = self.given(np.array([1, 1, 2, 2], np.float32))
            return self.add(
                "Resize", [x, "", scales], (n, c, 2 * h, 2 * w), mode="nearest",
                coordinate_transformation_mode="asymmetric", nearest_mode="floor",
            )  # fmt: skip
        if kind == "Pad":
            pads = self.given(np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64))
            return self.add("Pad", [x, pads], (n, c, h + 1, w + 1))
        if kind == "ConvTranspose" and h * w <= 200:
            weight = self.constant(c, c, 2, 2, spread=c**-0.5)
            return self.add("ConvTranspose", [x, weight], (n, c, 2 * h, 2 * w), strides=[2, 2])
        if kind == "Slice" and h > 2:
            ends = [self.given(np.array([v], np.int64)) for v in (1, h, 2)]
            return self.add("Slice", [x, *ends], (n, c, h - 1, w))
        if kind == "Transpose":
            return self.add("Transpose", [x], (n, c, w, h), perm=[0, 1, 3, 2])
        return None

    def head(self) -> str | None:
        """An image as a row of numbers for each sample."""
        x = self.operand(4)
        if x is None:
            return None
        n, c, h, w = self.shapes[x]
        if h * w * c > 1000 or self.chance(0.5):
            x, h, w = self.add("GlobalAveragePool", [x], (n, c, 1, 1)), 1, 1
        return self.add("Flatten", [x], (n, c * h * w))


OPERATORS = (
    (_Network.conv, 5), (_Network.residual, 8), (_Network.binary, 5), (_Network.activation, 4),
    (_Network.gate, 2), (_Network.concat, 2), (_Network.split, 1), (_Network.pool, 2),
    (_Network.norm, 2), (_Network.dense, 3), (_Network.tokens, 1), (_Network.attention, 4),
    (_Network.reshaped, 2), (_Network.head, 1),
)  # fmt: skip
INTEGER = (
    _Network.conv, _Network.residual, _Network.binary, _Network.activation, _Network.concat,
    _Network.pool, _Network.dense, _Network.head, _Network.gate, _Network.reshaped,
)  # fmt: skip


def float_model(seed: int, integer: bool = False) -> onnx.ModelProto:
    """A random network of 4 to 25 nodes; ``integer``: of operators that are often quantized."""
    rng = np.random.default_rng(seed)
    network = _Network(rng, integer)
    batch, channels = network.pick(1, 1, 1, 2), network.pick(3, 8, 16, 20, 32)
    side = network.pick(7, 8, 12, 14, 17, 28)
    matrix = not integer and network.chance(0.2)
    network.shapes["x"] = (batch, side, channels) if matrix else (batch, channels, side, side)
    choices = [(op, w) for op, w in OPERATORS if not integer or op in INTEGER]
    weights = np.array([w for _, w in choices], float)
    for _ in range(int(rng.integers(3, 12))):
        operator, _ = choices[rng.choice(len(choices), p=weights / weights.sum())]
        operator(network)
    if not network.nodes:
        network.activation()
    read = {name for node in network.nodes for name in node.input}
    made = [name for node in network.nodes for name in node.output]
    outputs = [name for name in made if name not in read]
    outputs += [n for n in made if n in read and network.chance(0.05)][:2]
    return _model(network.nodes, network.constants, network.shapes, outputs)


def _model(nodes, constants, shapes, outputs) -> onnx.ModelProto:
    info = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()}
    graph = helper.make_graph(
        nodes, "random", [info["x"]], [info[n] for n in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
        value_info=[v for n, v in info.items() if n != "x" and n not in outputs],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def sample(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Normally distributed inputs."""
    rng = np.random.default_rng(seed)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": rng.standard_normal(shape).astype(np.float32)}


# QDQ ---------------------------------------------------------------------------------------------


def quantized(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The QDQ form: every activation is rounded to 8 bits by the range that it has for one sample,
    every weight of a convolution or a product to int8, by channel or as a whole."""
    rng = np.random.default_rng(seed)
    signed, by_channel = rng.random() < 0.6, rng.random() < 0.5
    everything = copy.deepcopy(model)
    known = {v.name: v for v in (*model.graph.value_info, *model.graph.output)}
    del everything.graph.output[:]
    everything.graph.output.extend(known.values())
    inputs = sample(model, seed)
    values = {**inputs, **ort_run(everything, inputs, fuse=False)}
    writer = _Quantizer(model, values, signed, by_channel)
    return writer.model()


class _Quantizer:
    """Writes the QDQ form of a model. ``values`` are all activations for one sample."""

    def __init__(self, model, values, signed, by_channel) -> None:
        self.source, self.values = model, values
        self.signed, self.by_channel = signed, by_channel
        self.weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.scales: dict[str, float] = {}

    def model(self) -> onnx.ModelProto:
        outputs = [o.name for o in self.source.graph.output]
        self.round("x", "x")
        for node in self.source.graph.node:
            inputs = [self.operand(node, place) for place in range(len(node.input))]
            raw = [f"{name}_raw" for name in node.output]
            fresh = helper.make_node(node.op_type, inputs, raw, name=node.name)
            fresh.attribute.extend(node.attribute)
            self.nodes.append(fresh)
            for name in node.output:
                self.round(name, f"{name}_raw")
        shapes = {n: v.shape for n, v in self.values.items()}
        named = {n: shapes[n] for n in shapes if n == "x" or n in outputs}
        for name in outputs:  # outputs keep their names
            self.nodes.append(helper.make_node("Identity", [f"{name}_dq"], [name]))
        return _model(self.nodes, self.constants, named, outputs)

    def operand(self, node, place: int) -> str:
        name = node.input[place]
        if name in self.values:
            return f"{name}_dq"
        heavy = node.op_type in ("Conv", "MatMul", "ConvTranspose")
        if heavy and place == 1:
            return self.weight(name, node)
        if heavy and place == 2:
            return self.bias(name, node)
        if name:
            self.constants[name] = self.weights[name]
        return name

    def weight(self, name: str, node) -> str:
        values = self.weights[name]
        axis = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1}[node.op_type]
        if self.by_channel and node.op_type != "ConvTranspose":
            other = tuple(n for n in range(values.ndim) if n != axis)
            scale = np.maximum(np.abs(values).max(other), 1e-6).astype(np.float32) / 127
            shape = [-1 if n == axis else 1 for n in range(values.ndim)]
            rounded = np.rint(values / scale.reshape(shape))
        else:
            scale = np.float32(max(np.abs(values).max(), 1e-6) / 127)
            rounded = np.rint(values / scale)
        self.scales[name] = scale
        self.constants[f"{name}_q"] = np.clip(rounded, -127, 127).astype(np.int8)
        self.constants[f"{name}_s"] = scale
        self.constants[f"{name}_z"] = np.zeros_like(scale, np.int8)
        return self.dequantized(name, axis)

    def dequantized(self, name: str, axis: int) -> str:
        """Appends DequantizeLinear for a weight or a bias, by channel where there are scales."""
        inputs = [f"{name}_q", f"{name}_s", f"{name}_z"]
        attributes = {"axis": axis} if self.constants[f"{name}_s"].ndim else {}
        self.nodes.append(
            helper.make_node("DequantizeLinear", inputs, [f"{name}_dq"], **attributes)
        )
        return f"{name}_dq"

    def bias(self, name: str, node) -> str:
        scale = np.float32(self.scales[node.input[0]]) * self.scales[node.input[1]]
        self.constants[f"{name}_q"] = np.rint(self.weights[name] / scale).astype(np.int32)
        self.constants[f"{name}_s"] = scale.astype(np.float32)
        self.constants[f"{name}_z"] = np.zeros_like(scale, np.int32)
        return self.dequantized(name, 0)

    def round(self, name: str, raw: str) -> None:
        """Appends QuantizeLinear and DequantizeLinear for an activation."""
        low, high = min(self.values[name].min(), 0.0), max(self.values[name].max(), 1e-3)
        scale = np.float32((high - low) / STEPS)
        least = -128 if self.signed else 0
        zero = np.array(np.clip(np.rint(least - low / scale), least, least + STEPS))
        self.scales[name] = scale
        self.constants[f"{name}_s"] = scale
        self.constants[f"{name}_z"] = zero.astype(np.int8 if self.signed else np.uint8)
        ends = [f"{name}_s", f"{name}_z"]
        self.nodes.append(helper.make_node("QuantizeLinear", [raw, *ends], [f"{name}_q"]))
        self.nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_q", *ends], [f"{name}_dq"])
        )


# Shrinking ---------------------------------------------------------------------------------------


def shrunk(model: onnx.ModelProto, fails: Callable[[onnx.ModelProto], bool]) -> onnx.ModelProto:
    """A model of fewer nodes that ``fails`` still holds for: of fewer outputs, or with nodes left
    out whose result has an operand's shape."""
    while True:
        smaller = next((m for m in _smaller(model) if fails(m)), None)
        if smaller is None:
            return model
        model = smaller


def _smaller(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    graph = model.graph
    shapes = _shapes(model)
    outputs = [o.name for o in graph.output]
    for node in graph.node:  # one tensor is the only output
        for name in node.output:
            if outputs != [name]:
                yield from _fewer(model, _pruned(model, list(graph.node), [name], shapes))
    for gone in graph.node:
        for source in gone.input:
            if shapes.get(source) == shapes[gone.output[0]] and len(gone.output) == 1:
                nodes = []
                for node in graph.node:
                    if node is not gone:
                        fresh = copy.deepcopy(node)
                        fresh.input[:] = [source if n == gone.output[0] else n for n in node.input]
                        nodes.append(fresh)
                if gone.output[0] not in outputs:
                    yield from _fewer(model, _pruned(model, nodes, outputs, shapes))


def _fewer(model: onnx.ModelProto, candidate: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    size, small = ((len(m.graph.node), len(m.graph.output)) for m in (model, candidate))
    if small[0] > 0 and small < size:
        yield candidate


def _pruned(model, nodes, outputs, shapes) -> onnx.ModelProto:
    """The nodes and constants that some outputs need."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input)
    constants = {
        t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in needed
    }
    made = {name for node in kept for name in node.output}
    named = {n: s for n, s in shapes.items() if n in made or n == "x"}
    return _model(kept[::-1], constants, named, outputs)


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    known = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in known}


def listing(model: onnx.ModelProto) -> str:
    """The nodes, a line each, with the shapes of their results."""
    shapes = _shapes(model)
    lines = [f"x {list(shapes['x'])}"]
    for node in model.graph.node:
        settings = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute)
        result = f"{', '.join(node.output)} {list(shapes[node.output[0]])}"
        lines.append(f"{result} = {node.op_type}({', '.join(node.input)}; {settings})")
    return "\n".join([*lines, f"outputs {', '.join(o.name for o in model.graph.output)}"])
