"""Operators that vdla lacks run on onnxruntime, beside the accelerator."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime import quantization
from qdq import QdqModel

import vdla as api
from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window

X = (1, 8, 6, 6)


def resample(m, x, size=(12, 12)):
    """Elements between others, at places that a constant tells."""
    grid = m.rng.uniform(-1, 1, (1, *size, 2)).astype(np.float32)
    grid = m.constant(f"grid{size[1]}", grid)
    return m.node("GridSample", [x, grid], (1, 8, *size), align_corners=1)


def cropped(m, x):
    """A form of an operator that vdla has, but not in this form."""
    roi = m.constant("roi", np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8], np.float32))
    scales = m.constant("scales", np.array([1, 1, 2, 2], np.float32))
    mode = "tf_crop_and_resize"
    return m.node(
        "Resize",
        [x, roi, scales],
        (1, 8, 12, 12),
        coordinate_transformation_mode=mode,
        mode="linear",
    )


def pad(m, x):
    pads = m.constant("pads", np.array([0, 0, 1, 2, 0, 0, 0, 1]))
    return m.node("Pad", [x, pads], (1, 8, 7, 9), mode="reflect")


def layer_norm(m, x):
    names = [m.constant(n, m.rng.standard_normal(6).astype(np.float32)) for n in ("g", "b")]
    return m.node("LayerNormalization", [x, *names], X, axis=-1)


def transposed(m, x):
    """Weights behind a DequantizeLinear, as quantizers write them."""
    weight, _ = m.weight("w", (8, 4, 3, 3), per_channel=False)
    return m.node("ConvTranspose", [x, weight], (1, 4, 13, 13), strides=[2, 2])


def conv1d(m, x):
    x = m.node("Reshape", [x, m.constant("shape", np.array([1, 8, 36]))], (1, 8, 36))
    weight, _ = m.weight("w", (5, 8, 3))
    x = m.node("Conv", [x, weight], (1, 5, 34), kernel_shape=[3])
    return m.node("Reshape", [x, m.constant("back", np.array([1, 5, 2, 17]))], (1, 5, 2, 17))


def split(m, x):
    """Two results, both read; the larger of each pair of halves by way of booleans."""
    m.nodes.append(helper.make_node("Split", [x], ["low", "high"], name="split", axis=1))
    m.shapes["low"] = m.shapes["high"] = (1, 4, 6, 6)
    above = m.node("Greater", ["low", "high"], (1, 4, 6, 6))
    return m.node("Where", [above, "low", "high"], (1, 4, 6, 6))


def greatest(m, x):
    """Of three tensors."""
    return m.node("Max", [x, x, m.constant("c", np.array(0.3, np.float32))], X)


def arg_max(m, x):
    """Integers between operators of onnxruntime."""
    best = m.node("ArgMax", [x], (1, 1, 6, 6), axis=1)
    return m.node("Cast", [best], (1, 1, 6, 6), to=TensorProto.FLOAT)


CASES = {
    case.__name__: case
    for case in (
        resample, cropped, pad, layer_norm, transposed, conv1d, split, greatest, arg_max
    )
}  # fmt: skip

ONNXRUNTIMES = ("resample", "cropped")  # the others are vdla's own


def network(case, dtype="int8"):
    """Convolution, the case's operators, their quantization, an addition of the result."""
    m = QdqModel(seed=4, dtype=dtype)
    x = m.conv(m.input("x", X), 8, Window.square(3))
    y = m.quantized(case(m, x), 0.11)
    m.output(m.conv(y, 8, 1))
    return m.model()


def values(seed=0):
    return {"x": np.random.default_rng(seed).standard_normal(X).astype(np.float32)}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_onnxruntimes(name, dtype):
    proto = network(CASES[name], dtype)
    graph = optimize(import_model(proto))
    assert any(isinstance(n, ops.External) for n in graph.nodes) == (name in ONNXRUNTIMES)
    (want,) = ort_run(proto, values(), fuse=False).values()
    (got,) = (evaluate(graph, values())[name] for name in graph.outputs)
    step = np.diff(np.unique(want)).min()
    assert np.abs(got - want).max() <= 1.01 * step
    assert (np.abs(got - want) > step / 2).mean() < 0.01


@pytest.mark.parametrize(
    "name", ["resample", *(pytest.param(n, marks=pytest.mark.long) for n in list(CASES)[1:])]
)
def test_commands_run_it(vdla, tmp_path, name):
    path, module = tmp_path / "m.onnx", tmp_path / "m.vdla"
    onnx.save(network(CASES[name]), path)
    assert vdla("compile", path, "-c", "tiny", "-o", module).code == 0
    outputs = [
        vdla("run", *options, "--json").json["outputs"]
        for options in ((path, "-c", "tiny"), (path, "--device", "cpu"), (module,))
    ]
    assert outputs[0] == outputs[1] == outputs[2]
    assert vdla("run", path, "-c", "tiny", "--check").code == 0


def test_the_placement_says_where_and_why(vdla, tmp_path):
    onnx.save(network(resample), tmp_path / "m.onnx")
    found = vdla("run", tmp_path / "m.onnx", "-c", "tiny", "--json").json
    (row,) = (row for row in found["placement"] if row["device"] == "onnxruntime")
    assert (row["op"], row["reason"]) == ("GridSample", "no operator GridSample here")
    assert found["host_layers"] == [row["name"]]
    onnx.save(network(cropped), tmp_path / "m.onnx")
    found = vdla("run", tmp_path / "m.onnx", "-c", "tiny", "--json").json
    (row,) = (row for row in found["placement"] if row["device"] == "onnxruntime")
    assert (row["op"], row["reason"]) == (
        "Resize", "expected coordinates of the whole image, found tf_crop_and_resize"
    )  # fmt: skip


def again(m, x):
    return resample(m, x, (13, 15))


def test_neighbours_are_one_island():
    graph = optimize(import_model(network(lambda m, x: again(m, cropped(m, x)))))
    (node,) = (node for node in graph.nodes if isinstance(node, ops.External))
    assert node.op == "Resize+GridSample"
    whole = "expected coordinates of the whole image, found tf_crop_and_resize"
    assert node.reason == f"{whole}; no operator GridSample here"


def test_two_results_are_two_nodes():
    def pooled(m, x):
        nodes = ["best", "where"]
        m.nodes.append(helper.make_node("MaxPool", [x], nodes, name="pool", kernel_shape=[2, 2]))
        m.shapes["best"] = m.shapes["where"] = (1, 8, 5, 5)
        where = m.node("Cast", ["where"], (1, 8, 5, 5), to=TensorProto.FLOAT)
        return m.node("Add", ["best", where], (1, 8, 5, 5))

    graph = optimize(import_model(network(pooled)))
    kinds = [node.op for node in graph.nodes if isinstance(node, ops.External)]
    assert kinds == ["MaxPool", "MaxPool"]  # one for each result


def test_what_others_read_stays_between_islands():
    """The first sample is read by the second and by a pool of ours: two steps, in their order."""

    def both(m, x):
        big = resample(m, x)
        small = m.node("MaxPool", [big], X, kernel_shape=[2, 2], strides=[2, 2])
        start, end = (m.constant(n, np.array(v)) for n, v in (("s0", [0, 0]), ("s1", [6, 6])))
        axes = m.constant("axes", np.array([2, 3]))
        cut = m.node("Slice", [again(m, big), start, end, axes], X)
        return m.node("Add", [small, cut], X)

    proto = network(both)
    graph = optimize(import_model(proto))
    kinds = [node.op for node in graph.nodes if isinstance(node, ops.External)]
    assert kinds == ["GridSample", "GridSample"]
    (want,) = ort_run(proto, values(), fuse=False).values()
    (got,) = (evaluate(graph, values())[name] for name in graph.outputs)
    assert np.abs(got - want).max() <= 1.01 * np.diff(np.unique(want)).min()


@pytest.mark.parametrize("name", CASES)
def test_a_module_survives_its_file(tmp_path, name):
    onnx.save(network(CASES[name]), tmp_path / "m.onnx")
    module = api.compile(tmp_path / "m.onnx", "tiny")
    module.save(tmp_path / "m.vdla")
    loaded = api.load(tmp_path / "m.vdla")
    assert loaded.external == module.external
    assert loaded.steps == module.steps


def test_a_boards_processor_has_no_onnxruntime(vdla, tmp_path):
    onnx.save(network(resample), tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="for onnxruntime"):
        api.compile(tmp_path / "m.onnx", "tiny", target="cortex-a9")
    line = vdla("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.vdla", "--target", "cortex-a53")
    if "linker" not in line.err:
        assert line.err.startswith("vdla: node gridsample")
        assert line.err.endswith(
            "(GridSample): expected operators that vdla compiles for cortex-a53, found one for "
            "onnxruntime (no operator GridSample here); this machine has it\n"
        )
    assert line.code == 2


def test_without_onnxruntime(monkeypatch, tmp_path, vdla):
    onnx.save(network(resample), tmp_path / "m.onnx")
    module = api.compile(tmp_path / "m.onnx", "tiny")
    module.save(tmp_path / "m.vdla")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = vdla("run", tmp_path / "m.vdla")
    assert done.code == 2
    assert done.err.endswith(
        ": expected the package onnxruntime, which runs operators that vdla lacks, found none; "
        "install with: pip install onnxruntime\n"
    )


def refused(*nodes, **tensors):
    """The importer's refusal of some nodes between x and y."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("N",))],
        [onnx.numpy_helper.from_array(v, k) for k, v in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    with pytest.raises(ValueError, match="expected") as caught:
        import_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), "m")
    return str(caught.value)


def test_what_onnxruntime_cannot_take_either():
    node = helper.make_node("Cast", ["x"], ["y"], name="it", to=TensorProto.STRING)
    assert refused(node).startswith("m: node it (Cast): output y: expected a tensor of float32, ")
    node = helper.make_node("Frobnicate", ["x"], ["y"], name="it", domain="com.acme")
    text = refused(node)
    assert text.startswith(
        "m: node it (Frobnicate): expected an operator that vdla or onnxruntime can run, "
        "found com.acme.Frobnicate: "
    )
    assert "not a registered function/op" in text


def quantized(path, **options):
    """A small float network, quantized by onnxruntime in another way than ``vdla quantize``."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((8, 8, 3, 3)).astype(np.float32) / 5
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)]
        for n, s in (("x", X), ("y", (1, 8, 4, 4)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(nodes, "g", *ends, [onnx.numpy_helper.from_array(weight, "w")])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)

    class Reader(quantization.CalibrationDataReader):
        samples = iter([values(seed) for seed in range(4)])

        def get_next(self):
            return next(self.samples, None)

    quantization.quantize_static(str(path), str(path), Reader(), **options)


@pytest.mark.parametrize(
    ("options", "kind", "device"),
    [
        ({"quant_format": quantization.QuantFormat.QOperator}, "QConv2d", "vdla"),
        (
            {
                "quant_format": quantization.QuantFormat.QDQ,
                "activation_type": quantization.QuantType.QInt16,
                "weight_type": quantization.QuantType.QInt8,
            },
            "QWideConv2d16to16",
            "vdla",
        ),
    ],
    ids=["operators", "int16"],
)
def test_other_ways_to_quantize(vdla, tmp_path, options, kind, device):
    """Operators on integers run as QDQ does; activations of 16 bits as two bytes."""
    quantized(tmp_path / "q.onnx", **options)
    found = vdla("run", tmp_path / "q.onnx", "-c", "tiny", "--json")
    assert found.code == 0, found.err
    kinds = [p["op"] for p in found.json["placement"] if p["device"] == device]
    assert any(kind in each for each in kinds)
    assert not [p for p in found.json["placement"] if p["device"] == "onnxruntime"]
    assert vdla("run", tmp_path / "q.onnx", "-c", "tiny", "--check").code == 0
