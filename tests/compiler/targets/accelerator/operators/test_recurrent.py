"""Gates and cells of recurrent steps: the accelerator, the processor and the reference agree."""

from __future__ import annotations

import numpy as np
import pytest
from combinations import crossed
from one_node import check

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.fixed_point import HIGH, LOW
from vdla.compiler.graph.ops.recurrent import (
    QGates,
    QGruReset,
    QGruState,
    QLstmCell,
    QLstmState,
    QNarrow,
    factors_of,
)
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config
from vdla.isa.options.weights4 import has_weights4

TABLES = "table_bytes=2048"
CONFIGS = {
    "tiny": [TABLES],
    "paper-plus": [],
    "paper-ring": [TABLES],
    "narrow": [TABLES, "weights4=1"],
    "wide": [TABLES],
}
NAMES = {"name": "n", "output": "y"}
TO_BYTES = {"requant": Requant((2.0**-23,), 3)}
CELLS = {
    "lstm cell": (QLstmCell(**NAMES, gates="g", cell="c"), {"g": 4, "c": 1}),
    "lstm state": (QLstmState(**NAMES, gates="g", cell="c", **TO_BYTES), {"g": 4, "c": 1}),
    "gru reset": (QGruReset(**NAMES, gates="g", state="c", **TO_BYTES), {"g": 2, "c": 1}),
    "gru state": (
        QGruState(**NAMES, gates="g", fresh="f", state="c"), {"g": 2, "f": 1, "c": 1},
    ),
    "gru state behind weights": (
        QGruState(**NAMES, gates="g", fresh="f", state="c", inner="i"),
        {"g": 2, "f": 1, "c": 1, "i": 1},
    ),
    "narrow": (QNarrow(**NAMES, data="c", requant=Requant((2.0**-8,), -3)), {"c": 1}),
}  # fmt: skip


@pytest.fixture(params=CONFIGS, scope="module")
def config(request):
    return load_config(request.param, CONFIGS[request.param])


@pytest.mark.parametrize(("name", "vectors", "on"), crossed([*CELLS], [1, 3], [*CONFIGS]))
def test_cells(name, vectors, on):
    config, (node, counts) = load_config(on, CONFIGS[on]), CELLS[name]
    rng, hidden = np.random.default_rng(4), 19
    inputs = {
        key: rng.integers(LOW, HIGH + 1, (vectors * count, hidden), np.int32)
        for key, count in counts.items()
    }
    dtype = "int8" if node.requant else "int32"
    result = check(node, inputs, {}, TensorType((vectors, hidden), dtype), config)
    assert len(np.unique(result)) > hidden // 3


@pytest.mark.parametrize("added", [False, True], ids=["alone", "added"])
@pytest.mark.parametrize(("vectors", "hidden", "features"), [(1, 19, 70), (5, 32, 16), (2, 5, 6)])
def test_gates(vectors, hidden, features, added, config):
    rng = np.random.default_rng(5)
    most = 7 if has_weights4(config) else 127
    weight = rng.integers(-most, most + 1, (3, hidden, features)).astype(np.int8)
    bias = rng.integers(-30 * most, 30 * most, (3, hidden)).astype(np.int32)
    scale = rng.uniform(0.5, 1, (3, hidden)) * 30 / features / 2**13 * 127 / most
    bounds = np.abs(weight.astype(int)).sum(2) * 128 + np.abs(bias)
    before, after, factor = factors_of(scale, bounds)
    fields = {"weight": "w", "bias": "b", "factor": "f", "before": before, "after": after}
    node = QGates(**NAMES, data="x", addend="z" if added else None, **fields)
    shape = 3 * vectors, hidden
    inputs = {"x": rng.integers(-128, 128, (vectors, features), np.int8)}
    if added:
        inputs["z"] = rng.integers(-20000, 20000, shape, np.int32)
    constants = {"w": weight, "b": bias, "f": factor}
    result = check(node, inputs, constants, TensorType(shape, "int32"), config)
    assert 100 < np.abs(result).mean() < 20000


def reason(node, graph, config):
    module = compile_graph(graph, config, Options())
    return next(row["reason"] for row in module.metadata["placement"] if row["name"] == node.name)


def test_configs_without_tables():
    node, _ = CELLS["narrow"]
    kinds = {"c": TensorType((1, 8), "int32"), "y": TensorType((1, 8), "int8")}
    graph = Graph(("c",), ("y",), (node,), kinds, {})
    assert reason(node, graph, load_config("tiny")) == "config tiny has no two tables for functions"
    gates, constants = wide_gates(8)
    without = "config tiny has no tables for functions (table_bytes = 0)"
    assert reason(gates, graph_of(gates, constants), load_config("tiny")) == without


def test_weights_of_a_sum_that_wgt_does_not_hold():
    gates, constants = wide_gates(4096)
    expected = "4096 features, whose weights WGT doesn't hold"
    assert reason(gates, graph_of(gates, constants), load_config("paper-plus")) == expected


def wide_gates(features):
    """A product of one gate of four channels, and its constants."""
    fields = {"weight": "w", "bias": "b", "factor": "f", "before": 1, "after": 9}
    constants = {
        "w": np.ones((1, 4, features), np.int8),
        "b": np.zeros((1, 4), np.int32),
        "f": np.ones((1, 4), np.int32),
    }
    return QGates(**NAMES, data="x", **fields), constants


def graph_of(node, constants):
    tensors = {name: TensorType(a.shape, str(a.dtype)) for name, a in constants.items()}
    tensors["x"] = TensorType((1, constants["w"].shape[2]), "int8")
    tensors["y"] = TensorType((1, 4), "int32")
    return Graph(("x",), ("y",), (node,), tensors, constants)
