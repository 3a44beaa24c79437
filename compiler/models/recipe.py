"""Recipes: the choices of a quantization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import onnx

from vdla.compiler.frontend.errors import ModelError

METHODS = ("minmax", "entropy", "percentile", "distribution")  # onnxruntime's, of ranges
WEIGHTS = ("int8", "int4")


@dataclass(frozen=True)
class Recipe:
    """Choices of a quantization.

    ``method`` makes ranges of activations out of samples: "minmax" takes all, "percentile" the
    middle ``percentile`` % of the values, "entropy" loses the least information, "distribution"
    makes the mean and the deviation fit. Weights have a scale per channel, or ``per_tensor``.
    ``symmetric`` has activations around 0. ``ranges`` are those of tensors by name, in place of
    what samples say. ``exclude`` are nodes that stay floats, by name, and so do all that, quantized
    alone, have a signal-to-noise ratio below ``floats_below`` dB. Activations are int8, or
    ``unsigned``; those of ``bits16``, by name, have 16 bits, and so do all whose rounding to 8 bits
    has a signal-to-noise ratio below ``bits16_below`` dB. ``weights`` are "int8" or "int4",
    with a scale for each output channel, and of int4 for each ``group`` of input channels (0: all).
    ``types`` are the operators that are quantized; of none, all that onnxruntime's quantizer knows,
    and, with ``recurrent``, LSTM and GRU.

    Before that, ``equalize`` gives all channels between two layers ranges alike, ``smooth`` moves
    that share of the ranges of a normalization's channels into the weights behind it, ``gptq``
    rounds weights by what their inputs are (``rounding.py``), and ``correct_bias`` takes the mean
    errors of channels off the biases (``repair.py``).
    """

    method: str = METHODS[0]
    percentile: float = 99.999
    per_tensor: bool = False
    symmetric: bool = False
    unsigned: bool = False
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    exclude: Sequence[str] = ()
    floats_below: float | None = None
    bits16: Sequence[str] = ()
    bits16_below: float | None = None
    weights: str = WEIGHTS[0]
    group: int = 0
    types: Sequence[str] = ()
    recurrent: bool = True
    equalize: bool = False
    smooth: float = 0.0
    gptq: bool = False
    correct_bias: bool = False

    def check(self, model: onnx.ModelProto, where: str) -> None:
        """Checks that a model has what the recipe names.

        Raises:
            ModelError: it hasn't, or there is no such method; opens with ``where``.
        """
        for kind, known, choice in (
            ("method", METHODS, self.method),
            ("type of weights", WEIGHTS, self.weights),
        ):
            if choice not in known:
                raise ModelError(where, f"a {kind} of {', '.join(known)}", choice)
        nodes = {node.name for node in model.graph.node}
        tensors = {name for node in model.graph.node for name in (*node.input, *node.output)}
        for kind, names, given in (
            ("node", nodes, self.exclude),
            ("tensor", tensors, (*self.ranges, *self.bits16)),
        ):
            for name in given:
                if name not in names:
                    close = get_close_matches(name, names, 1)
                    hint = f"; did you mean {close[0]}?" if close else ""
                    raise ModelError(where, f"a {kind} of the model", f"{name}{hint}")
        for name, (low, high) in self.ranges.items():
            if not low < high:
                raise ModelError(where, f"a range of {name} that isn't empty", f"{low} to {high}")


PLAIN = Recipe()
