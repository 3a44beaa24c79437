"""An ONNX graph while it is made, and the names under which it holds TFLite's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.tflite.contents import Subgraph, Tensor
from vdla.compiler.frontend.tflite.layout import RANK, TO_FILE, TO_FIRST, Layout, images
from vdla.compiler.frontend.tflite.whole import Names, Whole
from vdla.compiler.graph.types import Array

OPSET = 21
FOLDED = 4096  # elements of a result that is computed now, as shapes are
CODES = {
    "float32": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "float64": onnx.TensorProto.DOUBLE,
    "int8": onnx.TensorProto.INT8,
    "int16": onnx.TensorProto.INT16,
    "int32": onnx.TensorProto.INT32,
    "int64": onnx.TensorProto.INT64,
    "uint8": onnx.TensorProto.UINT8,
    "uint16": onnx.TensorProto.UINT16,
    "uint32": onnx.TensorProto.UINT32,
    "uint64": onnx.TensorProto.UINT64,
    "bool": onnx.TensorProto.BOOL,
}
NARROW = ("int8", "uint8", "int16")  # integers that stand for real numbers between operators


class Form(Enum):
    """The values that a tensor is held as: the file's own, or the real numbers they stand for."""

    STORED = "stored"
    REAL = "real"


Key = tuple[int, Form, Layout]


@dataclass
class Draft:
    """The ONNX graph of a subgraph.

    Attributes:
        whole: the model that it is part of.
        subgraph: what it is made of.
        nodes: ONNX nodes, each behind those whose results it reads.
        constants: initializers.
        held: the ONNX name of each form of a tensor that there is.
        known: the file's elements of tensors that are known now, beside the file's constants.
        flattened: [C, H, W] of the image that a tensor held as Layout.FLAT was.
        tensors: the subgraph's, with their shapes where the file leaves some open.
        is_open: whether it does, or says placeholders: of shapes that it computes from others.
        handles: names of the variables that tensors of the type resource stand for.
    """

    whole: Whole
    subgraph: Subgraph
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    held: dict[Key, str] = field(default_factory=dict)
    known: dict[int, Array] = field(default_factory=dict)
    flattened: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    handles: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.images = images(self.subgraph)
        ends = {*self.subgraph.inputs, *self.subgraph.outputs}
        self.tensors = list(self.subgraph.tensors)
        self.is_open = any(tensor.open for tensor in self.tensors) or any(
            operator.name == "SHAPE" for operator in self.subgraph.operators
        )
        order = sorted(self.subgraph.tensors, key=lambda tensor: tensor.index not in ends)
        self.own = {tensor.index: self.names.fresh(tensor.name) for tensor in order}

    @property
    def names(self) -> Names:
        """The names of the model."""
        return self.whole.names

    @property
    def where(self) -> str:
        """The subgraph's place, for errors."""
        number = self.subgraph.index
        return self.whole.contents.where + (f": subgraph {number}" if number else "")

    # Nodes --------------------------------------------------------------------------------------

    def emit(
        self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: object
    ) -> str:
        """Adds an ONNX node with one result, and returns the result's name."""
        name = output or self.names.fresh(f"{next(filter(None, inputs), '')}.{op_type.lower()}")
        self.emit_all(op_type, inputs, [name], **attributes)
        return name

    def emit_all(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: object
    ) -> None:
        """Adds an ONNX node whose results have these names."""
        given = {key: value for key, value in attributes.items() if value is not None}
        name = self.names.fresh(f"{outputs[0]}/{op_type}")
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name, **given))

    def constant(self, array: Array, hint: str = "constant") -> str:
        """The name of an initializer."""
        name = self.names.fresh(hint)
        self.constants[name] = np.asarray(array)
        return name

    def integers(self, values: Sequence[int], hint: str = "constant") -> str:
        """The name of an initializer of int64 numbers."""
        return self.constant(np.array(values, np.int64), hint)

    # Tensors ------------------------------------------------------------------------------------

    def value_of(self, tensor: Tensor) -> Array | None:
        """The file's elements of a tensor that is known now; None of others."""
        return tensor.data if tensor.data is not None else self.known.get(tensor.index)

    def name_of(self, tensor: Tensor, layout: Layout) -> str:
        """The name for a tensor's elements in an order: in the file's, the file's own name."""
        own = self.own[tensor.index]
        if layout is Layout.FILE:
            return own
        return self.names.fresh(f"{own}.{layout.name.lower()}")

    def get(self, tensor: Tensor, form: Form, layout: Layout) -> str:
        """The ONNX name of a tensor in some form, which is made where there is none yet.

        Raises:
            ModelError: nothing makes the tensor before it is read.
        """
        if not is_real(tensor):
            form = Form.STORED
        key = tensor.index, form, layout
        if key not in self.held:
            self.held[key] = self.made(tensor, form, layout)
        return self.held[key]

    def made(self, tensor: Tensor, form: Form, layout: Layout) -> str:
        """A new form of a tensor."""
        if form is Form.REAL:
            return self.dequantized(tensor, layout)
        if (array := self.value_of(tensor)) is not None:
            return self.constant(layout.array(array), f"{self.own[tensor.index]}.{layout.name}")
        if (name := self.holding(tensor, Layout.FLAT)) is not None:
            return self.unfolded(name, tensor)
        other = Layout.FILE if layout is Layout.FIRST else Layout.FIRST
        if (name := self.holding(tensor, other)) is not None:
            return self.turned(name, tensor, layout)
        where = f"{self.where}: tensor {tensor.index}, {tensor.name}"
        raise ModelError(where, "an operator before that makes it", "none")

    def turned(self, name: str, tensor: Tensor, layout: Layout) -> str:
        """An image's elements in the other order of its axes."""
        if not is_image(tensor):
            where = f"{self.where}: tensor {tensor.index}, {tensor.name}"
            raise ModelError(where, "an image of four axes", list(tensor.shape))
        own = self.name_of(tensor, layout)
        if has_one_order(tensor):
            return self.emit("Reshape", [name, self.integers(layout.ordered(tensor.shape))], own)
        perm = TO_FIRST if layout is Layout.FIRST else TO_FILE
        return self.emit("Transpose", [name], own, perm=perm)

    def unfolded(self, name: str, tensor: Tensor) -> str:
        """A flattened image's elements in the file's order."""
        image = self.emit("Reshape", [name, self.integers((-1, *self.flattened[tensor.index]))])
        turned = self.emit("Transpose", [image], perm=TO_FILE)
        own = self.name_of(tensor, Layout.FILE)
        return self.emit("Reshape", [turned, self.integers(tensor.shape)], own)

    def holding(self, tensor: Tensor, layout: Layout) -> str | None:
        """The ONNX name of a tensor's elements in some order; None where they aren't held so."""
        return self.held.get((tensor.index, Form.STORED, layout))

    def dequantized(self, tensor: Tensor, layout: Layout) -> str:
        """The real numbers that a tensor's integers stand for."""
        stored, own = self.get(tensor, Form.STORED, layout), self.own[tensor.index]
        axis = layout.axis(tensor.axis, len(tensor.shape)) if tensor.scale.size > 1 else None
        parameters = self.parameters(tensor)
        name = self.names.fresh(f"{own}.real")
        return self.emit("DequantizeLinear", [stored, *parameters], name, axis=axis)

    def rearranged(self, tensor: Tensor, array: Array, axis: int | None) -> str:
        """A known tensor's real numbers, its elements in another shape or order.

        Args:
            tensor: the tensor.
            array: its elements.
            axis: the axis of its scales among theirs; None where it has one scale.
        """
        own = self.own[tensor.index]
        stored = self.constant(np.ascontiguousarray(array), f"{own}.ordered")
        if not is_real(tensor):
            return stored
        name = self.names.fresh(f"{own}.ordered.real")
        return self.emit("DequantizeLinear", [stored, *self.parameters(tensor)], name, axis=axis)

    def parameters(self, tensor: Tensor) -> tuple[str, str]:
        """The names of a tensor's scales and zero points: one of each, or one for each channel."""
        zero = tensor.zero_point.astype(tensor.dtype)
        scale, own = tensor.scale.astype(np.float32), self.own[tensor.index]
        if scale.size == 1:
            scale, zero = scale.reshape(()), zero.reshape(())
        return self.constant(scale, f"{own}.scale"), self.constant(zero, f"{own}.zero_point")

    def put(self, tensor: Tensor, name: str, layout: Layout) -> None:
        """Makes an ONNX value a tensor's real numbers, or its elements where these are the same."""
        if is_real(tensor):
            output = self.name_of(tensor, layout)
            name = self.emit("QuantizeLinear", [name, *self.parameters(tensor)], output)
        self.put_stored(tensor, name, layout)

    def put_stored(self, tensor: Tensor, name: str, layout: Layout = Layout.FILE) -> None:
        """Makes an ONNX value a tensor's elements."""
        for form in Form:
            for each in Layout:
                self.held.pop((tensor.index, form, each), None)
        self.held[tensor.index, Form.STORED, layout] = name

    def settle(self, tensor: Tensor, shape: tuple[int, ...]) -> None:
        """Gives a tensor the shape that it has."""
        self.tensors[tensor.index] = replace(tensor, shape=shape, signature=shape)

    def in_file_order(self, tensor: Tensor) -> bool:
        """Whether a tensor's elements are held in the file's order, or aren't held yet."""
        held = self.holding(tensor, Layout.FILE) is not None
        return held or self.holding(tensor, Layout.FIRST) is None

    # Ends ---------------------------------------------------------------------------------------

    def add_input(self, tensor: Tensor, name: str) -> onnx.ValueInfoProto:
        """Makes a tensor one that is given under a name.

        Raises:
            ModelError: its elements are none that ONNX has.
        """
        self.put_stored(tensor, name)
        return self.value_info(tensor, name)

    def value_info(
        self, tensor: Tensor, name: str, layout: Layout = Layout.FILE
    ) -> onnx.ValueInfoProto:
        """The type and shape of a tensor, for ONNX."""
        where = f"{self.where}: tensor {tensor.index}, {tensor.name}"
        if tensor.dtype not in CODES:
            raise ModelError(where, "a tensor of numbers", f"one of type {tensor.dtype}")
        return helper.make_tensor_value_info(
            name, CODES[tensor.dtype], layout.ordered(tensor.shape)
        )

    def end(self, tensor: Tensor, name: str) -> None:
        """Gives a tensor's elements a name, for a result of the graph."""
        source = self.get(tensor, Form.STORED, Layout.FILE)
        if source != name:
            self.emit("Identity", [source], name)

    def initializers(self) -> list[onnx.TensorProto]:
        """The constants that some node reads."""
        read = {name for node in self.nodes for name in names_read(node)}
        return [
            numpy_helper.from_array(array, name)
            for name, array in self.constants.items()
            if name in read
        ]


def names_read(node: onnx.NodeProto) -> list[str]:
    """Names that a node reads, those of the graphs in it included."""
    graphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    inner = [name for graph in graphs for each in graph.node for name in names_read(each)]
    ends = [value.name for graph in graphs for value in graph.output]
    return [*node.input, *inner, *ends]


def is_real(tensor: Tensor) -> bool:
    """Whether a tensor's integers are real numbers for the operators that read them."""
    return tensor.quantized and tensor.dtype in NARROW


def has_one_order(tensor: Tensor) -> bool:
    """Whether an image's elements lie in the same order with channels first and with channels last:
    it has one pixel, or one channel."""
    _, rows, columns, channels = tensor.shape
    return rows * columns == 1 or channels == 1


def is_image(tensor: Tensor) -> bool:
    """Whether a tensor has the four axes of images."""
    return len(tensor.shape) == RANK
