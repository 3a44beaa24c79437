"""Layers without their zero tiles: the reference's bits, fewer cycles, and where they aren't."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.graph.zero_tiles import zero_tiles
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d
from vdla.compiler.targets.accelerator.operators.sparse import SparseConv2d
from vdla.compiler.targets.accelerator.operators.template import operator_of, template_of
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import Config, load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

PAPER = load_config("paper")


def layer(shape, share, config=PAPER, *, batch=1, image=(), seed=0, **fields) -> Graph:
    """A graph of one layer with weights of a shape, of which a share of all tiles is zero."""
    rng = np.random.default_rng(seed)
    outs, ins, *taps = shape
    weight = rng.integers(-128, 128, shape).astype(np.int8)
    rows, columns = config.block_out, config.block_in
    tiles = -(-outs // rows), -(-ins // columns), *taps
    kept = rng.permutation(np.prod(tiles)).reshape(tiles) >= share * np.prod(tiles)
    weight *= kept.repeat(rows, 0).repeat(columns, 1)[:outs, :ins]
    bias = rng.integers(-1000, 1000, outs).astype(np.int32)
    names = {"name": "layer", "output": "y", "data": "x", "weight": "w", "bias": "b"}
    kind = ops.QConv2d if taps else ops.QDense
    scales = tuple(2.0**-12 * (1 + c % 3) for c in range(outs))
    node = kind(**names, zeros=(3,), requant=Requant(scales, -5), **fields)
    out = tuple(node.window([(), shape]).places(image)) if taps else ()
    tensors = {
        "x": TensorType((batch, ins, *image), "int8"), "y": TensorType((batch, outs, *out), "int8"),
        "w": TensorType(shape, "int8"), "b": TensorType(bias.shape, "int32"),
    }  # fmt: skip
    return Graph(("x",), ("y",), (node,), tensors, {"w": weight, "b": bias})


def cycles(graph: Graph, config: Config = PAPER, vthreads: int = 2) -> int:
    """Cycles of a graph, whose result is the reference's."""
    module = compile_graph(graph, config, Options(vthreads=vthreads))
    rng = np.random.default_rng(1)
    inputs = {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}
    result = Executor(module, SimDevice(config)).run(inputs)
    np.testing.assert_array_equal(result.outputs["y"], evaluate(graph, inputs)["y"])
    return result.cycles


def dense_cycles(graph: Graph, monkeypatch: pytest.MonkeyPatch, config: Config = PAPER) -> int:
    """Cycles of a graph with all tiles."""
    with monkeypatch.context() as patch:
        patch.setattr(SparseConv2d, "instead", lambda *_: None)
        return cycles(graph, config)


def is_sparse(graph: Graph, config: Config = PAPER) -> bool:
    return isinstance(template_of(graph.nodes[0], graph, config), SparseConv2d)


@pytest.mark.parametrize("config", ["paper", "paper-full"])
@pytest.mark.parametrize("shape", [(1024, 1024), (2048, 512)])
def test_a_dense_layer_of_80_percent_takes_a_quarter(shape, config, monkeypatch):
    graph = layer(shape, 0.8)
    whole = dense_cycles(graph, monkeypatch, load_config(config))
    assert 4 * cycles(graph, load_config(config)) <= whole


CONFIGS = ("tiny", "narrow", "nano", "ulx3s-wide", "paper-full", "paper-ring", "xc7z020")


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("shape", "batch"), [((96, 160), 1), ((70, 60), 3)])
def test_configs_agree_with_the_reference(name, shape, batch):
    config = load_config(name)
    graph = layer(shape, 0.75, config, batch=batch)
    assert is_sparse(graph, config)
    cycles(graph, config)


WINDOWS = {
    "1x1": ((64, 64, 1, 1), {}),
    "many outputs": ((300, 64, 1, 1), {}),
    "padded": ((40, 50, 3, 3), {"pads": (1, 1, 1, 1)}),
    "uneven": ((40, 50, 3, 2), {"pads": (0, 1, 2, 0), "strides": (2, 1)}),
    "dilated": ((40, 50, 2, 3), {"dilations": (1, 2), "strides": (1, 2)}),
}


@pytest.mark.parametrize("name", ["tiny", "narrow", "paper", "ulx3s-wide"])
@pytest.mark.parametrize("window", WINDOWS)
def test_convolutions_agree_with_the_reference(name, window):
    shape, fields = WINDOWS[window]
    config = load_config(name)
    graph = layer(shape, 0.9, config, image=(5, 6), batch=2, **fields)
    made = SparseConv2d.instead(graph.nodes[0], graph, config)
    if made is not None:
        cycles(graph, config)
    assert made is not None or name == "tiny"


@settings(max_examples=25, deadline=None)
@given(
    outs=st.integers(1, 40), ins=st.integers(2, 40), batch=st.integers(1, 2),
    share=st.floats(0.3, 1.0), seed=st.integers(0, 99), vthreads=st.integers(1, 3),
)  # fmt: skip
def test_any_pattern_agrees_with_the_reference(outs, ins, batch, share, seed, vthreads):
    config = load_config("tiny")
    graph = layer((outs, ins), share, config, batch=batch, seed=seed)
    with pytest.MonkeyPatch.context() as patch:  # whether it pays or not
        patch.setattr(SparseConv2d, "gains", lambda *_: True)
        cycles(graph, config, vthreads)


def test_a_layer_of_zeros_alone_is_its_biases():
    graph = layer((64, 64), 1.0)
    assert is_sparse(graph)
    cycles(graph)


def test_few_zero_tiles_change_nothing():
    graph = layer((256, 256), 0.2)
    assert isinstance(template_of(graph.nodes[0], graph, PAPER), Conv2d)


def test_zeros_that_fill_no_tile_change_nothing():
    graph = layer((256, 256), 0.0)
    graph.constants["w"][:, ::2] = 0
    assert not is_sparse(graph)


def test_sums_of_several_tiles_of_acc(monkeypatch):
    """Results that ACC doesn't hold at once, and rows that several LOADs of weights are for."""
    config = replace(PAPER, acc_bytes=64 * 40, wgt_bytes=256 * 8)
    graph = layer((512, 256), 0.7)
    assert is_sparse(graph, config)
    cycles(graph, config)


def test_micro_ops_stream(monkeypatch):
    """Where their buffer doesn't hold those of all tiles, in cycles that are few more."""
    graph, few = layer((512, 512), 0.8), replace(PAPER, uop_bytes=512)
    assert few.uop_depth < np.count_nonzero(~zero_tiles(graph.constants["w"], 16, 16))
    assert cycles(graph, few) < 1.1 * cycles(graph)


def test_what_the_buffers_dont_hold_stays_whole():
    graph = layer((64, 64), 0.8)
    assert is_sparse(graph)
    assert not is_sparse(graph, replace(PAPER, inp_bytes=32))


def test_the_report_names_the_share():
    module = compile_graph(layer((320, 160), 0.8), PAPER, Options())
    (row,) = (row for row in module.metadata["placement"] if row["name"] == "layer")
    assert row["reason"] == "dense layer with 80 % zero tiles on int8"


def test_bytes_and_operations_are_those_of_the_kept_tiles():
    graph = layer((320, 160), 0.8)
    node, whole = graph.nodes[0], Conv2d.of(graph.nodes[0], graph, PAPER)
    sparse = operator_of(node, graph, template_of(node, graph, PAPER), PAPER)
    dense = operator_of(node, graph, whole, PAPER)
    tiles = np.count_nonzero(~zero_tiles(graph.constants["w"], 16, 16), axis=1)
    kept = int(np.maximum(tiles, 1).sum()) * 256  # rows of zeros alone have one
    assert sparse.constants["layer%weight"].nbytes == sparse.macs == kept
    assert dense.dram_bytes - sparse.dram_bytes == dense.macs - sparse.macs == 320 * 160 - kept


@pytest.mark.parametrize("name", ["tiny", "paper", "ulx3s-wide"])
def test_the_checker_has_no_findings(name):
    config = load_config(name)
    graph = layer((70, 60), 0.7, config, batch=2)
    node = graph.nodes[0]
    operator = operator_of(node, graph, template_of(node, graph, config), config)
    assert isinstance(operator.template, SparseConv2d)
    tile = operator.template.best(config, 2)
    assert layer_program(operator, tile, config).check() == []
