"""Small quantized (QDQ) ONNX models, operator by operator, with made-up integers.

For tests and experiments: every scale, zero point and weight comes from one seed, and no quantizer
runs. A method takes and returns the name of a float tensor that a DequantizeLinear wrote::

    m = QdqModel(seed=3)
    x = m.input("x", (1, 16, 8, 8))
    x = m.conv(x, 32, Window.square(3), activation="Relu")
    m.output(x)
    model = m.model()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.graph.types import Array, Pads
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import IR_VERSION, OPSET, window_attributes


class QdqModel:
    """A model under construction. ``dtype`` is that of the activations' integers."""

    def __init__(self, seed: int = 0, dtype: str = "int8", name: str = "qdq") -> None:
        self.rng, self.dtype, self.name = np.random.default_rng(seed), dtype, name
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.scales: dict[str, float] = {}

    # --- ends --------------------------------------------------------------------------------

    def input(self, name: str, shape: Sequence[int], scale: float | None = None) -> str:
        """A float input and its quantization."""
        self.shapes[name] = tuple(shape)
        self.inputs.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        return self.quantized(name, scale or self.pick(0.02, 0.06))

    def output(self, name: str) -> str:
        """Makes a float tensor an output."""
        shape = self.shapes[name]
        self.outputs.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        return name

    def model(self) -> Any:
        """The finished model."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    # --- building blocks ---------------------------------------------------------------------

    def pick(self, low: float, high: float) -> float:
        """A float32 scale, never a round number."""
        return float(np.float32(self.rng.uniform(low, high)))

    def constant(self, name: str, array: Array) -> str:
        """An initializer."""
        self.weights.append(numpy_helper.from_array(array, name))
        self.shapes[name] = array.shape
        return name

    def node(self, op: str, inputs: Sequence[str], shape: Sequence[int], **attributes: Any) -> str:
        """An ONNX node; returns the name of what it writes."""
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def quantized(self, name: str, scale: float, zero: int | None = None) -> str:
        """QuantizeLinear and DequantizeLinear behind ``name``."""
        if zero is None:
            zero = int(self.rng.integers(-20, 20)) + (128 if self.dtype == "uint8" else 0)
        s = self.constant(f"{name}.scale", np.array(scale, np.float32))
        z = self.constant(f"{name}.zero", np.array(zero, self.dtype))
        integers = self.node("QuantizeLinear", [name, s, z], self.shapes[name])
        result = self.node("DequantizeLinear", [integers, s, z], self.shapes[name])
        self.scales[result] = scale
        return result

    def weight(self, name: str, shape: Sequence[int], per_channel: bool = True) -> tuple[str, Any]:
        """Dequantized int8 weights and their scales, one per output channel."""
        # uint8 by int8 products must not saturate onnxruntime's 16-bit sums on CPUs without VNNI.
        limit = 127 if self.dtype == "int8" else 63
        integers = self.rng.integers(-limit, limit + 1, shape).astype(np.int8)
        channels = shape[0] if per_channel else 1
        scales = self.rng.uniform(0.002, 0.01, channels).astype(np.float32)
        s = self.constant(f"{name}.scale", scales if per_channel else scales[0])
        z = self.constant(
            f"{name}.zero", np.zeros_like(scales if per_channel else scales[0], np.int8)
        )
        data = self.constant(name, integers)
        attributes = {"axis": 0} if per_channel else {}
        return self.node("DequantizeLinear", [data, s, z], shape, **attributes), scales

    def bias(self, name: str, channels: int, scales: Array) -> str:
        """A dequantized int32 bias in units of ``scales``."""
        integers = self.rng.integers(-4000, 4000, channels).astype(np.int32)
        scales = np.broadcast_to(scales, (channels,)).astype(np.float32)
        s = self.constant(f"{name}.scale", np.ascontiguousarray(scales))
        data = self.constant(name, integers)
        return self.node("DequantizeLinear", [data, s], (channels,), axis=0)

    def finished(
        self, name: str, scale: float, activation: str | tuple[float, float] | None
    ) -> str:
        """An optional Relu or Clip (a pair of bounds), then the quantization."""
        if activation == "Relu":
            name = self.node("Relu", [name], self.shapes[name])
        elif isinstance(activation, tuple):
            bounds = [
                self.constant(f"{name}.{what}", np.array(value, np.float32))
                for what, value in zip(("low", "high"), activation, strict=True)
            ]
            name = self.node("Clip", [name, *bounds], self.shapes[name])
        return self.quantized(name, scale)

    # --- operators ---------------------------------------------------------------------------

    def conv(
        self,
        x: str,
        channels: int,
        window: int | Window,
        *,
        groups: int = 1,
        bias: bool = True,
        per_channel: bool = True,
        activation: str | tuple[float, float] | None = None,
    ) -> str:
        """A convolution, its activation and quantization; a number is a square window's size, which
        isn't padded then."""
        if isinstance(window, int):
            window = Window.square(window, pad=0)
        n, c, h, w = self.shapes[x]
        name = f"conv{len(self.nodes)}"
        shape = (channels, c // groups, *window.kernel)
        weight, scales = self.weight(f"{name}.weight", shape, per_channel)
        operands = [x, weight]
        if bias:
            operands.append(
                self.bias(f"{name}.bias", channels, scales * np.float32(self.scales[x]))
            )
        out = (n, channels, *window.places((h, w)))
        attributes = {
            "group": groups,
            "dilations": list(window.dilations),
            **window_attributes(window),
        }
        y = self.node("Conv", operands, out, **attributes)
        spread = float(np.sqrt(shape[1] * window.taps)) * 40 * 60
        scale = self.scales[x] * float(scales.mean()) * spread / self.rng.uniform(30, 60)
        return self.finished(y, float(np.float32(scale)), activation)

    def dense(self, x: str, outputs: int, *, bias: bool = True, transposed: bool = True) -> str:
        """A Gemm (weights [O, I], or [I, O] if not ``transposed``) and its quantization."""
        n, inputs = self.shapes[x]
        name = f"dense{len(self.nodes)}"
        shape = (outputs, inputs) if transposed else (inputs, outputs)
        weight, scales = self.weight(f"{name}.weight", shape, per_channel=transposed)
        operands = [x, weight]
        if bias:
            operands.append(self.bias(f"{name}.bias", outputs, scales * np.float32(self.scales[x])))
        y = self.node("Gemm", operands, (n, outputs), transB=int(transposed))
        spread = float(np.sqrt(inputs)) * 40 * 60
        scale = self.scales[x] * float(scales.mean()) * spread / 40
        return self.finished(y, float(np.float32(scale)), None)

    def add(self, a: str, b: str, activation: str | None = None) -> str:
        """An addition."""
        y = self.node("Add", [a, b], self.shapes[a])
        scale = (self.scales[a] + self.scales[b]) * self.pick(0.5, 0.9)
        return self.finished(y, float(np.float32(scale)), activation)

    def binary(self, op: str, a: str, b: str, steps: float) -> str:
        """An element-wise operator of two tensors; the result's scale is ``steps`` times that of
        the product of both for Mul, else of the larger one."""
        y = self.node(op, [a, b], self.shapes[a])
        scales = self.scales[a], self.scales[b]
        scale = scales[0] * scales[1] if op == "Mul" else max(scales)
        return self.quantized(y, float(np.float32(scale * steps)))

    def max_pool(self, x: str, kernel: int, stride: int, pads: Pads = (0, 0, 0, 0)) -> str:
        """A max pool; the quantization stays."""
        window = Window((kernel, kernel), (stride, stride), pads)
        y = self.node("MaxPool", [x], self._pool_shape(x, window), **window_attributes(window))
        return self.same_quant(x, y)

    def average_pool(
        self, x: str, kernel: int, stride: int, pads: Pads = (0, 0, 0, 0), include_pad: bool = False
    ) -> str:
        """An average pool."""
        window = Window((kernel, kernel), (stride, stride), pads)
        attributes = {"count_include_pad": int(include_pad), **window_attributes(window)}
        y = self.node("AveragePool", [x], self._pool_shape(x, window), **attributes)
        return self.quantized(y, float(np.float32(self.scales[x] * self.pick(0.4, 0.8))))

    def global_pool(self, x: str) -> str:
        """A global average pool."""
        y = self.node("GlobalAveragePool", [x], (*self.shapes[x][:2], 1, 1))
        return self.quantized(y, float(np.float32(self.scales[x] * self.pick(0.1, 0.4))))

    def concat(self, parts: Sequence[str], axis: int = 1) -> str:
        """A concatenation."""
        shapes = [self.shapes[p] for p in parts]
        total = sum(s[axis] for s in shapes)
        y = self.node(
            "Concat", parts, (*shapes[0][:axis], total, *shapes[0][axis + 1 :]), axis=axis
        )
        return self.quantized(y, max(self.scales[p] for p in parts))

    def upsample(self, x: str, down: int, across: int) -> str:
        """A nearest upsampling by whole factors; the quantization stays."""
        n, c, h, w = self.shapes[x]
        scales = self.constant(f"{x}.factors", np.array([1, 1, down, across], np.float32))
        y = self.node(
            "Resize", [x, "", scales], (n, c, down * h, across * w), mode="nearest",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        )  # fmt: skip
        return self.same_quant(x, y)

    def relu(self, x: str) -> str:
        """A Relu of its own."""
        return self.finished(x, float(np.float32(self.scales[x] * self.pick(0.4, 0.9))), "Relu")

    def flatten(self, x: str) -> str:
        """A Flatten; the quantization stays."""
        shape = self.shapes[x]
        y = self.node("Flatten", [x], (shape[0], int(np.prod(shape[1:]))), axis=1)
        return self.same_quant(x, y)

    def same_quant(self, x: str, y: str) -> str:
        """The quantization of ``x`` behind ``y``."""
        maker = next(n for n in self.nodes if n.output[0] == x)
        _, scale, zero = maker.input
        integers = self.node("QuantizeLinear", [y, scale, zero], self.shapes[y])
        result = self.node("DequantizeLinear", [integers, scale, zero], self.shapes[y])
        self.scales[result] = self.scales[x]
        return result

    def _pool_shape(self, x: str, window: Window) -> tuple[int, ...]:
        n, c, h, w = self.shapes[x]
        return (n, c, *window.places((h, w)))
