"""``vdla.network``: files as functions of their weights and inputs, and their gradients."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import vdla
from vdla.analysis.ort import ort_run

RNG = np.random.default_rng(0)
EVERY = ["b", "cb", "cw", "fb", "fw", "g"]


def numbers(*shape):
    return (RNG.standard_normal(shape) * 0.4).astype(np.float32)


CONSTANTS = {
    "cw": numbers(4, 3, 3, 3), "cb": numbers(4), "g": numbers(4) + 1, "b": numbers(4),
    "m": numbers(4), "v": np.abs(numbers(4)) + 1, "fw": numbers(64, 5), "fb": numbers(5),
    "s": np.float32(1 / 64), "z": np.int8(0), "low": np.float32(-0.9),
}  # fmt: skip
LAYERS = [
    helper.make_node("Conv", ["x", "cw", "cb"], ["c"], pads=[1, 1, 1, 1]),
    helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"]),
    helper.make_node("Clip", ["n", "low"], ["r"]),
]
ROUNDED = [
    helper.make_node("QuantizeLinear", ["r", "s", "z"], ["q"]),
    helper.make_node("DequantizeLinear", ["q", "s", "z"], ["dq"]),
    helper.make_node("MaxPool", ["dq"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Flatten", ["p"], ["f"]),
    helper.make_node("Gemm", ["f", "fw", "fb"], ["y"]),
]


def saved(path, nodes, constants, inputs=(("x", ("n", 3, 8, 8)),), outputs=("y",), opset=17):
    """A file of a network."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, 1, shape) for name, shape in inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("network") / "small.onnx", LAYERS + ROUNDED, CONSTANTS)


@pytest.fixture(scope="module")
def net(path):
    return vdla.network(path)


def test_the_network_is_what_the_file_says(net, path):
    """With all weights given, or none."""
    assert sorted(net.weights) == EVERY
    for count in (1, 2):
        x = numbers(count, 3, 8, 8)
        wanted = ort_run(onnx.load(path), {"x": x})["y"]
        steps = np.abs(CONSTANTS["fw"]).max() / 64  # a rounding may turn
        for weights in (net.weights, {}):
            np.testing.assert_allclose(net(weights, x), wanted, atol=steps)
        np.testing.assert_allclose(net({}, x=x), wanted, atol=steps)


def test_gradients_in_weights_are_differences(tmp_path):
    """Of a network without rounding: by central differences of what onnxruntime computes."""
    nodes = [
        *LAYERS, helper.make_node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        *ROUNDED[3:],
    ]  # fmt: skip
    path = saved(tmp_path / "smooth.onnx", nodes, {**CONSTANTS, "low": np.float32(-99)})
    net, x, t = vdla.network(path), numbers(2, 3, 8, 8), numbers(2, 5)
    gradients = vdla.grad(lambda w: np.mean((net(w, x) - t) ** 2))(net.weights)
    assert sorted(gradients) == EVERY
    for name, gradient in gradients.items():
        step, place = 0.02, tuple(0 for _ in gradient.shape)
        ends = []
        for sign in (1, -1):
            moved = {n: np.array(v) for n, v in CONSTANTS.items()} | {"low": np.float32(-99)}
            moved[name][place] += sign * step
            other = onnx.load(saved(tmp_path / "moved.onnx", nodes, moved))
            y = ort_run(other, {"x": x})["y"].astype(np.float64)
            ends.append(np.mean((y - t) ** 2))
        wanted = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(gradient[place], wanted, atol=2e-4, rtol=2e-3)


def test_rounding_is_passed_straight_through_while_training(net):
    x, t = numbers(4, 3, 8, 8), numbers(4, 5)

    @vdla.fn
    def step(w):
        loss, d = vdla.value_and_grad(lambda w: np.mean((net(w, x) - t) ** 2))(w)
        return loss, {name: w[name] - 0.05 * d[name] for name in w}

    weights, losses = net.weights, []
    for _ in range(40):
        loss, weights = step(weights)
        losses.append(loss)
    assert losses[-1] < losses[0] / 4
    assert any((weights[name] != net.weights[name]).any() for name in ("cw", "g"))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_moves_of_integers_are_passed_through(tmp_path, dtype):
    """Between a rounding and its numbers; beyond a limit there is no gradient."""
    scale, zero = np.float32(0.05), dtype(3)
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
        helper.make_node("Concat", ["t", "t"], ["r"], axis=0),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    constants = {"w": np.ones((2, 3), np.float32), "s": scale, "z": zero}
    net = vdla.network(saved(tmp_path / "q.onnx", nodes, constants, (("x", (2, 3)),), opset=21))
    x = np.array([[0.5, -0.1, 1], [9e3, 0.3, 0.2]], np.float32)
    gradient = vdla.grad(lambda w: np.sum(net(w, x)))(net.weights)["w"]
    np.testing.assert_allclose(gradient, 2 * x * (x < 9e3), rtol=1e-6)


def test_some_weights_and_inputs_alone(net):
    """What isn't given is as the file has it."""
    x = numbers(1, 3, 8, 8)
    head = {"fb": net.weights["fb"]}
    d, dx = vdla.grad(lambda w, x: np.sum(net(w, x)), argnums=(0, 1))(head, x)
    np.testing.assert_array_equal(d["fb"], np.ones(5))
    assert dx.shape == x.shape
    assert np.abs(dx).max() > 0


def test_several_results_and_choices(tmp_path):
    """A loop of turns that are known and a choice have gradients inside a file, too."""
    tensor = helper.make_tensor_value_info
    turn = helper.make_graph(
        [helper.make_node("Mul", ["s", "w"], ["t"]), helper.make_node("Add", ["t", "row"], ["u"]),
         helper.make_node("Identity", ["u"], ["all"])],
        "turn", [tensor("s", 1, [2]), tensor("row", 1, [2])],
        [tensor("u", 1, [2]), tensor("all", 1, [2])],
    )  # fmt: skip
    sides = [
        helper.make_graph([helper.make_node(op, ["last"], [op])], op, [], [tensor(op, 1, [2])])
        for op in ("Sin", "Neg")
    ]
    nodes = [
        helper.make_node("Scan", ["h", "x"], ["last", "rows"], body=turn, num_scan_inputs=1),
        helper.make_node("ReduceSum", ["last"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["flag"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=sides[0], else_branch=sides[1]),
    ]
    constants = {"h": numbers(2), "w": numbers(2), "zero": np.float32(0)}
    path = saved(tmp_path / "loop.onnx", nodes, constants, (("x", (3, 2)),), ("y", "rows"))
    net = vdla.network(path)

    def plain(w, x):
        s, rows = w["h"], []
        for row in x:
            s = s * w["w"] + row
            rows.append(s)
        return (np.sin(s) if s.sum() > 0 else -s), np.stack(rows)

    for sign in (1, -1):
        x = sign * np.abs(numbers(3, 2))
        weights = {name: net.weights[name] for name in ("h", "w")}
        y, rows = net(weights, x)
        for actual, wanted in zip((y, rows), plain(weights, x), strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5)

        def loss(w, net=net, x=x):
            y, rows = net(w, x)
            return np.sum(y) + np.sum(rows * rows)

        gradients = vdla.grad(loss)(weights)
        for name, gradient in gradients.items():
            for place in range(2):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = {n: v.astype(np.float64) for n, v in weights.items()}
                    moved[name][place] += step
                    y, rows = plain(moved, x.astype(np.float64))
                    ends.append(y.sum() + (rows * rows).sum())
                np.testing.assert_allclose(gradient[place], (ends[0] - ends[1]) / 2e-5, rtol=1e-4)


def test_values_that_operators_are_made_with_are_no_weights(tmp_path):
    """A size that follows from floats, the scales of a Resize: they are constants."""
    nodes = [
        helper.make_node("Mul", ["w", "x"], ["m"]),
        helper.make_node("Resize", ["m", "", "scales"], ["r"]),
        helper.make_node("Mul", ["size", "half"], ["sizes"]),
        helper.make_node("Cast", ["sizes"], ["shape"], to=onnx.TensorProto.INT64),
        helper.make_node("Reshape", ["r", "shape"], ["y"]),
    ]
    constants = {
        "w": numbers(2), "scales": np.float32([1, 1, 2, 2]),
        "size": np.float32([8, 4]), "half": np.float32(0.5),
    }  # fmt: skip
    path = saved(tmp_path / "sizes.onnx", nodes, constants, (("x", (1, 1, 1, 2)),))
    net = vdla.network(path)
    assert list(net.weights) == ["w"]
    x = numbers(1, 1, 1, 2)
    d = vdla.grad(lambda w: np.sum(net(w, x)))(net.weights)
    np.testing.assert_allclose(d["w"], 4 * x.reshape(-1), rtol=1e-6)


REFUSALS = {
    "another name": (
        lambda net, x: net({"fw2": x}, x), "small.onnx: expected names of its weights, such as fw",
    ),
    "another shape": (
        lambda net, x: net({"fb": x}, x),
        "small.onnx: weight fb: expected float32[5], found float32[1, 3, 8, 8]",
    ),
    "another type": (
        lambda net, x: net({}, x.astype(np.float64)),
        "small.onnx: input x: expected float32[1, 3, 8, 8], found float64[1, 3, 8, 8]",
    ),
    "no input": (lambda net, x: net({}), "expected the inputs x, found 0 of them"),
    "another input": (lambda net, x: net({}, y=x), "expected the inputs x, found y"),
    "an input in the weights' place": (
        lambda net, x: net(x), "expected weights in a dict, as net.weights is, found",
    ),
    "a shape that doesn't fit": (
        lambda net, x: net({}, x[:, :2]), "expected a shape that fits the file's [n, 3, 8, 8]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSALS)
def test_refusals(net, why):
    call, line = REFUSALS[why]
    with pytest.raises(vdla.UserError) as caught:
        call(net, numbers(1, 3, 8, 8))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_operators_without_a_gradient_are_named_by_their_node(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["m"]),
        helper.make_node("Det", ["m"], ["y"], name="the_det"),
    ]
    path = saved(tmp_path / "det.onnx", nodes, {"w": numbers(2)}, (("x", (2, 2)),))
    net, x = vdla.network(path), numbers(2, 2)
    with pytest.raises(vdla.UserError, match=r"have a gradient, found Det, which is .*the_det$"):
        vdla.grad(lambda w: np.sum(net(w, x)))(net.weights)


def test_no_file():
    with pytest.raises(vdla.UserError, match=r"^nothing.onnx: expected an ONNX file or one of"):
        vdla.network("nothing.onnx")
