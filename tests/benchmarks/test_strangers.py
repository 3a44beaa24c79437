"""Networks that aren't bundled, in several styles: the host's share, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scripts import load_script

from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.build import Options, compile_graph, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.placement import report
from vdla.isa.config import load_config
from vdla.names.samples import samples_of
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

FULL = load_config("paper-full")
MOST_ON_HOST = 4
LEAST_COSINE = 0.995
QUICK = {"early s8c", "rows products", "squeezes qop"}
strangers = load_script("benchmarks/strangers.py")
STYLES = {
    **dict.fromkeys(strangers.stranger_sequences.NETWORKS, ("s8c", "u8", "all", "products")),
    **dict.fromkeys(strangers.CNNS, tuple(strangers.stranger_models.STYLES)),
}


@pytest.fixture
def written(request, tmp_path):
    """A network quantized in a style, and its input."""
    name, style = request.param
    path = tmp_path / f"{name}.onnx"
    model = strangers.NETWORKS[name]()
    samples = samples_of(strangers.samples_of(model, style))
    return path, strangers.stranger_models.write(model, style, path), samples


LEFT = {"windows all", "crossed all", "stacked all", "long_memory all"}  # decision 49
ALL = [
    pytest.param((name, style), id=case, marks=() if case in QUICK else pytest.mark.long)
    for name, styles in STYLES.items()
    for style in styles
    for case in [f"{name} {style}"]
    if case not in LEFT
]


@pytest.mark.parametrize("written", ALL, indirect=True)
def test_strangers_run_whole(written):
    path, inputs, samples = written
    graph, placements = placed_graph(import_onnx(path), FULL, Options(samples=samples))
    rows = strangers.between(report(graph, placements))
    left = [row["name"] for row in rows if row["device"] != "vdla"]
    assert len(left) <= MOST_ON_HOST, left
    values = evaluate(graph, inputs)
    for name, wanted in ort_run(path, inputs, fuse=False).items():
        assert cosine(values[name], wanted) >= LEAST_COSINE


@pytest.mark.long
@pytest.mark.parametrize("written", ALL, indirect=True)
def test_the_simulator_gives_what_the_graph_means(written):
    path, inputs, samples = written
    graph, options = import_onnx(path), Options(samples=samples)
    outputs = Executor(compile_graph(graph, FULL, options), SimDevice(FULL)).run(inputs).outputs
    placed = placed_graph(graph, FULL, options)[0]
    values, makers = evaluate(placed, inputs), placed.producers
    for name, result in outputs.items():
        exact = isinstance(makers[name], ops.Dequantize)  # else the host's own floats
        np.testing.assert_allclose(result, values[name], rtol=0 if exact else 1e-6)
