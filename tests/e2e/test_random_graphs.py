"""Random whole networks against onnxruntime without its optimizations.

Networks of floats run on the processor with one and with two threads; quantized ones also on the
simulated accelerator, whose outputs are the processor's to the bit. A failure is shrunk to the
fewest nodes that still fail, and says the seed that makes its network.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from random_graphs import float_model, listing, quantized, sample, shrunk

import vdla as api
from vdla.analysis.ort import ort_run
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor

FLOATS, QDQ = 15, 5  # networks of `make test`
FLOATS_LONG, QDQ_LONG = 3_725, 1_455  # of `make test-long`, beside those
AT_ONCE = 5
WHOLE = 4  # of so many networks, LLVM optimizes one as a user's
RELATIVE = 1e-4  # of an output's largest value
SHARE, STEPS = 0.02, 2  # of a quantized output: elements that may differ, by so many steps


def compiled(model, seed, folder, device):
    """The module of a model for a device; quantized models for the smallest config.

    LLVM optimizes every fourth as a user's; on the others it spends half of the time.
    """
    path = folder / "model.onnx"
    onnx.save(model, path)
    processor = Processor(quick=seed % WHOLE > 0)
    return api.compile(path, "tiny", device=device, target=processor)


def outputs(module, device, inputs, threads):
    """What two runs in a row give, which must be the same."""
    ready = Executor(module, make_device(module, device), threads=threads)
    first, second = (ready.run(inputs).outputs for _ in range(2))
    for name in first:
        np.testing.assert_array_equal(second[name], first[name], f"{name}, second run")
    return first


def float_fault(model, seed, folder):
    """What is wrong with a network of floats on the processor; empty if nothing is."""
    inputs = sample(model, seed)
    want = ort_run(model, inputs, fuse=False)
    module = compiled(model, seed, folder, "cpu")
    for threads in (1, 2):
        got = outputs(module, "cpu", inputs, threads)
        for name, value in want.items():
            apart = np.abs(got[name] - value).max() / max(np.abs(value).max(), 1e-6)
            if not apart <= RELATIVE:
                return f"{threads} threads: {name} is off by {apart:.2g} of its largest value"
    return ""


def quantized_fault(model, seed, folder):
    """What is wrong with the QDQ form of a network on the processor or the simulator."""
    model, inputs = quantized(model, seed), sample(model, seed)
    scales = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    want = ort_run(model, inputs, fuse=False)
    module = compiled(model, seed, folder, "cpu")
    first = outputs(module, "cpu", inputs, 1)
    others = {
        "2 threads": outputs(module, "cpu", inputs, 2),
        "simulator": outputs(compiled(model, seed, folder, "sim"), "sim", inputs, 1),
    }
    for name, value in want.items():
        for which, other in others.items():
            if not np.array_equal(other[name], first[name]):
                return f"{which}: {name} differs from the processor with one thread"
        steps = np.rint(np.abs(first[name] - value) / scales[f"{name}_s"])
        share = (steps > 0).sum() / max(steps.size, 1)
        if steps.max() > STEPS or (share > SHARE and steps.astype(bool).sum() > 1):
            return f"{name} is off by {steps.max():.0f} steps, {share:.2%} of its elements differ"
    return ""


def holds(seeds, make, fault, folder):
    """Tries networks, and fails with the fewest nodes of the first one that is wrong."""

    def found(model, seed):
        try:
            return fault(model, seed, folder)
        except Exception as error:  # whatever it is, it is a fault, and is shrunk like one
            return f"{type(error).__name__}: {error}"

    for seed in seeds:
        model = make(seed)
        if what := found(model, seed):
            least = shrunk(model, lambda smaller, seed=seed: bool(found(smaller, seed)))
            pytest.fail(
                f"{make.__name__}({seed}): {what}\nwith {len(least.graph.node)} of its "
                f"{len(model.graph.node)} nodes: {found(least, seed)}\n{listing(least)}"
            )


def integer_model(seed):
    """A network of operators that are often quantized."""
    return float_model(seed, integer=True)


def batches(first, count):
    """Ranges of seeds, a test each."""
    return [range(n, n + AT_ONCE) for n in range(first, first + count, AT_ONCE)]


def named(seeds):
    """The seeds in a test's name."""
    return f"{seeds.start}-{seeds.stop - 1}"


@pytest.mark.parametrize("seeds", batches(0, FLOATS), ids=named)
def test_networks_of_floats(seeds, tmp_path):
    holds(seeds, float_model, float_fault, tmp_path)


@pytest.mark.parametrize("seeds", batches(0, QDQ), ids=named)
def test_quantized_networks(seeds, tmp_path):
    holds(seeds, integer_model, quantized_fault, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seeds", batches(FLOATS, FLOATS_LONG), ids=named)
def test_many_networks_of_floats(seeds, tmp_path):
    holds(seeds, float_model, float_fault, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seeds", batches(QDQ, QDQ_LONG), ids=named)
def test_many_quantized_networks(seeds, tmp_path):
    holds(seeds, integer_model, quantized_fault, tmp_path)


def test_a_fault_is_shrunk():
    """A network that fails while it has a MaxPool shrinks to that node, or to what it needs."""
    model = next(
        m for m in map(float_model, range(100)) if any(n.op_type == "MaxPool" for n in m.graph.node)
    )
    least = shrunk(model, lambda m: any(n.op_type == "MaxPool" for n in m.graph.node))
    assert any(n.op_type == "MaxPool" for n in least.graph.node)
    assert len(least.graph.node) < len(model.graph.node)
    assert len(least.graph.output) == 1
    onnx.checker.check_model(least)


def test_networks_have_what_real_ones_have():
    """Over 100 seeds: every operator, tensors read two and three times, several outputs."""
    models = [float_model(seed) for seed in range(100)]
    kinds = {node.op_type for model in models for node in model.graph.node}
    assert kinds >= {
        "Conv", "Add", "Mul", "Sub", "Max", "Relu", "Sigmoid", "Concat", "Split", "MaxPool",
        "AveragePool", "GlobalAveragePool", "MatMul", "Softmax", "Transpose", "Reshape",
        "BatchNormalization", "LayerNormalization", "Resize", "Pad", "Slice", "ConvTranspose",
    }  # fmt: skip
    times = [
        sum(name in node.input for node in model.graph.node)
        for model in models
        for name in {n for node in model.graph.node for n in node.output}
    ]
    assert times.count(2) > 50
    assert times.count(3) > 10
    assert sum(len(model.graph.output) > 1 for model in models) > 20
