"""The GPU as a target: what it takes, what it leaves, and that its results are the processor's."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from scripts import load_script

import vdla
from tests.support.random_graphs import float_model, quantized, sample
from vdla.api.modules import random_inputs
from vdla.compiler.build import Options, compile_model
from vdla.compiler.models import networks
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.gpu.description import Gpu
from vdla.isa.config import load_config
from vdla.names.models import model_file
from vdla.runtime.executor import Executor

sequences = load_script("benchmarks/sequences.py")
pytest.importorskip("pyopencl", reason="pip install 'vdla[gpu]'")


def saved(model, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return path


def outputs(model, inputs, **options):
    return vdla.run(model, inputs, **options).outputs


def check_same(path, inputs, exact=False, within=1e-4):
    """The GPU's results are the processor's; of floats, within a part of the largest."""
    wanted, found = (outputs(path, inputs, device=device) for device in ("cpu", "gpu"))
    for name, want in wanted.items():
        if exact or want.dtype.kind in "iub":
            np.testing.assert_array_equal(found[name], want)
        else:
            scale = np.abs(want).max(initial=1e-6)
            error = np.abs(found[name].astype(np.float64) - want).max(initial=0)
            assert error / scale < within, name


def inputs_of(path):
    return random_inputs(vdla.compile(path, device="cpu"))


def halved(model):
    """A network with float16 in the place of float32."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    inside = [a.t for node in graph.node for a in node.attribute if a.HasField("t")]
    for tensor in (*graph.initializer, *inside):
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16), tensor.name))
    return found


def test_digits_are_the_processors_bit_for_bit():
    check_same("digits", inputs_of("digits"), exact=True)


@pytest.mark.long
def test_a_transformer(tmp_path):
    path = saved(sequences.encoder(), tmp_path)
    check_same(path, inputs_of(path))


@pytest.mark.parametrize(
    "network",
    [sequences.encoder, networks.mobilenet],
    ids=["encoder", "mobilenet"],
)
@pytest.mark.long
def test_networks_of_halves(network, tmp_path):
    path = saved(halved(network()), tmp_path)
    check_same(path, inputs_of(path), within=1e-2)


@pytest.mark.long
@pytest.mark.parametrize("network", ["resnet18", "mobilenet"])
def test_networks_of_integers(network):
    check_same(network, inputs_of(network), exact=True)


@pytest.mark.long
@pytest.mark.parametrize("network", ["resnet18", "mobilenet"])
def test_networks_of_floats(network, tmp_path):
    path = saved(getattr(networks, network)(), tmp_path)
    check_same(path, inputs_of(path))


@pytest.mark.parametrize("seed", range(3))
def test_random_graphs(seed, tmp_path):
    model = float_model(seed + 3700)
    check_same(saved(model, tmp_path), sample(model, 1))


def test_the_rest_of_the_graph_beside_the_accelerator():
    x = inputs_of("digits")
    wanted = outputs("digits", x, device="sim")
    module = vdla.compile("digits", device="sim", host="gpu")
    devices = {row["device"] for row in module.metadata["placement"]}
    assert devices == {"vdla", "gpu", "cpu"}
    found = vdla.run(module, x, device="sim").outputs
    np.testing.assert_array_equal(found["logits"], wanted["logits"])


def test_copies_are_where_devices_meet():
    module = vdla.compile("digits", device="gpu", places={"pool1": "cpu"})
    result = Executor(module).run(random_inputs(module))
    steps = [(step.kind, step.name) for step in result.steps]
    conv, pool = next(s.args for s in module.steps if s.name == "pool1")
    assert steps == [
        ("copy", "image to gpu"),
        ("gpu", "image_QuantizeLinear"),
        ("gpu", "conv1"),
        ("copy", f"{conv} to cpu"),
        ("host", "pool1"),
        ("copy", f"{pool} to gpu"),
        ("gpu", "conv2"),
        ("gpu", "pool2"),
        ("gpu", "fc"),
        ("gpu", "logits_DequantizeLinear"),
        ("copy", "logits to cpu"),
    ]


def test_the_user_places_nodes():
    module = vdla.compile("digits", device="gpu", places={"pool1": "cpu"})
    rows = {row["name"]: row for row in module.metadata["placement"]}
    assert rows["pool1"]["device"] == "cpu"
    assert rows["pool1"]["reason"] == "the user placed it there"
    assert rows["conv1"]["device"] == "gpu"


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (
            {"pol1": "cpu"},
            "--place pol1=cpu: expected a node's name, as pool1, pool2, conv1, found pol1",
        ),
        ({"pool1": "vdla"}, "--place pool1=vdla: expected one of gpu, cpu, found vdla"),
    ],
)
def test_places_that_there_are_not(places, message):
    with pytest.raises(TargetError) as error:
        vdla.compile("digits", device="gpu", places=places)
    assert str(error.value) == message


def test_what_a_gpu_cannot_hold_goes_to_the_processor():
    options = Options("gpu", gpu=Gpu(group=4))
    module = compile_model(model_file("digits"), load_config("tiny"), options)
    rows = {row["name"]: row for row in module.metadata["placement"]}
    assert rows["conv1"]["device"] == "cpu"
    assert "expected at most 4 threads of a group, found" in rows["conv1"]["reason"]


def test_a_module_keeps_its_kernels(tmp_path):
    module = vdla.compile("digits", device="gpu")
    module.save(tmp_path / "digits.vdla")
    loaded = vdla.load(tmp_path / "digits.vdla")
    assert loaded.kernels == module.kernels
    assert loaded.steps == module.steps


def test_integers_of_random_graphs(tmp_path):
    model = quantized(float_model(3710, integer=True), 1)
    check_same(saved(model, tmp_path), sample(model, 1))
