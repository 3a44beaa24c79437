"""Networks in files quantized in all ways, against onnxruntime: ``fuzz_quantizations.py``."""

from __future__ import annotations

import datetime

import fuzz_quantizations
import numpy as np
import onnx
import pytest
from fuzz_quantizations import Report, attempt, fuzz
from quantizations import CHAINS, Recipe, network, quantized

from vdla.analysis.ort import OnnxruntimeError
from vdla.runtime.devices.sim import SimDevice

FIRST, FILES, FILES_LONG = 11, 7, 150  # three of the first showed dropped quantizations
EXACT = 2  # a file that is right to the bit
DAY = datetime.date.today().toordinal() * 1_000  # the long test's seeds move with the date
COMMAND = "python tests/support/fuzz_quantizations.py --seed {} --files {}"


def holds(seed: int, files: int) -> Report:
    report = fuzz(seed, files)
    print(f"{COMMAND.format(seed, files)}: {report}")
    assert not report.failed, COMMAND.format(seed, files)
    return report


def test_files_of_all_recipes():
    report = holds(FIRST, FILES)
    assert report.exact >= 1
    assert report.layers > 2 * FILES


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_many_files_of_all_recipes(part):
    report = holds(DAY + part * FILES_LONG, FILES_LONG)
    assert report.exact >= FILES_LONG / 4
    assert report.layers > FILES_LONG


@pytest.fixture
def exact():
    """The number of a file that is right to the bit, and what it is made of."""
    model, report = network(EXACT), Report()
    what = attempt(model, Recipe.of(EXACT, model), EXACT, report)
    assert (what, report.exact) == ("", 1)
    return model, Recipe.of(EXACT, model), EXACT


def test_another_bit_is_a_fault(exact, monkeypatch):
    class Wrong(SimDevice):
        def load(self, program, dram, given=(), wanted=()):
            start = super().load(program, dram, given, wanted)

            def run():
                result = start()
                dram[:] ^= 1
                return result

            return run

    def device(module, name, config):
        ready = make(module, name, config)
        return Wrong(config) if isinstance(ready, SimDevice) else ready

    make = fuzz_quantizations.make_device
    monkeypatch.setattr(fuzz_quantizations, "make_device", device)
    what = attempt(*exact)
    assert what.startswith("paper-full: t")
    assert " differ, by " in what


def test_a_dropped_quantization_is_a_fault(exact, monkeypatch):
    """As the accelerator's rewrites dropped that of a product before a sum of floats."""
    compile_graph = fuzz_quantizations.compile_graph

    def without(graph, config, options):
        first = next(n for n in graph.nodes if n.op == "Quantize" and n.data == "x")
        real = next(n for n in graph.nodes if n.op == "Dequantize" and n.data == first.output)
        nodes = [n.renamed({real.output: "x"}) for n in graph.nodes if n is not real]
        return compile_graph(graph.copy(nodes), config, options)

    monkeypatch.setattr(fuzz_quantizations, "compile_graph", without)
    what = attempt(*exact)
    assert what.startswith("cpu: t")


def test_an_exception_is_a_fault_and_a_refusal_of_onnxruntime_none(monkeypatch):
    def refuses(*_, **__):
        raise OnnxruntimeError("onnxruntime: expected another model")

    def stops(*_, **__):
        raise ValueError("it stands still")

    model, report = network(1), Report()
    monkeypatch.setattr(fuzz_quantizations, "compile_graph", stops)
    what = attempt(model, Recipe(), 1, report)
    assert what == "ValueError: it stands still"
    monkeypatch.setattr(fuzz_quantizations, "ort_run", refuses)
    what = attempt(model, Recipe(), 1, report)
    assert (what, report.foreign, report.exact, report.close) == ("", 1, 0, 0)


def test_recipes_have_what_tools_write():
    """Over 200 files: every choice, and every way to write a constant."""
    models = [network(seed) for seed in range(200)]
    recipes = [Recipe.of(seed, model) for seed, model in enumerate(models)]
    for field in ("operators", "by_channel", "activations", "weights", "bias", "late", "tool"):
        values = [getattr(recipe, field) for recipe in recipes]
        assert min(map(values.count, values)) > 3, field
    assert {recipe.skipped for recipe in recipes} == {0, 0.1, 0.3}
    assert {recipe.cut for recipe in recipes} == {0, 0.5}
    assert network(7).SerializeToString() == models[7].SerializeToString()
    kinds = {node.op_type for model in models for node in model.graph.node}
    assert kinds >= {
        "Conv",
        "MatMul",
        "Gemm",
        "Add",
        "Mul",
        "Softmax",
        "LayerNormalization",
        "Split",
    }
    chained = Recipe(chains=1.0)
    written = [quantized(model, chained, seed) for seed, model in enumerate(models[:20])]
    kinds = {node.op_type for file in written for node in file.graph.node}
    assert kinds >= {*CHAINS[1:-1], "Squeeze", "QuantizeLinear", "DequantizeLinear"}
    onnx.checker.check_model(written[0])


def test_floats_of_an_exact_recipe_have_few_bits():
    model = network(3)
    file = quantized(model, Recipe(by_channel=True), 3)
    for tensor in file.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if tensor.name.endswith("_s"):
            assert (np.frexp(array)[0] == 0.5).all(), tensor.name
