"""Trains the bundled scenes network with vdla: a small U-Net that names each pixel's digit.

    python training/scenes.py FOLDER

writes ``scenes.onnx`` and ``scenes_test.npz`` into a folder, and prints how many pixels the float
network gets right. A **scene** is a picture of 32x32 pixels with some digits of ``digits.npz`` in
it, light ones on dark noise; a pixel's class is its digit, or 10 for the ground. The same seeds
give the same files on one machine. The bundled file is of the same training by numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import digits
import numpy as np
import onnx
from descent import compiled, descend, falling, folder_of
from digits import neighbourhoods
from onnx import helper, numpy_helper

import vdla
from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET
from vdla.compiler.models.quantizer import quantize_model

SEED = 11
SIDE, DIGIT = 32, 8  # of a scene and of a digit, in pixels
GROUND = 10
CLASSES = 11
INK = 0.3  # a pixel at least so bright is the digit's
STEPS, BATCH, RATE = 2000, 16, 3e-3
GROUND_WEIGHT = 0.3  # of a pixel of the ground in the loss
TESTS = 64
SHAPES = {  # of weights: those of layers with one bias for each output, and those that grow images
    "down0": (16, 1, 3, 3), "down1": (32, 16, 3, 3), "bottom1": (64, 32, 3, 3),
    "bottom2": (64, 64, 3, 3), "up1": (64, 32, 2, 2), "merge1": (32, 64, 3, 3),
    "up0": (32, 16, 2, 2), "merge0": (16, 32, 3, 3), "classes": (CLASSES, 16, 1, 1),
}  # fmt: skip
Params = dict[str, Array]


# Scenes ------------------------------------------------------------------------------------------


def scenes(
    pictures: Array, labels: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Scenes float32 [count, 1, 32, 32], of 256 shades, and their pixels' classes uint8
    [count, 32, 32]."""
    x = rng.uniform(0, 0.15, (count, 1, SIDE, SIDE)).astype(np.float32)
    y = np.full((count, SIDE, SIDE), GROUND, np.uint8)
    for scene, classes in zip(x[:, 0], y, strict=True):
        for top in range(0, SIDE - DIGIT + 1, DIGIT + 2):
            for left in range(0, SIDE - DIGIT + 1, DIGIT + 2):
                if rng.uniform() < 0.4:
                    continue
                pick = rng.integers(len(labels))
                row, column = top + rng.integers(0, 3), left + rng.integers(0, 3)
                here = slice(row, row + DIGIT), slice(column, column + DIGIT)
                ink = pictures[pick, 0][: SIDE - row, : SIDE - column]
                scene[here] = np.maximum(scene[here], ink * rng.uniform(0.7, 1.0))
                classes[here][ink >= INK] = labels[pick]
    return np.rint(x * 255) / np.float32(255), y


# The network -------------------------------------------------------------------------------------


def initial(rng: np.random.Generator) -> Params:
    """He-initialised weights and zero biases."""
    result: Params = {}
    for name, shape in SHAPES.items():
        scale = np.sqrt(2.0 / np.prod(shape[1:]))
        result[f"{name}.weight"] = (rng.standard_normal(shape) * scale).astype(np.float32)
        if not name.startswith("up"):
            result[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    return result


def layer(p: Params, name: str, x: Array) -> Array:
    """A convolution that keeps the size: [N, H, W, C] to [N, H, W, channels]."""
    (n, h, w, _), weight = x.shape, p[f"{name}.weight"]
    seen = neighbourhoods(x) if weight.shape[2] == 3 else x
    taps = weight.transpose(2, 3, 1, 0).reshape(-1, weight.shape[0])
    sums = seen.reshape(n * h * w, -1) @ taps
    return (sums + p[f"{name}.bias"]).reshape(n, h, w, -1)


def silu(x: Array) -> Array:
    """``x * sigmoid(x)``."""
    return x * vdla.sigmoid(x)


def halved(x: Array) -> Array:
    """The largest of each four pixels."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def grown(p: Params, name: str, x: Array) -> Array:
    """A transposed convolution to twice the size: each pixel becomes four."""
    (n, h, w, c), weight = x.shape, p[f"{name}.weight"]
    channels = weight.shape[1]
    parts = x.reshape(n * h * w, c) @ weight.transpose(0, 2, 3, 1).reshape(c, -1)
    whole = parts.reshape(n, h, w, 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    return whole.reshape(n, 2 * h, 2 * w, channels)


def logits(p: Params, scenes: Array) -> Array:
    """The network's result [N, 32, 32, 11] for scenes [N, 1, 32, 32]: two levels down, two up."""
    x, skipped = scenes.reshape(len(scenes), SIDE, SIDE, 1), []
    for level in range(2):
        skipped.append(silu(layer(p, f"down{level}", x)))
        x = halved(skipped[-1])
    x = silu(layer(p, "bottom2", silu(layer(p, "bottom1", x))))
    for level in (1, 0):
        both = np.concatenate([skipped[level], grown(p, f"up{level}", x)], axis=3)
        x = silu(layer(p, f"merge{level}", both))
    return layer(p, "classes", x)


def loss(p: Params, scenes: Array, classes: Array) -> Array:
    """The mean cross-entropy of pixels in nats, less of it for the ground's."""
    result = logits(p, scenes).reshape(-1, CLASSES)
    above = result - result.max(axis=1, keepdims=True)
    wanted = classes.reshape(-1, 1)
    likely = np.sum(np.where(wanted == np.arange(CLASSES), above, 0.0), axis=1)
    weights = np.where(wanted == GROUND, np.float32(GROUND_WEIGHT), np.float32(1)).reshape(-1)
    return np.mean(weights * (np.log(np.sum(np.exp(above), axis=1)) - likely))


def batches(
    pictures: Array, labels: Array, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Scenes of one step after another, and their pixels' classes."""
    while True:
        x, y = scenes(pictures, labels, BATCH, rng)
        yield x, y.astype(np.int64)


def train(pictures: Array, labels: Array, steps: int = STEPS) -> Params:
    """Adam, the rate falling to zero along a cosine."""
    rng, adam = np.random.default_rng(SEED), vdla.optim.Adam()
    batch = batches(pictures, labels, rng)
    step = compiled(loss, adam)
    return descend(step, adam, initial(rng), batch, falling(RATE, steps))[0]


def model(params: Params) -> onnx.ModelProto:
    """The float ONNX network for one scene."""
    nodes = list[onnx.NodeProto]()

    def add(op: str, name: str, inputs: list[str], **fields: object) -> str:
        nodes.append(helper.make_node(op, inputs, [name], name=name, **fields))
        return name

    def conv(name: str, x: str) -> str:
        size = SHAPES[name][2]
        window = {"kernel_shape": [size] * 2, "pads": [size // 2] * 4}
        return add("Conv", name, [x, f"{name}.weight", f"{name}.bias"], **window)

    def activated(x: str) -> str:
        return add("Mul", f"{x}.silu", [x, add("Sigmoid", f"{x}.sigmoid", [x])])

    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x, skipped = "scene", []
    for level in range(2):
        skipped.append(activated(conv(f"down{level}", x)))
        x = add("MaxPool", f"pool{level}", [skipped[-1]], **window)
    x = activated(conv("bottom2", activated(conv("bottom1", x))))
    for level in (1, 0):
        up = add("ConvTranspose", f"up{level}", [x, f"up{level}.weight"], **window)
        both = add("Concat", f"cat{level}", [skipped[level], up], axis=1)
        x = activated(conv(f"merge{level}", both))
    sizes = {"scene": (1, 1, SIDE, SIDE), conv("classes", x): (1, CLASSES, SIDE, SIDE)}
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in sizes.items()]
    weights = [numpy_helper.from_array(v, k) for k, v in params.items()]
    graph = helper.make_graph(nodes, "scenes", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="vdla"
    )


def predicted(params: Params, x: Array) -> Array:
    """The classes of pixels [N, 32, 32] that the float network gives."""
    return np.asarray(vdla.fn(logits)(params, x)).argmax(axis=3)


def main(folder: Path, steps: int = STEPS) -> tuple[float, float]:
    """Trains, quantizes and writes; the float network's share of right pixels, of all and of
    digits alone."""
    x, labels, test, test_labels = digits.load()
    params = train(x, labels, steps)
    images, classes = scenes(test, test_labels, TESTS, np.random.default_rng(SEED + 1))
    samples, _ = scenes(x, labels, 32, np.random.default_rng(SEED + 2))
    folder.mkdir(parents=True, exist_ok=True)
    quantize_model(model(params), folder / "scenes.onnx", [{"scene": s[None]} for s in samples])
    right = predicted(params, images) == classes
    truth = np.array([right.mean(), right[classes != GROUND].mean()], np.float32)
    np.savez_compressed(
        folder / "scenes_test.npz",
        images=np.rint(images * 255).astype(np.uint8),
        labels=classes,
        float_accuracy=truth,
    )
    return float(truth[0]), float(truth[1])


if __name__ == "__main__":
    shares = main(folder_of(__doc__))
    print("float accuracy on the test scenes: {:.4f} of pixels, {:.4f} of digits'".format(*shares))
