"""Pruning by blocks: the weakest go, the rest stays; what is wrong writes nothing; zeros last."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla import api
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.zero_tiles import zero_share, zero_tiles
from vdla.compiler.models.pruning import Pruning, prune_model
from vdla.compiler.models.quantizer import quantize
from vdla.compiler.models.recipe import Recipe
from vdla.compiler.models.rounding import Moments, rounded
from vdla.options import Prune
from vdla.options.spelling import UsageError

SHAPES = {"conv": (32, 64, 3, 3), "gemm": (48, 32), "matmul": (48, 40), "deep": (40, 1, 3, 3)}


@pytest.fixture
def model(tmp_path):
    """A convolution, a depthwise one, and two dense layers whose weights lie either way."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(s).astype(np.float32) for name, s in SHAPES.items()}
    nodes = [
        helper.make_node("Conv", ["x", "conv"], ["a"], name="conv"),
        helper.make_node("GlobalAveragePool", ["a"], ["b"], name="mean"),
        helper.make_node("Flatten", ["b"], ["c"], name="flatten"),
        helper.make_node("Gemm", ["c", "gemm"], ["d"], name="gemm", transB=1),
        helper.make_node("MatMul", ["d", "matmul"], ["e"], name="matmul"),
        helper.make_node("Reshape", ["e", "shape"], ["f"], name="image"),
        helper.make_node("Conv", ["f", "deep"], ["y"], name="deep", group=40, pads=[1, 1, 1, 1]),
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    constants.append(numpy_helper.from_array(np.array([1, 40, 1, 1]), "shape"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 64, 4, 4))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 40, 1, 1))]
    graph = helper.make_graph(nodes, "layers", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "floats.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def weights(path):
    graph = onnx.load(path).graph
    arrays = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    return {name: array.T if name == "matmul" else array for name, array in arrays.items()}


def norms(weight, rows, columns):
    """L2 norm of each block, by a loop."""
    result = np.zeros(zero_tiles(weight, rows, columns).shape)
    for at in np.ndindex(result.shape):
        o, i = at[0] * rows, at[1] * columns
        result[at] = np.linalg.norm(weight[(slice(o, o + rows), slice(i, i + columns), *at[2:])])
    return result


@pytest.mark.parametrize("blocks", [(16, 16), (8, 32)])
def test_the_weakest_blocks_of_each_layer_are_zero(model, tmp_path, blocks):
    layers = api.prune(model, tmp_path / "p.onnx", Prune(blocks=blocks, share=0.75))
    before, after = weights(model), weights(tmp_path / "p.onnx")
    assert [layer.name for layer in layers] == ["conv", "gemm", "matmul"]
    np.testing.assert_array_equal(before["deep"], after["deep"])
    for layer in layers:
        strength, zero = (
            norms(before[layer.name], *blocks),
            zero_tiles(after[layer.name], *blocks),
        )
        assert zero.sum() == round(0.75 * zero.size) == layer.zero
        assert layer.blocks == zero.size
        assert strength[zero].max() <= strength[~zero].min()
        left = after[layer.name] != 0
        np.testing.assert_array_equal(before[layer.name][left], after[layer.name][left])
        energy = (after[layer.name] ** 2.0).sum() / (before[layer.name] ** 2.0).sum()
        assert layer.kept_share == pytest.approx(energy)


def test_only_the_layers_that_are_named(model, tmp_path):
    one = api.prune(model, tmp_path / "p.onnx", Prune(layers=("gemm",)))
    others = api.prune(model, tmp_path / "p.onnx", Prune(exclude=("gemm",)))
    assert [layer.name for layer in one] == ["gemm"]
    assert [layer.name for layer in others] == ["conv", "matmul"]
    assert zero_share(weights(tmp_path / "p.onnx")["gemm"], 16, 16) == 0


def test_weights_that_two_layers_share_are_pruned_once(model):
    proto = onnx.load(model)
    proto.graph.node.append(helper.make_node("Gemm", ["c", "gemm"], ["z"], name="gemm2", transB=1))
    names = [layer.name for layer in prune_model(proto, Pruning(0.5), "shared")]
    assert names == ["conv", "gemm", "matmul"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (Prune(share=0.0), "--share: expected a share between 0 and 1, found 0"),
        (Prune(share=1.0), "--share: expected a share between 0 and 1, found 1"),
        (Prune(blocks=(0, 16)), "--blocks: expected sizes of at least 1, found 0x16"),
        (Prune(layers=("gem",)), "expected a layer with constant weights, found gem; did you mean"),
        (Prune(exclude=("deep",)), "expected a layer with constant weights, found deep"),
        (Prune(layers=("gemm",), exclude=("gemm",)), "to prune, found none"),
    ],
)
def test_what_is_wrong_writes_nothing(model, tmp_path, options, error):
    with pytest.raises((UsageError, ModelError), match=error):
        api.prune(model, tmp_path / "p.onnx", options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["floats.onnx"]


def test_a_quantized_model_is_refused(model, tmp_path):
    quantize(model, tmp_path / "q.onnx")
    with pytest.raises(ModelError, match="expected a float model, found one that is quantized"):
        api.prune(model.parent / "q.onnx", tmp_path / "p.onnx")
    assert not (tmp_path / "p.onnx").exists()


def test_the_command(vdla, model, tmp_path):
    target = tmp_path / "p.onnx"
    asked = ("prune", model, "-o", target, "--share", "0.5", "--blocks")
    value = vdla(*asked, "8x8", "--json").json
    assert value["blocks"] == [8, 8]
    assert [layer["zero"] for layer in value["layers"]] == [0.5, 0.5, 0.5]
    assert "energy kept" in vdla(*asked, "8x8").out
    assert "--blocks: expected rows and columns, as 16x16, found '8'" in vdla(*asked, "8").err
    before = model.read_bytes()
    assert "write to another" in vdla("prune", model, "-o", model).err
    assert model.read_bytes() == before


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(gptq=True), Recipe(gptq=True, weights="int4")])
def test_quantizing_keeps_zeros(model, tmp_path, recipe):
    api.prune(model, tmp_path / "p.onnx", Prune(share=0.5))
    quantize(tmp_path / "p.onnx", tmp_path / "q.onnx", recipe=recipe)
    floats, codes = weights(tmp_path / "p.onnx"), weights(tmp_path / "q.onnx")
    for name in ("conv", "gemm", "matmul"):
        array = codes[f"{name}_quantized"]
        array = array.T if name == "matmul" else array
        assert (array.astype(int)[floats[name] == 0] == 0).all()
        assert zero_share(array, 16, 16) == zero_share(floats[name], 16, 16) > 0.4


def test_rounding_by_inputs_keeps_zeros():
    """The first input is twice the second: its weight's error, 0.4 steps, is 0.8 of the other."""
    moments = Moments(np.array([[[4.0, 2.0], [2.0, 1.001]]]), 1000)
    for second, code in ((0.02, 1), (0.0, 0)):
        rows = np.array([[[0.8, second]]])
        codes, _ = rounded(rows, np.full((1, 1), 2.0), moments, (-127, 127), rescaled=False)
        np.testing.assert_array_equal(codes, [[[0, code]]])
