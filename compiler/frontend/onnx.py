"""ONNX to the typed graph.

``import_onnx`` reads a file, ``import_model`` a model in memory. Quantize and Dequantize nodes stay
where the file has them; :mod:`vdla.compiler.graph.fuse` turns the islands between them into integer
operators. Nodes whose operands are all known now (shapes, folded weights) are computed here.
Operators that vdla lacks, and forms of them, stay as they are, for onnxruntime
(:mod:`vdla.compiler.frontend.external`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from vdla.compiler.frontend.custom import add_custom
from vdla.compiler.frontend.errors import ModelError, UnsupportedError
from vdla.compiler.frontend.external import add_external, has_graphs
from vdla.compiler.frontend.ops import CONVERTERS
from vdla.compiler.frontend.shapes import Shapes, input_values, static_shapes
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify, verify_dtypes
from vdla.compiler.graph.ir import Array, Graph, GraphError, Node, TensorType
from vdla.compiler.user import REGISTERED

DEFAULT_DOMAINS = ("", "ai.onnx")
QDQ = ("QuantizeLinear", "DequantizeLinear")


def import_onnx(path: str | Path, shapes: Shapes | None = None) -> Graph:
    """The graph of the QDQ model in ``path``.

    Args:
        path: an ONNX file.
        shapes: sizes that the file leaves open: whole shapes of inputs, or the sizes of symbolic
            dimensions, by name.

    Raises:
        ModelError: the file is not an ONNX model, not quantized, dynamic, or has an operator that
            no device can run.
    """
    return import_model(load(path), str(path), shapes)


def load(path: str | Path) -> Any:
    """The model in a file.

    Raises:
        ModelError: there is none.
    """
    path = Path(path)
    try:
        return onnx.load(str(path))
    except FileNotFoundError:
        raise ModelError(str(path), "an ONNX file", "no file") from None
    except IsADirectoryError:
        raise ModelError(str(path), "an ONNX file", "a folder") from None
    except Exception as error:  # protobuf, external data and text decoding each raise their own
        raise ModelError(str(path), "an ONNX model", _first_line(error)) from None


def import_model(model: Any, where: str = "model", shapes: Shapes | None = None) -> Graph:
    """The graph of a model in memory; ``where`` opens every error. See :func:`import_onnx`."""
    _check(model, where)
    importer = Importer(where, model)
    importer.read_constants(model.graph)
    importer.read_inputs(model.graph, shapes)
    for index, node in enumerate(model.graph.node):
        importer.read_node(node, index)
    graph = importer.finish(model.graph)
    if not any(node.op_type in QDQ for node in model.graph.node):
        expected = "a quantized (QDQ) model; `vdla quantize` makes one"
        raise ModelError(where, expected, "no QuantizeLinear or DequantizeLinear node")
    return graph


def _check(model: Any, where: str) -> None:
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(where, "an ONNX model", "no operators in it")
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # the checker reports through several types
        raise ModelError(where, "a valid ONNX model", _first_line(error)) from None


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(". ")


class Importer:
    """The state of one import: tensors by their ONNX names, and the nodes so far."""

    def __init__(self, where: str, proto: Any) -> None:
        self.where, self.proto = where, proto
        self.read = {n for node in proto.graph.node for n in node.input}
        opsets = {o.domain: o.version for o in proto.opset_import}
        self.opset = next((opsets[d] for d in DEFAULT_DOMAINS if d in opsets), 0)
        self.tensors: dict[str, TensorType] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []
        self.alias: dict[str, str] = {}
        self.names: set[str] = set()
        self.outputs: set[str] = set()

    # --- the file's declarations -------------------------------------------------------------

    def read_constants(self, graph: Any) -> None:
        """The initializers, as arrays."""
        self.outputs = {o.name for o in graph.output}
        self.read |= self.outputs
        for tensor in graph.initializer:
            try:
                self.add_constant(tensor.name, numpy_helper.to_array(tensor))
            except Exception as error:  # numpy_helper checks little and raises anything
                where = f"{self.where}: initializer {tensor.name}"
                raise ModelError(where, "its declared elements", _first_line(error)) from None

    def read_inputs(self, graph: Any, shapes: Shapes | None) -> None:
        """The inputs and their static shapes."""
        static = static_shapes(graph, self.where, shapes)
        for value in input_values(graph):
            where = f"{self.where}: input {value.name}"
            dtype = self.dtype(value.type.tensor_type.elem_type)
            if dtype not in ("float32", "int8", "uint8"):
                raise ModelError(where, "float32, int8 or uint8 elements", dtype)
            self.tensors[value.name] = TensorType(static[value.name], dtype)
            self.inputs.append(value.name)

    def dtype(self, code: int) -> str:
        """An element type's numpy name."""
        try:
            return str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)))
        except (KeyError, TypeError, ValueError):
            return str(onnx.TensorProto.DataType.Name(code)).lower()

    # --- nodes -------------------------------------------------------------------------------

    def read_node(self, node: Any, index: int) -> None:
        """Adds what one ONNX node means."""
        name = self.fresh(node.name or f"{node.op_type}_{index}")
        where = f"{self.where}: node {name} ({node.op_type})"
        view = OnnxNode(self, node, name, where)
        if (registered := REGISTERED.get(f"{node.domain}::{node.op_type}")) is not None:
            add_custom(view, registered)
            return
        if node.domain not in DEFAULT_DOMAINS or node.op_type not in CONVERTERS:
            if not self.fold(view):
                add_external(view, f"no operator {node.op_type} here")
            return
        if node.op_type not in QDQ and self.fold(view):
            return
        count = len(self.nodes)
        try:
            self.convert(view)
        except UnsupportedError as error:
            del self.nodes[count:]
            try:
                add_external(view, str(error).removeprefix(f"{where}: "))
            except ModelError:
                raise error from None

    def convert(self, view: OnnxNode) -> None:
        """Adds a node of an operator that vdla has."""
        try:
            CONVERTERS[view.proto.op_type](view)
        except ModelError:
            raise
        except GraphError as error:
            raise ModelError(view.where, *_halves(str(error))) from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ModelError(
                view.where, "attributes that fit its operands", _first_line(error)
            ) from None

    def fold(self, view: OnnxNode) -> bool:
        """Computes a node now if everything it reads is known; False if it isn't."""
        node = view.proto
        if node.op_type == "Shape" and node.domain in DEFAULT_DOMAINS:
            shape = np.array(self.tensors[view.operand(0)].shape, np.int64)
            self.add_constant(node.output[0], shape[view.integer("start", 0) : _end(view)])
            return True
        if node.domain not in DEFAULT_DOMAINS or len(node.output) != 1 or has_graphs(node):
            return False
        operands = [self.alias.get(n, n) for n in node.input if n]
        if not all(n in self.constants for n in operands):
            return False
        self.add_constant(node.output[0], _evaluate(view, [self.constants[n] for n in operands]))
        return True

    def finish(self, proto: Any) -> Graph:
        """The checked graph."""
        outputs = []
        for value in proto.output:
            name = self.alias.get(value.name, value.name)
            if name not in self.tensors:
                where = f"{self.where}: output {value.name}"
                raise ModelError(where, "a node that writes it", "none")
            outputs.append(name)
        used = {n for node in self.nodes for n in node.inputs} | set(outputs)
        constants = {n: a for n, a in self.constants.items() if n in used}
        tensors = {n: t for n, t in self.tensors.items() if n in used or n not in self.constants}
        graph = Graph(
            tuple(self.inputs),
            tuple(outputs),
            tuple(self.nodes),
            tensors,
            constants,
            Path(self.where).stem,
        )
        try:
            return verify(graph)
        except GraphError as error:
            raise ModelError(self.where, *_halves(str(error))) from None

    # --- building blocks for the converters ------------------------------------------------------

    def fresh(self, name: str) -> str:
        """``name``, or ``name`` with a number if it is taken."""
        unique, count = name, 1
        while unique in self.names:
            count += 1
            unique = f"{name}_{count}"
        self.names.add(unique)
        return unique

    def add_constant(self, name: str, array: Array) -> str:
        """Makes ``array`` known as ``name``."""
        self.constants[name] = np.ascontiguousarray(array).reshape(np.shape(array))
        self.tensors[name] = TensorType(tuple(np.shape(array)), str(array.dtype))
        return name

    def emit(self, node: Node, dtype: str, shape: tuple[int, ...] | None = None) -> str:
        """Adds a node; its rule gives the shape where ``shape`` doesn't."""
        shapes = [self.tensors[n].shape for n in node.inputs]
        result = node.result_shape(shapes)
        if result is None:  # a scalar's shape is (), and known
            result = shape
        assert result is not None
        self.tensors[node.output] = TensorType(result, dtype)
        try:
            verify_dtypes(self.tensors, node)
        except GraphError as error:
            where = f"{self.where}: node {node.name} ({node.op})"
            raise UnsupportedError(where, *_halves(str(error))) from None
        self.nodes.append(node)
        return node.output

    def known(self, name: str) -> Array | None:
        """A tensor's value: a constant's, or that of a constant behind its Dequantize."""
        if name in self.constants:
            return self.constants[name]
        source = self.dequantized(name)
        if source is None:
            return None
        return source.evaluate([self.constants[source.data]], self.tensors[name])

    def dequantized(self, name: str) -> ops.Dequantize | None:
        """The Dequantize that makes ``name`` from a constant, if one does."""
        for node in reversed(self.nodes):
            if node.output == name:
                known = isinstance(node, ops.Dequantize) and node.data in self.constants
                return node if known and isinstance(node, ops.Dequantize) else None
        return None


class OnnxNode:
    """One ONNX node as the converters see it."""

    def __init__(self, importer: Importer, proto: Any, name: str, where: str) -> None:
        self.importer, self.proto, self.name, self.where = importer, proto, name, where
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    @property
    def output(self) -> str:
        """The name of the node's one output.

        Raises:
            UnsupportedError: the graph gives a second output of the node a name, to use it.
        """
        extra = [o for o in self.proto.output[1:] if o]
        if extra:
            raise self.unsupported("one output", f"a second one, {extra[0]}")
        return str(self.proto.output[0])

    def operand(self, index: int) -> str:
        """The name of the tensor in place ``index``."""
        name = self.optional(index)
        if name is None:
            raise self.error(f"an operand in place {index}", "none")
        return name

    def optional(self, index: int) -> str | None:
        """As :meth:`operand`, None where it is left out."""
        if index >= len(self.proto.input) or not self.proto.input[index]:
            return None
        name = str(self.proto.input[index])
        name = self.importer.alias.get(name, name)
        if name not in self.importer.tensors:
            raise self.error("operands defined before their use", name)
        return name

    def operands(self) -> tuple[str, ...]:
        """The names of all operands."""
        return tuple(self.operand(i) for i in range(len(self.proto.input)))

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return self.importer.tensors[self.operand(index)].shape

    def constant(self, index: int, what: str) -> Array:
        """The value of an operand that has to be known now."""
        name = self.operand(index)
        value = self.importer.known(name)
        if value is None:
            raise self.unsupported(f"a constant {what}", f"{name}, known only at run time")
        return value

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def real(self, name: str, default: float) -> float:
        """A float attribute."""
        return float(self.attributes.get(name, default))

    def integers(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """An attribute of integers."""
        return tuple(int(v) for v in self.attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def error(self, expected: str, found: object) -> ModelError:
        """The error that names this node."""
        return ModelError(self.where, expected, found)

    def unsupported(self, expected: str, found: object) -> UnsupportedError:
        """The error of a form that vdla doesn't have; onnxruntime then gets the node."""
        return UnsupportedError(self.where, expected, found)


def _halves(message: str) -> tuple[str, str]:
    """An "…: expected A, found B" message as its two halves."""
    expected, _, found = message.partition(", found ")
    return expected.rpartition("expected ")[2], found


def _end(view: OnnxNode) -> int | None:
    return view.integer("end", 0) if "end" in view.attributes else None


def _evaluate(view: OnnxNode, operands: Sequence[Array]) -> Array:
    """One node's value, by ONNX's own reference implementation."""
    from onnx.reference import ReferenceEvaluator

    node = view.proto
    names = [n for n in node.input if n]
    graph = onnx.helper.make_graph(
        [node],
        "fold",
        [onnx.helper.make_empty_tensor_value_info(n) for n in dict.fromkeys(names)],
        [onnx.helper.make_empty_tensor_value_info(node.output[0])],
    )
    opsets = [onnx.helper.make_opsetid("", view.importer.opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    try:
        result = ReferenceEvaluator(model).run(None, dict(zip(names, operands, strict=True)))
    except Exception as error:  # whatever the reference implementation trips over
        raise view.error("operands that can be computed", _first_line(error)) from None
    return np.asarray(result[0])
