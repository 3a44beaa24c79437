"""One node, compiled for the processor, against what numpy computes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.reference import evaluate_node
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.tir.interp import run

RNG = np.random.default_rng(3)
NAMES = {"name": "n", "output": "y"}
IMAGE = (2, 5, 7, 6)
WINDOWS = st.fixed_dictionaries(
    {
        "strides": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "pads": st.tuples(*[st.integers(0, 2)] * 4),
        "dilations": st.tuples(st.integers(1, 2), st.integers(1, 2)),
    }
)


def check(node, *args, dtype=None, rtol=1e-6, known=()):
    """Compiled, and through its text; the result. Operands called as ``known`` are constants."""
    names = list(node.inputs)
    types = {n: TensorType(a.shape, str(a.dtype)) for n, a in zip(names, args, strict=True)}
    shape = node.result_shape([a.shape for a in args])
    types["y"] = TensorType(shape, dtype or str(args[0].dtype))
    constants = {n: a for n, a in zip(names, args, strict=True) if n in known}
    inputs = tuple(name for name in names if name not in known)
    graph = verify(Graph(inputs, ("y",), (node,), types, constants))
    again = parse_graph(format_graph(graph), beside(graph))
    assert again.nodes == (node,)
    want = node.evaluate(list(args), types["y"])
    assert (want.shape, str(want.dtype)) == (shape, types["y"].dtype)
    kernel = node_function(again.nodes[0], graph)
    given = {**dict(zip(names, args, strict=True)), **kernel.constants}
    found = np.empty(shape, types["y"].dtype)
    arrays = [np.array(given[name], order="C") for name in kernel.args[:-1]]
    jit([kernel.func])[kernel.func.name](*arrays, found)
    np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol)
    return found


def numbers(dtype, shape=(3, 4), low=-9, high=9):
    """A random array of a type."""
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.startswith("u") else low
    return RNG.integers(low, high, shape).astype(dtype)


def run_kernel(graph, node, values, interpret=False):
    """What the node's host function writes, given the tensors' values."""
    kernel = node_function(node, graph, "f")
    known = {**values, **kernel.constants}
    params = kernel.func.params
    arrays = [
        np.ascontiguousarray(known[name]).reshape(p.shape)
        for name, p in zip(kernel.args[:-1], params, strict=False)
    ]
    out = np.full(params[-1].shape, 77, params[-1].dtype)
    if interpret:
        run(kernel.func, [*arrays, out])
    else:
        jit([kernel.func])["f"](*arrays, out)
    return out.reshape(graph.tensors[node.output].physical)


def check_types(node, types, constants=None, exact=True):
    """Random operands through the reference and through the compiled function."""
    constants = constants or {}
    tensors = {n: TensorType(tuple(shape), dtype) for n, (dtype, *shape) in types.items()}
    tensors.update({n: TensorType(a.shape, str(a.dtype)) for n, a in constants.items()})
    values = dict(constants)
    for name in node.inputs:
        if name not in values:
            kind = tensors[name]
            integers = RNG.integers(-128, 128, kind.shape)
            values[name] = (
                RNG.standard_normal(kind.shape).astype(np.float32) * 3
                if kind.dtype == "float32"
                else (integers + (128 if kind.dtype == "uint8" else 0)).astype(kind.dtype)
            )
    graph = Graph(tuple(n for n in node.inputs if n not in constants), ("y",), (node,), tensors,
                  constants)  # fmt: skip
    want = evaluate_node(graph, node, [values[n] for n in node.inputs])
    got = run_kernel(graph, node, values)
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def narrowed(wide, scale, requant):
    """Wide integers at a scale of a requantization, whose products doubles have exactly."""
    steps = np.rint(wide.astype(np.float64) * np.float32(scale)) + requant.zero
    return np.clip(steps, requant.low, requant.high)
