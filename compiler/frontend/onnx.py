"""ONNX to the typed graph.

``import_onnx`` reads a file, ``import_model`` a model in memory. Quantize and Dequantize nodes stay
where the file has them; the passes of :mod:`vdla.compiler.graph.passes` turn the islands between
them into integer operators. Nodes whose operands are all known now (shapes, folded weights) are
computed here.

Operators that vdla lacks, and forms of them, stay as they are, for onnxruntime
(:mod:`vdla.compiler.frontend.external`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from vdla.compiler.frontend.attributes import overlooked
from vdla.compiler.frontend.bodies import Body, body_of
from vdla.compiler.frontend.control import add_control, is_control
from vdla.compiler.frontend.custom import add_custom
from vdla.compiler.frontend.draft import DEFAULT_DOMAINS, TURNS, Draft, all_nodes, has_graphs
from vdla.compiler.frontend.errors import (
    LoopError,
    ModelError,
    UnsupportedError,
    first_line,
    halves,
)
from vdla.compiler.frontend.external import (
    add_external,
    add_open,
    is_random,
    reads_open,
)
from vdla.compiler.frontend.integers import INTEGER_OPERATORS, float_body
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.normal_form import is_defined, normalize
from vdla.compiler.frontend.ops import Converter, converter_of
from vdla.compiler.frontend.ops.storage import widened
from vdla.compiler.frontend.sequences import add_argument, add_structural, is_structural
from vdla.compiler.frontend.shapes import Shapes, input_values, static_shapes
from vdla.compiler.frontend.sizes import check_results, check_size
from vdla.compiler.frontend.sources import line_of, source_of
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.types import TENSOR_DTYPES, Array, TensorType
from vdla.compiler.user import REGISTERED
from vdla.runtime.values import Listed, Rows, Value, tensors_of
from vdla.support.machine import memory_bytes

QDQ = ("QuantizeLinear", "DequantizeLinear")


def import_onnx(
    path: str | Path,
    shapes: Shapes | None = None,
    floats: bool = False,
    strict: bool = False,
    turns: int = TURNS,
) -> Graph:
    """The graph of the model in ``path``.

    Args:
        path: an ONNX file.
        shapes: sizes that the file leaves open: whole shapes of inputs, or the sizes of symbolic
            dimensions, by name.
        floats: whether a model without QuantizeLinear and DequantizeLinear will do, and weights of
            recurrent operators that are floats stay so, as for a processor alone.
        strict: whether recurrent operators between quantized tensors stay float, and resizes of
            integers by means stay onnxruntime's.
        turns: how often a loop may run whose number of turns no constant says.

    Raises:
        ModelError: the file is not an ONNX model, not quantized, dynamic, or has an operator that
            no device can run.
    """
    model = load(path)
    where = source_of(model, str(path))
    graph = _graph(Importer(where, model, strict, turns, floats), shapes)
    if not floats and not is_quantized(model):
        expected = "a quantized (QDQ) model; `vdla quantize` makes one"
        raise ModelError(where, expected, "no QuantizeLinear or DequantizeLinear node")
    return graph


def load(path: str | Path) -> onnx.ModelProto:
    """The model in a file.

    Raises:
        ModelError: there is none, or its weights are more than this machine's memory holds.
    """
    path = Path(path)
    try:
        model = onnx.load(str(path), load_external_data=False)
        _check_size(model, path)
        onnx.load_external_data_for_model(model, str(path.parent))
        return model
    except ModelError:
        raise
    except FileNotFoundError:
        raise ModelError(str(path), "an ONNX file", "no file") from None
    except IsADirectoryError:
        raise ModelError(str(path), "an ONNX file", "a folder") from None
    except Exception as error:  # protobuf, external data and text decoding each raise their own
        raise ModelError(str(path), "an ONNX model", first_line(error)) from None


def _check_size(model: onnx.ModelProto, path: Path) -> None:
    """Raises ModelError where the files of a model's weights are larger than memory."""
    entries = (e for tensor in model.graph.initializer for e in tensor.external_data)
    names = {entry.value for entry in entries if entry.key == "location"}
    files = [path.parent / name for name in names]
    size = sum(file.stat().st_size for file in files if file.is_file())
    memory = memory_bytes()
    if size > memory:
        gib = f"{size / 2**30:.1f} GiB in {', '.join(sorted(names))}"
        raise ModelError(str(path), f"weights that fit into {memory / 2**30:.1f} GiB", gib)


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether some operators of a model stand between QuantizeLinear and DequantizeLinear, or are
    on quantized integers themselves."""
    kinds = {*QDQ, *INTEGER_OPERATORS}
    return any(node.op_type in kinds for node in all_nodes(model.graph.node))


def import_model(
    model: onnx.ModelProto,
    where: str = "model",
    shapes: Shapes | None = None,
    strict: bool = False,
    floats: bool = True,
) -> Graph:
    """The graph of a model in memory; ``where`` opens every error. See :func:`import_onnx`."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    return _graph(Importer(where, own, strict, floats=floats), shapes)


def _graph(importer: Importer, shapes: Shapes | None) -> Graph:
    """The graph of an importer's model, which is brought into the normal form in place."""
    model, where = importer.proto, importer.where
    _check(model, where)
    normalize(model, where, shapes)
    importer.begin()
    importer.read_constants(model.graph)
    importer.read_inputs(model, shapes)
    for index, node in enumerate(model.graph.node):
        importer.read_node(node, index)
    return importer.finish(model.graph)


def _check(model: onnx.ModelProto, where: str) -> None:
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(where, "an ONNX model", "no operators in it")
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in DEFAULT_DOMAINS and opset.version > newest:
            raise ModelError(where, f"opset {newest} or an earlier one", opset.version)


class Importer(Draft):
    """Reads a model into its draft, node by node."""

    def read_constants(self, graph: onnx.GraphProto) -> None:
        """The initializers, as arrays."""
        self.outputs = {o.name for o in graph.output}
        self.read |= self.outputs
        for sparse in graph.sparse_initializer:
            where = f"{self.where}: initializer {sparse.values.name}"
            raise ModelError(where, "a dense tensor", "a sparse one; write it dense")
        for tensor in graph.initializer:
            if tensor.data_type not in onnx.TensorProto.DataType.values():
                where = f"{self.where}: initializer {tensor.name}"
                raise ModelError(where, "an element type of ONNX", tensor.data_type)
            try:
                self.add_constant(tensor.name, numpy_helper.to_array(tensor))
            except Exception as error:  # numpy_helper checks little and raises anything
                where = f"{self.where}: initializer {tensor.name}"
                raise ModelError(where, "its declared elements", first_line(error)) from None

    def read_inputs(self, model: onnx.ModelProto, shapes: Shapes | None) -> None:
        """The inputs and their static shapes."""
        static = static_shapes(model, self.where, shapes)
        for value in input_values(model.graph):
            where = f"{self.where}: input {value.name}"
            if value.type.HasField("sequence_type") or value.type.HasField("optional_type"):
                given = (shapes or {}).get(value.name)
                self.arguments[value.name] = add_argument(self, value, given, where)
                continue
            if not value.type.HasField("tensor_type"):
                kind = str(value.type.WhichOneof("value")).removesuffix("_type")
                raise ModelError(where, "a tensor", f"one of type {kind}")
            dtype = self.dtype(value.type.tensor_type.elem_type)
            if dtype not in TENSOR_DTYPES:
                raise ModelError(where, f"elements of {', '.join(TENSOR_DTYPES)}", dtype)
            check_size(where, static[value.name], dtype)
            self.tensors[value.name] = TensorType(static[value.name], dtype)
            self.inputs.append(value.name)
            if 0 in static[value.name]:  # nothing is in it, so it is known
                self.empty[value.name] = np.zeros(static[value.name], dtype)

    def read_node(self, node: onnx.NodeProto, index: int) -> None:
        """Adds what one ONNX node means."""
        name = self.fresh(node.name or f"{node.op_type}_{index}")
        line = f", {line}" if (line := line_of(node)) else ""
        where = f"{self.where}: node {name} ({node.op_type}){line}"
        view = OnnxNode(self, node, name, where)
        if (registered := REGISTERED.get(f"{node.domain}::{node.op_type}")) is not None:
            add_custom(view, registered)
            return
        if is_random(node):
            raise view.error("a result that follows from the inputs", "random numbers")
        if is_structural(view):
            add_structural(view)
            return
        if reads_open(view) and not _is_decided(view):
            add_external(view, "it reads a tensor whose size depends on data")
            return
        check_results(view)
        if node.op_type not in QDQ and self.fold(view):
            return
        if is_control(node):
            self.choose(view)
            return
        if (body := widened(view)) is not None:
            self.insert(body)
            return
        if node.op_type == "QuantizeLinear":
            self.quantized[node.output[0]] = view.operand(1), view.optional(2) or ""
        elif (body := float_body(view)) is not None and self.try_insert(body):
            return
        if (converter := converter_of(view)) is not None:
            mark = self.mark()
            try:
                self.convert(view, converter)
            except UnsupportedError as error:
                self.reset(mark)
                self.hand_over(view, error)
        else:
            self.hand_over(view, None)

    def hand_over(self, view: OnnxNode, refusal: UnsupportedError | None) -> None:
        """Adds a node that vdla lacks: as those that ONNX defines it by, or for onnxruntime.

        Its own nodes come before onnxruntime's, and one of onnxruntime's before several.
        """
        mark = self.mark()
        expanded = self.try_expand(view)
        if expanded and not any(isinstance(n, ops.External) for n in self.nodes[mark[0] :]):
            return
        self.reset(mark)
        lacking = f"no operator {view.proto.op_type} here"
        reason = str(refusal).removeprefix(f"{view.where}: ") if refusal else lacking
        try:
            add_external(view, reason)
        except ModelError as error:
            self.reset(mark)
            if not expanded:
                raise refusal or error from None
            self.expand(view)

    def choose(self, view: OnnxNode) -> None:
        """Adds control flow: nodes that hold graphs, or onnxruntime's where some are refused."""
        mark = self.mark()
        try:
            if not (_is_decided(view) and self.expand(view)):
                add_control(view)
        except LoopError:
            raise
        except ModelError as refusal:
            self.reset(mark)
            try:
                add_external(view, str(refusal).removeprefix(f"{self.where}: "))
            except ModelError:
                raise refusal from None

    def try_expand(self, view: OnnxNode) -> bool:
        """Replaces a node by its definition; False without one, or where part is refused."""
        try:
            return self.expand(view)
        except ModelError:
            return False

    def expand(self, view: OnnxNode) -> bool:
        """Adds the nodes of ONNX's definition of a node; False where there is none."""
        body = body_of(view)
        if body is not None:
            self.insert(body)
        return body is not None

    def try_insert(self, body: Body) -> bool:
        """Adds the nodes of a body; False, and none of them, where one is refused."""
        mark = self.mark()
        try:
            self.insert(body)
        except ModelError:
            self.reset(mark)
            return False
        return True

    def insert(self, body: Body) -> None:
        """Adds the nodes of a body."""
        outer, self.opset = self.opset, body.opset
        try:
            self.read_nodes(body.nodes)
        finally:
            self.opset = outer

    def convert(self, view: OnnxNode, converter: Converter) -> None:
        """Adds a node of an operator that vdla has."""
        if (name := overlooked(view, converter)) is not None:
            value = view.text(name, "") if isinstance(view.attributes[name], bytes) else ""
            actual = f"{name} = {value or view.attributes[name]}"
            raise view.unsupported("attributes that vdla knows", actual)
        try:
            converter(view)
        except ModelError:
            raise
        except GraphError as error:
            raise ModelError(view.where, *halves(str(error))) from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ModelError(
                view.where, "attributes that fit its operands", first_line(error)
            ) from None

    def fold(self, view: OnnxNode) -> bool:
        """Computes a node now if everything it reads is known; False if it isn't."""
        node = view.proto
        if node.op_type == "Shape" and node.domain in DEFAULT_DOMAINS:
            shape = np.array(self.tensors[view.operand(0)].shape, np.int64)
            self.add_constant(node.output[0], shape[view.integer("start", 0) : _end(view)])
            return True
        if node.op_type == "Size" and node.domain in DEFAULT_DOMAINS:
            count = prod(self.tensors[view.operand(0)].shape)
            self.add_constant(node.output[0], np.array(count, np.int64))
            return True
        if node.domain not in DEFAULT_DOMAINS or has_graphs(node):
            return False
        if not is_defined(node.op_type, self.opset):
            return False
        operands = [self.alias.get(n, n) for n in node.input if n]
        known = {**self.empty, **self.constants}
        if not all(n in known for n in operands):
            return False
        for name, value in _evaluate(view, [known[n] for n in operands]).items():
            self.add_constant(name, value)
        return True

    def value(self, name: str) -> Value:
        """The value that an output is.

        Raises:
            ModelError: its size depends on data, beside outputs that are lists.
        """
        if name in self.prefixes:
            return Rows(*self.prefixes[name])
        if name in self.open:
            where = f"{self.where}: output {name}"
            raise ModelError(where, "outputs of known size beside sequences", "an open one")
        value = self.values.get(name, name)
        if isinstance(value, Listed):
            return Listed(tuple(self.value(e) if isinstance(e, str) else e for e in value.values))
        return value

    def finish(self, proto: onnx.GraphProto) -> Graph:
        """The checked graph."""
        names = [self.alias.get(value.name, value.name) for value in proto.output]
        lists = {name for name in names if name in self.values}
        for name, value in zip(names, proto.output, strict=True):
            if name not in self.tensors and name not in self.open and name not in lists:
                where = f"{self.where}: output {value.name}"
                raise ModelError(where, "a node that writes it", "none")
        outputs = [name for name in names if name not in self.open]
        open_ones = list(dict.fromkeys(name for name in names if name in self.open))
        values: dict[str, Value] = {}
        if lists or (open_ones and all(name in self.prefixes for name in open_ones)):
            values = {v.name: self.value(n) for n, v in zip(names, proto.output, strict=True)}
            outputs = list(dict.fromkeys(t for v in values.values() for t in tensors_of(v)))
        elif open_ones:
            outputs.append(add_open(self, open_ones, names))
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
            self.reasons,
            arguments=self.arguments,
            values=values,
        )
        try:
            return verify(graph)
        except GraphError as error:
            raise ModelError(self.where, *halves(str(error))) from None


def _is_decided(view: OnnxNode) -> bool:
    """Whether a node is an If whose condition is known, so that one of its branches is it."""
    if view.proto.op_type != "If":
        return False
    condition = view.draft.alias.get(view.proto.input[0], view.proto.input[0])
    return view.draft.known(condition) is not None


def _end(view: OnnxNode) -> int | None:
    return view.integer("end", 0) if "end" in view.attributes else None


def _evaluate(view: OnnxNode, operands: Sequence[Array]) -> dict[str, Array]:
    """One node's results by name, by ONNX's own reference implementation."""
    from onnx.reference import ReferenceEvaluator

    node = view.proto
    names = [n for n in node.input if n]
    graph = onnx.helper.make_graph(
        [node],
        "fold",
        [onnx.helper.make_empty_tensor_value_info(n) for n in dict.fromkeys(names)],
        [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n],
    )
    opsets = [onnx.helper.make_opsetid("", view.draft.opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            result = ReferenceEvaluator(model).run(None, dict(zip(names, operands, strict=True)))
    except Exception as error:  # whatever the reference implementation trips over
        raise view.error("operands that can be computed", first_line(error)) from None
    if any(value is None or isinstance(value, list) for value in result):
        raise view.error("a result that is a tensor", "a sequence or an optional value")
    if node.op_type == "ReduceMean" and not operands[0].size:
        result = [np.zeros_like(value) for value in result]  # as onnxruntime has it, and no NaN
    outputs = (n for n in node.output if n)
    return {name: np.asarray(value) for name, value in zip(outputs, result, strict=True)}
