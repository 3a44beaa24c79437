"""The typed graph: one node per operator, one entry per tensor.

Grammar::

    Graph      := inputs outputs nodes tensors constants
    inputs     := tensor*                       names the caller supplies
    outputs    := tensor*                       names the caller reads
    nodes      := Node*                         in an order where every use follows its definition
    tensors    := tensor -> TensorType          every tensor: inputs, constants and results
    constants  := tensor -> array               the tensors known at compile time
    TensorType := shape dtype quant? block      block > 0: [N, ceil(C/block), H, W, block]
    quant      := scale zero_point              real = (integer - zero_point) * scale

    Node       := Float | Integer | Boundary | External | Custom
    Float      := Conv2d | Dense | Add | Relu | Clip | MaxPool | AvgPool | Reshape | Transpose
                | Concat | BatchNorm | Softmax | Unary | Binary
    Integer    := QConv2d | QConv2dAdd | QDense | QAdd | QMaxPool | QAvgPool | QConcat | QClip
                | QReshape | QTranspose
    Boundary   := Quantize | Dequantize | FlipSign | Pack | Unpack

Every node writes one tensor. Images are N, C, H, W; convolution weights O, I/groups, KH, KW; dense
weights O, I. Pads are (top, left, bottom, right). Integer nodes work on int8 and follow
:mod:`vdla.compiler.graph.reference` bit for bit; ``rq(x, s)`` is ``vdla.isa.numbers.rq``:
round-half-even of ``x * s``, computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import mul
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vdla.support.errors import UserError

Array = NDArray[Any]
Pair = tuple[int, int]
Pads = tuple[int, int, int, int]

DTYPES = (
    "float32", "int8", "uint8", "int32", "int64",
    "float16", "float64", "bool", "int16", "uint16", "uint32", "uint64",
)  # fmt: skip  # the second row only between External nodes


class GraphError(UserError):
    """A graph that breaks a rule of this file; says which node or tensor and what was expected.

    ``node`` is the node's name, where one breaks a rule of its own.
    """

    node: str = ""


@dataclass(frozen=True)
class Quant:
    """``real = (integer - zero_point) * scale``; one scale for the whole tensor."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class TensorType:
    """What is known of a tensor before it has a value. ``shape`` is the logical one, N, C, …."""

    shape: tuple[int, ...]
    dtype: str
    quant: Quant | None = None
    block: int = 0

    @property
    def physical(self) -> tuple[int, ...]:
        """The shape in memory: logical, or [N, ceil(C/block), H, W, block]."""
        if not self.block:
            return self.shape
        n, c, *image = self.shape
        h, w = image or (1, 1)
        return (n, -(-c // self.block), h, w, self.block)

    @property
    def elements(self) -> int:
        """How many elements the tensor takes in memory, the padding of channel blocks included."""
        return reduce(mul, self.physical, 1)

    @property
    def nbytes(self) -> int:
        """How many bytes the tensor takes in memory, the padding of channel blocks included."""
        return self.elements * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, kw_only=True)
class Node:
    """An operator. ``OPERANDS`` names the fields that hold tensor names, in calling order."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data",)

    name: str
    output: str

    @property
    def op(self) -> str:
        """The operator's name in texts and messages: that of its class."""
        return type(self).__name__

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors read, in order; an absent optional one is left out."""
        names: list[str] = []
        for key in self.OPERANDS:
            value = getattr(self, key)
            if isinstance(value, tuple):
                names.extend(value)
            elif value is not None:
                names.append(value)
        return tuple(names)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same node reading ``names[t]`` wherever it read ``t``."""
        changes: dict[str, Any] = {}
        for key in self.OPERANDS:
            value = getattr(self, key)
            if isinstance(value, tuple):
                changes[key] = tuple(names.get(v, v) for v in value)
            elif value is not None:
                changes[key] = names.get(value, value)
        return replace(self, **changes)

    def attributes(self) -> Iterator[tuple[str, Any]]:
        """The fields that are neither tensor names nor the node's own name."""
        for f in fields(self):
            if f.name not in self.OPERANDS and f.name not in ("name", "output"):
                yield f.name, getattr(self, f.name)


# --- float ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Window(Node):
    """What convolutions and pools share: where the window goes."""

    data: str
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)


@dataclass(frozen=True, kw_only=True)
class Conv2d(Window):
    """``bias[o] + Σ data * weight``."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias")

    weight: str
    bias: str | None = None
    groups: int = 1


@dataclass(frozen=True, kw_only=True)
class Dense(Node):
    """``bias[o] + Σ_i data[n, i] * weight[o, i]``."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias")

    data: str
    weight: str
    bias: str | None = None


@dataclass(frozen=True, kw_only=True)
class Add(Node):
    """``a + b``, with numpy's broadcasting."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class Relu(Node):
    """``max(data, 0)``."""

    data: str


@dataclass(frozen=True, kw_only=True)
class Clip(Node):
    """``min(max(data, low), high)``; either bound may be infinite."""

    data: str
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class MaxPool(Window):
    """The largest element under the window; padding never wins."""

    kernel: Pair


@dataclass(frozen=True, kw_only=True)
class AvgPool(Window):
    """The mean under the window. ``include_pad``: padding counts as zeros, else not at all."""

    kernel: Pair
    include_pad: bool = False


@dataclass(frozen=True, kw_only=True)
class Reshape(Node):
    """The same elements in row-major order under the output's shape."""

    data: str


@dataclass(frozen=True, kw_only=True)
class Transpose(Node):
    """``output[i[perm[0]], i[perm[1]], …] = data[i]``, as numpy's."""

    data: str
    perm: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Concat(Node):
    """The parts one behind another along ``axis``."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("parts",)

    parts: tuple[str, ...]
    axis: int


@dataclass(frozen=True, kw_only=True)
class BatchNorm(Node):
    """``data * factor[c] + offset[c]``: the inference form, its two vectors precomputed."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "factor", "offset")

    data: str
    factor: str
    offset: str


@dataclass(frozen=True, kw_only=True)
class Softmax(Node):
    """``exp(data - max) / Σ exp(data - max)`` along ``axis``."""

    data: str
    axis: int


@dataclass(frozen=True, kw_only=True)
class Unary(Node):
    """``function(data)``, element by element; ``alpha`` and ``beta`` as the function needs them."""

    FUNCTIONS: ClassVar[tuple[str, ...]] = (
        "sigmoid", "tanh", "exp", "log", "sqrt", "abs", "neg", "floor", "erf", "leaky_relu", "elu",
        "hard_sigmoid", "hard_swish",
    )  # fmt: skip

    data: str
    function: str
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Binary(Node):
    """``function(a, b)``, with numpy's broadcasting."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    FUNCTIONS: ClassVar[tuple[str, ...]] = ("sub", "mul", "div", "pow", "max", "min", "prelu")

    a: str
    b: str
    function: str


# --- integer -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class QConv2d(Window):
    """An int8 convolution with its requantization and clip.

    ``acc = bias[o] + Σ (data - in_zp) * weight`` in int32, a padded position contributing nothing;
    ``output = clip(rq(acc, scale[o]) + out_zp, lo, hi)``. ``scale`` holds float32 values, one per
    output channel: ``float32(x_scale * w_scale[o] / y_scale)``.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias")

    weight: str
    bias: str
    groups: int = 1
    in_zp: int
    out_zp: int
    scale: tuple[float, ...]
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, kw_only=True)
class QConv2dAdd(QConv2d):
    """A :class:`QConv2d` and the :class:`QAdd` of its int8 result with ``residual``.

    The fields of ``QConv2d`` make the convolution's int8 value ``v`` (zero point ``out_zp``); then
    ``sum = (v - out_zp) * A + (residual - res_zp) * B`` and
    ``output = clip(rq(sum, 2**-k) + add_zp, add_lo, add_hi)``, with
    ``A, B, k = add_terms(*add_scales)``.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias", "residual")

    residual: str
    add_scales: tuple[float, float]
    res_zp: int
    add_zp: int
    add_lo: int = -128
    add_hi: int = 127


@dataclass(frozen=True, kw_only=True)
class QDense(Node):
    """An int8 dense layer: :class:`QConv2d`'s arithmetic on [N, I] (or [N, I, 1, 1]) data."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias")

    data: str
    weight: str
    bias: str
    in_zp: int
    out_zp: int
    scale: tuple[float, ...]
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, kw_only=True)
class QAdd(Node):
    """An int8 addition in fixed point.

    ``scales`` are float32 ``(a_scale / y_scale, b_scale / y_scale)``;
    ``sum = (a - a_zp) * A + (b - b_zp) * B`` in int32 with ``A, B, k = add_terms(*scales)``;
    ``output = clip(rq(sum, 2**-k) + out_zp, lo, hi)``. ``a`` and ``b`` have one shape.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str
    scales: tuple[float, float]
    a_zp: int
    b_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, kw_only=True)
class QMaxPool(Window):
    """The largest int8 under the window; padding is -128, which never wins."""

    kernel: Pair


@dataclass(frozen=True, kw_only=True)
class QAvgPool(Window):
    """The mean of int8 values under the window, requantized once.

    ``sum = Σ (data - in_zp)`` in int32; ``output = clip(rq(sum, s) + out_zp, lo, hi)`` with
    ``s = float32(in_scale / (out_scale * count))``. ``count`` is the kernel's area when
    ``include_pad`` (or where nothing is padded), else the number of real elements under the window.
    """

    kernel: Pair
    include_pad: bool = False
    in_scale: float
    out_scale: float
    in_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127

    @property
    def uniform(self) -> bool:
        """Whether every output has the same divisor, so that ``scale`` is the only scale."""
        return self.include_pad or not any(self.pads)

    @property
    def scale(self) -> float:
        """The scale of a window that lies wholly inside."""
        return pool_scale(self.in_scale, self.out_scale, self.kernel[0] * self.kernel[1])


@dataclass(frozen=True, kw_only=True)
class QConcat(Node):
    """Parts one behind another: each ``clip(rq(part - zps[i], scales[i]) + out_zp, lo, hi)``.

    A part whose scale is 1 and whose zero point is ``out_zp`` is a plain copy.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("parts",)

    parts: tuple[str, ...]
    axis: int
    scales: tuple[float, ...]
    zps: tuple[int, ...]
    out_zp: int
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, kw_only=True)
class QClip(Node):
    """Relu, Clip and change of scale: ``clip(rq(data - in_zp, scale) + out_zp, lo, hi)``."""

    data: str
    scale: float
    in_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, kw_only=True)
class QReshape(Node):
    """:class:`Reshape` on integers."""

    data: str


@dataclass(frozen=True, kw_only=True)
class QTranspose(Node):
    """:class:`Transpose` on integers."""

    data: str
    perm: tuple[int, ...]


# --- boundary ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Quantize(Node):
    """``saturate(round_half_even(data / scale[c]) + zero_point[c])`` to the output's dtype.

    One scale for the tensor (``axis`` None) or one per index along ``axis``.
    """

    data: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


@dataclass(frozen=True, kw_only=True)
class Dequantize(Node):
    """``(data - zero_point[c]) * scale[c]`` in float32; the axis as in :class:`Quantize`."""

    data: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


@dataclass(frozen=True, kw_only=True)
class FlipSign(Node):
    """uint8 to int8 or back, the value moved by 128: the top bit flipped."""

    data: str


@dataclass(frozen=True, kw_only=True)
class Im2col(Window):
    """What each window sees, as channels: [N, C, H, W] to [N, C*KH*KW, OH, OW].

    Channel ``(c * KH + ky) * KW + kx`` is tap (ky, kx) of channel c; padding holds ``fill``.
    """

    kernel: Pair
    fill: int


@dataclass(frozen=True, kw_only=True)
class Fused(Node):
    """Host nodes in a row as one function: ``parts``, each reading what the one before writes."""

    data: str
    parts: tuple[Node, ...]

    @property
    def op(self) -> str:
        """The one of them that isn't a mere move of bytes."""
        return next(p.op for p in self.parts if isinstance(p, Quantize | Dequantize | FlipSign))


@dataclass(frozen=True, kw_only=True)
class Pack(Node):
    """[N, C, H, W] (or [N, C]) to channel blocks [N, ceil(C/block), H, W, block], filled with 0."""

    data: str
    block: int


@dataclass(frozen=True, kw_only=True)
class Unpack(Node):
    """Channel blocks back to [N, C, H, W] (or [N, C])."""

    data: str
    block: int


# --- others ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Foreign(Node):
    """Operators that aren't of this file: they take ``operands`` and say themselves what of."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("operands",)

    operands: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, kw_only=True)
class External(Foreign):
    """Operators that vdla lacks, as an ONNX model for onnxruntime.

    ``model`` takes ``operands`` by position and has one result, of ``shape`` and ``dtype``; where a
    file's operator has several, each is a node of its own. ``kinds`` are the operators' ONNX names,
    ``reason`` is why they are here, for people.
    """

    model: bytes
    kinds: tuple[str, ...]
    reason: str

    @property
    def op(self) -> str:
        """The operators in a row: ``Resize+Pad``."""
        return "+".join(self.kinds)


@dataclass(frozen=True, kw_only=True)
class Custom(Foreign):
    """A user's operator (see ``vdla.compiler.user``), by its name ``domain::OpType``.

    ``settings`` are the attributes that its node in the file has, as JSON.
    """

    operator: str
    settings: str = "{}"

    @property
    def op(self) -> str:
        """The user's name for it."""
        return self.operator


# --- shared arithmetic of the attributes ----------------------------------------------------------


def f32(value: float) -> float:
    """The nearest float32, as a Python float."""
    return float(np.float32(value))


def pool_scale(in_scale: float, out_scale: float, count: int) -> float:
    """``float32(in_scale / (out_scale * count))``, both steps in float32."""
    return float(np.float32(in_scale) / (np.float32(out_scale) * np.float32(count)))


def add_terms(scale_a: float, scale_b: float) -> tuple[int, int, int]:
    """The integers of a quantized addition: ``A, B, k`` with ``A / 2**k`` ≈ ``scale_a``.

    ``k`` is the largest ≤ 30 that keeps both below 2**21, so that int8 operands can't overflow
    int32: ``2 * 255 * 2**21 < 2**31``.
    """
    for k in range(30, -1, -1):
        a, b = round(scale_a * 2.0**k), round(scale_b * 2.0**k)
        if max(abs(a), abs(b)) < 1 << 21:
            return a, b, k
    raise GraphError(f"expected addition scales below 2097152, found {scale_a:g} and {scale_b:g}")


# --- the graph -----------------------------------------------------------------------------------


@dataclass
class Graph:
    """See the grammar at the top of the file. Passes return a new graph; they share arrays."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    tensors: dict[str, TensorType]
    constants: dict[str, Array] = field(default_factory=dict)
    name: str = "graph"
    reasons: dict[str, str] = field(default_factory=dict)  # why a node by its name stayed float

    def producers(self) -> dict[str, Node]:
        """Tensor to the node that writes it."""
        return {node.output: node for node in self.nodes}

    def uses(self) -> dict[str, list[Node]]:
        """Tensor to the nodes that read it, once per read."""
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in node.inputs:
                found[name].append(node)
        return found

    def node(self, name: str) -> Node:
        """The node called ``name``."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def activations(self, node: Node) -> tuple[str, ...]:
        """The node's operands that aren't constants."""
        return tuple(name for name in node.inputs if name not in self.constants)

    def copy(
        self,
        nodes: Iterable[Node] | None = None,
        tensors: Mapping[str, TensorType] | None = None,
        constants: Mapping[str, Array] | None = None,
    ) -> Graph:
        """The same graph with other nodes, or with tensors and constants added or replaced."""
        return Graph(
            self.inputs,
            self.outputs,
            self.nodes if nodes is None else tuple(nodes),
            {**self.tensors, **(tensors or {})},
            {**self.constants, **(constants or {})},
            self.name,
            self.reasons,
        )
