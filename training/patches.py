"""Trains the bundled vision transformer: numpy gradient descent on scikit-learn's digits.

    OPENBLAS_NUM_THREADS=1 python training/patches.py

writes ``patches.onnx`` and ``patches_test.npz`` into ``compiler/models/data``: the network in int8,
and the accuracy of the float network on the test images, which are those of ``digits``. The same
seeds give the same files, in a minute; several threads take many times as long for such small
matrices. Needs scikit-learn (extra ``dev``).

The network is ``transformers.vit`` of two blocks: patches of 2x2 pixels, with those around them,
and a class token are 17 vectors of 32 features, in two heads. Training begins with its made-up
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import digits
import numpy as np
import onnx
from onnx import numpy_helper
from scipy.special import erf

from vdla.analysis.ort import ort_run
from vdla.compiler.graph.types import Array
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import EPSILON, Sizes, vit

DATA = Path(__file__).parents[1] / "compiler" / "models" / "data"
SEED = 11
SIZES = Sizes(blocks=2, features=32, heads=2, length=17)
IMAGE, PATCH, OVERLAP, CLASSES = (1, 1, 8, 8), 2, 1, 10
EPOCHS, BATCH, RATE, DECAY = 150, 64, 3e-3, 0.05
SAMPLES = 200  # that are calibrated on

Params = dict[str, Array]
Back = Callable[[Array], Array]  # from the gradient of a result to that of its data


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


class Tape:
    """A forward pass that remembers how to go back: ``gradients`` of all weights by name."""

    def __init__(self, params: Params) -> None:
        self.params, self.gradients = params, {n: np.zeros_like(p) for n, p in params.items()}

    def linear(self, name: str, x: Array) -> tuple[Array, Back]:
        """A dense layer of each vector; ``head`` has its outputs first."""
        weight, bias = self.params[f"{name}.weight"], self.params[f"{name}.bias"]
        turned = name == "head"

        def back(d: Array) -> Array:
            rows, columns = x.reshape(-1, x.shape[-1]), d.reshape(-1, d.shape[-1])
            g = rows.T @ columns
            self.gradients[f"{name}.weight"] += g.T if turned else g
            self.gradients[f"{name}.bias"] += columns.sum(0)
            return np.asarray(d @ (weight if turned else weight.T))

        return x @ (weight.T if turned else weight) + bias, back

    def norm(self, name: str, x: Array) -> tuple[Array, Back]:
        """A layer normalization."""
        gamma, beta = self.params[f"{name}.gamma"], self.params[f"{name}.beta"]
        above = x - x.mean(-1, keepdims=True)
        root = 1 / np.sqrt((above**2).mean(-1, keepdims=True) + EPSILON)
        z = above * root

        def back(d: Array) -> Array:
            axes = tuple(range(d.ndim - 1))
            self.gradients[f"{name}.gamma"] += (d * z).sum(axes)
            self.gradients[f"{name}.beta"] += d.sum(axes)
            d = d * gamma
            mean, along = d.mean(-1, keepdims=True), (d * z).mean(-1, keepdims=True)
            return np.asarray((d - mean - z * along) * root)

        return z * gamma + beta, back

    def attention(self, name: str, x: Array) -> tuple[Array, Back]:
        """Multi-head self-attention with its last layer."""
        n, length, features = x.shape
        size = features // SIZES.heads

        def split(each: Array) -> Array:
            return each.reshape(n, length, SIZES.heads, size).transpose(0, 2, 1, 3)

        def join(each: Array) -> Array:
            return each.transpose(0, 2, 1, 3).reshape(n, length, features)

        parts = [self.linear(f"{name}.{part}", x) for part in "qkv"]
        q, k, v = (split(value) for value, _ in parts)
        scores = q @ k.swapaxes(-1, -2) / np.float32(math.sqrt(size))
        shares = softmax(scores)
        out, back_out = self.linear(f"{name}.out", join(shares @ v))

        def back(d: Array) -> Array:
            mixed = split(back_out(d))
            d_shares = mixed @ v.swapaxes(-1, -2)
            total = (d_shares * shares).sum(-1, keepdims=True)
            d_scores = shares * (d_shares - total) / np.float32(math.sqrt(size))
            slopes = d_scores @ k, d_scores.swapaxes(-1, -2) @ q, shares.swapaxes(-1, -2) @ mixed
            pairs = zip(parts, slopes, strict=True)
            return np.asarray(sum(step(join(slope)) for (_, step), slope in pairs))

        return out, back

    def mlp(self, name: str, x: Array) -> tuple[Array, Back]:
        """Two dense layers with GELU between them."""
        up, back_up = self.linear(f"{name}.up", x)
        half = (1 + erf(up / np.float32(math.sqrt(2)))) / 2
        down, back_down = self.linear(f"{name}.down", up * half)
        slope = half + up * np.exp(-(up**2) / 2) / np.float32(math.sqrt(2 * math.pi))
        return down, lambda d: back_up(back_down(d) * slope)

    def logits(self, images: Array) -> tuple[Array, Callable[[Array], None]]:
        """The logits of images [N, 1, 8, 8], and the way back to all weights."""
        p, n, patches = self.params, len(images), patches_of(images)
        weight = p["patches.weight"].reshape(SIZES.features, -1)
        x = patches @ weight.T + p["patches.bias"]
        x = np.concatenate([np.broadcast_to(p["token"], (n, 1, SIZES.features)), x], axis=1)
        x = x + p["places"]
        steps = []
        for block in range(SIZES.blocks):
            for norm, name in (("norm1", "attention"), ("norm2", "mlp")):
                value, back_norm = self.norm(f"block{block}.{norm}", x)
                part = self.attention if name == "attention" else self.mlp
                value, back_part = part(f"block{block}.{name}", value)
                steps.append((back_norm, back_part))
                x = x + value
        first, back_first = self.norm("norm", x[:, 0])
        result, back_head = self.linear("head", first)

        def back(d: Array) -> None:
            slope = np.zeros_like(x)
            slope[:, 0] = back_first(back_head(d))
            for back_norm, back_part in reversed(steps):
                slope = slope + back_norm(back_part(slope))
            self.gradients["places"] += slope.sum(0, keepdims=True)
            self.gradients["token"] += slope[:, :1].sum(0, keepdims=True)
            rows = slope[:, 1:].reshape(-1, SIZES.features)
            g = rows.T @ patches.reshape(len(rows), -1)
            self.gradients["patches.weight"] += g.reshape(p["patches.weight"].shape)
            self.gradients["patches.bias"] += rows.sum(0)

        return result, back


def patches_of(images: Array) -> Array:
    """The pixels of each patch and those around it: [N, 16, 16]."""
    wide = np.pad(images[:, 0], ((0, 0), (OVERLAP, OVERLAP), (OVERLAP, OVERLAP)))
    size = PATCH + 2 * OVERLAP
    starts = range(0, IMAGE[-1], PATCH)
    parts = [
        wide[:, y : y + size, x : x + size].reshape(len(wide), -1) for y in starts for x in starts
    ]
    return np.stack(parts, axis=1)


def softmax(x: Array) -> Array:
    """Shares along the last axis."""
    power = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(power / power.sum(-1, keepdims=True))


def gradients(p: Params, images: Array, labels: Array) -> tuple[float, Params]:
    """The cross-entropy in nats, and its gradients."""
    tape, rows = Tape(p), np.arange(len(labels))
    logits, back = tape.logits(images)
    shares = softmax(logits)
    loss = float(-np.log(shares[rows, labels] + 1e-12).mean())
    shares[rows, labels] -= 1
    back(shares / len(labels))
    return loss, tape.gradients


def moved(images: Array, rng: np.random.Generator) -> Array:
    """Each image up to one pixel away, so that few images are many."""
    wide = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    places = rng.integers(0, 3, (len(images), 2))
    return np.stack(
        [each[:, y : y + 8, x : x + 8] for each, (y, x) in zip(wide, places, strict=True)]
    )


def train(params: Params, images: Array, labels: Array, epochs: int = EPOCHS) -> Params:
    """Weights after AdamW's steps (Loshchilov and Hutter, 2019), whose rate falls to 0."""
    rng, p = np.random.default_rng(SEED), dict(params)
    mean, square = ({n: np.zeros_like(a) for n, a in p.items()} for _ in range(2))
    step, steps = 0, epochs * (len(images) // BATCH)
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            some = order[start : start + BATCH]
            _, g = gradients(p, moved(images[some], rng), labels[some])
            step += 1
            rate = RATE * min(1.0, step / 100) * (1 + np.cos(np.pi * step / steps)) / 2
            for name, each in g.items():
                mean[name] = 0.9 * mean[name] + 0.1 * each
                square[name] = 0.999 * square[name] + 0.001 * each**2
                ahead = mean[name] / (1 - 0.9**step)
                move = ahead / (np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8)
                decay = DECAY * p[name] if name.endswith(".weight") else 0
                p[name] = p[name] - np.float32(rate) * (move + decay)
    return p


def with_weights(model: onnx.ModelProto, params: Params) -> onnx.ModelProto:
    """A network with other weights."""
    for each in model.graph.initializer:
        if each.name in params:
            array = params[each.name].astype(np.float32)
            each.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), each.name))
    return model


def main(folder: Path = DATA, epochs: int = EPOCHS) -> float:
    """Trains, quantizes and writes; gives the float network's accuracy on the test images."""
    images, labels, tests, wanted = digits.load()
    model = network()
    params = train(initial(model), images, labels, epochs)
    model = with_weights(model, params)
    quantize_model(model, folder / "patches.onnx", [{"input": x[None]} for x in images[:SAMPLES]])
    logits = [ort_run(model, {"input": x[None]})["head"] for x in tests]
    accuracy = float((np.concatenate(logits).argmax(1) == wanted).mean())
    np.savez_compressed(folder / "patches_test.npz", accuracy=np.float64(accuracy))
    return accuracy


if __name__ == "__main__":
    print(f"accuracy of the float network on the test images: {main():.4f}")
