"""Islands of 16 bits, as onnxruntime's quantizer writes them, on the accelerator."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.recipe import Recipe

ALL = Recipe(bits16_below=np.inf)
SHAPE = (1, 16, 10, 10)


class Floats:
    """A network of floats, node by node."""

    def __init__(self, seed=0):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def weight(self, name, *shape):
        value = self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)
        self.constants.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def node(self, op, data, name, **attributes):
        data = [data] if isinstance(data, str) else data
        self.nodes.append(helper.make_node(op, data, [name], name=name, **attributes))
        return name

    def conv(self, data, name, inputs, outputs, kernel=3, groups=1, **attributes):
        weight = self.weight(f"{name}.w", outputs, inputs // groups, kernel, kernel)
        pads = [kernel // 2] * 4
        names = [data, weight, self.weight(f"{name}.b", outputs)]
        return self.node("Conv", names, name, pads=pads, group=groups, **attributes)

    def model(self, output, shape, image=SHAPE):
        graph = helper.make_graph(
            self.nodes, "floats",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, image)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.constants,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network():
    """A residual block, a pool and a classifier."""
    f = Floats()
    first = f.node("Relu", f.conv("x", "c0", 16, 32), "r0")
    both = f.node("Add", [f.conv(first, "c1", 32, 32), first], "sum")
    last = f.conv(f.node("Clip", [both, *limits(f)], "r1"), "c2", 32, 24, 1, strides=[2, 2])
    pooled = f.node("Flatten", f.node("GlobalAveragePool", last, "pool"), "flat")
    names = [pooled, f.weight("fc.w", 10, 24), f.weight("fc.b", 10)]
    return f.model(f.node("Gemm", names, "y", transB=1), (1, 10))


def limits(f):
    for name, value in (("low", 0.0), ("high", 2.5)):
        f.constants.append(numpy_helper.from_array(np.float32(value), name))
    return "low", "high"


def samples(count=4, shape=SHAPE):
    rng = np.random.default_rng(1)
    return [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def unfused(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options).run(None, inputs)[0]


def placed(module):
    return {row["name"]: (row["op"], row["device"]) for row in module.metadata["placement"]}


def steps_apart(path, config, device="sim", **options):
    """Largest difference to onnxruntime's, in steps of 16 bits of its largest element."""
    module = vdla.compile(path, config=config, device=device, **options)
    (inputs,) = samples(1)
    (result,) = vdla.run(module, inputs, device=device).outputs.values()
    wanted = unfused(path, inputs)
    return np.abs(result - wanted).max() / np.abs(wanted).max() * 32767, placed(module)


@pytest.mark.parametrize("config", ["tiny", "paper-full"])
def test_a_network_of_sixteen_bits_is_onnxruntimes_within_a_few_steps(config, tmp_path):
    quantize_model(network(), tmp_path / "q.onnx", samples(), ALL)
    apart, nodes = steps_apart(tmp_path / "q.onnx", config)
    assert apart <= 8
    assert nodes["c1"] == ("QWideConv2d16to16", "vdla")
    assert nodes["sum"] == ("QByteSum", "vdla")
    assert {device for op, device in nodes.values() if op.startswith("QWide")} == {"vdla"}
    assert {op for op, device in nodes.values() if device == "cpu"} <= {
        "Quantize16", "QBytes", "Pack", "Unpack", "Dequantize16", "Dequantize",
    }  # fmt: skip


def test_a_residual_that_the_host_makes(tmp_path):
    """A sum of an image of the accelerator and one of a largest value, which is the host's."""
    f = Floats()
    first = f.node("Relu", f.conv("x", "c0", 16, 32), "r0")
    pool = f.node("MaxPool", first, "p", kernel_shape=[2, 2], strides=[2, 2])
    both = f.node("Add", [f.conv(pool, "c1", 32, 32), pool], "sum")
    model = f.model(f.conv(f.node("Relu", both, "r1"), "c2", 32, 24), (1, 24, 5, 5))
    quantize_model(model, tmp_path / "q.onnx", samples(), ALL)
    apart, nodes = steps_apart(tmp_path / "q.onnx", "paper-full")
    assert apart <= 8
    assert nodes["sum"] == ("QByteSum", "vdla")


def test_the_processor_keeps_the_files_scales(tmp_path):
    quantize_model(network(), tmp_path / "q.onnx", samples(), ALL)
    apart, nodes = steps_apart(tmp_path / "q.onnx", "tiny", "cpu")
    assert apart <= 1.01
    assert nodes["c1"] == ("Conv2d", "cpu")


def test_strict_leaves_floats(tmp_path):
    quantize_model(network(), tmp_path / "q.onnx", samples(), ALL)
    apart, nodes = steps_apart(tmp_path / "q.onnx", "tiny", strict=True)
    assert apart <= 1.01
    assert nodes["c1"] == ("Conv2d", "cpu")


@pytest.mark.parametrize("wide", [("r0",), ("c1",), ("r0", "c1"), ("sum", "r1"), ("x", "pool")])
def test_some_tensors_of_sixteen_bits(wide, tmp_path):
    """Of 8 bits to 16, back, and between: as near as the same network in int8 is."""
    quantize_model(network(), tmp_path / "q.onnx", samples(), Recipe(bits16=wide))
    apart, nodes = steps_apart(tmp_path / "q.onnx", "tiny")
    assert apart <= 2.5 * 256
    assert any(op.startswith("QWide") and device == "vdla" for op, device in nodes.values())
    assert not any(op in ("Conv2d", "Add", "Dense") for op, _ in nodes.values())


def with_zero_point(path, dtype):
    """The file with another zero point in each quantizer of 16 bits, and as many fewer steps."""
    model = onnx.load(str(path))
    kinds = {"int16": TensorProto.INT16, "uint16": TensorProto.UINT16}
    move = {"int16": 77, "uint16": 32768}[dtype]
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.INT16:
            zero = int(numpy_helper.to_array(tensor)) + move
            zero = np.clip(zero, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
            tensor.CopyFrom(helper.make_tensor(tensor.name, kinds[dtype], (), [int(zero)]))
    onnx.save(model, str(path))


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_zero_points_and_unsigned_numbers(dtype, tmp_path):
    quantize_model(network(), tmp_path / "q.onnx", samples(), ALL)
    with_zero_point(tmp_path / "q.onnx", dtype)
    apart, nodes = steps_apart(tmp_path / "q.onnx", "tiny")
    assert apart <= 12
    assert nodes["c1"] == ("QWideConv2d16to16", "vdla")


def test_few_channels_are_written_out_as_taps(tmp_path):
    f = Floats(3)
    model = f.model(f.conv("x", "y", 3, 16), (1, 16, 10, 10), (1, 3, 10, 10))
    quantize_model(model, tmp_path / "q.onnx", samples(4, (1, 3, 10, 10)), ALL)
    module = vdla.compile(tmp_path / "q.onnx", config="paper")
    (inputs,) = samples(1, (1, 3, 10, 10))
    (result,) = vdla.run(module, inputs).outputs.values()
    wanted = unfused(tmp_path / "q.onnx", inputs)
    assert np.abs(result - wanted).max() <= np.abs(wanted).max() * 4 / 32767
    assert placed(module)["y"] == ("QWideConv2d16to16", "vdla")


def test_a_result_of_too_fine_steps_stays_float(tmp_path):
    f = Floats(4)
    model = f.model(f.conv("x", "y", 16, 16, 1), (1, 16, 10, 10))
    recipe = Recipe(bits16=("y",), ranges={"y": (-1e-4, 1e-4)})
    quantize_model(model, tmp_path / "q.onnx", samples(), recipe)
    module = vdla.compile(tmp_path / "q.onnx", config="tiny")
    (row,) = (row for row in module.metadata["placement"] if row["name"] == "y")
    assert row["device"] == "cpu"
    assert "expected sums in units below 512 steps" in row["reason"]
