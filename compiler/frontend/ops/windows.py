"""Operators whose windows slide over an image: convolution, pooling, the mean of all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Pads, Pair
from vdla.compiler.graph.ops.window import window_extent


def _pair(view: OnnxNode, name: str) -> Pair:
    values = view.integers(name, (1, 1))
    if len(values) != 2 or min(values) < 1:
        raise view.error(f"two positive {name}", list(values))
    return values[0], values[1]


def _pads(view: OnnxNode, kernel: Sequence[int], strides: Pair, dilations: Pair) -> Pads:
    mode = view.text("auto_pad", "NOTSET")
    if mode == "VALID":
        return (0, 0, 0, 0)
    if mode == "NOTSET":
        pads = view.integers("pads", (0, 0, 0, 0))
        if len(pads) != 4 or min(pads) < 0:
            raise view.error("four pads ≥ 0", list(pads))
        return pads[0], pads[1], pads[2], pads[3]
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise view.error("auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode)
    pairs = []
    for size, k, stride, dilation in zip(
        view.shape(0)[2:], kernel, strides, dilations, strict=True
    ):
        total = max((-(-size // stride) - 1) * stride + dilation * (k - 1) + 1 - size, 0)
        half = total // 2
        pairs.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1]


def _image(view: OnnxNode) -> None:
    if len(view.shape(0)) != 4:
        raise view.unsupported("data of shape [N, C, H, W]", list(view.shape(0)))


@converts("Conv")
def _conv(view: OnnxNode) -> None:
    _image(view)
    weight = view.shape(1)
    if len(weight) != 4:
        raise view.error("a weight of shape [O, I, KH, KW]", list(weight))
    kernel = view.integers("kernel_shape", weight[2:])
    if kernel != weight[2:]:
        raise view.error(f"kernel_shape {list(weight[2:])} as in the weight", list(kernel))
    strides, dilations = _pair(view, "strides"), _pair(view, "dilations")
    node = ops.Conv2d(
        name=view.name,
        output=view.output,
        data=view.operand(0),
        weight=view.operand(1),
        bias=view.optional(2),
        groups=view.integer("group", 1),
        strides=strides,
        pads=_pads(view, kernel, strides, dilations),
        dilations=dilations,
    )
    view.draft.emit(node, "float32")


def _pool_window(view: OnnxNode) -> dict[str, Any]:
    _image(view)
    kernel = view.integers("kernel_shape", ())
    if len(kernel) != 2:
        raise view.unsupported("a kernel_shape of two", list(kernel))
    strides, dilations = _pair(view, "strides"), _pair(view, "dilations")
    pads = _pads(view, kernel, strides, dilations)
    return {"kernel": kernel, "strides": strides, "dilations": dilations, "pads": pads}


def _ceil_pads(view: OnnxNode, window: dict[str, Any]) -> Pads:
    """The pads with which rounding down takes the places that ``ceil_mode`` rounds up to."""
    pads = list(window["pads"])
    for i, size in enumerate(view.shape(0)[2:]):
        stride, dilation, kernel = window["strides"][i], window["dilations"][i], window["kernel"][i]
        floor = window_extent(size, kernel, stride, pads[i], pads[i + 2], dilation)
        reach = dilation * (kernel - 1) + 1
        places = -(-(size + pads[i] + pads[i + 2] - reach) // stride) + 1
        if (places - 1) * stride >= size + pads[i]:  # the last window would see only padding
            places -= 1
        if places > floor:
            pads[i + 2] = (places - 1) * stride + reach - size - pads[i]
    return pads[0], pads[1], pads[2], pads[3]


@converts("MaxPool")
def _max_pool(view: OnnxNode) -> None:
    window = _pool_window(view)
    if view.integer("ceil_mode", 0):
        window["pads"] = _ceil_pads(view, window)
    node = ops.MaxPool(name=view.name, output=view.output, data=view.operand(0), **window)
    view.draft.emit(node, "float32")


@converts("AveragePool")
def _average_pool(view: OnnxNode) -> None:
    window = _pool_window(view)
    include = bool(view.integer("count_include_pad", 0))
    if view.integer("ceil_mode", 0):
        pads = _ceil_pads(view, window)
        if include and pads != window["pads"]:
            raise view.unsupported("ceil_mode 0 where count_include_pad is 1", "ceil_mode 1")
        window["pads"] = pads
    node = ops.AvgPool(
        name=view.name, output=view.output, data=view.operand(0), include_pad=include, **window
    )
    view.draft.emit(node, "float32")


@converts("GlobalAveragePool")
def _global_average_pool(view: OnnxNode) -> None:
    _image(view)
    _, _, h, w = view.shape(0)
    node = ops.AvgPool(
        name=view.name, output=view.output, data=view.operand(0), kernel=(h, w), strides=(1, 1)
    )
    view.draft.emit(node, "float32")
