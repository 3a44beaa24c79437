"""Tensors whose size depends on data, and control flow: onnxruntime's, between vdla's own nodes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.errors import InputError
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.plan import Onnx, Open

F = np.float32
RNG = np.random.default_rng(3)
KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL,
         "s": TensorProto.STRING}  # fmt: skip


def value(text, shape):
    """The value info of "f y": floats called y."""
    return helper.make_tensor_value_info(text[2:], KINDS[text[0]], shape)


def op(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), outputs, **attributes)


def body(nodes, inputs, outputs, constants=None):
    """A graph inside a node."""
    ends = [[value(text, shape) for text, shape in group] for group in (inputs, outputs)]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    return helper.make_graph(nodes, "body", *ends, weights)


def model(nodes, inputs, outputs, constants=None):
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    results = [value(text, shape) for text, shape in outputs.items()]
    graph = helper.make_graph(nodes, "g", ends, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def compiled(proto):
    """A module that went through its file."""
    options = Options("cpu", processor=Processor(quick=True))
    module = compile_graph(import_model(proto, "m"), load_config("tiny"), options)
    return Module.from_bytes(module.to_bytes())


def check(nodes, inputs, outputs, constants=None):
    """The steps that onnxruntime runs; every output is what it gives for the whole model."""
    proto = model(nodes, inputs, outputs, constants)
    module = compiled(proto)
    found, want = Executor(module).run(inputs).outputs, ort_run(proto, inputs)
    assert list(found) == list(want) == module.results
    for name, array in want.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_allclose(found[name], array, atol=1e-5)
    return [step for step in module.steps if isinstance(step, Onnx | Open)]


X = RNG.standard_normal((4, 5)).astype(F)
BOXES = RNG.uniform(0, 1, (1, 6, 4)).astype(F)
SCORES = RNG.standard_normal((1, 1, 6)).astype(F)
SELECTION = {"k": np.array([3]), "iou": np.array([0.5], F), "least": np.array([0.2], F)}


def test_an_open_output():
    (step,) = check([op("Relu", "x", "r"), op("NonZero", "r", "y")], {"x": X}, {"i y": [2, None]})
    assert (step.name, step.args, step.results) == ("y.open", ("r", "y"), ("y",))


def test_open_outputs_between_static_ones():
    nodes = [
        op("Relu", "x", "r"), op("NonZero", "r", "z"), op("Transpose", "z", "y", perm=[1, 0]),
        op("Sigmoid", "r", "s"), op("Size", "z", "n"),
    ]  # fmt: skip
    outputs = {"i y": [None, 2], "f s": [4, 5], "i z": [2, None], "i n": []}
    size, rest = check(nodes, {"x": X}, outputs)
    assert (size.KIND, rest.results) == ("onnxruntime", ("y", "z"))
    assert rest.order == ("y", "s", "z", "n")


def test_a_static_shape_follows():
    """Then the rest is vdla's own again."""
    nodes = [
        op("Relu", "x", "r"), op("NonZero", "r", "z"), op("Cast", "z", "c", to=TensorProto.FLOAT),
        op("ReduceSum", "c axis", "q", keepdims=0), op("Exp", "q", "e"), op("Div", "e q", "y"),
    ]  # fmt: skip
    (step,) = check(nodes, {"x": X}, {"f y": [2]}, {"axis": np.array([1])})
    assert isinstance(step, Onnx)
    assert step.args == ("r", "q")


def test_boxes_that_are_selected():
    nodes = [
        op("Reshape", "b flat", "rows"), op("Sigmoid", "s", "scores"),
        op("NonMaxSuppression", "b scores k iou least", "chosen"),
        op("Gather", "chosen two", "column", axis=1), op("Squeeze", "column axis", "places"),
        op("Gather", "rows places", "y", axis=0),
    ]  # fmt: skip
    constants = {**SELECTION, "two": [2], "axis": [1], "flat": [6, 4]}
    (step,) = check(nodes, {"b": BOXES, "s": SCORES}, {"f y": [None, 4]}, constants)
    assert isinstance(step, Open)


def test_an_operator_of_static_shape_that_vdla_lacks():
    x, rois = RNG.standard_normal((1, 2, 8, 8)).astype(F), np.array([[0, 0, 3, 4], [1, 2, 5, 6]], F)
    nodes = [
        op("Relu", "x", "r"), op("RoiAlign", "r rois batch", "q", output_height=2, output_width=2),
        op("Exp", "q", "y"),
    ]  # fmt: skip
    constants = {"batch": np.array([0, 0])}
    (step,) = check(nodes, {"x": x, "rois": rois}, {"f y": [2, 2, 2, 2]}, constants)
    assert isinstance(step, Onnx)


def test_several_outputs_of_one_operator():
    outputs = {"f y": [None], "i count": [None], "i first": [None]}
    unique = helper.make_node("Unique", ["r"], ["y", "first", "", "count"], "it")
    (step,) = check([op("Relu", "x", "r"), unique], {"x": X}, outputs)
    assert step.results == ("y", "count", "first")


def loop():
    """Adds a vector to a state; every step gives the state times a tensor from outside."""
    state = ("f a", [4, 5])
    return body(
        [op("Add", "a k", "a2"), op("Identity", "c", "c2"), op("Mul", "a2 r", "o")],
        [("i i", []), ("b c", []), state], [("b c2", []), ("f a2", [4, 5]), ("f o", [4, 5])],
    )  # fmt: skip


@pytest.mark.parametrize("known", [True, False])
def test_loops(known):
    nodes = [op("Relu", "x", "r"), op("Loop", "n  x", "f o", body=loop()), op("Exp", "f", "y")]
    nodes[1].input[:] = ["n", "", "x"]
    count = {"n": np.array(3)}
    inputs = {"x": X} if known else {"x": X, **count}
    constants = {"k": np.ones(5, F), **(count if known else {})}
    assert not check(nodes, inputs, {"f y": [4, 5], "f o": [None, 4, 5]}, constants)


def test_a_loop_whose_results_meet_again():
    """One behind a size that isn't known: onnxruntime has the sum of the rows alone."""
    nodes = [
        op("Relu", "x", "r"), op("Loop", "n  x", "last all", body=loop()),
        op("ReduceSum", "all", "s", keepdims=0), op("Add", "last s", "y"),
    ]  # fmt: skip
    nodes[1].input[:] = ["n", "", "x"]
    (step,) = check(
        nodes, {"x": X, "n": np.array(3)}, {"f y": [4, 5]}, {"k": np.ones(5, F)}
    )  # fmt: skip
    assert step.args == ("all.rows", "last all.count", "s")


def nested():
    """A loop's body whose branches read a determinant, an input and a constant from outside."""
    more = body([op("Add", "a k", "t"), op("Mul", "t d", "u")], [], [("f u", [4, 5])])
    less = body([op("Mul", "a x", "v")], [], [("f v", [4, 5])])
    return body(
        [op("Identity", "c", "c2"), op("If", "b", "a2", then_branch=more, else_branch=less)],
        [("i i", []), ("b c", []), ("f a", [4, 5])], [("b c2", []), ("f a2", [4, 5])],
    )  # fmt: skip


def steps_of():
    """A scan's body that reads a determinant, an input and a constant from outside."""
    return body(
        [op("Mul", "s d", "s2"), op("Add", "e k", "t"), op("Add", "t w", "o")],
        [("f s", [5]), ("f e", [5])], [("f s2", [5]), ("f o", [5])],
    )  # fmt: skip


@pytest.mark.parametrize("taken", [True, False])
def test_a_body_reads_what_onnxruntime_gives(taken):
    nodes = [op("Det", "m", "d"), op("Loop", "n  x", "y", body=nested())]
    nodes[1].input[:] = ["n", "", "x"]
    inputs = {"x": X, "m": np.diag([2, 3]).astype(F), "n": np.array(2), "b": np.array(taken)}
    (step,) = check(nodes, inputs, {"f y": [4, 5]}, {"k": np.ones(5, F)})
    assert step.args == ("m", "d")


def test_a_scan_reads_what_onnxruntime_gives():
    scan = op("Scan", "w x", "z o", body=steps_of(), num_scan_inputs=1)
    inputs = {"x": X, "m": np.diag([2, 3]).astype(F), "w": X[0]}
    nodes = [op("Det", "m", "d"), scan, op("Exp", "o", "y")]
    (step,) = check(nodes, inputs, {"f y": [4, 5]}, {"k": np.ones(5, F)})
    assert step.args == ("m", "d")


def test_a_loop_of_constants_is_computed_while_importing():
    nodes = [op("Loop", "n  k", "f o", body=loop()), op("Add", "x o", "y")]
    nodes[0].input[:] = ["n", "", "a"]
    constants = {"n": np.array(2), "k": np.ones(5, F), "a": X, "r": X}
    assert not check(nodes, {"x": X}, {"f y": [2, 4, 5]}, constants)


def test_scans():
    inner = body(
        [op("Add", "s e", "s2"), op("Mul", "s2 k", "o")],
        [("f s", [5]), ("f e", [5])], [("f s2", [5]), ("f o", [5])],
    )  # fmt: skip
    nodes = [
        op("Relu", "x", "r"), op("Scan", "z r", "f o", body=inner, num_scan_inputs=1),
        op("Exp", "o", "y"),
    ]  # fmt: skip
    constants = {"k": np.full(5, 2, F), "z": np.zeros(5, F)}
    assert not check(nodes, {"x": X}, {"f y": [4, 5], "f f": [5]}, constants)


def test_sequences_inside():
    nodes = [
        op("Relu", "x", "r"), op("SplitToSequence", "r", "parts", axis=0),
        op("ConcatFromSequence", "parts", "y", axis=1),
    ]  # fmt: skip
    assert not check(nodes, {"x": X}, {"f y": [None, None]})


@pytest.mark.parametrize("taken", [True, False])
def test_branches_of_two_shapes(taken):
    wide = body([op("Add", "x rows", "b")], [], [("f b", None)], {"rows": np.ones((2, 5), F)})
    narrow = body([op("Mul", "x x", "b")], [], [("f b", None)])
    nodes = [op("If", "c", "y", then_branch=wide, else_branch=narrow)]
    for each in (wide, narrow):
        each.output[0].type.tensor_type.ClearField("shape")
    outputs = {"f y": [None, None] if taken else [None]}
    (step,) = check(nodes, {"x": X[0], "c": np.array(taken)}, outputs)
    assert isinstance(step, Open)


def test_a_branch_that_does_not_fit_the_sizes():
    """It need not, where it isn't taken; where it is, onnxruntime says so in one line."""
    odd = body([op("MatMul", "x w", "b")], [], [("f b", None)], {"w": np.ones((3, 3), F)})
    fitting = body([op("Mul", "x x", "b")], [], [("f b", None)])
    for each in (odd, fitting):
        each.output[0].type.tensor_type.ClearField("shape")
    proto = model(
        [op("If", "c", "y", then_branch=odd, else_branch=fitting)],
        {"x": X, "c": np.array(False)}, {"f y": [None, None]},
    )  # fmt: skip
    ready = Executor(compiled(proto))
    found = ready.run({"x": X, "c": np.array(False)}).outputs["y"]
    np.testing.assert_allclose(found, X * X, rtol=1e-6)
    with pytest.raises(InputError) as caught:
        ready.run({"x": X, "c": np.array(True)})
    opening = "step y.open: expected values that onnxruntime computes with, found "
    assert str(caught.value).startswith(opening)
    assert "\n" not in str(caught.value)


def test_what_is_known_of_the_shape_decides():
    """The condition follows from a shape: one branch alone is imported, as vdla's own nodes."""
    odd = body([op("NonZero", "x", "b")], [], [("i b", None)])
    fitting = body([op("Neg", "x", "b")], [], [("f b", None)])
    nodes = [
        op("Size", "x", "n"), op("Equal", "n twenty", "c"),
        op("If", "c", "y", then_branch=fitting, else_branch=odd),
    ]  # fmt: skip
    proto = model(nodes, {"x": X}, {"f y": [4, 5]}, {"twenty": np.array(20)})
    graph = import_model(proto, "m")
    assert [node.op for node in graph.nodes] == ["Unary"]


@pytest.mark.parametrize(("nodes", "outputs", "text"), [
    ([op("Relu", "x", "r"), op("Cast", "r", "y", to=TensorProto.STRING)], {"s y": [4, 5]},
     "node y (Cast): output y: expected a tensor of "),
    ([op("NonZero", "x", "z"), op("Bernoulli", "zf", "y"),
      op("Cast", "z", "zf", to=TensorProto.FLOAT)], {"f y": [2, None]},
     "node y (Bernoulli): expected a result that follows from the inputs, found random numbers"),
])  # fmt: skip
def test_refusals(nodes, outputs, text):
    nodes.sort(key=lambda node: node.op_type == "Bernoulli")
    with pytest.raises(ModelError) as caught:
        import_model(model(nodes, {"x": X}, outputs), "m")
    assert str(caught.value).startswith(f"m: {text}")
    assert "\n" not in str(caught.value)


def test_nodes_without_names_in_one_island():
    """Two islands become one, in which no two nodes have the same name."""
    nodes = [
        op("NonZero", "k", "a"), op("ReduceSum", "a one", "b", keepdims=0),
        op("NonZero", "b", "c"), op("ReduceSum", "c one", "y", keepdims=0),
    ]  # fmt: skip
    for node in nodes:
        node.name = ""
    steps = check(nodes, {"k": np.arange(5)}, {"i y": [1]}, {"one": np.array([1])})
    assert len(steps) == 1
