"""Operators that move elements, reduce axes or look them up, beside LiteRT's kernels."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_files import Graph, Op, T, file_of, known, one
from tflite_reference import compare

IMAGE = (2, 4, 6, 3)
QUANTIZED = {"int8": {"scale": 0.02, "zero": -20}, "int16": {"scale": 0.0001}}
DTYPES = ("float32", "int8", "int16")


def kind(dtype, shape=IMAGE, **more):
    return T(shape, dtype, **{**QUANTIZED.get(dtype, {}), **more})


# Reductions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("axes", [(1, 2), (3,), (-1,), (1,), (0, 3), (2, -1)])
@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
def test_reductions(name, axes, kept, dtype):
    wide = {"scale": 0.2, "zero": 3} if dtype == "int8" and name in ("MEAN", "SUM") else {}
    shape = np.zeros(IMAGE).sum(axis=axes, keepdims=kept).shape
    ends = [kind(dtype), known(axes)], [kind(dtype, shape, **wide)]
    compare(one(name, *ends, "ReducerOptions", KeepDims=kept))


def test_products_along_an_axis():
    ends = [T((2, 3, 4)), known([1])], [T((2, 4))]
    compare(one("REDUCE_PROD", *ends, "ReducerOptions", KeepDims=False))


@pytest.mark.parametrize("name", ["REDUCE_ANY", "REDUCE_ALL"])
def test_truth_along_an_axis(name):
    ends = [T((3, 4), "bool"), known([1])], [T((3,), "bool")]
    compare(one(name, *ends, "ReducerOptions", KeepDims=False))


@pytest.mark.parametrize("shape", [IMAGE, (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_softmax_of_floats(shape, beta):
    compare(one("SOFTMAX", [T(shape)], [T(shape)], "SoftmaxOptions", Beta=beta))


@pytest.mark.parametrize("shape", [IMAGE, (3, 5)])
def test_softmax_of_int8_has_steps_of_a_256th(shape):
    result = T(shape, "int8", 1 / 256, -128)
    ends = [kind("int8", shape, scale=0.1)], [result]
    compare(one("SOFTMAX", *ends, "SoftmaxOptions", Beta=1.0))


def test_softmax_of_int16_is_as_near_as_litert_s_table():
    ends = [kind("int16", (3, 5), scale=0.0005)], [T((3, 5), "int16", 1 / 32768)]
    compare(one("SOFTMAX", *ends, "SoftmaxOptions", Beta=1.0), steps=8)


def test_log_softmax():
    compare(one("LOG_SOFTMAX", [T(IMAGE)], [T(IMAGE)]))


def test_l2_normalization():
    compare(one("L2_NORMALIZATION", [T(IMAGE)], [T(IMAGE)]))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("axis", [0, 3, -1, -2])
@pytest.mark.parametrize(
    ("name", "kinds"), [("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")]
)
def test_places_of_the_largest(name, kinds, axis, dtype):
    shape = np.zeros(IMAGE).max(axis=axis).shape
    compare(one(name, [kind(dtype), known(axis)], [T(shape, "int64")], kinds, OutputType=4))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_largest_of_a_row(dtype):
    ends = [kind(dtype, (3, 9)), known(4)], [kind(dtype, (3, 4)), T((3, 4), "int32")]
    compare(one("TOPK_V2", *ends))


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("axis", [0, -1])
def test_cumulative_sums(axis, exclusive):
    ends = [T((3, 4)), known(axis)], [T((3, 4))]
    compare(one("CUMSUM", *ends, "CumsumOptions", Exclusive=exclusive, Reverse=exclusive))


# Shapes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 72), (8, 18), (2, 3, 6, 4), (144,), (2, -1)])
def test_reshape(shape, dtype):
    sizes = np.zeros(IMAGE).reshape(shape).shape
    compare(one("RESHAPE", [kind(dtype), known(shape)], [kind(dtype, sizes)], "ReshapeOptions"))


def test_a_shape_among_the_options():
    ends = [T(IMAGE)], [T((4, 36))]
    compare(one("RESHAPE", *ends, "ReshapeOptions", NewShape=(4, 36)))


@pytest.mark.parametrize(("axes", "shape"), [((1,), (2, 3, 1)), ((), (2, 3)), ((-1,), (2, 1, 3))])
def test_squeeze(axes, shape):
    compare(one("SQUEEZE", [T((2, 1, 3, 1))], [T(shape)], "SqueezeOptions", SqueezeDims=axes))


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_expand_dims(axis):
    shape = np.expand_dims(np.zeros((2, 3)), axis).shape
    compare(one("EXPAND_DIMS", [T((2, 3)), known(axis)], [T(shape)]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("perm", [(0, 3, 1, 2), (3, 2, 1, 0), (0, 2, 1, 3)])
def test_transpose(perm, dtype):
    shape = np.zeros(IMAGE).transpose(perm).shape
    compare(one("TRANSPOSE", [kind(dtype), known(perm)], [kind(dtype, shape)]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 3, -1])
def test_concatenation(axis, dtype):
    shape = np.concatenate([np.zeros(IMAGE)] * 3, axis).shape
    ends = [kind(dtype)] * 3, [kind(dtype, shape)]
    compare(one("CONCATENATION", *ends, "ConcatenationOptions", Axis=axis))


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_pack_and_unpack(axis):
    shape = np.stack([np.zeros((2, 3))] * 4, axis).shape
    ends = [T((2, 3))] * 4, [T(shape)]
    compare(one("PACK", *ends, "PackOptions", ValuesCount=4, Axis=axis))
    compare(one("UNPACK", ends[1], ends[0], "UnpackOptions", Num=4, Axis=axis))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("axis", [2, 3, -1])
def test_split(axis, dtype):
    shape = np.split(np.zeros(IMAGE), 3, axis)[0].shape
    ends = [known(axis), kind(dtype)], [kind(dtype, shape)] * 3
    compare(one("SPLIT", *ends, "SplitOptions", NumSplits=3))


def test_split_of_sizes():
    ends = [T((2, 7)), known([2, -1, 1]), known(1)], [T((2, 2)), T((2, 4)), T((2, 1))]
    compare(one("SPLIT_V", *ends, "SplitVOptions", NumSplits=3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_slice(dtype):
    ends = [kind(dtype), known([0, 1, 2, 0]), known([2, 2, -1, 1])], [kind(dtype, (2, 2, 4, 1))]
    compare(one("SLICE", *ends))


STRIDED = [
    ((0, 1, 2, 0), (2, 3, 6, 2), (1, 1, 2, 1), {}),
    ((0, -1, -2, 0), (2, -4, 9, 3), (1, -1, 1, 1), {}),
    ((1, 0, 0, 0), (2, 4, 6, 3), (1, 1, 1, 1), {"ShrinkAxisMask": 1}),
    ((0, 1, 0, -1), (0, 4, 0, 3), (1, 2, 1, 1), {"BeginMask": 5, "EndMask": 5}),
    ((0, 2), (0, 3), (1, 1), {"EllipsisMask": 1}),
    ((0, 0, 1), (1, 0, 3), (1, 1, 1), {"NewAxisMask": 1, "EllipsisMask": 2}),
    ((0, 0, 0, -1), (2, 4, 6, 0), (1, 1, 1, 1), {"ShrinkAxisMask": 8}),
    ((0, 3), (2, 0), (1, -2), {"EndMask": 2, "BeginMask": 2}),
]


@pytest.mark.parametrize(("begin", "end", "step", "masks"), STRIDED)
def test_strided_slices(begin, end, step, masks):
    index = []
    for i, bounds in enumerate(zip(begin, end, step, strict=True)):
        on = {name: mask >> i & 1 for name, mask in masks.items()}
        if on.get("EllipsisMask"):
            index.append(Ellipsis)
        elif on.get("NewAxisMask"):
            index.append(None)
        elif on.get("ShrinkAxisMask"):
            index.append(bounds[0])
        else:
            first = None if on.get("BeginMask") else bounds[0]
            last = None if on.get("EndMask") else bounds[1]
            index.append(slice(first, last, bounds[2]))
    shape = np.zeros(IMAGE)[tuple(index)].shape
    ends = [T(IMAGE), *map(known, (begin, end, step))], [T(shape)]
    compare(one("STRIDED_SLICE", *ends, "StridedSliceOptions", **masks))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pads(dtype):
    pads = [[0, 0], [1, 2], [0, 1], [2, 0]]
    compare(one("PAD", [kind(dtype), known(pads)], [kind(dtype, (2, 7, 7, 5))]))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_pads_of_a_number(dtype):
    pads = [[0, 0], [1, 2], [0, 1], [0, 0]]
    fill = kind(dtype, (1,), data=[7])
    compare(one("PADV2", [kind(dtype), known(pads), fill], [kind(dtype, (2, 7, 7, 3))]))


@pytest.mark.parametrize("mode", [0, 1])
def test_mirrors(mode):
    pads = [[0, 0], [1, 2], [0, 3], [1, 0]]
    ends = [T(IMAGE), known(pads)], [T((2, 7, 9, 4))]
    compare(one("MIRROR_PAD", *ends, "MirrorPadOptions", Mode=mode))


def test_tile_and_broadcast():
    compare(one("TILE", [T((2, 3)), known([2, 3])], [T((4, 9))]))
    compare(one("BROADCAST_TO", [T((1, 3)), known([4, 2, 3])], [T((4, 2, 3))]))


def test_shapes_that_broadcast():
    tensors = [T((2, 1)), known([2, 1]), known([4, 1, 3]), T((3,), "int32"), T((4, 2, 3))]
    ops = [Op("BROADCAST_ARGS", [1, 2], [3]), Op("BROADCAST_TO", [0, 3], [4])]
    compare(file_of(Graph(tensors, ops, [0], [4])))


def test_reverse():
    compare(one("REVERSE_V2", [T((2, 3, 4)), known([1])], [T((2, 3, 4))]))


def test_fill_and_range():
    compare(one("FILL", [known([2, 3]), T(())], [T((2, 3))]))
    compare(one("RANGE", [known(1), known(9), known(2)], [T((4,), "int32")]))


def test_shape_and_rank():
    compare(one("SHAPE", [T(IMAGE)], [T((4,), "int32")], "ShapeOptions", OutType=2))
    compare(one("RANK", [T(IMAGE)], [T((), "int32")]))


# Images ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("sizes", [(7, 9), (2, 3), (8, 12)])
@pytest.mark.parametrize("mode", ["", "AlignCorners", "HalfPixelCenters"])
@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_resizing(name, mode, sizes, dtype):
    options = {mode: True} if mode else {}
    words = {"RESIZE_BILINEAR": "ResizeBilinearOptions"}
    ends = [kind(dtype), known(sizes)], [kind(dtype, (2, *sizes, 3))]
    steps = 2 if mode == "AlignCorners" else 1  # LiteRT's weights have ten bits
    compare(one(name, *ends, words.get(name, "ResizeNearestNeighborOptions"), **options), steps)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_pixels_and_channels(dtype):
    deep, wide = kind(dtype, (2, 3, 2, 12)), kind(dtype, (2, 6, 4, 3))
    compare(one("DEPTH_TO_SPACE", [deep], [wide], "DepthToSpaceOptions", BlockSize=2))
    compare(one("SPACE_TO_DEPTH", [wide], [deep], "SpaceToDepthOptions", BlockSize=2))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_blocks_as_batches(dtype):
    pads = [[1, 1], [0, 2]]
    image, batches = kind(dtype, (2, 4, 6, 3)), kind(dtype, (16, 3, 2, 3))
    blocks = known([2, 4])
    compare(one("SPACE_TO_BATCH_ND", [image, blocks, known(pads)], [batches]))
    compare(one("BATCH_TO_SPACE_ND", [batches, blocks, known(pads)], [image]))


# Lookups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis, dtype):
    shape = np.take(np.zeros((2, 4, 3)), [[0, 1], [1, 0]], axis).shape
    ends = [kind(dtype, (2, 4, 3)), known([[0, 1], [1, 0]])], [kind(dtype, shape)]
    compare(one("GATHER", *ends, "GatherOptions", Axis=axis))


def test_gather_in_batches():
    ends = [T((2, 4, 3)), known([[0, 3], [1, 0]])], [T((2, 2, 3))]
    compare(one("GATHER", *ends, "GatherOptions", Axis=1, BatchDims=1))


def test_gather_rows_and_embeddings():
    compare(one("GATHER_ND", [T((2, 4, 3)), known([[0, 1], [1, 3]])], [T((2, 3))]))
    compare(one("EMBEDDING_LOOKUP", [known([1, 0, 1]), T((2, 4))], [T((3, 4))]))


def test_one_hot():
    ends = [T((2, 2), "int32"), known(3), known(2.5, "float32"), known(-1, "float32")]
    compare(one("ONE_HOT", ends, [T((2, 2, 3))], "OneHotOptions", Axis=-1))


def test_scatter():
    ends = [known([[0], [2], [0]]), T((3, 2)), known([4, 2])], [T((4, 2))]
    compare(one("SCATTER_ND", *ends))


def test_where_a_condition_holds():
    compare(one("WHERE", [known([[1, 0], [1, 1]], "bool")], [T((3, 2), "int64")]))


# Fourier transforms ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["COMPLEX_ABS", "REAL", "IMAG", "CAST"])
def test_a_transform_of_rows(name):
    """CAST takes the real part; BirdNET's spectrogram is made so."""
    tensors = [T((2, 1, 8)), known([1, 8]), T((2, 1, 5), "complex64"), T((2, 5), "complex64"),
               T((2, 5))]  # fmt: skip
    ops = [
        Op("RFFT2D", [0, 1], [2], "Rfft2dOptions"),
        Op("SQUEEZE", [2], [3], "SqueezeOptions", {"SqueezeDims": (1,)}),
        Op(name, [3], [4], "CastOptions" if name == "CAST" else ""),
    ]
    compare(file_of(Graph(tensors, ops, [0], [4])))
