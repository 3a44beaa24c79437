"""Functions of the processor: every operator has one, equal ones are shared."""

from __future__ import annotations

import numpy as np
from nodes import run_kernel
from qdq import QdqModel

from vdla.compiler.build import Options
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ir, ops
from vdla.compiler.graph.ir import BY_OP
from vdla.compiler.graph.ops.dynamic_matmul import DynamicMatMul
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.accelerator.rewrites.layout import layout
from vdla.compiler.targets.functions import symbol_of
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.node_functions import node_functions
from vdla.compiler.targets.processor.target import ProcessorTarget
from vdla.compiler.targets.target import place

RNG = np.random.default_rng(11)


def test_every_operator_has_a_host_function():
    """But those of onnxruntime, those that hold graphs, and one that passes write out."""
    without = {cls for cls in BY_OP.values() if cls.express is ir.Node.express}
    control = {ops.If, ops.While, ops.Scan, ops.Call}
    assert without == {ops.External, ops.Open, *control, DynamicMatMul}


def small_network():
    m = QdqModel(1)
    x = m.conv(m.input("x", (1, 3, 6, 6)), 4, 3, activation="Relu")
    m.output(m.dense(m.flatten(m.max_pool(x, 2, 2)), 3))
    return optimize(import_model(m.model()))


def test_interpreter_and_native_code_agree_with_the_reference():
    graph = small_network()
    values = {"x": RNG.standard_normal((1, 3, 6, 6)).astype(np.float32), **graph.constants}
    want = evaluate(graph, {"x": values["x"]})
    for node in graph.nodes:
        for interpret in (False, True):
            got = run_kernel(graph, node, want, interpret)
            np.testing.assert_array_equal(got, want[node.output])


def test_a_kernels_name():
    graph = small_network()
    node = graph.nodes[1]
    assert node_function(node, graph).func.name == symbol_of("host_", node) == "host_conv4"


def test_equal_functions_are_shared_and_names_stay_apart():
    m = QdqModel(1)
    x = m.input("x", (1, 4, 4, 4), 0.5)
    m.output(m.max_pool(m.max_pool(x, 1, 1), 1, 1))
    graph = optimize(import_model(m.model()))
    kernels = node_functions(graph, place(graph, [ProcessorTarget(alone=True)]))
    pools = [k for n, k in kernels.items() if n.startswith("maxpool")]
    assert len(pools) == 2
    assert pools[0].func is pools[1].func
    assert pools[0].args != pools[1].args


def test_boundary_copies_of_a_laid_out_graph_compile():
    graph = small_network()
    config = type("C", (), {"block_in": 4, "block_out": 4})()
    laid, places = layout(graph, place(graph, Options().targets(config)), 4)
    x = {"x": RNG.standard_normal((1, 3, 6, 6)).astype(np.float32)}
    values = evaluate(laid, x)
    for node in laid.nodes:
        if places[node.name].device == "cpu":
            np.testing.assert_array_equal(run_kernel(laid, node, values), values[node.output])
