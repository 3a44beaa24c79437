"""Subgraphs, variables and LSTMs beside LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_files import Graph, Op, T, file_of, known, one
from tflite_reference import compare, drawn, interpreter, litert

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.tflite import initial_values, translate

IMAGE = (1, 4, 4, 2)


def branch(name):
    return Graph([T((2, 3)), T((2, 3))], [Op(name, [0], [1])], [0], [1])


@pytest.mark.parametrize("truth", [True, False])
def test_a_condition_chooses_a_subgraph(truth):
    main = Graph(
        [T((1,), "bool"), T((2, 3)), T((2, 3))],
        [Op("IF", [0, 1], [2], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})],
        [0, 1],
        [2],
    )
    data = file_of(main, branch("NEG"), branch("EXP"))
    inputs = {"t0": np.array([truth]), "t1": np.ones((2, 3), np.float32)}
    compare(data, inputs=inputs)


def test_a_loop_runs_as_often_as_a_subgraph_says():
    options = {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2}
    state = [T((1,), "int32"), T((2, 3))]
    main = Graph(
        [*state, *state], [Op("WHILE", [0, 1], [2, 3], "WhileOptions", options)], [0, 1], [2, 3]
    )
    condition = Graph([*state, known([5]), T((1,), "bool")], [Op("LESS", [0, 2], [3])], [0, 1], [3])
    body = Graph(
        [*state, known([1]), *state],
        [Op("ADD", [0, 2], [3], "AddOptions"), Op("ADD", [1, 1], [4], "AddOptions")],
        [0, 1],
        [3, 4],
    )
    inputs = {"t0": np.array([1], np.int32), "t1": np.ones((2, 3), np.float32)}
    compare(file_of(main, condition, body), inputs=inputs)


def test_a_subgraph_within_itself_is_refused():
    options = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1}
    main = Graph(
        [T((1,), "bool"), T((2,)), T((2,))],
        [Op("IF", [0, 1], [2], "IfOptions", options)],
        [0, 1],
        [2],
    )
    inner = Graph(
        [T((2,)), known([True], "bool"), T((2,))],
        [Op("IF", [1, 0], [2], "IfOptions", options)],
        [0],
        [2],
    )
    with pytest.raises(ModelError) as error:
        translate(file_of(main, inner), "m.tflite")
    assert str(error.value) == (
        "m.tflite: subgraph 1: operator 0 (IF) that makes t2: expected subgraphs that don't "
        "contain themselves, found subgraph 1 in itself"
    )


# Variables ---------------------------------------------------------------------------------------


def streaming(behind="CONV_2D"):
    """A window of four rows that moves by one row each run, and a convolution over it."""
    scale = {"scale": 0.05, "zero": 3}
    row, window = T((1, 1, 4, 2), "int8", **scale), T((1, 4, 4, 2), "int8", **scale)
    rows = T((1, 5, 4, 2), "int8", **scale)
    weight = T((3, 2, 2, 2), "int8", 0.01, data=np.arange(24) - 11)
    result = T((1, 4, 3, 3), "int8", 0.1, -2)
    bounds = [known(each) for each in ([0, 1, 0, 0], [1, 5, 4, 2], [1, 1, 1, 1])]
    tensors = [row, T((), "resource"), window, rows, *bounds, window, weight,
               T((3,), "int32", 0.0005, data=[5, -9, 40]), result]  # fmt: skip
    handle = ("VarHandleOptions", {"SharedName": "window"})
    ops = [
        Op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1}),
        Op("VAR_HANDLE", [], [1], *handle),
        Op("READ_VARIABLE", [1], [2]),
        Op("CONCATENATION", [2, 0], [3], "ConcatenationOptions", {"Axis": 1}),
        Op("STRIDED_SLICE", [3, 4, 5, 6], [7], "StridedSliceOptions"),
        Op("ASSIGN_VARIABLE", [1, 7], []),
        Op(behind, [3, 8, 9], [10], "Conv2DOptions", {"StrideH": 1, "StrideW": 1, "Padding": 1}),
    ]
    main = Graph(tensors, ops, [0], [10])
    first = T(window.shape, "int8", data=np.full(window.shape, 3), **scale)
    once = [Op("VAR_HANDLE", [], [0], *handle), Op("ASSIGN_VARIABLE", [0, 1], [])]
    return file_of(main, Graph([T((), "resource"), first], once, [], []))


def test_a_variable_goes_in_and_out():
    data = streaming()
    model, it = translate(data, "m.tflite"), interpreter(data)
    assert [i.name for i in model.graph.input] == ["t0", "window"]
    assert [o.name for o in model.graph.output] == ["t10", "window.next"]
    assert model.graph.input[1].doc_string == "a variable of the TFLite file, at first 3 everywhere"
    state = initial_values(model)
    assert state["window"].shape == (1, 2, 4, 4)  # channels first
    details = it.get_input_details()
    for run in range(6):
        inputs = drawn(details, run)
        it.set_tensor(details[0]["index"], inputs["t0"])
        it.invoke()
        outputs = ort_run(model, {**inputs, **state})
        state = {"window": outputs["window.next"]}
        expected = it.get_tensor(it.get_output_details()[0]["index"]).astype(int)
        assert np.abs(outputs["t10"].astype(int) - expected).max() <= 1


def test_a_variable_that_no_convolution_reads_has_the_files_shape():
    handle = ("VarHandleOptions", {"SharedName": "sum", "Container": "box"})
    tensors = [T((2, 3)), T((), "resource"), T((2, 3)), T((2, 3))]
    ops = [
        Op("VAR_HANDLE", [], [1], *handle),
        Op("READ_VARIABLE", [1], [2]),
        Op("ADD", [0, 2], [3], "AddOptions"),
        Op("ASSIGN_VARIABLE", [1, 3], []),
    ]
    model = translate(file_of(Graph(tensors, ops, [0], [3])), "m")
    assert [i.name for i in model.graph.input] == ["t0", "box/sum"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    outputs = ort_run(model, {"t0": x, "box/sum": x})
    assert np.array_equal(outputs["box/sum.next"], 2 * x)
    assert np.array_equal(outputs["t3"], 2 * x)
    assert not initial_values(model)["box/sum"].any()


# LSTM --------------------------------------------------------------------------------------------


def lstm(steps, clip, major=False):
    rng = np.random.default_rng(3)
    size, hidden, batch = 5, 4, 2
    shape = (steps, batch, size) if major else (batch, steps, size)

    def weight(*sizes):
        return T(sizes, data=rng.normal(size=sizes) * 2)

    state = [T((batch, hidden)) for _ in range(2)]
    inputs = [
        T(shape),
        *[weight(hidden, size) for _ in range(4)],
        *[weight(hidden, hidden) for _ in range(4)],
        *[None] * 3,
        *[weight(hidden) for _ in range(4)],
        *[None] * 2,
        *state,
        *[None] * 4,
    ]
    result = T((*shape[:2], hidden))
    fields = {"FusedActivationFunction": 4, "CellClip": clip, "TimeMajor": major}
    options = "UnidirectionalSequenceLSTMOptions"
    return inputs, result, options, fields


@pytest.mark.parametrize("major", [False, True])
@pytest.mark.parametrize(("steps", "clip"), [(6, 0.0), (6, 10.0), (6, 0.5)])
def test_an_lstm_from_zeros(steps, clip, major):
    inputs, result, options, fields = lstm(steps, clip, major)
    tensors = [each or T([0]) for each in inputs] + [result]
    read = [i if each is not None else -1 for i, each in enumerate(inputs)]
    op = Op("UNIDIRECTIONAL_SEQUENCE_LSTM", read, [len(inputs)], options, fields)
    variable = {18, 19}
    data = file_of(Graph(tensors, [op], [0], [len(inputs)]), variables=variable)
    given = drawn(interpreter(data).get_input_details())
    expected = litert(data, given)
    actual = ort_run(translate(data, "m"), given)
    assert np.abs(actual["t24"] - expected["t24"]).max() <= 1e-5


def test_what_an_lstm_lacks_is_said():
    inputs, result, options, fields = lstm(6, 0.0)
    inputs[9] = T((4,), data=np.ones(4))
    with pytest.raises(ModelError, match="four gates and tanh, as Keras has them, found peepholes"):
        translate(one("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [result], options, **fields), "m")
