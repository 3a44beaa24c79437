"""Modules of training with quantization, as they are in inference.

Both changes hold while a module is captured:

- ``FakeQuantize`` branches on its switches, which are elements of buffers. They become numbers.
- A convolution that is fused with a batch normalization divides what the convolution gives by the
  factors of its weights, for the statistics of training. In inference these cancel out, and the
  rest is a bias; so does ``torch.ao.quantization.convert``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.ao.nn.intrinsic.qat.modules.conv_fused import _ConvBnNd
from torch.ao.quantization import FakeQuantize, FusedMovingAvgObsFakeQuantize

SWITCHES = ("observer_enabled", "fake_quant_enabled")  # buffers of FakeQuantize


@contextmanager
def as_in_inference(module: torch.nn.Module) -> Iterator[None]:
    """A module without what only training needs, in place, for a while."""
    with _decided_switches(module), patch.object(_ConvBnNd, "_forward", _without_norm):
        yield


@contextmanager
def _decided_switches(module: torch.nn.Module) -> Iterator[None]:
    """A module whose fake quantizers have numbers for switches; none observes."""
    quantizers = [
        part
        for part in module.modules()
        if isinstance(part, FakeQuantize) and not isinstance(part, FusedMovingAvgObsFakeQuantize)
    ]
    buffers = [part._buffers for part in quantizers]
    try:
        for part, whole in zip(quantizers, buffers, strict=True):
            part._buffers = {name: whole[name] for name in whole if name not in SWITCHES}
            part.observer_enabled = [0]
            part.fake_quant_enabled = [int(whole["fake_quant_enabled"])]
        yield
    finally:
        for part, whole in zip(quantizers, buffers, strict=True):
            for name in SWITCHES:
                part.__dict__.pop(name, None)
            part._buffers = whole


def _without_norm(layer: Any, x: torch.Tensor) -> torch.Tensor:
    """A fused convolution in evaluation mode, with its normalization in weights and bias."""
    norm = layer.bn
    factors = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    weights = layer.weight * factors.reshape(-1, *[1] * (layer.weight.dim() - 1))
    bias = -norm.running_mean if layer.bias is None else layer.bias - norm.running_mean
    weights = layer.weight_fake_quant(weights)
    return layer._conv_forward(x, weights, bias * factors + norm.bias)
