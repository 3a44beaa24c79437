"""Transformers in float, block by block, as PyTorch exports them to ONNX, with made-up weights.

Weights are normal with a spread of 1 / √inputs, so that activations keep their range; what follows
a normalization is spread about 1. Sizes are those of published networks, weights are not. A model
takes one input; values follow several, of which ranges and spreads are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.graph.ops.approximations import erf
from vdla.compiler.graph.types import Array
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import IR_VERSION, OPSET, Builder, images
from vdla.compiler.models.networks import IMAGE

SEED = 20170612
INPUTS = 8  # pictures or texts that values follow
EPSILON = 1e-5
MASKED = -1e4  # what a causal mask adds to the scores of what comes later


@dataclass(frozen=True)
class Sizes:
    """Sizes of a transformer: blocks, features of a vector, heads of an attention, and vectors of a
    sequence."""

    blocks: int
    features: int
    heads: int
    length: int

    @property
    def hidden(self) -> int:
        """Features between the two layers of an MLP."""
        return 4 * self.features


VIT_TINY = Sizes(blocks=12, features=192, heads=3, length=197)
BERT_SMALL = Sizes(blocks=4, features=512, heads=8, length=128)
GPT2_SMALL = Sizes(blocks=12, features=768, heads=12, length=128)
PATCH, CLASSES = 16, 1000
WORDS = 1024  # of the language models' vocabularies: embeddings are looked up, not computed


class SequenceBuilder(Builder):
    """Adds operators on sequences [1, T, C] one by one, whose values are [N, T, C]."""

    @property
    def samples(self) -> list[dict[str, Array]]:
        """The inputs that values follow, one by one."""
        data = self.values["input"]
        return [{"input": data[n : n + 1]} for n in range(len(data))]

    def constant(self, name: str, array: Array) -> str:
        """An initializer of any type, whose value is known."""
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        self.values[name] = array
        return name

    def linear(self, name: str, data: str, features: int, gain: float = 1.0) -> str:
        """A ``MatMul`` and an ``Add``; gives the name of the sum."""
        inputs = self.values[data].shape[-1]
        weight = self.rng.standard_normal((inputs, features)) * (gain / math.sqrt(inputs))
        bias = 0.1 * self.rng.standard_normal(features)
        product = self.emit(
            "MatMul",
            f"{name}.matmul",
            [data, self.weight(f"{name}.weight", weight)],
            self.values[data] @ weight.astype(np.float32),
        )
        return self.emit(
            "Add",
            name,
            [self.weight(f"{name}.bias", bias), product],
            self.values[product] + bias.astype(np.float32),
        )

    def layer_norm(self, name: str, data: str) -> str:
        """A ``LayerNormalization`` over the features of each vector."""
        x = self.values[data].astype(np.float64)
        gamma = self.rng.uniform(0.6, 1.4, x.shape[-1:])
        beta = 0.1 * self.rng.standard_normal(x.shape[-1:])
        centered = x - x.mean(-1, keepdims=True)
        value = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + EPSILON) * gamma + beta
        names = [self.weight(f"{name}.gamma", gamma), self.weight(f"{name}.beta", beta)]
        return self.emit(
            "LayerNormalization", name, [data, *names], value, axis=-1, epsilon=EPSILON
        )

    def reshape(self, name: str, data: str, shape: tuple[int, ...]) -> str:
        """A ``Reshape`` of one input's tensor, whose first dimension stays 1."""
        sizes, value = self.constant(f"{name}.shape", np.array(shape, np.int64)), self.values[data]
        return self.emit("Reshape", name, [data, sizes], value.reshape(-1, *shape[1:]))

    def transpose(self, name: str, data: str, perm: tuple[int, ...]) -> str:
        """A ``Transpose``."""
        value = self.values[data].transpose(perm)
        return self.emit("Transpose", name, [data], value, perm=perm)

    def times(self, name: str, data: str, factor: float) -> str:
        """A ``Mul`` by one number."""
        number = self.constant(f"{name}.factor", np.array(factor, np.float32))
        return self.emit("Mul", name, [data, number], self.values[data] * np.float32(factor))

    def gelu(self, name: str, data: str) -> str:
        """A GELU as opset 17 writes it: divided by √2, erf, plus one, times data, times a half."""
        x = self.values[data]
        root = self.constant(f"{name}.root", np.array(math.sqrt(2), np.float32))
        ratio = self.emit("Div", f"{name}.div", [data, root], x / np.float32(math.sqrt(2)))
        curve = erf(self.values[ratio])
        curved = self.emit("Erf", f"{name}.erf", [ratio], curve)
        one = self.constant(f"{name}.one", np.array(1, np.float32))
        more = self.emit("Add", f"{name}.add", [curved, one], curve + 1)
        both = self.emit("Mul", f"{name}.mul", [data, more], x * self.values[more])
        return self.times(name, both, 0.5)

    def attention(self, name: str, data: str, heads: int, *, causal: bool = False) -> str:
        """Multi-head self-attention, with its last linear layer."""
        _, length, features = self.values[data].shape
        size = features // heads
        parts = []
        for part, perm in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
            x = self.linear(f"{name}.{part}", data, features)
            x = self.reshape(f"{name}.{part}.heads", x, (1, length, heads, size))
            parts.append(self.transpose(f"{name}.{part}.turned", x, perm))
        q, k, v = parts
        value = self.values[q] @ self.values[k]
        scores = self.emit("MatMul", f"{name}.scores", [q, k], value)
        scores = self.times(f"{name}.scaled", scores, 1 / math.sqrt(size))
        if causal:
            mask = "mask"
            if mask not in self.values:
                self.constant(mask, np.triu(np.full((length, length), MASKED, np.float32), 1))
            value = self.values[scores] + self.values[mask]
            scores = self.emit("Add", f"{name}.masked", [scores, mask], value)
        e = np.exp(self.values[scores] - self.values[scores].max(-1, keepdims=True))
        shares = e / e.sum(-1, keepdims=True)
        weights = self.emit("Softmax", f"{name}.softmax", [scores], shares, axis=-1)
        out = self.emit(
            "MatMul", f"{name}.mixed", [weights, v], self.values[weights] @ self.values[v]
        )
        out = self.transpose(f"{name}.mixed.turned", out, (0, 2, 1, 3))
        out = self.reshape(f"{name}.joined", out, (1, length, features))
        return self.linear(f"{name}.out", out, features, 0.5)

    def mlp(self, name: str, data: str, hidden: int) -> str:
        """Two linear layers and a GELU between them."""
        features = self.values[data].shape[-1]
        x = self.gelu(f"{name}.gelu", self.linear(f"{name}.up", data, hidden))
        return self.linear(f"{name}.down", x, features, 0.5)

    def block(self, name: str, data: str, sizes: Sizes, *, causal: bool = False) -> str:
        """A block that normalizes first, as ViT's and GPT-2's do."""
        x = self.layer_norm(f"{name}.norm1", data)
        x = self.attention(f"{name}.attention", x, sizes.heads, causal=causal)
        data = self.add(f"{name}.add1", data, x)
        x = self.mlp(f"{name}.mlp", self.layer_norm(f"{name}.norm2", data), sizes.hidden)
        return self.add(f"{name}.add2", data, x)

    def block_normalized_last(self, name: str, data: str, sizes: Sizes) -> str:
        """A block that normalizes what it added up, as BERT's do."""
        x = self.attention(f"{name}.attention", data, sizes.heads)
        data = self.layer_norm(f"{name}.norm1", self.add(f"{name}.add1", data, x))
        x = self.mlp(f"{name}.mlp", data, sizes.hidden)
        return self.layer_norm(f"{name}.norm2", self.add(f"{name}.add2", data, x))

    def embedded(self, sizes: Sizes) -> str:
        """Words and their places, looked up and added."""
        table = 0.7 * self.rng.standard_normal((WORDS, sizes.features)).astype(np.float32)
        words = self.constant("words", table)
        looked_up = self.emit("Gather", "looked_up", [words, "input"], table[self.values["input"]])
        places = 0.3 * self.rng.standard_normal((1, sizes.length, sizes.features))
        at = self.constant("places", places.astype(np.float32))
        return self.emit("Add", "embedded", [looked_up, at], self.values[looked_up] + places)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The finished model for one input of any type."""
        ends = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(self.values[name].dtype),
                [1, *self.values[name].shape[1:]],
            )
            for name in ("input", *outputs)
        ]  # fmt: skip
        graph = helper.make_graph(self.nodes, self.name, ends[:1], ends[1:], self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="vdla"
        )


def vit(
    sizes: Sizes = VIT_TINY,
    image: tuple[int, ...] = IMAGE,
    patch: int = PATCH,
    classes: int = CLASSES,
    overlap: int = 0,
) -> SequenceBuilder:
    """A vision transformer (Dosovitskiy et al., ICLR 2021): patches, a class token, blocks.

    A patch sees ``overlap`` pixels around it, too.
    """
    b = SequenceBuilder("vit", SEED, images(image, INPUTS, SEED))
    height, width = image[2:]
    rows, columns = height // patch, width // patch
    x = b.conv(
        "patches", "input", sizes.features, Window.square(patch + 2 * overlap, patch, overlap)
    )
    x = b.reshape("patches.flat", x, (1, sizes.features, rows * columns))
    x = b.transpose("patches.sequence", x, (0, 2, 1))
    token = b.constant("token", b.rng.standard_normal((1, 1, sizes.features)).astype(np.float32))
    value = np.concatenate([b.values[token].repeat(INPUTS, 0), b.values[x]], axis=1)
    x = b.emit("Concat", "with_token", [token, x], value, axis=1)
    places = 0.3 * b.rng.standard_normal((1, sizes.length, sizes.features))
    x = b.add("embedded", x, b.constant("places", places.astype(np.float32)))
    for number in range(sizes.blocks):
        x = b.block(f"block{number}", x, sizes)
    x = b.layer_norm("norm", x)
    first = b.constant("first", np.array(0, np.int64))
    x = b.emit("Gather", "class", [x, first], b.values[x][:, 0], axis=1)
    b.classifier("head", x, classes, centering=0)
    return b


def bert(sizes: Sizes = BERT_SMALL) -> SequenceBuilder:
    """An encoder of words (Devlin et al., 2019), its blocks normalized last."""
    b = SequenceBuilder("bert", SEED, _words(sizes))
    x = b.layer_norm("norm", b.embedded(sizes))
    for number in range(sizes.blocks):
        x = b.block_normalized_last(f"block{number}", x, sizes)
    return b


def gpt2(sizes: Sizes = GPT2_SMALL) -> SequenceBuilder:
    """A decoder of words (Radford et al., 2019): a causal mask, blocks normalized first."""
    b = SequenceBuilder("gpt2", SEED, _words(sizes))
    x = b.embedded(sizes)
    for number in range(sizes.blocks):
        x = b.block(f"block{number}", x, sizes, causal=True)
    b.linear("head", b.layer_norm("norm", x), WORDS)
    return b


def _words(sizes: Sizes) -> Array:
    return np.random.default_rng(SEED).integers(0, WORDS, (INPUTS, sizes.length))
