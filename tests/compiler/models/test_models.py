"""The bundled models: their numbers against onnxruntime, their cache, the digits' accuracy."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from scripts import load_script

import vdla
from vdla.analysis.layers import layer_differences, unmatched
from vdla.analysis.ort import cosine, ort_run, ort_session, ort_tensors
from vdla.compiler.build import placed_graph
from vdla.compiler.frontend import ModelError, import_onnx
from vdla.compiler.frontend.shapes import NOTE
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.models import (
    DATA,
    MODELS,
    characters_test,
    digits_test,
    model_path,
    model_paths,
    networks,
    patches_accuracy,
    recurrent,
    scenes_test,
)
from vdla.compiler.models.builder import images
from vdla.compiler.models.networks import RESNET18_CONVS
from vdla.compiler.models.quantizer import quantize, quantize_model
from vdla.compiler.placement import processor_layers
from vdla.isa.config import load_config

FULL = load_config("paper-full")


@pytest.mark.parametrize("name", ["resnet18", "mobilenet", "digits"])
def test_layers_against_onnxruntime(name):
    path = model_path(name)
    graph = optimize(import_onnx(path))
    (key,) = graph.inputs
    x = {key: images(graph.tensors[key].shape, 1, 42)}
    tensors = ort_tensors(path, x)
    assert unmatched(graph, tensors) == []
    for layer in layer_differences(graph, tensors):
        assert layer.largest <= 1, layer
        assert layer.share <= 1e-3, layer


@pytest.mark.parametrize("name", ["resnet18", "mobilenet"])
def test_logits_are_like_a_trained_networks(name):
    """Not constant between images, not saturated, and stable under our other rounding."""
    path = model_path(name)
    graph = optimize(import_onnx(path))
    session = ort_session(path)
    pictures = images(networks.IMAGE, 4, 9)
    logits = [session.run(None, {"input": x[None]})[0].ravel() for x in pictures]
    assert max(np.corrcoef(logits)[np.triu_indices(4, 1)]) < 0.97
    assert all((x == x.max()).sum() < 3 for x in logits)
    ours = evaluate(graph, {"input": pictures[:1]})[graph.outputs[0]].ravel()
    assert cosine(ours, logits[0]) > 0.999


def test_resnet18_is_resnet18():
    graph = optimize(import_onnx(model_path("resnet18")))
    kinds = [n.op for n in graph.nodes]
    assert kinds.count("QConv2d") + kinds.count("QConv2d+Add") == 20
    assert kinds.count("QConv2d+Add") == 8
    assert not any(
        isinstance(n, ops.Conv2d | ops.Add | ops.MaxPool | ops.Dense) for n in graph.nodes
    )
    macs = sum(
        np.prod(graph.tensors[n.output].shape) * np.prod(graph.tensors[n.weight].shape[1:])
        for n in graph.nodes
        if hasattr(n, "weight")
    )
    assert macs == 1_814_073_344


def test_mobilenet_is_mobilenet():
    graph = optimize(import_onnx(model_path("mobilenet")))
    convs = [n for n in graph.nodes if isinstance(n, ops.QConv2d)]
    assert len(convs) == 27
    assert sum(n.groups > 1 for n in convs) == 13


def test_the_twelve_convolutions():
    paths = model_paths("resnet18-convs")
    assert list(paths) == [f"C{i}" for i in range(1, 13)]
    for shape in RESNET18_CONVS:
        graph = optimize(import_onnx(paths[shape.name]))
        assert [n.op for n in graph.nodes] == ["Quantize", "QConv2d", "Dequantize"]
        conv = graph.nodes[1]
        assert graph.tensors[conv.weight].shape == (
            shape.outputs, shape.inputs, shape.kernel, shape.kernel
        )  # fmt: skip
        out = graph.tensors[conv.output].shape
        assert out[2] == -(-shape.size // shape.stride)
        assert shape.macs == np.prod(out) * shape.inputs * shape.kernel**2


def test_one_convolution_against_onnxruntime():
    path = model_paths("resnet18-convs")["C8"]
    graph = optimize(import_onnx(path))
    (name,) = graph.inputs
    x = {name: images(graph.tensors[name].shape, 1, 1)}
    (layer,) = layer_differences(graph, ort_tensors(path, x))
    assert layer.largest <= 1
    assert layer.share <= 1e-3


def test_digits_accuracy():
    pictures, labels = digits_test()
    assert pictures.shape == (360, 1, 8, 8)
    assert pictures.dtype == np.float32
    path = model_path("digits")
    graph, session = optimize(import_onnx(path)), ort_session(path)
    ours = [evaluate(graph, {"image": x[None]})[graph.outputs[0]].argmax() for x in pictures]
    theirs = [session.run(None, {"image": x[None]})[0].argmax() for x in pictures]
    accuracy = np.mean(ours == labels)
    assert accuracy > 0.96
    assert abs(accuracy - np.mean(theirs == labels)) <= 0.003


@pytest.mark.long
def test_scenes_accuracy():
    """A trained U-Net of SiLUs keeps its accuracy in int8, of all pixels and of digits alone."""
    pictures, labels = scenes_test()
    assert pictures.shape == (64, 1, 32, 32)
    assert pictures.dtype == np.float32
    with np.load(DATA / "scenes_test.npz") as file:
        of_floats = file["float_accuracy"]
    module = vdla.compile("scenes", device="cpu")
    right = np.stack(
        [
            vdla.run(module, {"scene": x[None]}).outputs["classes"][0].argmax(axis=0) == y
            for x, y in zip(pictures, labels, strict=True)
        ]
    )
    digits = labels != 10
    assert of_floats[0] > 0.99
    assert right.mean() > of_floats[0] - 0.005
    assert right[digits].mean() > of_floats[1] - 0.005


def test_scenes_is_one_stream():
    """The accelerator with tables runs all of it; its pixels are the processor's, bit for bit."""
    pictures, _ = scenes_test()
    module = vdla.compile("scenes", "paper-plus")
    assert len(module.programs) == 1
    assert processor_layers(module.metadata["placement"])[0] == []
    scene = {"scene": pictures[:1]}
    want = vdla.run(vdla.compile("scenes", device="cpu"), scene).outputs["classes"]
    np.testing.assert_array_equal(vdla.run(module, scene).outputs["classes"], want)


def test_models_are_cached_and_rebuilt_alike(tmp_path, monkeypatch):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "cache"))
    path = model_paths("resnet18-convs")["C11"]
    assert tmp_path in path.parents
    first, stamp = path.read_bytes(), path.stat().st_mtime_ns
    assert model_paths("resnet18-convs")["C11"].stat().st_mtime_ns == stamp
    path.unlink()
    assert model_paths("resnet18-convs")["C11"].read_bytes() == first
    for damaged in (b"", first[:-1]):
        path.write_bytes(damaged)
        assert model_paths("resnet18-convs")["C11"].read_bytes() == first
    names = {f"C{i}.onnx" for i in range(1, 13)}
    assert {p.name for p in path.parent.iterdir()} == names | {f"{n}.sha256" for n in names}


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError) as caught:
        model_paths("resnet18-convs")
    assert re.fullmatch(
        rf"{tmp_path}/file/models/\w+: expected a folder that can be written "
        r"\(VDLA_CACHE names another\), found Not a directory",
        str(caught.value),
    )


OTHERS = ("mobilenetv3", "resnet18-nhwc", "speech-bilstm", "audio-encoder")
RECENT = ("dqn", "dcgan", "mobilenetv2", "efficientnet-lite0", "yolo-nano", "unet")


@pytest.mark.parametrize(
    "name",
    [
        "dqn",
        *(pytest.param(n, marks=pytest.mark.long) for n in RECENT if n not in ("dqn", "dcgan")),
    ],
)
def test_recent_networks_agree_with_onnxruntime(name):
    """Layer by layer: rounding differences grow on their way through weights that are random."""
    layers = vdla.check(name, samples=1, config="paper").layers
    assert layers
    assert all(d.largest <= 1 and d.share <= 2e-4 for d in layers)


def test_names():
    assert list(MODELS) == [
        "resnet18", "resnet18-convs", "mobilenet", "digits", "scenes", *RECENT, "characters",
        "patches", "lstm-lm", *OTHERS,
    ]  # fmt: skip
    with pytest.raises(KeyError):
        model_path("alexnet")


# --- recurrent networks --------------------------------------------------------------------------


def on_host(module):
    return {row["op"] for row in module.metadata["placement"] if row["device"] == "cpu"}


def test_characters_perplexity():
    """A trained LSTM keeps its perplexity in int8."""
    script = load_script("training/characters.py")
    texts, of_floats = characters_test()
    assert texts.shape == (32, 65)
    assert of_floats < 6
    module = vdla.compile("characters", device="cpu")
    logits = [vdla.run(module, {"characters": t[None, :-1]}).outputs["logits"] for t in texts]
    result = script.perplexity(np.concatenate(logits), texts[:, 1:])
    assert abs(result / of_floats - 1) < 0.02


def test_characters_is_one_stream():
    """The accelerator with tables runs all of it; logits are the processor's, bit for bit."""
    module = vdla.compile("characters", "paper-plus")
    assert len(module.programs) == 1
    assert on_host(module) == {"Gather", "Reshape", "Quantize", "Dequantize"}
    text = {"characters": characters_test()[0][:1, :-1]}
    want = vdla.run(vdla.compile("characters", device="cpu"), text).outputs["logits"]
    np.testing.assert_array_equal(vdla.run(module, text).outputs["logits"], want)


@pytest.mark.long
def test_language_model_is_one_stream():
    module = vdla.compile("lstm-lm", "paper-plus")
    assert len(module.programs) == 1
    assert on_host(module) == {"Gather", "Reshape", "Quantize", "Dequantize"}


def test_small_language_model(tmp_path):
    sizes = recurrent.LanguageSizes(steps=4, layers=2, hidden=24, words=40)
    samples = [{"input": x[None]} for x in recurrent.texts(sizes)]
    path = tmp_path / "model.onnx"
    quantize_model(recurrent.language_model(sizes).model("logits"), path, samples)
    module = vdla.compile(str(path), "paper-plus")
    assert len(module.programs) == 1
    result = vdla.run(module, samples[0]).outputs["logits"].ravel()
    wanted = ort_run(path, samples[0])["logits"].ravel()
    assert result @ wanted / np.sqrt((result @ result) * (wanted @ wanted)) > 0.995


# --- a vision transformer ------------------------------------------------------------------------


@pytest.mark.long
def test_patches_keep_their_accuracy():
    """In int8 as in floats, by half a point; the simulator gives what the graph means."""
    images, labels = digits_test()
    graph, _ = placed_graph(import_onnx(model_path("patches")), FULL)
    logits = [evaluate(graph, {"input": x[None]})[graph.outputs[0]] for x in images]
    accuracy = (np.concatenate(logits).argmax(1) == labels).mean()
    assert patches_accuracy() > 0.97
    assert accuracy >= patches_accuracy() - 0.005


@pytest.mark.long
def test_patches_is_one_stream():
    """Nothing is left to the host, and the simulator's logits are those of the graph."""
    module = vdla.compile("patches", FULL)
    assert len(module.programs) == 1
    assert on_host(module) == {"Quantize", "Dequantize"}
    image = {"input": digits_test()[0][:1]}
    graph, _ = placed_graph(import_onnx(model_path("patches")), FULL)
    want = evaluate(graph, image)[graph.outputs[0]]
    np.testing.assert_array_equal(vdla.run(module, image).outputs["head"], want)


# --- quantize ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def float_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("float") / "conv.onnx"
    onnx.save(networks.single_conv(RESNET18_CONVS[7]), str(path))
    return path


def test_quantize_writes_a_model_we_import(float_model, tmp_path):
    target = tmp_path / "q.onnx"
    samples = tmp_path / "samples.npz"
    np.savez(samples, input=images((1, 128, 28, 28), 2, 3))
    quantize(float_model, target, samples)
    assert [n.op for n in optimize(import_onnx(target)).nodes] == [
        "Quantize", "QConv2d", "Dequantize"
    ]  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["q.onnx", "samples.npz"]


def normalized_model():
    """Conv → BatchNormalization → Relu on a symbolic batch."""
    rng = np.random.default_rng(0)
    values = {"w": rng.standard_normal((8, 3, 3, 3)) / 5}
    values.update({k: rng.uniform(0.5, 1.5, 8) for k in "gbmv"})
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", *"gbmv"], ["n"], name="bn"),
        helper.make_node("Relu", ["n"], ["y"], name="relu"),
    ]
    ends = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)]
        for name, shape in (("x", ["N", 3, 8, 8]), ("y", ["N", 8, 6, 6]))
    ]
    weights = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in values.items()]
    graph = helper.make_graph(nodes, "normalized", *ends, weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_quantize_folds_batch_normalization(tmp_path):
    onnx.save(normalized_model(), str(tmp_path / "bn.onnx"))
    quantize(tmp_path / "bn.onnx", tmp_path / "q.onnx", shapes={"N": 1})
    graph = optimize(import_onnx(tmp_path / "q.onnx", {"N": 2}))
    assert [n.op for n in graph.nodes] == ["Quantize", "QConv2d", "Dequantize"]
    assert graph.tensors[graph.inputs[0]].shape == (2, 3, 8, 8)


def test_quantize_without_samples(float_model, tmp_path):
    quantize(float_model, tmp_path / "q.onnx")
    assert import_onnx(tmp_path / "q.onnx").inputs == ("input",)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.zeros((1, 128, 28, 28))}, "expected an array called input, found other"),
        (
            {"input": np.zeros((2, 3, 28, 28))},
            "expected input of shape [samples, 128, 28, 28], found [2, 3, 28, 28]",
        ),
    ],
)
def test_samples_that_do_not_fit(float_model, tmp_path, arrays, message):
    samples = tmp_path / "samples.npz"
    np.savez(samples, **arrays)
    with pytest.raises(ModelError, match=f"^{re.escape(f'{samples}: {message}')}$"):
        quantize(float_model, tmp_path / "q.onnx", samples)
    assert not (tmp_path / "q.onnx").exists()


def test_quantize_errors(float_model, tmp_path):
    target = tmp_path / "q.onnx"
    with pytest.raises(ModelError, match=r"none\.onnx: expected an ONNX file, found no file$"):
        quantize(tmp_path / "none.onnx", target)
    with pytest.raises(ModelError, match=r"none\.npz: expected an \.npz of .*, found no file$"):
        quantize(float_model, target, tmp_path / "none.npz")
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"PK nonsense")
    with pytest.raises(ModelError, match=r"bad\.npz: expected an \.npz of calibration samples"):
        quantize(float_model, target, bad)
    text = "expected a float model, found one that is quantized already$"
    with pytest.raises(ModelError, match=text):
        quantize(model_path("digits"), target)
    assert not target.exists()


def small_model(shape, opset=17):
    """Conv → Relu → GlobalAveragePool → Flatten → Gemm → Softmax, as a float model."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((8, 3, 3, 3)) / 5, "f": rng.standard_normal((8, 5)) / 3}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["v"], name="flat"),
        helper.make_node("MatMul", ["v", "f"], ["m"], name="fc"),
        helper.make_node("Softmax", ["m"], ["y"], name="soft", axis=1),
    ]
    ends = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size)]
        for name, size in (("x", shape), ("y", [shape[0], 5]))
    ]
    tensors = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "small", *ends, tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=min(8, opset - 4)
    )


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_quantize_of_an_old_opset(tmp_path, opset):
    """Scales per channel need opset 13: older models are converted first."""
    onnx.save(small_model([2, 3, 8, 8], opset), str(tmp_path / "f.onnx"))
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    graph = optimize(import_onnx(tmp_path / "q.onnx"))
    assert [n.op for n in graph.nodes if n.op.startswith("QC")] == ["QConv2d"]
    assert len(set(graph.node("conv").requant.scale)) == 8


@pytest.mark.parametrize("opset", [8, 13])
def test_quantize_of_ir_3(tmp_path, opset):
    """Which wants every initializer among the inputs, where the quantizer's own are not."""
    model = small_model([2, 3, 8, 8], opset)
    model.ir_version = 3
    for tensor in model.graph.initializer:
        model.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    onnx.save(model, str(tmp_path / "f.onnx"))
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    graph = import_onnx(tmp_path / "q.onnx")
    x = images((1, 3, 8, 8), 2, 5)
    written = onnx.load(str(tmp_path / "q.onnx"))
    assert written.ir_version == 7  # opset 13's
    (expected,) = ort_run(written, {"x": x}, fuse=False).values()
    actual = evaluate(graph, {"x": x})["y"]
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_quantize_of_an_opset_that_cannot_be_converted(tmp_path, monkeypatch):
    def refuse(model, version):
        raise RuntimeError("No Adapter for Upsample")

    monkeypatch.setattr(onnx.version_converter, "convert_version", refuse)
    onnx.save(small_model([2, 3, 8, 8], 12), str(tmp_path / "f.onnx"))
    with pytest.raises(ModelError) as caught:
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    assert str(caught.value) == (
        f"{tmp_path}/f.onnx: expected a model of opset 13 or one that can be converted to it, "
        "found opset 12: No Adapter for Upsample"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["f.onnx"]
    onnx.save(small_model([2, 3, 8, 8], 13), str(tmp_path / "f.onnx"))
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")  # as it is


@pytest.mark.parametrize("batch", [4, "N", -1])
def test_calibration_gives_the_sizes_and_fills_the_batch(tmp_path, batch):
    """Nine samples for a batch of four: the third portion repeats three."""
    onnx.save(small_model([batch, 3, "H" if batch == "N" else 8, 8]), str(tmp_path / "f.onnx"))
    np.savez(tmp_path / "x.npz", x=images((1, 3, 8, 8), 9, 3))
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "x.npz")
    shapes = None if batch == 4 else {"x": (4, 3, 8, 8)}
    graph = import_onnx(tmp_path / "q.onnx", shapes)
    assert graph.tensors["x"].shape == (4, 3, 8, 8)


def test_too_few_samples_for_the_batch(tmp_path):
    onnx.save(small_model([4, 3, 8, 8]), str(tmp_path / "f.onnx"))
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 3, 8, 8), np.float32))
    with pytest.raises(ModelError) as caught:
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", tmp_path / "x.npz")
    assert str(caught.value) == (
        f"{tmp_path}/x.npz: expected x of shape [samples, 3, 8, 8] and at least 4 samples, "
        "the model's batch, found [3, 3, 8, 8]"
    )


@pytest.mark.parametrize(
    ("size", "found"),
    [
        ("N", "'N' in dimension 0; give it: --shape N=SIZE"),
        (-1, "an unknown size in dimension 0; give it: --shape x=D0,3,8,8"),
        (None, "an unknown size in dimension 0; give it: --shape x=D0,3,8,8"),
    ],
)
def test_quantize_guesses_no_size(tmp_path, size, found):
    onnx.save(small_model([size, 3, 8, 8]), str(tmp_path / "f.onnx"))
    with pytest.raises(ModelError) as caught:
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    assert str(caught.value) == (
        f"{tmp_path}/f.onnx: input x: expected a static shape, found {found}"
    )
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", shapes={"x": (2, 3, 8, 8)})
    assert import_onnx(tmp_path / "q.onnx", {"x": (5, 3, 8, 8)}).tensors["y"].shape == (5, 5)


@pytest.mark.parametrize(
    ("size", "shapes"), [("N", {"N": 2}), ("N", {"x": (2, 3, 8, 8)}), (None, {"x": (2, 3, 8, 8)})]
)
def test_quantize_notes_sizes_that_are_given(tmp_path, size, shapes):
    """The next command needs no --shape, and may have another one."""
    onnx.save(small_model([size, 3, 8, 8]), str(tmp_path / "f.onnx"))
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", shapes=shapes)
    assert import_onnx(tmp_path / "q.onnx").tensors["y"].shape == (2, 5)
    assert import_onnx(tmp_path / "q.onnx", {"x": (5, 3, 8, 8)}).tensors["y"].shape == (5, 5)
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", samples(tmp_path), shapes)
    assert import_onnx(tmp_path / "q.onnx").tensors["y"].shape == (2, 5)


def samples(folder):
    """A calibration file of that model's input."""
    np.savez(folder / "c.npz", x=np.random.default_rng(0).standard_normal((4, 3, 8, 8)))
    return folder / "c.npz"


@pytest.mark.parametrize("note", ["", "{", "[]", '{"x": 3}', '{"x": [2]}', '{"x": ["N", 3, 8, 8]}',
                                  '{"x": [-1, 3, 8, 8]}', '{"x": [true, 3, 8, 8]}'])  # fmt: skip
def test_notes_that_say_nothing_are_passed_over(tmp_path, note):
    model = small_model(["N", 3, 8, 8])
    model.metadata_props.add(key=NOTE, value=note)
    onnx.save(model, str(tmp_path / "f.onnx"))
    with pytest.raises(ModelError, match="expected a static shape, found 'N' in dimension 0"):
        import_onnx(tmp_path / "f.onnx")


def test_all_that_onnxruntime_says_is_told(tmp_path):
    """Its first line is only where, the second what."""
    proto = small_model([1, 3, 8, 8])
    proto.graph.initializer[0].dims[:] = [8, 3, 3, 2]
    proto.graph.initializer[0].raw_data = np.zeros((8, 3, 3, 2), np.float32).tobytes()
    proto.graph.initializer[1].dims[:] = [7, 5]
    proto.graph.initializer[1].raw_data = np.zeros((7, 5), np.float32).tobytes()
    onnx.save(proto, str(tmp_path / "f.onnx"))
    with pytest.raises(ModelError, match=r"found .*[Ii]ncompatible dimensions") as caught:
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    assert "\n" not in str(caught.value)
