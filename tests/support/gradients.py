"""Gradients of graphs by differences of their results, in float64: the oracle of the rules."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from vdla.compiler.autodiff.reverse import Reverse
from vdla.compiler.graph.infer import verify_whole
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.compiler.tracing.arrays import Session, Trace
from vdla.compiler.tracing.control import tracing
from vdla.compiler.tracing.inline import inline

STEP = 1e-5


def one_node(node, operands, result="float32"):
    """A graph of one node; operands are arrays, by the names that it reads."""
    tensors = {name: TensorType(x.shape, str(x.dtype)) for name, x in operands.items()}
    shape = node.result_shape([tensors[name].shape for name in node.inputs])
    tensors["y"] = TensorType(shape, result)
    return Graph(tuple(operands), ("y",), (node,), tensors, {})


def check_node(kind, operands, constants=(), **fields):
    """Raises where a node's gradients aren't differences of its result.

    ``operands`` are arrays by the node's fields, or ``parts`` a list of them.
    """
    parts = operands.pop("parts", None)
    if parts is not None:
        operands = {f"x{n}": part for n, part in enumerate(parts)}
    read = {"parts": tuple(operands)} if parts is not None else {n: n for n in operands}
    node = kind(name="y", output="y", **read, **fields)
    graph = one_node(node, operands)
    known = {name: operands[name] for name in constants}
    inputs = {name: value for name, value in operands.items() if name not in known}
    check(replace(graph, inputs=tuple(inputs), constants=known), inputs)


def gradient_graph(graph, weights):
    """The graph of the gradients of ``Σ weights * result`` in all inputs of floats."""
    session = Session()
    trace = Trace(session.fresh("gradients"), "gradients", session)
    with tracing(trace):
        inputs = [trace.input(name, graph.tensors[name]) for name in graph.inputs]
        floats = [each for each in inputs if each.dtype.kind == "f"]
        results = inline(graph, inputs)
        walk = Reverse(trace, trace.nodes, [each.name for each in floats])
        for result, weight in zip(results, weights, strict=True):
            if weight is not None:
                walk.give(trace.own(result), result * 0 + weight.astype(str(result.dtype)))
        walk.run()
        outputs = [
            walk.gradients[each.name] if each.name in walk.gradients else each * 0
            for each in floats
        ]
        return verify_whole(trace.graph([trace.own(each) for each in outputs]))


def wide(graph):
    """The graph with float64 in the place of float32, in its regions, too."""

    def wider(kind):
        return replace(kind, dtype="float64") if kind.dtype == "float32" else kind

    def of_node(node):
        values = {field.name: getattr(node, field.name) for field in fields(node)}
        regions = {name: wide(each) for name, each in values.items() if isinstance(each, Graph)}
        return replace(node, **regions) if regions else node

    return replace(
        graph,
        nodes=tuple(map(of_node, graph.nodes)),
        tensors={name: wider(kind) for name, kind in graph.tensors.items()},
        constants={
            name: value.astype(np.float64) if value.dtype == np.float32 else value
            for name, value in graph.constants.items()
        },
    )


def differences(graph, inputs, weights, step=STEP):
    """The gradients of ``Σ weights * result`` by central differences."""

    def loss(values):
        result = evaluate(graph, values)
        pairs = zip(graph.outputs, weights, strict=True)
        return sum(np.sum(result[name] * w) for name, w in pairs if w is not None)

    gradients = []
    for name in graph.inputs:
        if inputs[name].dtype.kind != "f":
            continue
        result = np.zeros(inputs[name].shape)
        for place in np.ndindex(*result.shape):
            ends = []
            for sign in (1, -1):
                value = np.array(inputs[name])
                value[place] += sign * step
                ends.append(loss({**inputs, name: value}))
            result[place] = (ends[0] - ends[1]) / (2 * step)
        gradients.append(result)
    return gradients


def random_weights(graph, seed=0):
    """Weights of the results' elements in a loss; None for results that aren't floats."""
    rng, kinds = np.random.default_rng(seed), [graph.tensors[name] for name in graph.outputs]
    return [
        rng.standard_normal(kind.shape).astype(np.float32) if kind.dtype[:5] == "float" else None
        for kind in kinds
    ]


def wide_arrays(inputs):
    """Arrays with float64 in the place of float32."""
    return {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in inputs.items()}


def check(graph, inputs, seed=0, tolerance=1e-6):
    """Raises where gradients aren't differences of the results."""
    weights, whole, inputs = random_weights(graph, seed), wide(graph), wide_arrays(inputs)
    made = gradient_graph(graph, weights)
    values = evaluate(wide(made), {name: inputs[name] for name in graph.inputs})
    for name, wanted in zip(made.outputs, differences(whole, inputs, weights), strict=True):
        scale = max(np.abs(wanted).max(initial=0), 1)
        np.testing.assert_allclose(values[name], wanted, atol=tolerance * scale, rtol=0)
