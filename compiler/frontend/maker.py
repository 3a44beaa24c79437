"""Nodes for an ONNX operator that is several of ours: each method adds one and gives its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.island import Names
from vdla.compiler.graph.ops import functions
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Array, Shape, TensorType

TESTS = {*functions.UNARY_TESTS, *functions.BINARY_TESTS}


class Maker:
    """Adds nodes to the draft of ``view``; tensors go by their names.

    :meth:`result` says at the end which tensor is which output of the ONNX operator.
    """

    def __init__(self, view: OnnxNode) -> None:
        self.view, self.draft = view, view.draft
        self.start = len(self.draft.nodes)
        self.count = 0

    def kind(self, name: str) -> TensorType:
        """The type of a tensor.

        Raises:
            UnsupportedError: its size depends on data.
        """
        if name in self.draft.open:
            actual = f"{name}, whose size depends on data"
            raise self.view.unsupported("tensors of static shape", actual)
        return self.draft.tensors[name]

    def shape(self, name: str) -> Shape:
        """The shape of a tensor."""
        return self.kind(name).shape

    def constant(self, value: object, dtype: str) -> str:
        """A tensor that is known now."""
        name = f"{self.view.name}.constant{self.count}"
        self.count += 1
        return self.draft.add_constant(name, np.asarray(value).astype(dtype))

    def like(self, value: object, name: str) -> str:
        """Adds a constant of ``value`` in the element type of the tensor ``name``."""
        return self.constant(value, self.kind(name).dtype)

    def unary(self, function: str, data: str, alpha: float = 0.0, beta: float = 0.0) -> str:
        """A function of each element."""
        names = self._names()
        node = ops.Unary(**names, data=data, function=function, alpha=alpha, beta=beta)
        return self.add(node, "bool" if function in TESTS else self.kind(data).dtype)

    def binary(self, function: str, a: str, b: str | float) -> str:
        """A function of two elements; a number has the type of ``a``."""
        other = b if isinstance(b, str) else self.like(b, a)
        dtype = "bool" if function in TESTS else self.kind(a).dtype
        if function == "add":
            return self.add(ops.Add(**self._names(), a=a, b=other), dtype)
        return self.add(ops.Binary(**self._names(), a=a, b=other, function=function), dtype)

    def reduce(self, function: str, data: str, axes: Sequence[int], keep: bool = True) -> str:
        """One element of all along some axes."""
        if not axes:
            return data
        names, dtype = self._names(), self.kind(data).dtype
        order = tuple(sorted(axes))
        return self.add(
            ops.Reduce(**names, data=data, function=function, axes=order, keepdims=keep), dtype
        )

    def cast(self, data: str, dtype: str) -> str:
        """Casts a tensor's numbers to another element type."""
        if self.kind(data).dtype == dtype:
            return data
        return self.add(ops.Cast(**self._names(), data=data), dtype)

    def reshape(self, data: str, shape: Shape) -> str:
        """Reshapes a tensor; its elements keep their row-major order."""
        dtype = self.kind(data).dtype
        if self.shape(data) == shape:
            return data
        kind = ops.QReshape if dtype == "int8" else ops.Reshape
        return self.add(kind(**self._names(), data=data), dtype, shape)

    def is_quantized(self, name: str) -> bool:
        """Whether a tensor is what integers stand for, or may become so: in a file that quantizes
        something before it."""
        makers = (node for node in reversed(self.draft.nodes) if node.output == name)
        return bool(self.draft.quantized) or isinstance(next(makers, None), ops.Dequantize)

    def parameter(self, name: str, change: Callable[[Array], Array]) -> str | None:
        """A constant weight whose elements are rearranged now; None where it isn't known.

        Of a quantized one, the integers are. ``change`` leaves the first axis where it is.
        """
        source = self.draft.dequantized(name)
        values = self.draft.constants.get(source.data if source else name)
        if values is None or (source is not None and source.axis not in (None, 0)):
            return None
        weight = self.constant(change(values), str(values.dtype))
        if source is None:
            return weight
        return self.add(replace(source, **self._names(), data=weight), self.kind(name).dtype)

    def transpose(self, data: str, perm: Sequence[int]) -> str:
        """The axes in another order."""
        if tuple(perm) == tuple(range(len(perm))):
            return data
        node = ops.Transpose(**self._names(), data=data, perm=tuple(perm))
        return self.add(node, self.kind(data).dtype)

    def take(self, data: str, tables: Sequence[Sequence[int]], fill: float = 0.0) -> str:
        """Elements from places along each axis, ``OUTSIDE`` ones ``fill``."""
        shape = self.shape(data)
        if all(list(t) == list(range(n)) for t, n in zip(tables, shape, strict=True)):
            return data
        sizes = tuple(len(t) for t in tables)
        places = tuple(int(p) for t in tables for p in t)
        node = ops.Take(**self._names(), data=data, shape=sizes, places=places, fill=fill)
        return self.add(node, self.kind(data).dtype)

    def along(self, data: str, axis: int, places: Sequence[int], fill: float = 0.0) -> str:
        """Takes elements along one axis, as :meth:`take` does along all."""
        tables: list[Sequence[int]] = [range(n) for n in self.shape(data)]
        tables[axis] = places
        return self.take(data, tables, fill)

    def cropped(self, image: str, sizes: Sequence[int]) -> str:
        """The first rows and columns of an image, as many as ``sizes`` says."""
        shape = self.shape(image)
        if shape[2:] == tuple(sizes):
            return image
        return self.take(image, [range(n) for n in (*shape[:2], *sizes)])

    def padded(self, data: str, pads: Sequence[tuple[int, int]], fill: float) -> str:
        """More elements before and behind, along every axis."""
        tables = [
            [OUTSIDE] * low + list(range(n)) + [OUTSIDE] * high
            for n, (low, high) in zip(self.shape(data), pads, strict=True)
        ]
        return self.take(data, tables, fill)

    def matmul(self, a: str, b: str) -> str:
        """The product of matrices, or of stacks of them."""
        return self.add(ops.MatMul(**self._names(), a=a, b=b), self.kind(a).dtype)

    def einsum(self, equation: str, *parts: str) -> str:
        """A sum of products."""
        node = ops.Einsum(**self._names(), parts=parts, equation=equation)
        return self.add(node, self.kind(parts[0]).dtype)

    def concat(self, parts: Sequence[str], axis: int) -> str:
        """Tensors one behind another."""
        if len(parts) == 1:
            return parts[0]
        node = ops.Concat(**self._names(), parts=tuple(parts), axis=axis)
        return self.add(node, self.kind(parts[0]).dtype)

    def where(self, condition: str, a: str, b: str) -> str:
        """One or the other of two elements."""
        node = ops.Where(**self._names(), condition=condition, a=a, b=b)
        return self.add(node, self.kind(a).dtype)

    def add(self, node: Node, dtype: str, shape: Shape | None = None) -> str:
        """A node whose name and output are this operator's."""
        return self.draft.emit(node, dtype, shape)

    def names(self) -> Names:
        """The name and the output of a node that :meth:`add` is to add."""
        return self._names()

    def _names(self) -> Names:
        self.count += 1
        first = len(self.draft.nodes) == self.start
        name = self.view.name if first else self.draft.fresh(f"{self.view.name}.{self.count}")
        return {"name": name, "output": f"{name}.result"}

    def result(self, name: str, index: int = 0) -> None:
        """Makes a tensor the output in place ``index``, if that is read."""
        if not self.view.wanted(index):
            return
        target = str(self.view.proto.output[index])
        if name in self.draft.constants:
            self.draft.add_constant(target, self.draft.constants[name])
        elif not self.draft.rename(name, target, self.start):
            if target not in self.draft.outputs:
                self.draft.alias[target] = name
                return
            shape, dtype = self.shape(name), self.kind(name).dtype
            kind = ops.QReshape if dtype == "int8" else ops.Reshape
            self.draft.emit(
                kind(name=self._names()["name"], output=target, data=name), dtype, shape
            )

    def value(self, name: str) -> Array | None:
        """A tensor's value where it is known now."""
        return self.draft.known(name)
