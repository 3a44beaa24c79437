"""Trains the bundled digits network: numpy gradient descent on scikit-learn's digits.

    python training/digits.py

writes ``digits.onnx`` and ``digits_test.npz`` into ``compiler/models/data``. The same seeds give
the same files. Needs scikit-learn (extra ``dev``).

The network: conv 3x3 (1→16), Relu, MaxPool 2, conv 3x3 (16→64), Relu, global average, dense (10).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET
from vdla.compiler.models.quantizer import quantize_model

DATA = Path(__file__).parents[1] / "compiler" / "models" / "data"
SEED = 7
TEST_IMAGES = 360
EPOCHS = 60
BATCH = 64
RATE = 4e-3
CHANNELS = (16, 64)

Params = dict[str, Array]


def load() -> tuple[Array, Array, Array, Array]:
    """Training images and labels, then test images and labels; pixels in [0, 1]."""
    from sklearn.datasets import load_digits

    data = load_digits()
    pictures = (data.images / 16.0).astype(np.float32)[:, None]
    labels = data.target.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(labels))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return pictures[train], labels[train], pictures[test], labels[test]


def initial(rng: np.random.Generator) -> Params:
    """He-initialised parameters."""
    first, second = CHANNELS

    def he(*shape: int) -> Array:
        fan_in = int(np.prod(shape[1:]))
        return np.asarray(rng.standard_normal(shape) * np.sqrt(2.0 / fan_in))

    return {
        "w1": he(first, 1, 3, 3),
        "b1": np.zeros(first),
        "w2": he(second, first, 3, 3),
        "b2": np.zeros(second),
        "w3": he(10, second),
        "b3": np.zeros(10),
    }


def columns(x: Array) -> Array:
    """[N, C*9, H*W]: the 3x3 neighbourhood of every pixel, zeros outside."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [padded[:, :, r : r + h, s : s + w] for r in range(3) for s in range(3)]
    return np.stack(parts, axis=2).reshape(n, c * 9, h * w)


def uncolumns(g: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of :func:`columns`: adds every neighbourhood's gradient back to its pixels."""
    n, c, h, w = shape
    padded = np.zeros((n, c, h + 2, w + 2))
    parts = g.reshape(n, c, 9, h, w)
    for k in range(9):
        r, s = divmod(k, 3)
        padded[:, :, r : r + h, s : s + w] += parts[:, :, k]
    return padded[:, :, 1:-1, 1:-1]


def forward(p: Params, x: Array) -> tuple[Array, dict[str, Array]]:
    """The logits, and what the backward pass needs."""
    n = len(x)
    c1 = columns(x)
    a1 = p["w1"].reshape(CHANNELS[0], -1) @ c1 + p["b1"][:, None]
    r1 = np.maximum(a1, 0).reshape(n, CHANNELS[0], 4, 2, 4, 2)
    pooled = r1.max(axis=(3, 5))
    winners = r1 == pooled[:, :, :, None, :, None]
    c2 = columns(pooled)
    a2 = p["w2"].reshape(CHANNELS[1], -1) @ c2 + p["b2"][:, None]
    features = np.maximum(a2, 0).mean(axis=2)
    logits = features @ p["w3"].T + p["b3"]
    kept = {"c1": c1, "a1": a1, "winners": winners, "c2": c2, "a2": a2, "features": features}
    return logits, kept


def gradients(p: Params, x: Array, labels: Array) -> tuple[float, Params]:
    """Cross-entropy and its gradient."""
    logits, kept = forward(p, x)
    n = len(x)
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    probability = exp / exp.sum(axis=1, keepdims=True)
    loss = float(-np.log(probability[np.arange(n), labels] + 1e-12).mean())
    delta = probability
    delta[np.arange(n), labels] -= 1
    delta /= n
    g: Params = {"w3": delta.T @ kept["features"], "b3": delta.sum(axis=0)}
    spread = (delta @ p["w3"])[:, :, None] / kept["a2"].shape[2]
    d2 = spread * (kept["a2"] > 0)
    g["w2"] = np.einsum("nop,nip->oi", d2, kept["c2"], optimize=True).reshape(p["w2"].shape)
    g["b2"] = d2.sum(axis=(0, 2))
    d_pooled = uncolumns(p["w2"].reshape(CHANNELS[1], -1).T @ d2, (n, CHANNELS[0], 4, 4))
    winners = kept["winners"]
    shared = winners / winners.sum(axis=(3, 5), keepdims=True)
    d1 = (shared * d_pooled[:, :, :, None, :, None]).reshape(kept["a1"].shape) * (kept["a1"] > 0)
    g["w1"] = np.einsum("nop,nip->oi", d1, kept["c1"], optimize=True).reshape(p["w1"].shape)
    g["b1"] = d1.sum(axis=(0, 2))
    return loss, g


def train(x: Array, labels: Array) -> Params:
    """Adam, the rate falling to zero along a cosine."""
    rng = np.random.default_rng(SEED)
    p = initial(rng)
    mean = {k: np.zeros_like(v) for k, v in p.items()}
    square = {k: np.zeros_like(v) for k, v in p.items()}
    step, steps = 0, EPOCHS * (len(x) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            _, g = gradients(p, x[chosen], labels[chosen])
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for k, v in g.items():
                mean[k] = 0.9 * mean[k] + 0.1 * v
                square[k] = 0.999 * square[k] + 0.001 * v * v
                m, s = mean[k] / (1 - 0.9**step), square[k] / (1 - 0.999**step)
                p[k] = p[k] - rate * m / (np.sqrt(s) + 1e-8)
    return p


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


def main(folder: Path = DATA) -> float:
    """Trains, quantizes and writes; returns the float network's test accuracy."""
    x, labels, test, test_labels = load()
    p = train(x.astype(np.float64), labels)
    samples = [{"image": image[None]} for image in x[:200]]
    quantize_model(model(p), folder / "digits.onnx", samples)
    np.savez_compressed(folder / "digits_test.npz", images=test, labels=test_labels)
    return float((forward(p, test.astype(np.float64))[0].argmax(axis=1) == test_labels).mean())


if __name__ == "__main__":
    print(f"float accuracy on the test split: {main():.4f}")
