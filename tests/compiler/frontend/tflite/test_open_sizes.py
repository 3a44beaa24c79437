"""Files that leave sizes open: shapes follow from the inputs', given or 1, as in LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_files import Graph, Op, T, file_of, known
from tflite_reference import compare

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.tflite import translate

SHAPES = pytest.mark.parametrize("shapes", [None, {"x": (1, 5, 4, 2)}, {"x": (3, 7, 4, 2)}])


def image(shape, *open_axes, **more):
    """An image that leaves some sizes open, which are 1 until they are given."""
    signature = [-1 if axis in open_axes else size for axis, size in enumerate(shape)]
    return T(shape, signature=signature, **more)


def padded_network():
    """Rows and batches are open: SAME padding, a pool, and a mean over both."""
    weight = T((3, 3, 3, 2), data=np.random.default_rng(0).normal(size=(3, 3, 3, 2)))
    tensors = [
        image((1, 1, 4, 2), 0, 1, name="x"),
        weight,
        known([0.1, 0.2, 0.3], "float32"),
        image((1, 1, 2, 3), 0, 1),
        image((1, 3), 0),
        known([1, 2]),
    ]
    stride = {"StrideH": 2, "StrideW": 2}
    ops = [
        Op("CONV_2D", [0, 1, 2], [3], "Conv2DOptions", stride),
        Op("MEAN", [3, 5], [4], "ReducerOptions"),
    ]
    return file_of(Graph(tensors, ops, [0], [4]))


@SHAPES
def test_padding_follows_from_the_size_that_is_given(shapes):
    compare(padded_network(), shapes=shapes)


@SHAPES
def test_a_shape_that_is_computed_of_shapes_is_known(shapes):
    """Keras writes a flatten so: the batch's size and a constant, as a vector."""
    tensors = [
        image((1, 1, 4, 2), 0, 1, name="x"),
        T((4,), "int32"),
        *(known([each]) for each in (0, 1, 1)),
        T((), "int32"),
        known(-1),
        T((2,), "int32"),
        image((1, 8), 0, 1),
    ]
    ops = [
        Op("SHAPE", [0], [1], "ShapeOptions", {"OutType": 2}),
        Op("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions", {"ShrinkAxisMask": 1}),
        Op("PACK", [5, 6], [7], "PackOptions", {"ValuesCount": 2}),
        Op("RESHAPE", [0, 7], [8], "ReshapeOptions"),
    ]
    data = file_of(Graph(tensors, ops, [0], [8]))
    compare(data, shapes=shapes)
    kinds = [node.op_type for node in translate(data, "m", shapes).graph.node]
    assert kinds == ["Reshape"]


@pytest.mark.parametrize("shape", [(1, 5, 4), (1, 5, 6, 2), 3])
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(ModelError) as error:
        translate(padded_network(), "m.tflite", {"x": shape})
    sizes = list(shape) if isinstance(shape, tuple) else [shape]
    assert str(error.value) == (f"m.tflite: input x: expected sizes any, any, 4, 2, found {sizes}")


def test_shapes_that_are_placeholders_are_computed():
    """BirdNET's file has ones behind what it computes of shapes, and leaves nothing open; a shape
    of no numbers has no bytes."""
    tensors = [
        T((3, 8), name="x"),
        T((2,), "int32"),
        known([1, 1]),
        known(0),
        T((1,), "int32"),
        T((1,), "int32"),
        T((0,), "int32"),
        T((), "int32"),
        known(4),
        T((), "int32"),
        known(-1),
        T((2,), "int32"),
        T((1, 1)),
        T((1, 1)),
    ]
    ops = [
        Op("SHAPE", [0], [1], "ShapeOptions", {"OutType": 2}),
        Op("SPLIT_V", [1, 2, 3], [4, 5], "SplitVOptions", {"NumSplits": 2}),
        Op("RESHAPE", [5, 6], [7], "ReshapeOptions"),
        Op("FLOOR_DIV", [7, 8], [9]),
        Op("PACK", [10, 9], [11], "PackOptions", {"ValuesCount": 2}),
        Op("RESHAPE", [0, 11], [12], "ReshapeOptions"),
        Op("SOFTMAX", [12], [13], "SoftmaxOptions", {"Beta": 1.0}),
    ]
    compare(file_of(Graph(tensors, ops, [0], [13])))


def test_a_shape_for_no_input():
    with pytest.raises(ModelError) as error:
        translate(padded_network(), "m.tflite", {"y": (1, 5, 4, 2)})
    assert str(error.value) == "m.tflite: expected shapes for x, found one for y"
