"""benchmarks/weights4.py: networks rounded to int4 move half the weights, and compute the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from scripts import load_script

from vdla.compiler.models import model_path
from vdla.isa.config import load_config

weights4 = load_script("benchmarks/weights4.py")
DIGITS = onnx.load(model_path("digits"))


def constants(proto):
    return {each.name: each for each in proto.graph.initializer}


def test_weights_are_rounded_to_int4():
    """Within half a step of each channel, whose greatest weight is 7 of them."""
    before, after = constants(DIGITS), constants(weights4.rounded(DIGITS))
    names = [name for name, each in after.items() if each.data_type == TensorProto.INT4]
    names = [name for name in names if name.endswith("_quantized")]
    assert len(names) == 3
    for name in names:
        numbers = numpy_helper.to_array(after[name]).astype(np.int64)
        assert np.abs(numbers).max() == 7
        scale = name.replace("quantized", "scale")
        old, new = (numpy_helper.to_array(c[scale]).astype(float) for c in (before, after))
        column = (-1, *(1,) * (numbers.ndim - 1))
        real = numpy_helper.to_array(before[name]) * old.reshape(column)
        error = np.abs(numbers * new.reshape(column) - real)
        assert (error <= 0.5001 * new.reshape(column)).all()


def test_biases_have_steps_of_products():
    """As a quantizer makes them: of the data times those of the weights, to the nearest one."""
    before, after = constants(DIGITS), constants(weights4.rounded(DIGITS))
    data = {"1": "image_scale", "2": "relu1_scale", "3": None}
    for layer, source in data.items():
        bias, scale = f"b{layer}_quantized", f"b{layer}_quantized_scale"
        old, new = (numpy_helper.to_array(c[scale]).astype(float) for c in (before, after))
        if source is not None:
            of_weights = numpy_helper.to_array(after[f"w{layer}_scale"]).astype(float)
            np.testing.assert_allclose(new, of_weights * numpy_helper.to_array(after[source]), 1e-5)
        real = numpy_helper.to_array(before[bias]) * old
        assert (np.abs(numpy_helper.to_array(after[bias]) * new - real) <= 0.5001 * new).all()


@pytest.mark.parametrize("rate", [8, 1])
def test_half_the_weights_and_fewer_cycles(rate):
    """Of digits, whose few layers wait for their weights: all of them lie in nibbles."""
    proto, settings = weights4.rounded(DIGITS), [f"memory.bytes_per_cycle={rate}"]
    plain = weights4.measure(proto, load_config("paper", settings))
    small = weights4.measure(proto, load_config("paper", [*settings, "weights4=1"]))
    np.testing.assert_array_equal(plain.output, small.output)
    assert len(np.unique(plain.output)) > 5
    assert small.weight_bytes == plain.weight_bytes / 2
    assert small.loaded_bytes < plain.loaded_bytes
    assert plain.constant_bytes - small.constant_bytes == small.weight_bytes
    assert small.cycles < 0.9 * plain.cycles


def test_weights_of_8_bits_stay_as_they_are():
    """The option alone changes nothing."""
    runs = [weights4.measure(DIGITS, load_config("paper", s)) for s in ([], ["weights4=1"])]
    assert runs[0].cycles == runs[1].cycles
    assert runs[0].loaded_bytes == runs[1].loaded_bytes
    np.testing.assert_array_equal(runs[0].output, runs[1].output)
