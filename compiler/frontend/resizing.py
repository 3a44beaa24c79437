"""Weights of the elements that each element of a resized axis is made of.

Where ONNX leaves it open, as onnxruntime has it: coordinates of nearest elements are computed in
float32, so that a coordinate that is nearly whole is the one or the other; an image that keeps its
sizes is as it was; before opset 11, the nearest element of a smaller axis is the next one, and of a
larger one the one before. With scales that the sizes don't divide by, ``align_corners`` is what
ONNX's node tests ask for, by the scales: onnxruntime aligns the sizes. A smaller axis with
``antialias`` is ONNX's own implementation's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import helper, numpy_helper

from vdla.compiler.frontend.errors import first_line
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph.types import Array

CUBIC = 4  # neighbours of an element
Floats = type[np.float32] | type[np.float64]
FIRST_WITH_MODES = 11  # the opset from which a file says how coordinates and neighbours are found


@dataclass(frozen=True)
class Axis:
    """An axis of ``size`` elements that becomes one of ``wanted``, at a scale that they may not
    divide by."""

    size: int
    scale: float
    wanted: int

    def coordinates(self, mode: str, kind: Floats) -> Array:
        """[wanted] of a float type: where each element lies among those before.

        Raises:
            LookupError: there is no such mode.
        """
        x: Array = np.arange(self.wanted, dtype=kind)
        half: Array = np.asarray(0.5, kind)
        scale: Array = np.asarray(self.scale, kind)
        shifted: Array = (x + half) / scale
        middle: Array = shifted - half
        if mode == "asymmetric":  # by sizes at their quotient, and not at the nearest float
            return np.asarray((x.astype(np.float64) / self.scale).astype(kind))
        if mode == "align_corners":
            steps = self.scale * self.size - 1
            if self.wanted == 1 or steps <= 0:
                return np.zeros_like(x)
            return np.asarray((x.astype(np.float64) * (self.size - 1) / steps).astype(kind))
        if mode == "half_pixel_symmetric":
            size: Array = np.asarray(self.size, kind)
            wanted: Array = np.asarray(self.wanted, kind)
            return np.asarray(size * half * (1 - wanted / (scale * size)) + shifted - half)
        if mode == "pytorch_half_pixel":
            return middle if self.wanted > 1 else x
        return {"half_pixel": middle, "tf_half_pixel_for_nn": shifted}[mode]

    def nearest(self, mode: str, places: Array) -> Array:
        """[wanted, size]: one weight of 1 in each row, at the nearest element.

        Raises:
            LookupError: there is no such mode.
        """
        down = np.floor(places)
        index = {
            "floor": down,
            "ceil": np.ceil(places),
            "round_prefer_floor": np.ceil(places - np.float32(0.5)),
            "round_prefer_ceil": np.floor(places + np.float32(0.5)),
            "": np.ceil(places) if self.scale < 1 else down,
        }[mode]
        chosen = np.clip(index.astype(int), 0, self.size - 1)
        return np.asarray(np.eye(self.size)[chosen])

    def linear(self, places: Array) -> Array:
        """[wanted, size]: the weights of the two neighbours."""
        places = np.clip(places, 0, self.size - 1)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, self.size - 1)
        share = (places - low)[:, np.newaxis].astype(np.float64)
        unit = np.eye(self.size)
        return np.asarray(unit[low] * (1 - share) + unit[high] * share)

    def cubic(self, places: Array, a: float, inside: bool) -> Array:
        """[wanted, size]: the weights of four neighbours; those outside are the last ones, or
        ``inside`` the axis alone have some."""
        low = np.floor(places)
        s = (places - low).astype(np.float64)
        distances = np.stack([s + 1, s, 1 - s, 2 - s], axis=1)
        near = ((a + 2) * distances - (a + 3)) * distances**2 + 1
        far = ((a * distances - 5 * a) * distances + 8 * a) * distances - 4 * a
        weights = np.where(distances <= 1, near, far)
        index = low.astype(int)[:, np.newaxis] + np.arange(-1, CUBIC - 1)
        if inside:
            weights = np.where((index >= 0) & (index < self.size), weights, 0)
            weights /= weights.sum(axis=1, keepdims=True)
        unit = np.eye(self.size)[np.clip(index, 0, self.size - 1)]
        return np.asarray((unit * weights[..., np.newaxis]).sum(axis=1))


def axis_weights(view: OnnxNode, size: int, scale: float, wanted: int) -> Array:
    """[wanted, size]: of what each element along an axis of a Resize or Upsample is made."""
    axis, kind = Axis(size, scale, wanted), view.text("mode", "nearest")
    old = view.proto.op_type == "Upsample" or view.draft.opset < FIRST_WITH_MODES
    if view.integer("antialias", 0) and scale < 1 and kind != "nearest":
        return _smoothed(view, axis)
    floats: Floats = np.float32 if kind == "nearest" else np.float64
    if old:
        places = axis.coordinates("asymmetric", floats)
        return axis.linear(places) if kind.endswith("linear") else axis.nearest("", places)
    places = axis.coordinates(view.text("coordinate_transformation_mode", "half_pixel"), floats)
    if kind == "nearest":
        return axis.nearest(view.text("nearest_mode", "round_prefer_floor"), places)
    if kind == "linear":
        return axis.linear(places)
    if kind != "cubic":
        raise view.unsupported("mode nearest, linear or cubic", kind)
    inside = bool(view.integer("exclude_outside", 0))
    return axis.cubic(places, view.real("cubic_coeff_a", -0.75), inside)


def _smoothed(view: OnnxNode, axis: Axis) -> Array:
    """Matrix of weights that ONNX's own implementation makes of a unit matrix."""
    from onnx.reference import ReferenceEvaluator

    attributes = {
        a.name: helper.get_attribute_value(a)
        for a in view.proto.attribute
        if a.name not in ("axes", "keep_aspect_ratio_policy", "scales")
    }
    by_size = bool(view.optional(3))
    names = ["x", "", "", "n"] if by_size else ["x", "", "s"]
    node = helper.make_node("Resize", names, ["y"], **attributes)
    ends = [helper.make_empty_tensor_value_info(n) for n in "xy"]
    known = [
        numpy_helper.from_array(np.array([axis.size, axis.wanted]), "n"),
        numpy_helper.from_array(np.array([1.0, axis.scale], np.float32), "s"),
    ]
    graph = helper.make_graph([node], "resize", ends[:1], ends[1:], known)
    opset = helper.make_opsetid("", max(view.draft.opset, 19))
    model = helper.make_model(graph, opset_imports=[opset])
    try:
        (result,) = ReferenceEvaluator(model).run(None, {"x": np.eye(axis.size)})
    except Exception as error:  # whatever the reference implementation trips over
        raise view.unsupported("a form that ONNX's reference has", first_line(error)) from None
    return np.asarray(result).T
