"""Resize in its corner cases: as onnxruntime where ONNX leaves it open, else as ONNX's tests."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.reference import evaluate

NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
PLACES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
SCALES, SIZES = (0.3, 0.5, 0.6, 0.75, 1.3, 1.7, 2.0, 2.5), (1, 2, 5, 9)


def model(count, *, scale=None, size=None, opset=19, **attributes):
    """One row of ``count`` elements, at another scale or of another size."""
    known = {"s": np.array([1, 1, 1, scale or 0], np.float32)}
    if size:
        known = {"n": np.array([1, 1, 1, size])}
    names = ["x", *known] if opset < 11 else ["x", "", *([""] if size else []), *known]
    wide = size or int(np.floor(count * np.float32(scale)))
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 1, 1, width])
        for n, width in (("x", count), ("y", wide))
    ]
    node = helper.make_node("Resize", names, ["y"], **attributes)
    weights = [numpy_helper.from_array(a, n) for n, a in known.items()]
    graph = helper.make_graph([node], "row", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def row(count):
    return {"x": np.arange(1, count + 1, dtype=np.float32).reshape(1, 1, 1, -1) ** 2}


def result(proto, count):
    graph = import_model(proto)
    return evaluate(graph, row(count))[graph.outputs[0]]


def targets(count):
    """Scales that leave an element, and sizes."""
    yield from ({"scale": s} for s in SCALES if int(count * s))
    yield from ({"size": n} for n in SIZES)


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("count", [3, 4, 7, 8])
def test_it_is_onnxruntimes(count, places):
    kinds = [{"mode": "linear"}, {"mode": "cubic"}]
    if places != "half_pixel_symmetric":  # whose ties are decided by what float32 loses
        kinds += [{"mode": "nearest", "nearest_mode": each} for each in NEAREST]
    for target in targets(count):
        if places == "align_corners" and "scale" in target:
            continue  # below
        for kind in kinds:
            proto = model(count, **target, **kind, coordinate_transformation_mode=places)
            (want,) = ort_run(proto, row(count)).values()
            got = result(proto, count)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3, err_msg=f"{target} {kind}")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
def test_before_opset_11_it_is_onnxruntimes(count, mode):
    for target in targets(count):
        if "scale" in target:
            proto = model(count, **target, opset=10, mode=mode)
            (want,) = ort_run(proto, row(count)).values()
            np.testing.assert_allclose(result(proto, count), want, rtol=1e-4, err_msg=str(target))


def test_before_opset_11_a_smaller_row_takes_the_next_elements():
    proto = model(4, scale=0.6, opset=10, mode="nearest")
    np.testing.assert_array_equal(np.sqrt(result(proto, 4)).reshape(-1), [1, 3])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_corners_are_aligned_by_the_scales(mode):
    """As ONNX's own node tests have it; onnxruntime aligns the sizes."""
    settings = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    for count, scale in ((7, 1.7), (4, 0.6), (8, 1.3)):
        proto = model(count, scale=scale, **settings)
        (want,) = ReferenceEvaluator(proto).run(None, row(count))
        np.testing.assert_allclose(result(proto, count), want, rtol=1e-4, atol=1e-3)


def test_cubic_to_one_element_is_the_first_one():
    settings = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
    assert result(model(7, size=1, **settings), 7).item() == pytest.approx(1)
