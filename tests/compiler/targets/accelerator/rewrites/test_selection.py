"""Moves as convolutions of zeros and ones: which become some, and that the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.selection import select_channels
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

PAPER, TINY = load_config("paper"), load_config("tiny")
IMAGE = (1, 6, 5, 7)


def taken(channels, rows=range(5), columns=range(7), shape=IMAGE, fill=0) -> Graph:
    """A graph of one QTake."""
    tables = [range(shape[0]), channels, rows, columns]
    out = tuple(map(len, tables))
    places = tuple(int(place) for table in tables for place in table)
    node = ops.QTake(name="n", output="y", data="x", shape=out, places=places, fill=fill)
    tensors = {"x": TensorType(shape, "int8"), "y": TensorType(out, "int8")}
    return Graph(("x",), ("y",), (node,), tensors)


def joined(*sizes, low=-128, high=127) -> Graph:
    """A graph of one QConcat of channels."""
    names = tuple(f"x{number}" for number in range(len(sizes)))
    scales = tuple((0.7, 1.0, 1.9)[n % 3] for n in range(len(sizes)))
    zeros = tuple((3, 0, -8)[n % 3] for n in range(len(sizes)))
    requant = Requant(scales, -4, low, high)
    node = ops.QConcat(name="n", output="y", parts=names, axis=1, zeros=zeros, requant=requant)
    shapes = {n: (1, size, 5, 7) for n, size in zip(names, sizes, strict=True)}
    shapes["y"] = (1, sum(sizes), 5, 7)
    return Graph(names, ("y",), (node,), {n: TensorType(s, "int8") for n, s in shapes.items()})


def kinds(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def values_of(graph: Graph, seed=0):
    rng = np.random.default_rng(seed)
    return {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}


def check(graph: Graph, config, expected) -> None:
    """The rewritten graph and the simulator give what the graph means."""
    after = verify(select_channels(graph, Capability(config)))
    assert kinds(after) == expected
    inputs = values_of(graph)
    want = evaluate(graph, inputs)["y"]
    np.testing.assert_array_equal(evaluate(after, inputs)["y"], want)
    module = compile_graph(graph, config)
    got = Executor(module, SimDevice(config)).run(inputs).outputs["y"]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "tables",
    [
        {"channels": [5, 3, 1, 0, 2, 4]},
        {"channels": [2, 2, 4]},
        {"channels": range(1, 4)},
        {"channels": range(6), "rows": range(0, 5, 2)},
        {"channels": range(6), "rows": range(1, 5, 2), "columns": range(2, 7, 3)},
        {"channels": range(6), "rows": range(1, 4), "columns": range(3, 7)},
        {"channels": range(6), "rows": [-1, 0, 1, 2, 3, 4, -1, -1], "fill": -7},
        {"channels": [0, -1, 3], "columns": [-1, -1, *range(7)], "fill": 9},
        {"channels": range(6), "rows": [4]},
    ],
    ids=str,
)
def test_takes(tables):
    check(taken(**tables), TINY, ["Move"])


@pytest.mark.parametrize(
    "tables",
    [
        {"channels": range(6), "rows": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]},  # upsampling
        {"channels": range(6), "rows": [4, 3, 2, 1, 0]},  # from the bottom up
        {"channels": range(6), "rows": [0, 1, 3, 4]},
        {"channels": range(6), "rows": [0, 1, -1, 3, 4]},
        {"channels": range(6), "rows": [-1, -1]},
    ],
    ids=str,
)
def test_other_takes_stay(tables):
    graph = taken(**tables)
    assert kinds(select_channels(graph, Capability(TINY))) == ["QTake"]


def test_far_rows_stay():
    """A window of so many rows would cost more than the copy."""
    graph = taken(range(6), rows=range(40, 45), shape=(1, 6, 50, 7))
    assert kinds(select_channels(graph, Capability(TINY))) == ["QTake"]


def test_few_channels_stay():
    graph = taken([1, 0], shape=(1, 2, 5, 7))
    assert kinds(select_channels(graph, Capability(PAPER))) == ["QTake"]


@pytest.mark.parametrize("sizes", [(6, 5), (3, 4, 6), (4, 3, 2), (5, 5, 5, 5)], ids=str)
def test_concatenations(sizes):
    check(joined(*sizes), TINY, ["Move", *["Move+Add"] * (len(sizes) - 1)])
    check(joined(*sizes, low=-4, high=60), TINY, ["Move", *["Move+Add"] * (len(sizes) - 1)])


def test_whole_blocks_are_joined_by_addresses():
    assert kinds(select_channels(joined(4, 8, 3), Capability(TINY))) == ["QConcat"]


def test_moves_count_no_products():
    module = compile_graph(joined(6, 5), TINY)
    assert [layer["macs"] for layer in module.metadata["layers"]] == [0, 0]
    reasons = {row["reason"] for row in module.metadata["placement"] if row["device"] == "vdla"}
    assert reasons == {"elements moved by a convolution on int8"}


@settings(max_examples=25)
@given(data=st.data())
def test_any_take_keeps_its_elements(data):
    """Rows and columns with a first place, a step and a padding of any size; channels anyhow."""
    tables = {}
    for axis, size in (("rows", 5), ("columns", 7)):
        step, first = data.draw(st.integers(1, 3)), data.draw(st.integers(-3, size - 1))
        count = data.draw(st.integers(1, 9))
        places = [first + step * n for n in range(count)]
        tables[axis] = [place if 0 <= place < size else -1 for place in places]
    channels = data.draw(st.lists(st.integers(-1, 5), min_size=1, max_size=9))
    graph = taken(channels, **tables, fill=data.draw(st.integers(-128, 127)))
    after = verify(select_channels(graph, Capability(TINY)))
    inputs = values_of(graph)
    np.testing.assert_array_equal(evaluate(after, inputs)["y"], evaluate(graph, inputs)["y"])
