"""Random ONNX models of operators that have gradients: ``random_model``.

All operands of floats are inputs. Values stay where functions are defined and steep nowhere: what
goes into a logarithm is positive, into an arcsine within one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from draws import Draws
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSETS = [helper.make_opsetid("", 21)]
ELEMENTS = 150  # that a tensor has at most
PLAIN = (
    "Abs", "Celu", "Cos", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish",
    "Neg", "Relu", "Selu", "Sigmoid", "Sin", "Softplus", "Softsign", "Tanh", "ThresholdedRelu",
    "Identity", "Atan", "Asinh",
)  # fmt: skip
WITHIN_ONE = ("Acos", "Asin", "Atanh", "Exp", "Sinh", "Cosh", "Tan")
POSITIVE = ("Log", "Sqrt", "Reciprocal")
SUMS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSumExp",
)  # fmt: skip
SCATTERED = ("none", "add", "mul", "max", "min")


class Graphs(Draws):
    """A model that grows; ``shapes`` are those of its tensors of floats."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.inputs: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.nodes: list[onnx.NodeProto] = []

    def given(self, *shape: int) -> str:
        """A new input of small numbers."""
        name = self.name("x")
        self.inputs[name] = self.rng.uniform(-1.5, 1.5, shape).astype(np.float32)
        self.shapes[name] = shape
        return name

    def known(self, value: object, dtype: str = "int64") -> str:
        """A constant of indices, sizes or the like."""
        name = self.name("c")
        self.constants[name] = np.asarray(value, dtype)
        return name

    def operand(self, least: int = 0, most: int = 9, shape=None) -> str:
        """A tensor of a rank or a shape, mostly a late one; a new input where there is none."""
        names = [
            name
            for name, own in self.shapes.items()
            if (own == shape if shape is not None else least <= len(own) <= most)
        ]
        if not names:
            rank = self.count(least, min(most, max(least, 3)))
            sizes = (self.count(1, 4) for _ in range(rank))
            return self.given(*(sizes if shape is None else shape))
        return names[-1] if self.chance(0.7) else self.pick(names)

    def add(self, op: str, *operands: str, others: int = 0, **fields: object) -> str:
        """The result of a new node, whose shape onnx infers; it may have others."""
        name = self.name("t")
        names = [name, *(self.name("other") for _ in range(others))]
        node = helper.make_node(op, operands, names, name=name, **fields)
        shape = self._shape(node)
        if int(np.prod(shape)) > ELEMENTS or min(shape, default=1) < 1:
            raise ValueError("more elements than are worth it, or none")
        self.nodes.append(node)
        self.shapes[name] = shape
        return name

    def _shape(self, node: onnx.NodeProto) -> tuple[int, ...]:
        floats = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in self.shapes.items()
        ]  # fmt: skip
        known = [numpy_helper.from_array(v, n) for n, v in self.constants.items()]
        ends = [onnx.ValueInfoProto(name=node.output[0])]
        graph = helper.make_graph([node], "one", floats, ends, known)
        model = helper.make_model(graph, opset_imports=OPSETS, ir_version=10)
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        (value,) = inferred.graph.output
        return tuple(d.dim_value for d in value.type.tensor_type.shape.dim)

    # Operators ----------------------------------------------------------------------------------

    def element(self) -> str:
        """A function of each element."""
        x = self.operand()
        if self.chance(0.7):
            return self.add(self.pick(PLAIN), x)
        if self.chance(0.5):
            inside = self.add("Mul", self.add("Tanh", x), self.known(0.9, "float32"))
            return self.add(self.pick(WITHIN_ONE), inside)
        least = self.pick((0.3, 1.2))
        above = self.add("Add", self.add("Softplus", x), self.known(least, "float32"))
        return self.add("Acosh" if least > 1 else self.pick(POSITIVE), above)

    def limits(self) -> str:
        """The elements between two limits, or far from 0."""
        x = self.operand()
        if self.chance(0.5):
            return self.add("Clip", x, self.known(-0.6, "float32"), self.known(0.7, "float32"))
        return self.add("Shrink", x, lambd=0.3, bias=0.1)

    def several(self) -> str:
        """A function of two tensors, of which one may be broadcast."""
        x = self.operand()
        shape = tuple(1 if self.chance(0.3) else n for n in self.shapes[x])
        y = self.operand(shape=shape[self.count(0, len(shape)) :] if shape else ())
        if self.chance(0.2):
            base = self.add("Add", self.add("Sigmoid", y), self.known(0.4, "float32"))
            pair = (x, base) if self.chance(0.5) else (base, self.add("Tanh", x))
            return self.add("Div" if pair[0] == x else "Pow", *pair)
        pair = (x, y) if self.chance(0.7) else (y, x)
        return self.add(self.pick(("Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum")), *pair)

    def chosen(self) -> str:
        """One or the other of two elements."""
        x = self.operand()
        y, flags = self.operand(shape=self.shapes[x]), self.rng.random(self.shapes[x]) < 0.5
        return self.add("Where", self.known(flags, "bool"), x, y)

    def product(self) -> str:
        """A product of matrices, or a dense layer."""
        x = self.operand(2, 3)
        inner = self.shapes[x][-1]
        y = self.operand(shape=(inner, self.count(1, 4)))
        if len(self.shapes[x]) == 2 and self.chance(0.4):
            bias = self.operand(shape=(self.shapes[y][1],))
            return self.add("Gemm", x, y, bias, alpha=0.5)
        if self.chance(0.3):
            letters = "bij"[-len(self.shapes[x]) :]
            right = letters[:-1] + "k" if self.chance(0.6) else "ki"
            return self.add("Einsum", x, y, equation=f"{letters},jk->{right}")
        return self.add("MatMul", x, y)

    def image(self) -> str:
        """An image, perhaps a new one."""
        return self.operand(4, 4) if self.chance(0.7) else self.given(1, 2, self.count(3, 5), 4)

    def convolution(self) -> str:
        """A convolution or a transposed one."""
        x = self.image()
        channels, out = self.shapes[x][1], self.count(1, 3)
        kernel = [self.count(1, 3), self.count(1, 3)]
        window = {"strides": [self.count(1, 2), self.count(1, 2)]}
        window["pads"] = [self.count(0, k - 1) for k in (*kernel, *kernel)]
        depthwise = self.chance(0.3)
        if self.chance(0.3):
            weight = self.given(channels, 1 if depthwise else out, *kernel)
            group = channels if depthwise else 1
            return self.add("ConvTranspose", x, weight, group=group, **window)
        out = channels * out if depthwise else out
        weight = self.given(out, 1 if depthwise else channels, *kernel)
        bias = [self.given(out)] if self.chance(0.5) else []
        window["dilations"] = [self.count(1, 2), 1]
        self._check_window(x, kernel, window["pads"], window["dilations"])
        return self.add("Conv", x, weight, *bias, group=channels if depthwise else 1, **window)

    def _check_window(
        self, x: str, kernel: list, pads: list, steps: Sequence[int] = (1, 1)
    ) -> None:
        """Raises where a window is larger than an image with its pads, which onnx doesn't see."""
        for size, taps, step, low, high in zip(
            self.shapes[x][2:], kernel, steps, pads[:2], pads[2:], strict=True
        ):
            if size + low + high <= step * (taps - 1):
                raise ValueError("a window that leaves the image")

    def pool(self) -> str:
        """A pool of an image."""
        kernel = [self.count(1, 3), self.count(1, 3)]
        window = {"kernel_shape": kernel, "strides": [self.count(1, 2), self.count(1, 2)]}
        window["pads"] = [self.count(0, k - 1) for k in (*kernel, *kernel)]
        kind = self.count(0, 4)
        if kind == 0:
            op = self.pick(("GlobalAveragePool", "GlobalMaxPool"))
            return self.add(op, self.image())
        x = self.image()
        self._check_window(x, kernel, window["pads"])
        if kind == 1:
            return self.add("AveragePool", x, count_include_pad=1, **window)
        return self.add(self.pick(("AveragePool", "MaxPool")), x, **window)

    def normalized(self) -> str:
        """A normalization or a softmax."""
        x = self.operand(3, 4)
        shape, kind = self.shapes[x], self.count(0, 4)
        if kind == 0:
            return self.add("LayerNormalization", x, self.given(shape[-1]), epsilon=0.1)
        if kind == 1 and shape[1] > 1:
            pair = [self.given(shape[1]) for _ in range(2)]
            return self.add("InstanceNormalization", x, *pair, epsilon=0.1)
        if kind == 2:
            pair = [self.given(shape[1]) for _ in range(2)]
            known = [self.known(np.full(shape[1], value), "float32") for value in (0.2, 0.7)]
            return self.add("BatchNormalization", x, *pair, *known)
        op = self.pick(("Softmax", "LogSoftmax"))
        return self.add(op, x, axis=self.count(-1, len(shape) - 1))

    def reduced(self) -> str:
        """A sum along some axes, a running one, or the largest elements."""
        x = self.operand(1, 4)
        axis, kind = self.count(0, len(self.shapes[x]) - 1), self.count(0, 5)
        if kind == 0:
            flags = {"exclusive": self.count(0, 1), "reverse": self.count(0, 1)}
            return self.add("CumSum", x, self.known(axis), **flags)
        if kind == 1:
            count = self.known([self.count(1, self.shapes[x][axis])])
            return self.add("TopK", x, count, others=1, axis=axis, largest=self.count(0, 1))
        return self.add(self.pick(SUMS), x, self.known([axis]), keepdims=self.count(0, 1))

    def moved(self) -> str:
        """The elements in another order or shape."""
        x = self.operand(1, 4)
        shape = self.shapes[x]
        axis, rank = self.count(0, len(shape) - 1), len(shape)
        kind = self.count(0, 7)
        if kind == 0:
            return self.add("Transpose", x, perm=self.rng.permutation(rank).tolist())
        if kind == 1:
            return self.add("Reshape", x, self.known([shape[axis], -1]))
        if kind == 2:
            return self.add("Concat", x, self.operand(shape=shape), x, axis=axis)
        if kind == 3:
            first, step = self.count(0, shape[axis] - 1), self.pick((1, 2, -1))
            ends = self.known([first]), self.known([99 * step]), self.known([axis])
            return self.add("Slice", x, *ends, self.known([step]))
        if kind == 4:
            pads = [self.count(0, min(2, n - 1)) for n in (*shape, *shape)]
            mode = self.pick(("constant", "reflect", "edge", "wrap"))
            return self.add("Pad", x, self.known(pads), mode=mode)
        if kind == 5:
            return self.add("Tile", x, self.known([self.count(1, 2) for _ in shape]))
        if kind == 6:
            return self.add("Expand", x, self.known([2, *shape]))
        return self.add("Unsqueeze", x, self.known([axis]))

    def resized(self) -> str:
        """An image of other sizes, or with its channels among its pixels."""
        x = self.image()
        sizes = self.known([*self.shapes[x][:2], self.count(1, 6), self.count(1, 6)])
        mode = self.pick(("nearest", "linear", "cubic"))
        how = self.pick(("half_pixel", "asymmetric", "align_corners"))
        if self.chance(0.2) and self.shapes[x][1] % 4 == 0:
            return self.add("DepthToSpace", x, blocksize=2)
        return self.add("Resize", x, "", "", sizes, mode=mode, coordinate_transformation_mode=how)

    def gathered(self) -> str:
        """Elements at indices, or written there."""
        x = self.operand(1, 3)
        shape = self.shapes[x]
        axis = self.count(0, len(shape) - 1)
        size, kind = shape[axis], self.count(0, 4)
        if kind == 0:
            places = self.rng.integers(-size, size, (2, self.count(1, 2)))
            return self.add("Gather", x, self.known(places), axis=axis)
        if kind == 1:
            places = self.rng.integers(-size, size, shape)
            return self.add("GatherElements", x, self.known(places), axis=axis)
        if kind == 2:
            batch = self.count(0, len(shape) - 1)
            places = self.rng.integers(0, shape[batch], (*shape[:batch], 2, 1))
            return self.add("GatherND", x, self.known(places), batch_dims=batch)
        how = self.pick(SCATTERED)
        if kind == 3:
            places = self._places(shape[0], how)
            updates = self.operand(shape=(len(places), *shape[1:]))
            return self.add("ScatterND", x, self.known(places[:, None]), updates, reduction=how)
        places = np.moveaxis(np.zeros(shape, np.int64), axis, 0)
        places = np.moveaxis(
            places + self.rng.permutation(size).reshape(-1, *[1] * (places.ndim - 1)), 0, axis
        )
        updates = self.operand(shape=shape)
        return self.add("ScatterElements", x, self.known(places), updates, axis=axis, reduction=how)

    def _places(self, size: int, how: str) -> np.ndarray:
        """Rows, which may be alike where the order of updates means nothing."""
        if how == "none":
            return self.rng.permutation(size)[: self.count(1, size)]
        return self.rng.integers(0, size, self.count(1, 3))

    def sequence(self) -> str:
        """A recurrent layer."""
        x = self.operand(3, 3)
        op, gates = self.pick((("RNN", 1), ("GRU", 3), ("LSTM", 4)))
        hidden, width = self.count(1, 2), self.shapes[x][2]
        weights = [self.given(1, gates * hidden, n) for n in (width, hidden)]
        more = {"linear_before_reset": self.count(0, 1)} if op == "GRU" else {}
        way = self.pick(("forward", "reverse"))
        return self.add(op, x, *weights, hidden_size=hidden, direction=way, **more)

    def loop(self) -> str:
        """A Scan with a state over the first axis of a tensor."""
        x = self.operand(2, 3)
        shape = self.shapes[x][1:]
        start, w = self.operand(shape=shape), self.operand(shape=shape)
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("s", "row")]
        results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("u", "v")]
        nodes = [
            helper.make_node("Mul", ["s", w], ["m"]), helper.make_node("Sum", ["m", "row"], ["n"]),
            helper.make_node(self.pick(("Tanh", "Sin")), ["n"], ["u"]),
            helper.make_node("Mul", ["u", "s"], ["v"]),
        ]  # fmt: skip
        body = helper.make_graph(nodes, self.name("turn"), ends, results)
        way = {"scan_input_directions": [self.count(0, 1)]}
        name = self.add("Scan", start, x, others=1, body=body, num_scan_inputs=1, **way)
        self.shapes[self.nodes[-1].output[1]] = (self.shapes[x][0], *shape)
        return name

    def choice(self) -> str:
        """An If by the sign of a sum."""
        x = self.operand()
        y = self.operand(shape=self.shapes[x])
        kind = TensorProto.FLOAT, self.shapes[x]
        sides = {}
        for side in ("then_branch", "else_branch"):
            result, op = self.name("side"), self.pick(("Mul", "Sub", "Max"))
            ends = [helper.make_tensor_value_info(result, *kind)]
            sides[side] = helper.make_graph(
                [helper.make_node(op, [x, y], [result])], side, [], ends
            )
        flag, total, zero = self.name("flag"), self.name("t"), self.known(0, "float32")
        self.nodes.append(helper.make_node("ReduceSum", [x], [total], keepdims=0))
        self.nodes.append(helper.make_node("Greater", [total, zero], [flag]))
        name = self.name("t")
        self.nodes.append(helper.make_node("If", [flag], [name], **sides))
        self.shapes[name] = self.shapes[x]
        return name

    # A model ------------------------------------------------------------------------------------

    def model(self, results: int) -> onnx.ModelProto:
        """The model with its last tensors as results."""
        made = [name for name in self.shapes if name not in self.inputs][-results:]
        ends = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape)
            for n, x in self.inputs.items()
        ]  # fmt: skip
        outputs = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, self.shapes[n]) for n in made
        ]
        known = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "random", ends, outputs, known)
        return helper.make_model(graph, opset_imports=OPSETS, ir_version=10)


def random_model(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model and its inputs."""
    graphs = Graphs(seed)
    steps = (
        graphs.element, graphs.element, graphs.limits, graphs.several, graphs.several,
        graphs.chosen, graphs.product, graphs.convolution, graphs.pool, graphs.normalized,
        graphs.reduced, graphs.moved, graphs.moved, graphs.resized, graphs.gathered,
        graphs.sequence, graphs.loop, graphs.choice,
    )  # fmt: skip
    wanted = graphs.count(3, 9)
    while len(graphs.nodes) < wanted:
        try:
            graphs.pick(steps)()
        except (ValueError, shape_inference.InferenceError):
            continue  # of this form none fits what is there
    return graphs.model(graphs.count(1, 2)), graphs.inputs
