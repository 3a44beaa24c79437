"""Trains the bundled vision transformer with vdla, on the digits of ``digits.npz``.

    python training/patches.py FOLDER

writes ``patches.onnx`` and ``patches_test.npz`` into a folder: the network in int8, and the
accuracy of the float network on the test images, which are those of ``digits``. The same seeds give
the same files on one machine. The bundled file is of the same training by numpy.

The network is ``transformers.vit`` of two blocks: patches of 2x2 pixels, with those around them,
and a class token are 17 vectors of 32 features, in two heads. Training begins with its made-up
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import digits
import numpy as np
import onnx
from descent import compiled, cross_entropy, descend, falling, folder_of
from onnx import numpy_helper

import vdla
from vdla.analysis.ort import ort_run
from vdla.compiler.graph.types import Array
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import EPSILON, Sizes, vit

SEED = 11
SIZES = Sizes(blocks=2, features=32, heads=2, length=17)
IMAGE, PATCH, OVERLAP, CLASSES = (1, 1, 8, 8), 2, 1, 10
EPOCHS, RATE, DECAY = 150, 3e-3, 0.05
WARM = 100  # steps in which the rate rises
SAMPLES = 200  # that are calibrated on

Params = dict[str, Array]
Product = Callable[[Array, Array], Array]  # of two matrices, or of stacks of them


def network() -> onnx.ModelProto:
    """The float network with its made-up weights."""
    return vit(SIZES, IMAGE, PATCH, CLASSES, OVERLAP).model("head")


def is_trained(name: str) -> bool:
    """Whether an initializer is a weight."""
    return name in ("token", "places") or name.endswith((".weight", ".bias", ".gamma", ".beta"))


def initial(model: onnx.ModelProto) -> Params:
    """The weights of a model by name."""
    weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    return {name: array for name, array in weights.items() if is_trained(name)}


def linear(p: Params, name: str, x: Array, product: Product = np.matmul) -> Array:
    """A dense layer of each vector; ``head`` has its outputs first."""
    weight = p[f"{name}.weight"]
    rows = product(x.reshape(-1, x.shape[-1]), weight.T if name == "head" else weight)
    return (rows + p[f"{name}.bias"]).reshape(*x.shape[:-1], -1)


def norm(p: Params, name: str, x: Array) -> Array:
    """A layer normalization."""
    above = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt((above * above).mean(axis=-1, keepdims=True) + EPSILON)
    return above / root * p[f"{name}.gamma"] + p[f"{name}.beta"]


def attention(p: Params, name: str, x: Array, product: Product = np.matmul) -> Array:
    """Multi-head self-attention with its last layer."""
    n, length, features = x.shape
    size = features // SIZES.heads
    q, k, v = (
        linear(p, f"{name}.{part}", x, product)
        .reshape(n, length, SIZES.heads, size)
        .transpose(0, 2, 1, 3)
        for part in "qkv"
    )
    shares = vdla.softmax(product(q, np.swapaxes(k, -1, -2)) / math.sqrt(size))
    mixed = product(shares, v).transpose(0, 2, 1, 3).reshape(n, length, features)
    return linear(p, f"{name}.out", mixed, product)


def mlp(p: Params, name: str, x: Array, product: Product = np.matmul) -> Array:
    """Two dense layers with GELU between them."""
    return linear(p, f"{name}.down", vdla.gelu(linear(p, f"{name}.up", x, product)), product)


def block(p: Params, name: str, x: Array, product: Product = np.matmul) -> Array:
    """A block of the transformer: [N, 17, 32] to [N, 17, 32]."""
    x = x + attention(p, f"{name}.attention", norm(p, f"{name}.norm1", x), product)
    return x + mlp(p, f"{name}.mlp", norm(p, f"{name}.norm2", x), product)


def ending(p: Params, x: Array, product: Product = np.matmul) -> Array:
    """The result [N, 10] for what the last block gives."""
    return linear(p, "head", norm(p, "norm", x[:, 0]), product)


def logits(p: Params, images: Array) -> Array:
    """The network's result [N, 10] for images [N, 1, 8, 8]."""
    n = len(images)
    weight = p["patches.weight"].reshape(SIZES.features, -1)
    patches = patches_of(images) @ weight.T + p["patches.bias"]
    token = np.broadcast_to(p["token"], (n, 1, SIZES.features))
    x = np.concatenate([token, patches], axis=1) + p["places"]
    for number in range(SIZES.blocks):
        x = block(p, f"block{number}", x)
    return ending(p, x)


def patches_of(images: Array) -> Array:
    """The pixels of each patch and those around it: [N, 16, 16]."""
    n, _, rows, columns = images.shape
    edge = np.zeros((n, rows, OVERLAP), np.float32)
    wide = np.concatenate([edge, images.reshape(n, rows, columns), edge], axis=2)
    edge = np.zeros((n, OVERLAP, columns + 2 * OVERLAP), np.float32)
    wide = np.concatenate([edge, wide, edge], axis=1)
    size, starts = PATCH + 2 * OVERLAP, range(0, IMAGE[-1], PATCH)
    parts = [wide[:, y : y + size, x : x + size].reshape(n, -1) for y in starts for x in starts]
    return np.stack(parts, axis=1)


def loss(p: Params, images: Array, labels: Array) -> Array:
    """Cross-entropy in nats."""
    return cross_entropy(logits(p, images), labels)


def moved(images: Array, rng: np.random.Generator) -> Array:
    """Each image up to one pixel away, so that few images are many."""
    wide = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    places = rng.integers(0, 3, (len(images), 2))
    return np.stack(
        [each[:, y : y + 8, x : x + 8] for each, (y, x) in zip(wide, places, strict=True)]
    )


def batches(
    images: Array, labels: Array, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Images of one step after another, a little moved, and their labels."""
    for some, wanted in digits.batches(images, labels, rng):
        yield moved(some, rng), wanted


def train(params: Params, images: Array, labels: Array, epochs: int = EPOCHS) -> Params:
    """Weights after AdamW's steps (Loshchilov and Hutter, 2019), whose rate falls to 0."""
    rng = np.random.default_rng(SEED)
    decays = {name: DECAY if name.endswith(".weight") else 0.0 for name in params}
    adam = vdla.optim.Adam(decay=decays)
    rates = falling(RATE, epochs * (len(images) // digits.BATCH), WARM)
    batch = batches(images, labels, rng)
    return descend(compiled(loss, adam), adam, params, batch, rates)[0]


def with_weights(model: onnx.ModelProto, params: Params) -> onnx.ModelProto:
    """A network with other weights."""
    for each in model.graph.initializer:
        if each.name in params:
            array = params[each.name].astype(np.float32)
            each.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), each.name))
    return model


def main(folder: Path, epochs: int = EPOCHS) -> float:
    """Trains, quantizes and writes; gives the float network's accuracy on the test images."""
    images, labels, tests, wanted = digits.load()
    model = network()
    params = train(initial(model), images, labels, epochs)
    model = with_weights(model, params)
    folder.mkdir(parents=True, exist_ok=True)
    quantize_model(model, folder / "patches.onnx", [{"input": x[None]} for x in images[:SAMPLES]])
    logits = [ort_run(model, {"input": x[None]})["head"] for x in tests]
    accuracy = float((np.concatenate(logits).argmax(1) == wanted).mean())
    np.savez_compressed(folder / "patches_test.npz", accuracy=np.float64(accuracy))
    return accuracy


if __name__ == "__main__":
    print(f"accuracy of the float network on the test images: {main(folder_of(__doc__)):.4f}")
