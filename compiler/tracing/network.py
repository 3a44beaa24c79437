"""Networks of files as traced functions: of their weights, by name, and of their inputs.

net = Network(model, "model.onnx")
loss, d = vdla.value_and_grad(lambda w: np.mean((net(w, x) - y) ** 2))(net.weights)
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import onnx

from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.shapes import input_values, open_shape
from vdla.compiler.frontend.weights import weights_of, with_inputs
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.control import typed
from vdla.compiler.graph.types import Shape, TensorType
from vdla.compiler.tracing.arrays import STACK, Array, Values
from vdla.compiler.tracing.control import Value
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.fn import fn
from vdla.compiler.tracing.inline import inline
from vdla.compiler.tracing.nodes import array

Weights = Mapping[str, Value]
Key = tuple[frozenset[str], tuple[tuple[str, Shape], ...]]  # weights that are given; open shapes


class Network:
    """A network as a function: ``net(weights, *inputs)``, traced or with numpy's arrays.

    Attributes:
        weights: the file's weights of floats, by their names, as arrays.
        inputs: the names of the inputs, in their order.
    """

    def __init__(self, model: onnx.ModelProto, where: str) -> None:
        self.model, self.where = model, where
        self.weights: dict[str, Values] = weights_of(model)
        values = input_values(model.graph)
        self.inputs = [value.name for value in values]
        self._open = {
            value.name: None in shape or any(isinstance(size, str) for size in shape)
            for value, shape in zip(values, map(open_shape, values), strict=True)
        }
        self._graphs: dict[Key, Graph] = {}
        self._compiled = fn(self._write_out)

    def __repr__(self) -> str:
        return f"vdla.network({self.where})"

    def __call__(self, weights: Weights, *inputs: Value, **named: Value) -> Value:
        """The result, or a tuple where the network has several.

        Args:
            weights: arrays by the names of ``net.weights``; what is left out is as the file has it.
            inputs: arrays in the network's order.
            named: others by their names.

        Raises:
            TraceError: there is no such weight or input, or it is of another type or shape.
            ModelError: the network has what can't be a graph.
        """
        if not STACK.traces:
            return self._compiled(weights, *inputs, **named)
        return self._write_out(weights, *inputs, **named)

    def _write_out(self, weights: Weights, *inputs: Value, **named: Value) -> Value:
        """The results, in the innermost trace."""
        given = self._weights(weights) | self._inputs(inputs, named)
        shapes = {name: given[name].shape for name in self.inputs if self._open[name]}
        graph = self._graph(frozenset(weights), shapes)
        for name in self.inputs:
            self._check(f"input {name}", graph.tensors[name], given[name].type)
        stem = Path(self.where).stem or "network"
        results = inline(graph, [given[name] for name in graph.inputs], stem)
        return results[0] if len(results) == 1 else tuple(results)

    def _inputs(self, inputs: tuple[Value, ...], named: Mapping[str, Value]) -> dict[str, Array]:
        """The inputs, by name."""
        places = dict(zip(self.inputs, inputs, strict=False))
        names = {*places, *named}
        if len(inputs) + len(named) != len(self.inputs) or names != {*self.inputs}:
            unknown = [name for name in named if name not in self.inputs]
            actual = ", ".join(unknown) or f"{len(inputs) + len(named)} of them"
            raise TraceError(self.where, f"the inputs {', '.join(self.inputs)}", actual)
        return {name: array(value) for name, value in (places | {**named}).items()}

    def _weights(self, weights: Value) -> dict[str, Array]:
        """The weights that are given, by name."""
        if not isinstance(weights, Mapping):
            actual = type(weights).__name__
            raise TraceError(self.where, "weights in a dict, as net.weights is", actual)
        for name in weights:
            if name not in self.weights:
                near = get_close_matches(str(name), self.weights, 1) or list(self.weights)[:3]
                known = f"such as {', '.join(near)}" if near else "of which it has none"
                raise TraceError(self.where, f"names of its weights, {known}", name)
        result = {name: array(value) for name, value in weights.items()}
        for name, each in result.items():
            own = self.weights[name]
            self._check(f"weight {name}", TensorType(own.shape, str(own.dtype)), each.type)
        return result

    def _check(self, what: str, expected: TensorType, actual: TensorType) -> None:
        """Raises TraceError where an array is of another type."""
        if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
            raise TraceError(f"{self.where}: {what}", typed(expected), typed(actual))

    def _graph(self, names: frozenset[str], shapes: dict[str, Shape]) -> Graph:
        """The graph whose inputs are the network's and the weights of some names."""
        key = names, tuple(shapes.items())
        if key not in self._graphs:
            model = with_inputs(self.model, names)
            graph = import_model(model, self.where, shapes or None, strict=True)
            if {*graph.inputs} != {*self.inputs, *names}:
                actual = "lists of tensors, or optional ones"
                raise TraceError(self.where, "inputs that are tensors", actual)
            self._graphs[key] = graph
        return self._graphs[key]
