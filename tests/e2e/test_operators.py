"""Random operators, compiled and simulated, equal the numpy reference bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, accelerator_layers
from vdla.compiler.graph import ir, numbers, ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.ops.exchange import QExchange
from vdla.compiler.graph.ops.image_matmul import QMatMul, QWideMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.interpolate import QInterpolate
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.ops.multiply import QMultiply, gate_shape
from vdla.compiler.graph.ops.normalize import QNormalize, Terms
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import load_config
from vdla.sim.machine import simulate

T = TypeVar("T")
Pick = Callable[[Sequence[T]], T]
OPTIONS = ("table_bytes=1024", "reciprocal_units=2", "weights4=1")  # that every config gets
CONFIGS = ("tiny", "paper", "narrow", "wide", "vta", "ulx3s")


@dataclass(frozen=True)
class Case:
    """A graph of one node, values for its inputs, and how to compile it."""

    graph: Graph
    inputs: dict[str, Any]
    config: str
    vthreads: int
    tile: float | None  # which of the legal tiles, from 0 to 1; None for the default


# Graphs of one node -----------------------------------------------------------------------------


def convolution(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A convolution that leaves at least one pixel."""
    groups, per_in, per_out = pick(CHANNELS)
    strides, dilations = (pick((1, 1, 2, 3)), pick((1, 1, 2, 3))), (pick((1, 1, 2)), pick((1, 2)))
    kernel = (pick(range(1, 8)), pick((1, 1, 2, 3, 3, 4, 5, 7)))
    pads = tuple(pick((0, 0, 1, 2, 3, k // 2, k - 1)) for k in kernel * 2)
    size = tuple(
        max(pick((1, 2, 3, 5, 8, 9, 13, 17)), (k - 1) * d + 1 - low - high)
        for k, d, low, high in zip(kernel, dilations, pads[:2], pads[2:], strict=True)
    )
    rng = np.random.default_rng(pick(range(1 << 16)))
    shape = (pick((1, 1, 2, 3)), groups * per_in, *size)
    node = {
        "name": "conv", "output": "y", "data": "x", "weight": "w", "bias": "b",
        "strides": strides, "pads": pads, "dilations": dilations, "groups": groups,
        **finish(pick, groups * per_out, per_in * kernel[0] * kernel[1]),
    }  # fmt: skip
    out = (shape[0], groups * per_out, *extents(size, kernel, strides, dilations, pads))
    constants = {
        "w": layer_weights(pick, rng, (groups * per_out, per_in, *kernel)),
        "b": rng.integers(-3000, 3000, groups * per_out, np.int32),
    }
    residual, table = pick((False, False, True)), pick((False, False, True))
    inputs = {"x": shape}
    epilogue: tuple[ops.Step, ...] = ()
    if residual:
        inputs["r"] = pick((out, (1, out[1], 1, 1)))
        scales = pick((0.31, 1.0, 1.7)), pick((0.002, 0.53, 2.3, -0.53))
        zeros = node["requant"].zero, pick(ZEROS)
        total = Requant(scales, pick(ZEROS), pick((-128, -5)), pick((127, 90)))
        epilogue += (ops.AddStep(addend="r", zeros=zeros, requant=total),)
    if table:
        epilogue += (ops.TableStep(table="t"),)
        constants["t"] = rng.integers(-128, 128, 256, np.int8)
    return graph(ops.QConv2d(**node, epilogue=epilogue), inputs, out, constants, rng)


def layer_weights(pick: Pick[Any], rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Weights of 8 bits, or of 4, which lie in DRAM as nibbles."""
    half = 1 << pick((8, 4)) - 1
    return rng.integers(-half, half, shape, np.int8)


def dense(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A dense layer, of vectors or of images."""
    n, channels, outs = pick((1, 2, 3)), pick((1, 5, 16, 40, 200)), pick((1, 4, 10, 33, 100))
    image = (pick((1, 2, 3)), pick((1, 4))) if pick((False, False, True)) else ()
    ins = channels * int(np.prod(image, dtype=int))
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = ops.QDense(
        name="fc", output="y", data="x", weight="w", bias="b", **finish(pick, outs, ins)
    )
    constants = {
        "w": layer_weights(pick, rng, (outs, ins)),
        "b": rng.integers(-3000, 3000, outs, np.int32),
    }
    return graph(node, {"x": (n, channels, *image)}, (n, outs), constants, rng)


def pool(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A max pool, or an average pool of one divisor or of several."""
    kernel = (pick(range(1, 6)), pick(range(1, 6)))
    strides, average = (pick((1, 2, 3)), pick((1, 2, 3))), pick((False, True))
    dilations = pick((1, 1, 2)), pick((1, 1, 2))
    pads = tuple(pick(range(k)) for k in kernel * 2)
    size = tuple(
        max(pick((1, 2, 3, 7, 8, 12)), (k - 1) * d + 1 - low - high)
        for k, d, low, high in zip(kernel, dilations, pads[:2], pads[2:], strict=True)
    )
    shape = (pick((1, 2)), pick((1, 4, 7, 16, 35)), *size)
    rng = np.random.default_rng(pick(range(1 << 16)))
    window = {
        "name": "pool", "output": "y", "data": "x", "kernel": kernel,
        "strides": strides, "pads": pads, "dilations": dilations,
    }  # fmt: skip
    node: ir.Node = ops.QMaxPool(**window)
    if average:
        whole = ops.AvgPool(**window, include_pad=pick((False, True)))
        scale = numbers.pool_scale(0.021, pick((0.021, 0.013)), whole.multiple(shape))
        node = ops.QAvgPool(
            **whole.values(),
            zeros=(pick(ZEROS),),
            requant=Requant((scale,), pick(ZEROS), pick((-128, 0))),
        )
    out = (*shape[:2], *extents(size, kernel, strides, dilations, pads))
    return graph(node, {"x": shape}, out, {}, rng)


def addition(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """An addition of two images or of two vectors."""
    image = (pick((1, 3, 8)), pick((1, 2, 7))) if pick((0, 1)) else ()
    shape = (pick((1, 2, 3)), pick((1, 5, 16, 33, 64)), *image)
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = ops.QAdd(
        name="add",
        output="y",
        a="x",
        b="r",
        zeros=(pick(ZEROS), pick(ZEROS)),
        requant=Requant(
            (pick((0.31, 1.0, 1.7)), pick((0.002, 0.53, 2.3, -0.53))), pick(ZEROS), pick((-128, -3))
        ),
    )
    return graph(node, {"x": shape, "r": shape}, shape, {}, rng)


def matmul(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A product of two images, whose channels are whole blocks."""
    n, channels = pick((1, 1, 2, 3)), pick((32, 64, 160))
    pixels, outputs = pick((1, 3, 16, 50)), pick((1, 3, 16, 33, 64))
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = QMatMul(
        name="product",
        output="y",
        a="a",
        b="b",
        zeros=(pick(ZEROS), pick(ZEROS)),
        requant=Requant(
            (numbers.f32(1.0 / (73.0 * 73.0 * channels**0.5) * pick((0.7, 30.0, 200.0))),),
            pick(ZEROS),
            pick((-128, -3)),
            pick((127, 40)),
        ),
    )
    inputs = {"a": (n, channels, 1, pixels), "b": (n, channels, 1, outputs)}
    return graph(node, inputs, (n, outputs, 1, pixels), {}, rng)


def wide_matmul(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """The sums of a product of two images."""
    n, channels = pick((1, 1, 2, 3)), pick((32, 64, 160))
    pixels, outputs = pick((1, 3, 16, 50)), pick((1, 3, 16, 33, 64))
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = QWideMatMul(name="product", output="y", a="a", b="b")
    inputs = {"a": (n, channels, 1, pixels), "b": (n, channels, 1, outputs)}
    return graph(node, inputs, (n, outputs, 1, pixels), {}, rng, "int32")


def transposition(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Channels and pixels of an image in each other's place."""
    n, channels, pixels = pick((1, 2, 3)), pick((1, 5, 16, 33, 64)), pick((1, 4, 16, 50))
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = QTransposeImage(name="turned", output="y", data="x")
    shape = (n, channels, 1, pixels)
    return graph(node, {"x": shape}, (n, pixels, 1, channels), {}, rng)


def exchange(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Vectors as pixels of an image, or pixels as vectors."""
    rows, channels = pick((1, 2, 7, 35)), pick((1, 5, 16, 33, 64))
    rng = np.random.default_rng(pick(range(1 << 16)))
    vectors, image = (rows, channels), (1, channels, 1, rows)
    before, after = (vectors, image) if pick((0, 1)) else (image, vectors)
    node = QExchange(name="exchanged", output="y", data="x")
    return graph(node, {"x": before}, after, {}, rng)


def softmax(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Shares of each channel's pixels."""
    n, channels, pixels = pick((1, 2, 3)), pick((1, 5, 16, 33)), pick((1, 4, 16, 50, 197))
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = QSoftmax(
        name="softmax",
        output="y",
        data="x",
        step=numbers.f32(pick((0.003, 0.1, 1.7))),
        zeros=(0,),
        requant=Requant(
            (numbers.f32(pick((1 / 256, 0.0039, 0.0007, 0.02))),),
            pick((-128, *ZEROS)),
            pick((-128, -9)),
            pick((127, 100)),
        ),
    )
    shape = (n, channels, 1, pixels)
    return graph(node, {"x": shape}, shape, {}, rng)


def layer_normalization(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Normalized channels of each pixel, whose channels are whole blocks."""
    n, channels, pixels = pick((1, 2, 3)), pick((32, 64, 160)), pick((1, 4, 16, 50))
    rng = np.random.default_rng(pick(range(1 << 16)))
    gamma, beta = rng.normal(30, 9, channels), rng.normal(0, 20, channels)
    terms = Terms.of(gamma, beta)
    node = QNormalize(
        name="normalized",
        output="y",
        data="x",
        factor="f",
        offset="o",
        centered=pick((True, True, False)),
        epsilon=pick((0.0, 0.01, 3.0)),
        shift=terms.shift,
        zeros=(pick(ZEROS),),
        requant=Requant((terms.scale,), pick(ZEROS), pick((-128, -9)), pick((127, 100))),
    )
    constants = {"f": terms.factor, "o": terms.offset}
    inputs = {"x": (n, channels, 1, pixels)}
    return graph(node, inputs, (n, pixels, 1, channels), constants, rng)


def minimum(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """The lesser of two images or of two vectors, at one scale or at two."""
    image = (pick((1, 3, 8)), pick((1, 2, 7))) if pick((0, 1)) else ()
    shape = (pick((1, 2, 3)), pick((1, 5, 16, 33, 64)), *image)
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = QMinimum(
        name="least",
        output="y",
        a="x",
        b="r",
        zeros=(pick(ZEROS), pick(ZEROS)),
        requant=Requant(
            (pick((0.31, 1.0, 1.7)), pick((0.002, 0.31, 1.0, 2.3))),
            pick(ZEROS),
            pick((-128, -3)),
            pick((127, 40)),
        ),
    )
    return graph(node, {"x": shape, "r": shape}, shape, {}, rng)


def concatenation(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Images or vectors one behind another along an axis; of channels all but the last part are
    whole blocks."""
    image = (pick((1, 3, 8)), pick((1, 2, 7, 13))) if pick((0, 1, 1)) else ()
    batch, count = pick((1, 1, 2, 3)), pick((1, 2, 2, 3, 4))
    axis = pick((1, 1, 0, 2, 3)) if image else pick((1, 1, 0))
    if axis == 1:
        sizes = [pick((32, 64)) for _ in range(count - 1)] + [pick((1, 5, 16, 32, 33))]
    else:
        sizes = [pick((1, 2, 5)) for _ in range(count)]
    rng = np.random.default_rng(pick(range(1 << 16)))
    names = [f"x{number}" for number in range(count)]
    node = ops.QConcat(
        name="join",
        output="y",
        parts=(*names, names[-1]) if pick((0, 0, 1)) and sizes[-1] in (2, 32) else tuple(names),
        axis=axis,
        zeros=(),
        requant=Requant((), pick(ZEROS), pick((-128, -3)), pick((127, 40))),
    )
    scales = tuple(pick((0.002, 0.31, 1.0, 2.3)) for _ in node.parts)
    zeros = tuple(pick(ZEROS) for _ in node.parts)
    node = replace(node, zeros=zeros, requant=replace(node.requant, scale=scales))
    shape = (batch, pick((5, 32)), *image)
    before, behind = shape[:axis], shape[axis + 1 :]
    shapes = {name: (*before, n, *behind) for name, n in zip(names, sizes, strict=True)}
    total = sum(shapes[name][axis] for name in node.parts)
    return graph(node, shapes, (*before, total, *behind), {}, rng)


def normalization(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A factor and an offset for every channel of images or vectors."""
    image = (pick((1, 3, 8)), pick((1, 2, 7, 13))) if pick((0, 1, 1)) else ()
    shape = pick((1, 1, 2, 3)), pick((1, 5, 16, 33, 64, 130)), *image
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = ops.QBatchNorm(
        name="norm",
        output="y",
        data="x",
        zeros=(pick(ZEROS),),
        requant=Requant(
            tuple((rng.normal(0, 1, shape[1]) * pick((0.001, 1.0, 30.0))).tolist()),
            pick(ZEROS),
            pick((-128, -3)),
            pick((127, 40)),
        ),
        offsets=tuple((rng.normal(0, 1, shape[1]) * pick((0.0, 40.0, 3000.0))).tolist()),
    )
    return graph(node, {"x": shape}, shape, {}, rng)


def interleaving(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Images whose pixels take turns; one may take several of them."""
    rows, columns = pick((1, 2, 3)), pick((1, 2, 3))
    shape = pick((1, 1, 2)), pick((1, 5, 16, 33, 64)), pick((1, 3, 8)), pick((1, 2, 7, 13))
    rng = np.random.default_rng(pick(range(1 << 16)))
    names = [f"x{number}" for number in range(rows * columns)]
    parts = (*names[:-1], names[0]) if pick((0, 0, 1)) else tuple(names)
    node = ops.QInterleave(name="turns", output="y", parts=parts, rows=rows, columns=columns)
    out = (*shape[:2], shape[2] * rows, shape[3] * columns)
    return graph(node, dict.fromkeys(dict.fromkeys(parts), shape), out, {}, rng)


def upsampling(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Every row and every column a number of times."""
    down, across = pick((1, 2, 3)), pick((1, 2, 2, 4))
    shape = pick((1, 1, 2)), pick((1, 5, 16, 33, 64)), pick((1, 3, 8)), pick((1, 2, 7, 13))
    rng = np.random.default_rng(pick(range(1 << 16)))
    out = (*shape[:2], shape[2] * down, shape[3] * across)
    tables = (range(n) for n in shape[:2])
    rows = (y // down for y in range(out[2]))
    places = (*(i for table in tables for i in table), *rows, *(x // across for x in range(out[3])))
    node = ops.QTake(name="up", output="y", data="x", shape=out, places=places)
    return graph(node, {"x": shape}, out, {}, rng)


def images(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Images in another order, some of them several times, some filled."""
    shape = pick((1, 2, 5)), pick((1, 5, 16, 33, 64)), pick((1, 3, 8)), pick((1, 2, 7, 13))
    rng = np.random.default_rng(pick(range(1 << 16)))
    order = [*(int(place) for place in rng.integers(-1, shape[0], pick((0, 3, 8)))), 0]
    places = (*order, *(i for size in shape[1:] for i in range(size)))
    out = len(order), *shape[1:]
    node = ops.QTake(
        name="images", output="y", data="x", shape=out, places=places, fill=pick((0, -7, 127))
    )
    return graph(node, {"x": shape}, out, {}, rng)


def table(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A function of one variable, of an image or of a vector."""
    image = (pick((1, 3, 8)), pick((1, 2, 7))) if pick((0, 1)) else ()
    shape = (pick((1, 2, 3)), pick((1, 5, 16, 33, 64)), *image)
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = ops.QTable(name="table", output="y", data="x", table="t")
    results = {"t": rng.integers(-128, 128, 256, np.int8)}
    return graph(node, {"x": shape}, shape, results, rng)


def product(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A product of two images or of two vectors, or of an image and a gate."""
    image = (pick((1, 3, 8)), pick((1, 2, 7, 13))) if pick((0, 1, 1)) else ()
    shape = (pick((1, 2, 3)), pick((1, 5, 16, 33, 64)), *image)
    rng = np.random.default_rng(pick(range(1 << 16)))
    other = gate_shape(shape) if pick((0, 1)) else shape
    node = QMultiply(
        name="product",
        output="y",
        a="x",
        b="r",
        zeros=(pick(ZEROS), pick(ZEROS)),
        requant=Requant(
            (pick((0.0001, 0.0073, 0.31)),), pick(ZEROS), pick((-128, -3)), pick((127, 40))
        ),
    )
    return graph(node, {"x": shape, "r": other}, shape, {}, rng)


def rescaling(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """A change of scale, or limits, of an image or of a vector."""
    image = (pick((1, 3, 8)), pick((1, 2, 7))) if pick((0, 1)) else ()
    shape = (pick((1, 2, 3)), pick((1, 5, 16, 33, 64)), *image)
    rng = np.random.default_rng(pick(range(1 << 16)))
    node = ops.QClip(
        name="rescale",
        output="y",
        data="x",
        zeros=(pick(ZEROS),),
        requant=Requant(
            (pick((0.002, 0.31, 1.0, 2.3)),), pick(ZEROS), pick((-128, -3)), pick((127, 40))
        ),
    )
    return graph(node, {"x": shape}, shape, {}, rng)


def interpolation(pick: Pick[Any]) -> tuple[Graph, dict[str, Any]]:
    """Twice or three times the size, of neighbours by weights of a row and of a column."""
    factors = pick((1, 2, 2, 3)), pick((1, 2, 2, 3))
    shape = pick((1, 1, 2)), pick((1, 5, 16, 33)), pick((1, 3, 8, 21)), pick((1, 2, 7, 13))
    rng = np.random.default_rng(pick(range(1 << 16)))
    tables = [weights(factor, n, rng) for factor, n in zip(factors, shape[2:], strict=True)]
    whole = int(tables[0][0].sum() * tables[1][0].sum())
    scale, zero = pick((0.7, 1.3)) / whole, pick(ZEROS)
    node = QInterpolate(
        name="resize", output="y", data="x", rows="r", columns="c", zeros=(pick(ZEROS),),
        requant=Requant((scale,), zero, pick((-128, -3)), pick((127, 40))),
    )  # fmt: skip
    out = (*shape[:2], len(tables[0]), len(tables[1]))
    return graph(node, {"x": shape}, out, dict(zip("rc", tables, strict=True)), rng)


def weights(factor: int, size: int, rng: np.random.Generator) -> Any:
    """[factor * size, size]: 12 parts of two neighbours for each pixel."""
    table = np.zeros((factor * size, size), np.int32)
    for i in range(factor * size):
        first = min(max(i // factor - int(rng.integers(2)), 0), size - 1)
        part = int(rng.integers(13))
        table[i, first] += part
        table[i, min(first + 1, size - 1)] += 12 - part
    return table


CHANNELS = (  # groups, input and output channels of each
    (1, 1, 1), (1, 3, 5), (1, 4, 8), (1, 16, 16), (1, 17, 33), (1, 40, 24), (1, 64, 64),
    (2, 4, 4), (2, 3, 5), (3, 2, 2), (3, 5, 1), (2, 16, 16), (4, 8, 8),
    (5, 1, 1), (16, 1, 1), (24, 1, 1), (35, 1, 1), (8, 1, 2), (6, 2, 1),
)  # fmt: skip
ZEROS = (0, -128, 127, 3, -17)


def finish(pick: Pick[Any], channels: int, terms: int) -> dict[str, Any]:
    """Zero points, scales and clip of a requantization that spreads its results."""
    spread = 1.0 / (73.0 * max(terms, 1) ** 0.5)
    return {
        "zeros": (pick(ZEROS),),
        "requant": Requant(
            tuple(numbers.f32(spread * (0.3 + (7 * c) % 5 / 5)) for c in range(channels)),
            pick(ZEROS),
            pick((-128, -128, 0, -9)),
            pick((127, 127, 100)),
        ),
    }


def extents(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> tuple[int, ...]:
    """Rows and columns of a window operator's output."""
    return tuple(
        (n + low + high - (k - 1) * d - 1) // s + 1
        for n, k, s, d, low, high in zip(
            size, kernel, strides, dilations, pads[:2], pads[2:], strict=True
        )
    )


def graph(
    node: ir.Node,
    inputs: dict[str, tuple[int, ...]],
    out: tuple[int, ...],
    constants: dict[str, Any],
    rng: np.random.Generator,
    dtype: str = "int8",
) -> tuple[Graph, dict[str, Any]]:
    """A graph of one node, whose result has an element type, and random values for its inputs."""
    tensors = {name: TensorType(shape, "int8") for name, shape in inputs.items()}
    tensors["y"] = TensorType(out, dtype)
    tensors |= {name: TensorType(a.shape, str(a.dtype)) for name, a in constants.items()}
    made = Graph(tuple(inputs), ("y",), (node,), tensors, constants)
    values = {name: rng.integers(-128, 128, shape, np.int8) for name, shape in inputs.items()}
    return made, values


def case(pick: Pick[Any], kind: Callable[[Pick[Any]], tuple[Graph, dict[str, Any]]]) -> Case:
    """A graph and how to compile it."""
    tile = pick((None, *(i / 40 for i in range(41))))
    return Case(*kind(pick), pick(CONFIGS), pick((1, 1, 2, 2, 2, 3, 4)), tile)


# The check --------------------------------------------------------------------------------------


def check(case: Case) -> str:
    """Compiles and simulates a case; the result equals the reference. Says what was done."""
    config = load_config(case.config, OPTIONS)
    operators, placements = accelerator_layers(case.graph, config, Options(min_fill=0.0))
    if not operators:
        (node,) = case.graph.nodes
        reason = placements[node.name].reason
        reasons = "every window lies in the padding", "pixels are no tiles", "a row of 197 pixels"
        assert reason.startswith(reasons)
        return "host"
    (operator,) = operators
    tile = choose(operator, case, config)
    if tile is None:
        return "no tile fits"
    layer = layer_program(operator, tile, config)
    for name, value in case.inputs.items():
        raw = pack(value, config.channel_block).reshape(-1).view(np.uint8)
        at = layer.addresses[f"{name}.packed"]
        layer.dram[at : at + raw.size] = raw
    simulate(config, layer.program.instructions, layer.dram, layer.program.base)
    want = evaluate(case.graph, case.inputs)["y"]
    kind = TensorType(want.shape, str(want.dtype), block=config.channel_block)
    at = layer.addresses["y.packed"]
    got = layer.dram[at : at + kind.nbytes].view(want.dtype).reshape(kind.physical)
    np.testing.assert_array_equal(unpack(got, want.shape), want, err_msg=str(tile))
    return str(tile)


def choose(operator: Any, case: Case, config: Any) -> Any:
    """The default tile, or one of all legal ones; None when the buffers can't hold any."""
    if case.tile is None:
        try:
            return default_tile(operator.template, config, case.vthreads)
        except TilingError:
            return None
    for vthreads in range(case.vthreads, 0, -1):
        if tiles := list(operator.template.tiles(config, vthreads)):
            return tiles[round(case.tile * (len(tiles) - 1))]
    return None


KINDS = (
    convolution, dense, pool, addition, minimum, normalization, concatenation, interleaving,
    upsampling, images, interpolation, table, rescaling, product, matmul, wide_matmul,
    transposition, exchange, softmax, layer_normalization,
)  # fmt: skip


@st.composite
def cases(draw: Any, kind: Callable[[Pick[Any]], tuple[Graph, dict[str, Any]]]) -> Case:
    """Cases for hypothesis."""
    return case(lambda options: draw(st.sampled_from(options)), kind)


def holds(kind: Callable[[Pick[Any]], tuple[Graph, dict[str, Any]]], examples: int) -> None:
    """Checks as many random cases of a kind."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(cases(kind))
    def run(case: Case) -> None:
        check(case)

    run()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_operators(kind):
    holds(kind, 10 if kind is convolution else 3)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_many_random_operators(kind):
    holds(kind, 3000 if kind is convolution else 600)


@pytest.mark.parametrize("residual", [False, True])
def test_more_channels_than_the_accumulators_hold_parameters_of(residual):
    """On tiny, 256 channels' biases and scales fill ACC: each tile loads its own."""
    rng = np.random.default_rng(5)
    out, shape = (1, 256, 3, 5), (1, 8, 3, 5)
    node = {
        "name": "conv", "output": "y", "data": "x", "weight": "w", "bias": "b",
        **finish(lambda options: options[0], 256, 8),
    }  # fmt: skip
    constants = {
        "w": rng.integers(-128, 128, (256, 8, 1, 1), np.int8),
        "b": rng.integers(-3000, 3000, 256, np.int32),
    }
    made: ir.Node = ops.QConv2d(**node)
    inputs = {"x": shape}
    if residual:
        zeros = node["requant"].zero, 3
        addition = ops.AddStep(addend="r", zeros=zeros, requant=Requant((0.3, 0.5), -2))
        made = ops.QConv2d(**node, epilogue=(addition,))
        inputs["r"] = out
    built = graph(made, inputs, out, constants, rng)
    for vthreads in (1, 2):
        assert "resident=False" in check(Case(*built, "tiny", vthreads, None))
