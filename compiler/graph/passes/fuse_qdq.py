"""Islands of float between Dequantize and Quantize become integer operators: :func:`fuse_qdq`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import int8_source
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.island import Names, Quantizable
from vdla.compiler.graph.numbers import pack_scales, quantize
from vdla.compiler.graph.ops.take import repetition
from vdla.compiler.graph.passes.move_qdq import quant_of
from vdla.compiler.graph.sums import Sums
from vdla.compiler.graph.types import Quant, Requant, Shape

NOT_QUANTIZED = "its result is not quantized to int8 with one scale"


def fuse_qdq(graph: Graph) -> Graph:
    """Turns Dequantize → op → (Relu | Clip)* → Quantize into one integer node.

    before: x → Dequantize, w → Dequantize, b → Dequantize → Conv2d → Relu → Quantize → y
    after:  QConv2d(x, w, b), scale=x_scale*w_scale/y_scale, low=zp → y
    Clipping before rounding equals clipping after it to the rounded bounds. What doesn't fit (a
    weight that isn't constant int8, a scale out of range, a float result) stays float.
    """
    return rewrite(_with_meanings(graph), _rescaled, _fused)


def _rescaled(node: ops.Quantize, editor: Editor) -> Made:
    """The change of scale that a Quantize behind a Dequantize is; of floats, integers begin."""
    if node.axis is not None:
        editor.reasons.setdefault(node.name, NOT_QUANTIZED)
        return None
    try:
        made = node.quantized(FloatIsland(editor, node, node, -np.inf, np.inf))
    except GraphError:
        return None
    editor.retype(node.output, replace(editor.tensors[node.output], quant=quant_of(node)))
    return made


def _fused(node: Quantizable, editor: Editor) -> Made:
    """The integer node for the island that starts at a node, and what it needs before it."""
    if node.CONVERTS or not node.has_integers(editor.shape(node.inputs[0])):
        return None
    absorbed, low, high = float_chain(node, editor)
    end = editor.own_reader(absorbed[-1].output, ops.Quantize)
    if end is None or end.axis is not None:
        editor.reasons.setdefault(node.name, NOT_QUANTIZED)
        return None
    island = FloatIsland(editor, node, end, low, high)
    try:
        made = node.quantized(island)
    except GraphError as error:
        editor.reasons.setdefault(node.name, str(error))
        return None
    for each in (*absorbed, end):
        if each is not node:
            editor.erase(each)
    editor.retype(end.output, replace(editor.tensors[end.output], quant=quant_of(end)))
    return *island.before, made


def float_chain(node: Quantizable, editor: Editor) -> tuple[list[Quantizable], float, float]:
    """A node and the Relu and Clip nodes that alone follow it, with the bounds they set."""
    absorbed, (low, high) = [node], node.bounds
    while follower := editor.own_reader(absorbed[-1].output, (ops.Relu, ops.Clip)):
        least, most = follower.bounds
        low, high = min(max(low, least), most), max(min(high, most), least)
        absorbed.append(follower)
    return absorbed, low, high


def _with_meanings(graph: Graph) -> Graph:
    """The graph with what the integers of tensors mean, for printing and for reports."""
    tensors = dict(graph.tensors)
    for node in graph.of((ops.Quantize, ops.Dequantize)):
        if node.axis is None:
            tensors[node.bits] = replace(tensors[node.bits], quant=quant_of(node))
    return replace(graph, tensors=tensors)


class FloatIsland:
    """One float operator whose data operands are dequantized and whose result is quantized."""

    def __init__(
        self, editor: Editor, core: Node, end: ops.Quantize, low: float, high: float
    ) -> None:
        self.editor, self.core = editor, core
        self.before: list[Node] = []  # what the island needs before its own node
        self.names: Names = {"name": core.name, "output": end.output}
        self.out = quant_of(end)
        limits = quantize(
            np.array([low, high]), np.array(self.out.scale), np.array(self.out.zero_point), "int8"
        )
        self.bounds = int(limits[0]), int(limits[1])

    def requant(self, *scale: float) -> Requant:
        """The requantization to the result, with its zero point and bounds."""
        try:
            pack_scales(scale)
        except ValueError as error:
            raise GraphError(str(error)) from None
        return Requant(scale, self.out.zero_point, *self.bounds)

    def ratio(self, quant: Quant) -> float:
        """An operand's scale in units of the result's, in float32."""
        scale = float(np.float32(quant.scale) / np.float32(self.out.scale))
        return self.requant(scale).scale[0]

    def spread(self, name: str, shape: Shape | None = None) -> str:
        """An integer operand at the full shape of the result, or at ``shape`` if it fits that.

        A constant is written out; a node before the island's repeats an image's rows and columns.
        """
        kind, full = self.editor.tensors[name], self.editor.shape(self.core.output)
        if shape is None or not broadcasts(kind.shape, shape):
            shape = full
        if kind.shape == shape:
            return name
        return self.editor.once(("spread", name, shape), lambda: self._spread(name, shape))

    def _spread(self, name: str, shape: Shape) -> str:
        kind, hint = self.editor.tensors[name], f"{name}.{'x'.join(map(str, shape))}"
        if name in self.editor.constants:
            array = np.broadcast_to(self.editor.constants[name], shape)
            return self.editor.constant(hint, np.ascontiguousarray(array))
        if len(shape) != 4 or kind.shape[:2] != shape[:2]:
            raise GraphError(f"operands of shapes {list(shape)} and {list(kind.shape)}")
        result = self.editor.like(hint, shape, name)
        self.before.append(repetition(name, kind.shape, result, shape))
        return result

    def source(self, name: str) -> tuple[str, Quant]:
        """The int8 tensor behind a float operand and its parameters."""
        node = int8_source(name, self.editor)
        if node is None:
            raise GraphError(f"expected operands of int8 with one scale, found {self._found(name)}")
        return node.data, quant_of(node)

    def _found(self, name: str) -> str:
        """Description of an operand that isn't int8 with one scale."""
        node = self.editor.maker(name, ops.Dequantize)
        if node is None:
            return f"{name}, which nothing quantizes"
        kind = self.editor.tensors[node.data].dtype
        return f"{name} of {kind}" if kind != "int8" else f"{name} with a scale per channel"

    def weight(self, name: str) -> tuple[str, np.ndarray]:
        """The int8 weight constant behind ``name`` (zero point 0) and one scale per output."""
        return self.weights(name, self.editor)

    @staticmethod
    def weights(name: str, editor: Editor) -> tuple[str, np.ndarray]:
        """Int8 weights behind ``name`` in a graph under change, and one scale for each output."""
        node, data = _integers(name, editor)
        array = editor.constants[data]
        if array.dtype != np.int8 or node.axis not in (None, 0):
            actual = f"{array.dtype} along axis {node.axis}"
            raise GraphError(f"expected int8 weights per output channel, found {actual}")
        scale = np.broadcast_to(np.array(node.scale, np.float32), (array.shape[0],))
        zeros = np.array(node.zero_point, np.int64)
        if not zeros.any():
            return data, scale
        moved = array.astype(np.int64) - zeros.reshape(-1, *(1,) * (array.ndim - 1))
        if moved.min() < -128 or moved.max() > 127:
            raise GraphError(
                f"weights less their zero point are {moved.min()} to {moved.max()}, expected int8, "
                "-128 to 127: quantize them as int8, or as uint8 with zero point 128"
            )
        return editor.constant(f"{data}.centered", moved.astype(np.int8)), scale

    def bias(self, name: str | None, scale: np.ndarray, weight: str, zero_point: int) -> str:
        """The int32 bias in units of ``scale``, with which the sums fit in 32 bits."""
        node, own = self.editor.maker(name, ops.Dequantize), f"{self.core.name}.bias"
        sums = Sums.of(self.editor.constants[weight], zero_point)
        steps = scale.astype(np.float64) / self.out.scale
        low, high = (bound - self.out.zero_point for bound in self.bounds)
        if name is None:
            return self.editor.constant(
                own, sums.fitting_bias(np.zeros(len(steps)), steps, (low, high))
            )
        if node is not None and node.data in self.editor.constants:
            stored = np.array(node.scale, np.float64)
            array = self.editor.constants[node.data]
            ready = array.dtype == np.int32 and not any(node.zero_point)
            if ready and np.allclose(stored, scale, rtol=1e-5, atol=0):
                values = sums.fitting_bias(array.astype(np.float64), steps, (low, high))
                same = np.array_equal(values, array)
                return node.data if same else self.editor.constant(own, values)
            real = (array.astype(np.float64) - np.array(node.zero_point)) * stored
        elif name in self.editor.constants:
            real = self.editor.constants[name].astype(np.float64)
        else:
            raise GraphError("bias known only at run time")
        values = np.broadcast_to(np.rint(real / scale), steps.shape)
        return self.editor.constant(own, sums.fitting_bias(values, steps, (low, high)))


def _integers(name: str, editor: Editor) -> tuple[ops.Dequantize, str]:
    """Dequantize node of weights, and the name of their integers, a constant; reshapes of it
    are one, too.

    Of a one-dimensional convolution, [O, I, K] is reshaped to [O, I, 1, K], before or after.
    """
    reshaped, data = name, ""
    while reshape := editor.maker(reshaped, ops.Reshape):
        reshaped = reshape.data
    node, shape = editor.maker(reshaped, ops.Dequantize), editor.shape(name)
    if node is None:
        raise GraphError("expected quantized weights, found floats")
    data = node.data
    while integers := editor.maker(data, ops.QReshape):
        data = integers.data
    if data not in editor.constants:
        raise GraphError("expected constant weights, found weights known only at run time")
    array = editor.constants[data]
    if array.shape == shape:
        return node, data
    if array.shape[:1] != shape[:1]:
        raise GraphError(f"expected weights as {list(shape)}, found {list(array.shape)}")
    return node, editor.constant(f"{name}.integers", array.reshape(shape))


def broadcasts(actual: Shape, shape: Shape) -> bool:
    """Whether a tensor of some shape can be spread to another one."""
    try:
        return np.broadcast_shapes(actual, shape) == shape
    except ValueError:
        return False
