"""Trains the bundled digits network with vdla, on the digits of ``digits.npz``.

    python training/digits.py FOLDER

writes ``digits.onnx`` and ``digits_test.npz`` into a folder, in seconds. The same seeds give the
same files on one machine. The 1,797 images of 8x8 pixels, each of 0 to 16, are the test part of
UCI's "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998; CC BY 4.0), in the
order in which scikit-learn has them.

The network: conv 3x3 (1→16), Relu, MaxPool 2, conv 3x3 (16→64), Relu, global average, dense (10).
The bundled file is of the same training by numpy, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from descent import compiled, cross_entropy, descend, falling, folder_of
from onnx import helper, numpy_helper

import vdla
from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET
from vdla.compiler.models.quantizer import quantize_model

SEED = 7
TEST_IMAGES = 360
EPOCHS = 60
BATCH = 64
RATE = 4e-3
CHANNELS = (16, 64)

Params = dict[str, Array]


def load() -> tuple[Array, Array, Array, Array]:
    """Training images and labels, then test images and labels; pixels in [0, 1]."""
    data = np.load(Path(__file__).with_suffix(".npz"))
    pictures, labels = np.float32(data["images"][:, None] / 16), data["labels"].astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(labels))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return pictures[train], labels[train], pictures[test], labels[test]


def initial(rng: np.random.Generator) -> Params:
    """He-initialised parameters."""
    first, second = CHANNELS

    def he(*shape: int) -> Array:
        fan_in = int(np.prod(shape[1:]))
        return (rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)

    return {
        "w1": he(first, 1, 3, 3),
        "b1": np.zeros(first, np.float32),
        "w2": he(second, first, 3, 3),
        "b2": np.zeros(second, np.float32),
        "w3": he(10, second),
        "b3": np.zeros(10, np.float32),
    }


def neighbourhoods(x: Array) -> Array:
    """The 3x3 pixels around each one of images [N, H, W, C], zeros outside: [N, H, W, 9 * C]."""
    n, h, w, c = x.shape
    row, column = np.zeros((n, 1, w, c), np.float32), np.zeros((n, h + 2, 1, c), np.float32)
    x = np.concatenate([column, np.concatenate([row, x, row], 1), column], 2)
    return np.concatenate([x[:, r : r + h, s : s + w] for r in range(3) for s in range(3)], 3)


def convolution(x: Array, weight: Array, bias: Array) -> Array:
    """A layer of 3x3 taps and its Relu: [N, H, W, C] to [N, H, W, channels]."""
    n, h, w, _ = x.shape
    taps = weight.transpose(2, 3, 1, 0).reshape(-1, weight.shape[0])
    sums = neighbourhoods(x).reshape(n * h * w, -1) @ taps
    return np.maximum(sums + bias, 0).reshape(n, h, w, -1)


def logits(p: Params, x: Array) -> Array:
    """The network's result [N, 10] for images [N, 1, 8, 8]."""
    n, (first, second) = len(x), CHANNELS
    x = convolution(x.reshape(n, 8, 8, 1), p["w1"], p["b1"])
    x = convolution(x.reshape(n, 4, 2, 4, 2, first).max(axis=(2, 4)), p["w2"], p["b2"])
    return x.reshape(n, 16, second).mean(axis=1) @ p["w3"].T + p["b3"]


def loss(p: Params, x: Array, labels: Array) -> Array:
    """Cross-entropy in nats."""
    return cross_entropy(logits(p, x), labels)


def batches(x: Array, labels: Array, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Images and labels of one step after another, each image once an epoch."""
    while True:
        order = rng.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield x[chosen], labels[chosen]


def train(x: Array, labels: Array, epochs: int = EPOCHS) -> Params:
    """Adam, the rate falling to zero along a cosine."""
    rng, adam = np.random.default_rng(SEED), vdla.optim.Adam()
    p, rates = initial(rng), falling(RATE, epochs * (len(x) // BATCH))
    return descend(compiled(loss, adam), adam, p, batches(x, labels, rng), rates)[0]


def accuracy(p: Params, x: Array, labels: Array) -> float:
    """The share of images that are classified rightly."""
    return float((np.asarray(vdla.fn(logits)(p, x)).argmax(axis=1) == labels).mean())


def model(p: Params) -> onnx.ModelProto:
    """The float ONNX network."""
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["conv1"], name="conv1", **conv),
        helper.make_node("Relu", ["conv1"], ["relu1"], name="relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], name="pool1", **pool),
        helper.make_node("Conv", ["pool1", "w2", "b2"], ["conv2"], name="conv2", **conv),
        helper.make_node("Relu", ["conv2"], ["relu2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["relu2"], ["pool2"], name="pool2"),
        helper.make_node("Flatten", ["pool2"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], name="fc", transB=1),
    ]
    weights = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in p.items()]
    ends = [
        helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 1, 8, 8]),
        helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [1, 10]),
    ]
    graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="vdla"
    )


def main(folder: Path) -> float:
    """Trains, quantizes and writes; returns the float network's test accuracy."""
    x, labels, test, test_labels = load()
    p = train(x, labels)
    folder.mkdir(parents=True, exist_ok=True)
    samples = [{"image": image[None]} for image in x[:200]]
    quantize_model(model(p), folder / "digits.onnx", samples)
    np.savez_compressed(folder / "digits_test.npz", images=test, labels=test_labels)
    return accuracy(p, test, test_labels)


if __name__ == "__main__":
    print(f"float accuracy on the test split: {main(folder_of(__doc__)):.4f}")
