"""Fake quantizers, as quantizers and dequantizers: onnxruntime's results beside PyTorch's own."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from vdla.compiler.frontend.errors import ModelError

torch = pytest.importorskip("torch")
from vdla.compiler.frontend.pytorch.capture import capture  # noqa: E402

nn = torch.nn
RANGES = [(0, 255), (-128, 127), (0, 127), (-127, 127), (-8, 7), (3, 9), (-32768, 32767)]
CHANNELS = 5
FORMS = ("numbers", "tensors", "channels", "computed")


@st.composite
def quantizer(draw):
    """A range, scales, zero points, and the form in which an operator has them."""
    low, high = draw(st.sampled_from(RANGES))
    form = draw(st.sampled_from(FORMS))
    count = CHANNELS if form == "channels" else 1
    # Of powers of two, dividing and multiplying by the inverse, as PyTorch does, are the same.
    scale = [2.0 ** draw(st.integers(-6, 2)) for _ in range(count)]
    zero = [draw(st.integers(low, high)) for _ in range(count)]
    return low, high, form, scale, zero


class Fake(nn.Module):
    """Several fake quantizers of one tensor, [3, channels]."""

    def __init__(self, quantizers):
        super().__init__()
        self.quantizers = quantizers
        for n, (*_, scale, zero) in enumerate(quantizers):
            self.register_buffer(f"scale{n}", torch.tensor(scale))
            self.register_buffer(f"zero{n}", torch.tensor(zero, dtype=torch.int32))

    def forward(self, x):
        return [self.one(x, n, *each) for n, each in enumerate(self.quantizers)]

    def one(self, x, n, low, high, form, scale, zero):
        tensors = getattr(self, f"scale{n}"), getattr(self, f"zero{n}")
        if form == "numbers":
            return torch.fake_quantize_per_tensor_affine(x, scale[0], zero[0], low, high)
        if form == "channels":
            return torch.fake_quantize_per_channel_affine(x, *tensors, 1, low, high)
        if form == "computed":  # a scale that depends on data: 2 ** of a whole number
            tensors = (tensors[0] * torch.exp2(x[0, 0].round().clamp(-2, 2))).reshape(1), tensors[1]
        return torch.fake_quantize_per_tensor_affine(x, *tensors, low, high)


def outputs(model, arrays):
    """Onnxruntime's outputs."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, arrays)


# A module takes a second to capture, which is too long for shrinking.
@settings(max_examples=2, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(quantizer(), min_size=8, max_size=12), st.integers(0, 2**31))
def test_each_has_the_bits_of_pytorch(quantizers, seed):
    x = torch.from_numpy(np.random.default_rng(seed).normal(0, 40, (3, CHANNELS)).astype("f4"))
    x[1] = torch.tensor([0.0, -0.0, 0.5, -1.5, 1e9])  # ties, and far beyond every range
    module = Fake(quantizers).eval()
    captured = capture(module, (x,), {}, None, "Fake")
    results = outputs(captured.model, captured.arrays((x,), {}))
    for result, expected, each in zip(results, module(x), quantizers, strict=True):
        assert np.array_equal(result, expected.numpy()), each


@settings(max_examples=200)
@given(
    st.floats(2.0**-10, 8, width=32), st.sampled_from(RANGES), st.data(),
    st.floats(-1e4, 1e4, width=32),
)  # fmt: skip
def test_limits_of_the_floats_are_limits_of_the_integers(scale, ends, data, x):
    """What the translation of a range relies on, in float32."""
    low, high = ends
    zero = data.draw(st.integers(low, high))
    step, value = np.float32(scale), np.float32(x)
    bounds = [np.float32(end - zero) * step for end in ends]
    limited = np.rint(np.clip(value, *bounds) / step) + zero
    assert limited == np.clip(np.rint(value / step) + zero, low, high)


def test_a_range_that_no_integers_have():
    module = Fake([(-(2**20), 2**20, "numbers", [1.0], [0])]).eval()
    with pytest.raises(ModelError) as refusal:
        capture(module, (torch.ones(3, CHANNELS),), {}, None, "Fake")
    message = str(refusal.value)
    assert message.startswith("Fake: operator aten.fake_quantize_per_tensor_affine.default, ")
    assert message.endswith(
        "in forward: expected a range within int8, uint8 or int16, found -1048576 to 1048576"
    )
