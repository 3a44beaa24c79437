"""Files of one layer in every pair of features that quantizers' files have: integers alone, with
onnxruntime's results in every bit."""

from __future__ import annotations

import numpy as np
import pytest
from dialects import FEATURES, File, is_written, pairs_of, rows

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

ROWS = [*rows()]
CONVERSIONS = ("Quantize", "Dequantize", "Clip")  # Clip: of the input, before its quantization


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_every_file_is_integers_with_onnxruntimes_results(number):
    file = File(ROWS[number], number)
    proto = file.model()
    graph = optimize(import_model(proto))
    kinds = [node.op for node in graph.nodes if node.op not in CONVERSIONS]
    assert all(kind.startswith("Q") for kind in kinds), (ROWS[number], graph.reasons)
    (want,) = ort_run(proto, {"x": file.x}, fuse=False).values()
    got = evaluate(graph, {"x": file.x})[graph.outputs[0]]
    np.testing.assert_array_equal(got, want, err_msg=str(ROWS[number]))
    assert len(np.unique(want)) > 3


def test_every_pair_meets():
    met = set().union(*map(pairs_of, ROWS))
    for (a, x), (b, y) in met:
        assert x in FEATURES[a]
        assert y in FEATURES[b]
    assert (("weights", "uint8"), ("scales", "negative")) in met
    assert all(map(is_written, ROWS))


@pytest.mark.parametrize("number", range(0, len(ROWS), 9))
def test_the_simulator_gives_the_same(number):
    file, config = File(ROWS[number], number), load_config("tiny")
    proto = file.model()
    module = compile_graph(import_model(proto), config, Options(processor=Processor(quick=True)))
    (got,) = Executor(module, SimDevice(config)).run({"x": file.x}).outputs.values()
    (want,) = ort_run(proto, {"x": file.x}, fuse=False).values()
    np.testing.assert_array_equal(got, want)
