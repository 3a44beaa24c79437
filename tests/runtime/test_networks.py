"""Compiled networks through a module file on device ``cpu``."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.frontend import import_onnx
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.models import digits_test, model_path
from vdla.compiler.models.builder import images
from vdla.runtime import Executor, Module


def executor(name, module, folder):
    graph = optimize(import_onnx(model_path(name)))
    path = folder / f"{name}.vdla"
    module.save(path)
    return graph, Executor(Module.load(path))


def test_digits(tmp_path, on_cpu):
    graph, ready = executor("digits", on_cpu("digits"), tmp_path)
    pictures, labels = digits_test()
    (out,) = graph.outputs
    guesses = [ready.run({"image": x[None]}).outputs[out].argmax() for x in pictures]
    assert np.mean(guesses == labels) > 0.96
    want = evaluate(graph, {"image": pictures[:1]})
    np.testing.assert_array_equal(ready.run({"image": pictures[:1]}).outputs[out], want[out])
    rows = ready.module.metadata["placement"]
    assert rows[1] == {
        "op": "QConv2d", "name": "conv1", "device": "cpu", "reason": "device cpu has no accelerator"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["resnet18", pytest.param("mobilenet", marks=pytest.mark.long)])
def test_networks_are_bit_exact(name, tmp_path, on_cpu):
    graph, ready = executor(name, on_cpu(name), tmp_path)
    x = {"input": images((1, 3, 224, 224), 1, 8)}
    want = evaluate(graph, x)
    for _ in range(2):
        result = ready.run(x)
        for out in graph.outputs:
            np.testing.assert_array_equal(result.outputs[out], want[out])
