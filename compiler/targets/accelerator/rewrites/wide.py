"""Islands of floats between tensors of 16 bits become integers: :func:`fuse_wide`.

    x: int16 → Dequantize16 → Conv2d → Relu → Quantize16 → y: int16

A tensor of 16 bits gets a scale of its own, so that it is symmetric and its two bytes are int8: at
most ``MOST`` steps on either side of 0, where the file has 32768 or, around another zero point,
more. Then x is split into bytes, and a product of them writes y. Tensors that operators on the host
write or read keep that scale, as int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor, inf

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import int8_source
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.numbers import pack_scales
from vdla.compiler.graph.ops.quantize import Scaled
from vdla.compiler.graph.ops.wide import (
    BYTE_BITS,
    MOST,
    Dequantize16,
    QBytes,
    Quantize16,
    QWideConv2d,
    QWideSum,
    Steps16,
    weights_of,
)
from vdla.compiler.graph.passes.fold import fold_scales
from vdla.compiler.graph.passes.fuse_qdq import FloatIsland, float_chain
from vdla.compiler.graph.passes.images import as_images
from vdla.compiler.graph.passes.move_qdq import quant_of
from vdla.compiler.graph.passes.to_int8 import to_int8
from vdla.compiler.graph.sums import Sums
from vdla.compiler.graph.types import Array, Quant, Requant, TensorType
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.isa.numbers import INT32_MAX, INT32_MIN

End = Quantize16 | ops.Quantize
SEQUENCE = 3  # axes
FINE = 2.0**-2  # steps of a result that a constant of int8 may be off
WEIGHT = 127  # of each element of an average: the larger, the finer are sums of bytes
Core = ops.Conv2d | ops.Dense | ops.AvgPool | ops.Add | ops.Quantize | Quantize16


def fuse_wide(graph: Graph, accelerator: Capability) -> Graph:
    """Has convolutions, dense layers and additions of 16 bits work on integers.

    before: d = Dequantize16(x); c = Conv2d(d, w, b); y = Quantize16(c)
    after:  x.bytes = QBytes(x): int8[2, …]; y = QWideConv2d(x.bytes, w, b, …): int32

    It comes before other passes, which would make constants of weights. A strict accelerator leaves
    them floats: the scales aren't the file's.
    """
    if accelerator.strict or not graph.of(Quantize16):
        return graph
    graph = rewrite(to_int8(fold_scales(as_images(graph))), _symmetric)
    of_any_fill = replace(accelerator, min_fill=0.0)  # taps become channels later

    def fused(node: Core, e: Editor) -> Made:
        made = _Island.of(node, e)
        if made is None:
            return None
        try:
            nodes = made.nodes()
        except GraphError as error:
            e.reasons[node.name] = str(error)
            return None
        work = [each for each in nodes if not isinstance(each, QBytes)]
        if isinstance(work[-1], QWideSum) and len(e.shape(work[-1].output)) == SEQUENCE:
            return nodes  # which becomes an image later
        return nodes if all(of_any_fill.takes(each, e) for each in work) else None

    return rewrite(graph, _moved, _moved_before, fused)


def _symmetric(node: Quantize16, editor: Editor) -> Made:
    """The node with a scale by which its result is symmetric, and so are its readers."""
    if node.axis is not None or node.output in editor.outputs:
        return None
    if editor.tensors[node.output].dtype == "int32":
        return None
    readers = editor.readers(node.output)
    same = [
        isinstance(each, Dequantize16)
        and (each.scale, each.zero_point) == (node.scale, node.zero_point)
        for each in readers
    ]
    if not all(same):
        return None
    zero = node.zero_point[0]
    low, high = node.low - zero, node.high - zero
    ratio = max(high, -low) / MOST
    scale = (float(np.float32(node.scale[0] * ratio)),)
    kind = replace(editor.tensors[node.output], dtype="int32", quant=Quant(scale[0], 0))
    editor.retype(node.output, kind)
    for each in readers:
        assert isinstance(each, Dequantize16)
        editor.replace(each, replace(each, scale=scale, zero_point=(0,)))
    low, high = ceil(low / ratio), floor(high / ratio)
    return replace(node, scale=scale, zero_point=(0,), low=low, high=high)


def _moved(node: Quantize16, editor: Editor) -> Made:
    """The reshape of integers that a reshape of their real numbers is."""
    reshape = editor.own_maker(node.data, ops.Reshape)
    source = editor.maker(reshape.data, Dequantize16) if reshape else None
    if reshape is None or source is None or source.axis is not None or node.axis is not None:
        return None
    same = (source.scale, source.zero_point) == (node.scale, node.zero_point)
    kinds = {editor.tensors[name].dtype for name in (source.data, node.output)}
    if not same or kinds != {"int32"}:
        return None
    return ops.Reshape(name=reshape.name, output=node.output, data=source.data)


def _moved_before(node: Dequantize16, editor: Editor) -> Made:
    """The real numbers of integers that are reshaped, in the place of a reshape of them that
    nothing quantizes."""
    reshape = editor.own_reader(node.output, ops.Reshape)
    if reshape is None or node.axis is not None or editor.tensors[node.data].dtype != "int32":
        return None
    if editor.readers_of(reshape.output, Scaled):
        return None
    kind = replace(editor.tensors[node.data], shape=editor.shape(reshape.output))
    bits = editor.tensor(f"{reshape.output}.integers", kind)
    editor.erase(reshape)
    moved = ops.Reshape(name=reshape.name, output=bits, data=node.data)
    return [moved, replace(node, output=reshape.output, data=bits)]


@dataclass(frozen=True)
class _Source:
    """Integers that an island reads: of int8, or of 16 bits."""

    data: str
    quant: Quant
    wide: bool


@dataclass
class _Island:
    """An operator, what ends it, and the bounds between, of which something has 16 bits."""

    editor: Editor
    core: Core
    absorbed: Sequence[Node]
    end: End
    bounds: tuple[float, float]

    @classmethod
    def of(cls, node: Core, editor: Editor) -> _Island | None:
        """The island that begins with a node; None where there is none, or nothing has 16 bits."""
        if isinstance(node, ops.Quantize | Quantize16):
            island = cls(editor, node, (), node, (-inf, inf))
        else:
            absorbed, low, high = float_chain(node, editor)
            after = editor.own_reader(absorbed[-1].output, Scaled)
            if not isinstance(after, End) or after.axis is not None:
                return None
            island = cls(editor, node, absorbed, after, (low, high))
        sources = [island.source(name) for name in island.operands]
        wide = island.is_wide or any(s and s.wide for s in sources)
        wide = wide or island._terms[1] is not None
        if None in sources or not 1 <= len(sources) <= 2 or not wide or island._is_for_int8:
            return None
        return island

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors of floats that it reads."""
        return self._terms[0]

    @property
    def is_wide(self) -> bool:
        """Whether its result has 16 bits."""
        return self.editor.tensors[self.end.output].dtype == "int32"

    def source(self, name: str) -> _Source | None:
        """The integers behind an operand."""
        wide = self.editor.maker(name, Dequantize16)
        if wide is not None:
            if wide.axis is not None or self.editor.tensors[wide.data].dtype != "int32":
                return None
            return _Source(wide.data, quant_of(wide), True)
        node = int8_source(name, self.editor)
        return None if node is None else _Source(node.data, quant_of(node), False)

    @cached_property
    def _terms(self) -> tuple[tuple[str, ...], Array | None]:
        """The tensors that a sum adds, and a constant if there is one, which may be that of a sum
        before it."""
        if not isinstance(self.core, ops.Add):
            return (self.core.data,), None
        names, known = list[str](), list[Array]()
        for name in (self.core.a, self.core.b):
            maker = self.editor.own_maker(name, ops.Add)
            for each in (maker.a, maker.b) if maker else (name,):
                array = self._known(each)
                if array is None:
                    names.append(each)
                else:
                    known.append(array)
        shape = self.editor.shape(self.core.output)
        whole = [np.broadcast_to(a, shape) for a in known[1:]]
        return tuple(names), sum(whole, known[0]) if known else None

    def _known(self, name: str) -> Array | None:
        """The numbers of a constant, or of integers that are one."""
        editor, maker = self.editor, self.editor.maker(name, ops.Dequantize)
        if maker is not None and maker.data in editor.constants:
            return maker.evaluate([editor.constants[maker.data]], editor.tensors[name])
        return editor.constants.get(name)

    @property
    def _is_for_int8(self) -> bool:
        """Whether int8 is fine enough for a constant, so that the sum is one of int8
        (``passes/spellings.py``)."""
        array = self._terms[1]
        if array is None or self.is_wide or len(self.operands) > 1:
            return False
        source = self.source(self.operands[0])
        of_feature = array.size == array.shape[-1] if array.ndim else False
        fine = np.ptp(array) / 510 <= FINE * quant_of(self.end).scale
        return bool(of_feature and fine and source and not source.wide)

    def nodes(self) -> tuple[Node, ...]:
        """Nodes in its place; what it has absorbed is gone by then.

        Raises:
            GraphError: its numbers don't fit.
        """
        made: list[Node] = []
        if isinstance(self.core, ops.Conv2d | ops.Dense | ops.AvgPool):
            made = self._product(self.core)
        else:
            made = [self._sum()]
        for each in (*self.absorbed, self.end):
            if each is not self.core:
                self.editor.erase(each)
        kind = self.editor.tensors[self.end.output]
        self.editor.retype(self.end.output, replace(kind, quant=quant_of(self.end)))
        return tuple(made)

    @property
    def limits(self) -> tuple[int, int]:
        """Bounds of the result in its own steps, the zero point included."""
        quant, ends = quant_of(self.end), []
        own = (self.end.low, self.end.high) if isinstance(self.end, Quantize16) else (-128, 127)
        for bound in self.bounds:
            steps = np.clip(bound / quant.scale, INT32_MIN, INT32_MAX)
            ends.append(int(np.clip(np.rint(steps) + quant.zero_point, *own)))
        return ends[0], ends[1]

    def _requant(self, scale: Array) -> Requant:
        """The requantization to an int8 result."""
        try:
            pack_scales(scale)
        except ValueError as error:
            raise GraphError(str(error)) from None
        steps = tuple(float(np.float32(each)) for each in scale)
        return Requant(steps, quant_of(self.end).zero_point, *self.limits)

    def _sum(self) -> Node:
        """A sum of its operands, or one of them at another scale."""
        editor, out = self.editor, quant_of(self.end)
        sources = [source for name in self.operands if (source := self.source(name))]
        result = editor.shape(self.end.output)
        for each in sources:
            if editor.shape(each.data) != result:
                raise GraphError(f"operands of shape {list(result)}")
        scales, offset = [each.quant.scale / out.scale for each in sources], self._offset()
        scaled = self.is_wide or len(sources) > 1 or offset is not None
        most = 0.0 if offset is None else float(np.abs(offset).max())
        weights, shift = weights_of(scales, most) if scaled else ((1,), 0)
        node = QWideSum(
            name=self.core.name,
            output=self.end.output,
            terms=tuple(each.data for each in sources),
            zeros=tuple(each.quant.zero_point for each in sources),
            weights=weights,
            shift=shift,
        )
        if offset is not None:
            steps = np.rint(offset * 2.0**shift).astype(np.int32)
            node = replace(node, offset=editor.constant(f"{self.core.name}.offset", steps))
        if self.is_wide:
            low, high = self.limits
            return replace(node, low=low, high=high)
        unit = 2.0**-shift if scaled else scales[0]
        return replace(node, requant=self._requant(np.array([unit])))

    def _offset(self) -> Array | None:
        """A sum's constant in steps of the result, with as many axes; as far as it can move
        that."""
        array, rank = self._terms[1], len(self.editor.shape(self.core.output))
        if array is None:
            return None
        if not np.issubdtype(array.dtype, np.floating) or np.isnan(array).any():
            raise GraphError("expected a constant of real numbers in a sum")
        most = 2 * MOST if self.is_wide else 512
        steps = np.clip(array.astype(np.float64) / quant_of(self.end).scale, -most, most)
        return steps.reshape((1,) * (rank - array.ndim) + array.shape)

    def _product(self, node: ops.Conv2d | ops.Dense | ops.AvgPool) -> list[Node]:
        """A product, and what splits its data into bytes before it."""
        editor, out, made = self.editor, quant_of(self.end), list[Node]()
        source = self.source(node.data)
        assert source is not None
        if isinstance(node, ops.Dense):
            source = self._image(source)
        weight, weight_scale = self._weights(node)
        unit = source.quant.scale * weight_scale.astype(np.float64)
        biases = self._biases(node, unit, weight, source)
        scale = unit * (1 << BYTE_BITS if source.wide else 1) / out.scale
        result = QWideConv2d(
            name=node.name,
            output=self.end.output,
            data=self._bytes(source, made) if source.wide else source.data,
            weight=weight,
            bias=editor.constant(f"{node.name}.bias", biases),
            bytes=source.wide,
            zero=source.quant.zero_point,
        )
        if not isinstance(node, ops.Dense):
            groups = node.groups if isinstance(node, ops.Conv2d) else len(unit)
            window = replace(result, strides=node.strides, pads=node.pads)
            result = replace(window, dilations=node.dilations, groups=groups)
        if not self.is_wide:
            return [*made, replace(result, requant=self._requant(scale))]
        steps = Steps16.of(scale, self.limits)
        low, high, before, factor = (
            editor.constant(f"{node.name}.{key}", array) for key, array in vars(steps).items()
        )
        return [*made, replace(result, low=low, high=high, before=before, factor=factor)]

    def _weights(self, node: ops.Conv2d | ops.Dense | ops.AvgPool) -> tuple[str, Array]:
        """Weights of int8, and their scales; those of an average are equal."""
        editor = self.editor
        if not isinstance(node, ops.AvgPool):
            return FloatIsland.weights(node.weight, editor)
        shape = editor.shape(node.data)
        counts = np.unique(node.counts(shape))
        if len(counts) > 1:
            raise GraphError("averages of as many elements everywhere")
        equal = np.full((shape[1], 1, *node.kernel), WEIGHT, np.int8)
        scale = np.full(shape[1], 1 / (WEIGHT * counts[0]), np.float32)
        return editor.constant(f"{node.name}.weight", equal), scale

    def _image(self, source: _Source) -> _Source:
        """The image of one pixel that a dense layer reads, in place of its reshape."""
        reshape = self.editor.maker(source.data, ops.Reshape)
        if reshape is None or self.editor.shape(reshape.data)[2:] != (1, 1):
            return source
        return replace(source, data=reshape.data)

    def _bytes(self, source: _Source, made: list[Node]) -> str:
        """Both bytes of a tensor, made once for all that read them."""
        editor = self.editor
        if editor.knows(("bytes", source.data)):
            return editor.once(("bytes", source.data), lambda: "")
        first, *rest = editor.shape(source.data)
        kind = TensorType((2 * first, *rest), "int8")
        name = editor.once(
            ("bytes", source.data), lambda: editor.tensor(f"{source.data}.bytes", kind)
        )
        made.append(QBytes(name=name, output=name, data=source.data))
        return name

    def _biases(self, node: Core, unit: Array, weight: str, source: _Source) -> Array:
        """Biases in units of sums: of both bytes, what the low one's shift rounds included.

        Raises:
            GraphError: sums don't fit in 32 bits.
        """
        bias = getattr(node, "bias", None)
        values = np.zeros(len(unit)) if bias is None else self._reals(bias) / unit
        values = np.broadcast_to(np.rint(values), unit.shape)
        sums = Sums.of(self.editor.constants[weight], source.quant.zero_point)
        if not source.wide:
            ends = values + sums.least, values + sums.most
            self._check(*ends)
            return values.astype(np.int32)
        half, step = 1 << (BYTE_BITS - 1), 1 << BYTE_BITS
        high = np.floor((values + half) / step)
        low = values - high * step + half
        self._check(low + sums.least, low + sums.most)
        self._check(high + 2 * sums.least, high + 2 * sums.most)
        return np.stack([low, high]).astype(np.int32)

    @staticmethod
    def _check(least: Array, most: Array) -> None:
        if least.min() < INT32_MIN or most.max() > INT32_MAX:
            raise GraphError(
                "expected sums of products and bias within 32 bits, -2147483648 to 2147483647, "
                f"found {least.min():.0f} to {most.max():.0f}"
            )

    def _reals(self, name: str) -> Array:
        """The real numbers of a bias."""
        editor = self.editor
        if name in editor.constants:
            return editor.constants[name].astype(np.float64)
        maker = editor.maker(name, ops.Dequantize)
        if maker is None or maker.data not in editor.constants:
            raise GraphError("bias known only at run time")
        whole = editor.constants[maker.data].astype(np.float64) - np.array(maker.zero_point)
        return np.asarray(whole * np.array(maker.scale, np.float64))
