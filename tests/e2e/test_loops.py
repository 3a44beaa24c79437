"""Random ONNX models with control flow against onnxruntime, which runs each node as it stands.

They run on the processor, and every few on the simulated accelerator. A model that onnxruntime
refuses is none; one that vdla refuses says so in a line.
"""

from __future__ import annotations

from collections import Counter

import fuzz_loops
import numpy as np
import onnx
import pytest
from fuzz_loops import differs, outcome, outcome_of, shrunk
from random_loops import random_model

from vdla.compiler.frontend.draft import all_nodes, graphs_of

MODELS, LONG = 40, 2_960  # of `make test`, and of `make test-long` beside those
AT_ONCE, LONG_AT_ONCE = 10, 74


def batches(first, count, size):
    """Ranges of seeds, a test each."""
    return [range(seed, seed + size) for seed in range(first, first + count, size)]


def named(seeds):
    return f"{seeds.start}-{seeds.stop - 1}"


def assert_right(seeds):
    counts = Counter()
    for seed in seeds:
        _, (kind, text) = outcome_of(seed)
        assert kind != "wrong", f"seed {seed}: {text}"
        counts[kind] += 1
    assert counts["equal"] > len(seeds) / 2


@pytest.mark.parametrize("seeds", batches(0, MODELS, AT_ONCE), ids=named)
def test_models(seeds):
    assert_right(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", batches(MODELS, LONG, LONG_AT_ONCE), ids=named)
def test_many_models(seeds):
    assert_right(seeds)


def depth(graph):
    """The number of graphs inside one another."""
    inner = [graph for node in graph.node for graph in graphs_of(node)]
    return 1 + max(map(depth, inner), default=-1)


def test_models_have_what_exporters_write():
    """Over 300 seeds: all operators of control and of sequences, nesting, all opsets."""
    models = [random_model(seed)[0] for seed in range(300)]
    nodes = [node for model in models for node in all_nodes(model.graph.node)]
    counts = Counter(node.op_type for node in nodes)
    assert min(counts[kind] for kind in ("If", "Loop", "Scan")) > 60
    assert min(
        counts[kind]
        for kind in (
            "SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceAt",
            "SequenceLength", "SplitToSequence", "ConcatFromSequence", "SequenceMap", "Optional",
            "OptionalHasElement", "OptionalGetElement", "QuantizeLinear", "Slice", "Gather",
        )
    ) > 5  # fmt: skip
    assert max(depth(model.graph) for model in models) >= 3
    assert {m.opset_import[0].version for m in models} == {8, *range(11, 21)}
    assert sum(bool(model.functions) for model in models) > 10
    loops = [node for node in nodes if node.op_type == "Loop"]
    assert sum(not loop.input[0] for loop in loops) > 10
    assert sum(bool(loop.input[1]) for loop in loops) > 50


def test_difference():
    one, two = np.zeros(2, np.float32), np.ones(2, np.float32)
    assert not differs("y", [one], [one])
    assert differs("y", [one], [one, two]) == "y: expected a list of 2, found a list of 1"
    assert differs("y", one, one.astype(int)) == "y: expected int64[2], found float32[2]"
    assert differs("y", [one], [two]) == "y[0]: expected [1.0, 1.0], found [0.0, 0.0]"


def test_a_fault_is_seen_and_shrunk(monkeypatch):
    """A Tanh that is another function: the model that is left has few nodes."""
    true = fuzz_loops.ort_run

    def wrong(model, inputs, fuse):
        own = onnx.ModelProto()
        own.CopyFrom(model)
        for node in all_nodes(own.graph.node):
            node.op_type = "Sin" if node.op_type == "Tanh" else node.op_type
        return true(own, inputs, fuse)

    monkeypatch.setattr(fuzz_loops, "ort_run", wrong)
    for seed in range(20):
        model, inputs = random_model(seed)
        kind, text = outcome(model, inputs, False)
        if kind == "wrong":
            break
    least = shrunk(model, inputs, 1, text)
    assert outcome(least, inputs, False)[0] == "wrong"
    assert len(least.graph.output) == 1
    assert least.ByteSize() < model.ByteSize()


def test_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzz_loops.py", "--seed", "3", "--files", "2"])
    with pytest.raises(SystemExit) as end:
        fuzz_loops.main()
    assert not end.value.code
    assert capsys.readouterr().out.startswith("seed 3, 2 models: ")
