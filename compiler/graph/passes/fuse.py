"""Islands of float between Dequantize and Quantize become integer operators.

The passes, in the order :mod:`vdla.compiler.graph.passes` runs them: :func:`to_int8`,
:func:`move_qdq`, :func:`fuse_qdq`. Each docstring shows before → after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, GraphError, Node, Quant, Shape, TensorType
from vdla.compiler.graph.island import Bounds, Names, Quantizable
from vdla.compiler.graph.numbers import quantize
from vdla.compiler.graph.ops.take import repetition
from vdla.compiler.graph.sums import Sums
from vdla.isa.numbers import pack_scale

NOT_QUANTIZED = "its result is not quantized to int8 with one scale"
INTEGER = ".integer"  # ends the name of a tensor the file doesn't have


# --- to_int8 -------------------------------------------------------------------------------------


def to_int8(graph: Graph) -> Graph:
    """Makes every uint8 tensor int8, its values and zero point 128 lower.

    before: Quantize zp=z → u8     after: Quantize zp=z-128 → i8     (and Dequantize likewise)
    A uint8 input or output of the graph, or of any node but those two, keeps its type behind a
    FlipSign.
    """
    unsigned = {n for n, t in graph.tensors.items() if t.dtype == "uint8" and t.elements}
    if not unsigned:
        return graph
    others = [n for n in graph.nodes if not isinstance(n, ops.Quantize | ops.Dequantize)]
    outside = [name for node in others for name in node.inputs]
    written = {node.output for node in others}
    kept = unsigned & {*graph.inputs, *graph.outputs, *outside, *written}
    names = {n: f"{n}.signed" for n in kept}
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    nodes: list[Node] = []
    for name in unsigned:
        tensors[names.get(name, name)] = replace(graph.tensors[name], dtype="int8")
        if name in constants:
            flipped = np.asarray(constants[name] ^ np.uint8(0x80)).view(np.int8)
            constants[names.get(name, name)] = flipped
    for name in graph.inputs:
        if name in names:
            nodes.append(ops.FlipSign(name=f"{name}.flip", output=names[name], data=name))
    for node in graph.nodes:
        name = node.output
        if not isinstance(node, ops.Quantize | ops.Dequantize):
            nodes.append(node)
            if name in names:
                nodes.append(ops.FlipSign(name=f"{name}.flip", output=names[name], data=name))
        else:
            nodes.append(_signed_node(node, unsigned, names))
            if name in names:
                nodes.append(ops.FlipSign(name=f"{name}.flip", output=name, data=names[name]))
    return replace(graph, nodes=tuple(nodes), tensors=tensors, constants=constants)


def _signed_node(node: Node, unsigned: set[str], names: dict[str, str]) -> Node:
    quantizes = isinstance(node, ops.Quantize) and node.output in unsigned
    dequantizes = isinstance(node, ops.Dequantize) and node.data in unsigned
    if quantizes or dequantizes:
        assert isinstance(node, ops.Quantize | ops.Dequantize)
        node = replace(node, zero_point=tuple(z - 128 for z in node.zero_point))
    return replace(node.renamed(names), output=names.get(node.output, node.output))


# --- move_qdq ------------------------------------------------------------------------------------


def move_qdq(graph: Graph) -> Graph:
    """Moves pools without arithmetic, and what only moves elements, into the integers.

    before: Dequantize → MaxPool               after: QMaxPool → Dequantize
    before: MaxPool → Quantize                 after: Quantize → QMaxPool
    Both are exact: rounding is monotone, and the largest stays the largest. A Quantize directly
    behind a Dequantize with the same parameters is dropped.
    """
    changed = True
    while changed:
        graph, changed = _sink(graph)
        if not changed:
            graph, changed = _hoist(graph)
    return _cancel(graph)


def _transparent(node: Node, output: str, data: str, zero: int) -> Node:
    """A node on integers whose zero point is ``zero``."""
    values = dict(node.attributes())
    if isinstance(node, ops.Take):
        values["fill"] = float(zero)  # the fill of reals is 0, or isn't used
    kind: Any = node.integer
    integer: Node = kind(name=node.name, output=output, data=data, **values)
    return integer


def _per_tensor(node: Node | None) -> bool:
    return isinstance(node, ops.Quantize | ops.Dequantize) and node.axis is None


def _sink(graph: Graph) -> tuple[Graph, bool]:
    """Dequantize → op to integer op → Dequantize, once for every such pair."""
    makers = graph.producers()
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    changed = False
    for node in graph.nodes:
        source = makers.get(node.inputs[0]) if node.integer else None
        if not (isinstance(source, ops.Dequantize) and _int8(graph, source)):
            nodes.append(node)
            continue
        integer = f"{node.output}{INTEGER}"
        tensors[integer] = TensorType(graph.tensors[node.output].shape, "int8", _quant_of(source))
        nodes.append(_transparent(node, integer, source.data, source.zero_point[0]))
        name = f"{node.name}.dequantize"
        nodes.append(replace(source, name=name, output=node.output, data=integer))
        changed = True
    return replace(graph, nodes=tuple(nodes), tensors=tensors), changed


def _int8(graph: Graph, node: ops.Dequantize) -> bool:
    return _per_tensor(node) and graph.tensors[node.data].dtype == "int8"


def _hoist(graph: Graph) -> tuple[Graph, bool]:
    """op → Quantize to Quantize → integer op, for the first such pair."""
    uses, makers = graph.uses(), graph.producers()
    for node in graph.nodes:
        if not isinstance(node, ops.Quantize) or not _per_tensor(node):
            continue
        op = makers.get(node.data)
        if op is None or op.integer is None or node.data in graph.outputs:
            continue
        if len(uses[op.output]) != 1:
            continue
        source = op.inputs[0]
        if isinstance(op, ops.Take) and source in graph.inputs and len(uses[source]) > 1:
            continue  # a part of an input: to quantize all of it for each part takes longer
        early = f"{op.output}.quantized"
        kind = replace(graph.tensors[node.output], shape=graph.tensors[source].shape)
        before = replace(node, data=source, output=early)
        after = _transparent(op, node.output, early, node.zero_point[0])
        place = {node.name: [], op.name: [before, after]}
        nodes = [m for n in graph.nodes for m in place.get(n.name, [n])]
        return graph.copy(nodes, tensors={early: kind}), True
    return graph, False


def _cancel(graph: Graph) -> Graph:
    makers = graph.producers()
    names: dict[str, str] = {}  # a Quantize's result to the integers it repeats
    for node in graph.nodes:
        if isinstance(node, ops.Quantize) and node.output not in graph.outputs:
            source = makers.get(node.data)
            if isinstance(source, ops.Dequantize) and _same_quant(source, node, graph):
                names[node.output] = names.get(source.data, source.data)
    better = {old: new for new, old in names.items() if old.endswith(INTEGER)}
    nodes = []
    for node in graph.nodes:
        if node.output not in names:
            node = replace(
                node.renamed(names).renamed(better), output=better.get(node.output, node.output)
            )
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _same_quant(source: ops.Dequantize, node: ops.Quantize, graph: Graph) -> bool:
    same = (source.scale, source.zero_point) == (node.scale, node.zero_point)
    return same and _int8(graph, source) and _per_tensor(node)


# --- fuse_qdq ------------------------------------------------------------------------------------


def _quant_of(node: ops.Quantize | ops.Dequantize) -> Quant:
    return Quant(node.scale[0], node.zero_point[0])


class _Island:
    """One float operator whose data operands are dequantized and whose result is quantized."""

    def __init__(
        self, fuser: _Fuser, core: Node, end: ops.Quantize, low: float, high: float
    ) -> None:
        self.fuser, self.graph, self.core = fuser, fuser.graph, core
        self.names: Names = {"name": core.name, "output": end.output}
        self.out = _quant_of(end)
        limits = quantize(
            np.array([low, high]), np.array(self.out.scale), np.array(self.out.zero_point), "int8"
        )
        self.clip: Bounds = {"lo": int(limits[0]), "hi": int(limits[1])}

    def check_scale(self, scale: float) -> None:
        """Raises GraphError unless the accelerator can represent a scale."""
        try:
            pack_scale(scale)
        except ValueError as error:
            raise GraphError(str(error)) from None

    def ratio(self, quant: Quant) -> float:
        """An operand's scale in units of the result's, in float32."""
        scale = float(np.float32(quant.scale) / np.float32(self.out.scale))
        self.check_scale(scale)
        return scale

    def spread(self, name: str, shape: Shape | None = None) -> str:
        """An integer operand at the full shape of the result, or at ``shape`` if it fits that."""
        actual = self.graph.tensors[name].shape
        if shape is not None and broadcasts(actual, shape):
            return self.fuser.spread(name, shape)
        return self.fuser.spread(name, self.graph.tensors[self.core.output].shape)

    def source(self, name: str) -> tuple[str, Quant]:
        """The int8 tensor behind a float operand and its parameters."""
        node = self.fuser.makers.get(name)
        if not isinstance(node, ops.Dequantize) or not _int8(self.graph, node):
            raise GraphError(f"expected operands of int8 with one scale, found {self._found(name)}")
        return node.data, _quant_of(node)

    def _found(self, name: str) -> str:
        """Description of an operand that isn't int8 with one scale."""
        node = self.fuser.makers.get(name)
        if not isinstance(node, ops.Dequantize):
            return f"{name}, which nothing quantizes"
        kind = self.graph.tensors[node.data].dtype
        return f"{name} of {kind}" if kind != "int8" else f"{name} with a scale per channel"

    def weight(self, name: str) -> tuple[str, np.ndarray]:
        """The int8 weight constant behind ``name`` (zero point 0) and one scale per output."""
        node, data = self._weights(name)
        array = self.fuser.constants[data]
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
        return self.fuser.constant(f"{data}.centered", moved.astype(np.int8)), scale

    def _weights(self, name: str) -> tuple[ops.Dequantize, str]:
        """Dequantize node of weights, and the name of their integers, a constant; reshapes of it
        are one, too.

        Of a one-dimensional convolution, [O, I, K] is reshaped to [O, I, 1, K], before or after.
        """
        makers, shape = self.fuser.makers, self.graph.tensors[name].shape
        node = makers.get(name)
        while isinstance(node, ops.Reshape):
            node = makers.get(node.data)
        if not isinstance(node, ops.Dequantize):
            raise GraphError("expected quantized weights, found floats")
        data = node.data
        while isinstance(maker := makers.get(data), ops.QReshape):
            data = maker.data
        if data not in self.graph.constants:
            raise GraphError("expected constant weights, found weights known only at run time")
        array = self.graph.constants[data]
        if array.shape == shape:
            return node, data
        if array.shape[:1] != shape[:1]:
            raise GraphError(f"expected weights as {list(shape)}, found {list(array.shape)}")
        return node, self.fuser.constant(f"{name}.integers", array.reshape(shape))

    def bias(self, name: str | None, scale: np.ndarray, weight: str, zero_point: int) -> str:
        """The int32 bias in units of ``scale``, with which the sums fit in 32 bits."""
        node, own = self.fuser.makers.get(name or ""), f"{self.core.name}.bias"
        sums = Sums.of(self.fuser.constants[weight], zero_point)
        steps = scale.astype(np.float64) / self.out.scale
        limits = (self.clip["lo"] - self.out.zero_point, self.clip["hi"] - self.out.zero_point)
        if name is None:
            return self.fuser.constant(own, sums.fitting_bias(np.zeros(len(steps)), steps, limits))
        if isinstance(node, ops.Dequantize) and node.data in self.graph.constants:
            stored = np.array(node.scale, np.float64)
            array = self.graph.constants[node.data]
            ready = array.dtype == np.int32 and not any(node.zero_point)
            if ready and np.allclose(stored, scale, rtol=1e-5, atol=0):
                values = sums.fitting_bias(array.astype(np.float64), steps, limits)
                same = np.array_equal(values, array)
                return node.data if same else self.fuser.constant(own, values)
            real = (array.astype(np.float64) - np.array(node.zero_point)) * stored
        elif name in self.graph.constants:
            real = self.graph.constants[name].astype(np.float64)
        else:
            raise GraphError("bias known only at run time")
        values = np.broadcast_to(np.rint(real / scale), steps.shape)
        return self.fuser.constant(own, sums.fitting_bias(values, steps, limits))


class _Fuser:
    """One walk over a graph; new constants and the nodes each island swallows."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.makers, self.uses = graph, graph.producers(), graph.uses()
        self.tensors, self.constants = dict(graph.tensors), dict(graph.constants)
        self.swallowed: set[str] = set()
        self.before: list[Node] = []  # what the island at hand needs before its own node
        self.reasons = dict(graph.reasons)

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = array
        self.tensors[name] = TensorType(array.shape, str(array.dtype))
        return name

    def spread(self, name: str, shape: Shape) -> str:
        """An integer operand at another shape: a constant written out, or rows and columns of an
        image repeated by a node that stands before the island's."""
        kind, spread = self.tensors[name], f"{name}.{'x'.join(map(str, shape))}"
        if kind.shape == shape:
            return name
        if name in self.constants:
            array = np.ascontiguousarray(np.broadcast_to(self.constants[name], shape))
            return self.constant(spread, array)
        if len(shape) != 4 or kind.shape[:2] != shape[:2]:
            raise GraphError(f"operands of shapes {list(shape)} and {list(kind.shape)}")
        if spread not in self.tensors:
            self.tensors[spread] = replace(kind, shape=shape)
            self.before.append(repetition(name, kind.shape, spread, shape))
        return spread

    def run(self) -> Graph:
        nodes: list[Node] = []
        for node in self.graph.nodes:
            if node.name not in self.swallowed:
                nodes.extend(self.fused(node))
        for node in nodes:
            self.note_quant(node)
        return replace(
            self.graph,
            nodes=tuple(nodes),
            tensors=self.tensors,
            constants=self.constants,
            reasons=self.reasons,
        )

    def fused(self, node: Node) -> Sequence[Node]:
        """The integer node for the island that starts at ``node``, or the node itself."""
        if not isinstance(node, Quantizable):
            return [node]
        absorbed, low, high = self.chain(node)
        end = node if isinstance(node, ops.Quantize) else self.ending(absorbed[-1])
        if end is None or not _per_tensor(end):
            self.reasons.setdefault(node.name, NOT_QUANTIZED)
            return [node]
        self.before.clear()
        try:
            fused = node.quantized(_Island(self, node, end, low, high))
        except GraphError as error:
            for unneeded in self.before:
                del self.tensors[unneeded.output]
            if not isinstance(node, ops.Quantize):  # of floats, it is where integers begin
                self.reasons.setdefault(node.name, str(error))
            return [node]
        self.swallowed |= {n.name for n in absorbed[1:]} | {end.name}
        self.annotate(end.output, _quant_of(end))
        return [*self.before, fused]

    def chain(self, node: Node) -> tuple[list[Node], float, float]:
        """``node`` and the Relu and Clip nodes that alone follow it, with the bounds they set."""
        absorbed = [node]
        low, high = _bounds(node, -np.inf, np.inf)
        while not isinstance(node, ops.Quantize):
            uses = self.uses[absorbed[-1].output]
            if len(uses) != 1 or absorbed[-1].output in self.graph.outputs:
                break
            if not isinstance(uses[0], ops.Relu | ops.Clip):
                break
            low, high = _bounds(uses[0], low, high)
            absorbed.append(uses[0])
        return absorbed, low, high

    def ending(self, last: Node) -> ops.Quantize | None:
        """The one Quantize that reads what ``last`` writes."""
        uses = self.uses[last.output]
        if len(uses) != 1 or last.output in self.graph.outputs:
            return None
        return uses[0] if isinstance(uses[0], ops.Quantize) else None

    def note_quant(self, node: Node) -> None:
        """Records what the integers of a tensor mean, for printing and for reports."""
        if isinstance(node, ops.Quantize) and _per_tensor(node):
            self.annotate(node.output, _quant_of(node))
        elif isinstance(node, ops.Dequantize) and _per_tensor(node):
            self.annotate(node.data, _quant_of(node))

    def annotate(self, name: str, quant: Quant) -> None:
        self.tensors[name] = replace(self.tensors[name], quant=quant)


def broadcasts(actual: Shape, shape: Shape) -> bool:
    """Whether a tensor of some shape can be spread to another one."""
    try:
        return np.broadcast_shapes(actual, shape) == shape
    except ValueError:
        return False


def _bounds(node: Node, low: float, high: float) -> tuple[float, float]:
    if isinstance(node, ops.Relu):
        return max(low, 0.0), max(high, 0.0)
    if isinstance(node, ops.Clip):
        return min(max(low, node.low), node.high), max(min(high, node.high), node.low)
    return low, high


def fuse_qdq(graph: Graph) -> Graph:
    """Turns Dequantize → op → (Relu | Clip)* → Quantize into one integer node.

    before: x → Dequantize, w → Dequantize, b → Dequantize → Conv2d → Relu → Quantize → y
    after:  QConv2d(x, w, b, scale=x_scale*w_scale/y_scale, lo=zp) → y
    Clipping before rounding equals clipping after it to the rounded bounds. What doesn't fit (a
    weight that isn't constant int8, a scale out of range, a float result) stays float.
    """
    return _Fuser(graph).run()
