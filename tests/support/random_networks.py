"""Random small quantized networks: every kind of layer that the accelerator takes, and others.

A network is a list of layers, each a kind and its numbers, so that one can be left out: a layer
takes what its image allows, and where it can't be built on it, leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from qdq import QdqModel

from vdla.compiler.graph.window import Window

ACCELERATED = 12  # kinds, the first ones, that the accelerator takes
MOST = 5 << 20  # multiply-adds of a layer: what a simulated machine does in a second


@dataclass(frozen=True)
class Layer:
    """A layer: its ``kind`` is a function below, the others are its numbers."""

    kind: str
    channels: int = 1
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: int = 1
    groups: int = 1
    activation: str | None = None
    bias: bool = True
    per_channel: bool = True

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{k}={v}' for k, v in self._numbers().items())})"

    def _numbers(self) -> dict[str, Any]:
        """What isn't at its default."""
        plain = vars(Layer(self.kind))
        return {k: v for k, v in vars(self).items() if v != plain[k]}

    def smaller(self) -> Iterator[Layer]:
        """The layer with one number at its default."""
        plain = vars(Layer(self.kind))
        for name in self._numbers():
            yield replace(self, **{name: plain[name]})


@dataclass(frozen=True)
class Network:
    """An input [N, C, H, W] and what is done to it, one layer after another."""

    seed: int
    shape: tuple[int, int, int, int]
    dtype: str
    layers: tuple[Layer, ...]

    def __str__(self) -> str:
        layers = ", ".join(map(str, self.layers))
        return f"Network(seed={self.seed}, shape={list(self.shape)}, {self.dtype}, [{layers}])"

    def model(self) -> Any:
        """The ONNX model."""
        m = QdqModel(self.seed, self.dtype)
        x = m.input("x", self.shape)
        for layer in self.layers:
            x = KINDS[layer.kind](m, x, layer)
        m.output(m.relu(x) if x == "x" or not self.layers else x)
        return m.model()

    def smaller(self) -> Iterator[Network]:
        """The network with one layer less, then with one number of a layer at its default."""
        for i in range(len(self.layers)):
            yield replace(self, layers=(*self.layers[:i], *self.layers[i + 1 :]))
        for i, layer in enumerate(self.layers):
            for plainer in layer.smaller():
                yield replace(self, layers=(*self.layers[:i], plainer, *self.layers[i + 1 :]))


def random_network(seed: int) -> Network:
    """A network of one to five layers; the same for the same seed."""
    rng = Random(seed)
    shape = (
        rng.choice((1, 1, 1, 2)),
        rng.choice((1, 3, 4, 8, 12, rng.randint(1, 40))),
        rng.randint(1, 12),
        rng.randint(1, 12),
    )
    names = list(KINDS)
    first = names[seed % len(names)]  # each kind in its turn
    kinds = [*(rng.choice(names[:ACCELERATED]) for _ in range(rng.choice((0, 1, 2, 4)))), first]
    rng.shuffle(kinds)
    layers = tuple(_random_layer(rng, kind) for kind in kinds)
    return Network(seed, shape, rng.choice(("int8", "int8", "uint8")), layers)


def _random_layer(rng: Random, kind: str) -> Layer:
    square = rng.choice((1, 1, 2, 3, 3, 5))
    kernel = rng.choice(((square, square), (rng.randint(1, 5), rng.randint(1, 5))))
    stride = rng.choice((1, 1, 2, 3))
    return Layer(
        kind,
        channels=rng.choice((1, 4, 8, 10, 16, rng.randint(1, 48))),
        kernel=kernel,
        strides=rng.choice(((stride, stride), (1, 1), (2, 1))),
        pads=tuple(rng.choice((0, 0, (k - 1) // 2, k - 1)) for k in kernel * 2),  # type: ignore
        dilation=rng.choice((1, 1, 1, 2)),
        groups=rng.choice((2, 3, 4)),
        activation=rng.choice((None, None, "Relu")),
        bias=rng.random() < 0.8,
        per_channel=rng.random() < 0.8,
    )


# Kinds ------------------------------------------------------------------------------------------


def _conv(m: QdqModel, x: str, layer: Layer, *, groups: int = 1, channels: int = 0) -> str:
    shape = m.shapes[x]
    dilations = (layer.dilation, layer.dilation)
    window = Window(layer.kernel, layer.strides, layer.pads, dilations)
    channels = channels or layer.channels
    if len(shape) != 4 or min(window.places(shape[2:])) < 1:
        return x
    h, w = window.places(shape[2:])
    if shape[0] * h * w * window.taps * channels * shape[1] // groups > MOST:
        return x
    return m.conv(
        x, channels, window, groups=groups, bias=layer.bias, per_channel=layer.per_channel,
        activation=layer.activation,
    )  # fmt: skip


def _depthwise(m: QdqModel, x: str, layer: Layer) -> str:
    return _conv(m, x, layer, groups=m.shapes[x][1], channels=m.shapes[x][1])


def _grouped(m: QdqModel, x: str, layer: Layer) -> str:
    channels = m.shapes[x][1]
    groups = layer.groups if channels % layer.groups == 0 else 1
    return _conv(m, x, layer, groups=groups, channels=-(-layer.channels // groups) * groups)


def _residual(m: QdqModel, x: str, layer: Layer) -> str:
    """x + conv(x), with a convolution that keeps the shape."""
    if len(m.shapes[x]) != 4:
        return x
    window = Window.square(3 if layer.kernel[0] > 1 else 1)
    y = m.conv(x, m.shapes[x][1], window, activation=layer.activation, bias=layer.bias)
    return m.add(x, y, "Relu" if layer.dilation > 1 else None)


def _twice(m: QdqModel, x: str, layer: Layer) -> str:
    """x + x: an addition of a tensor and itself."""
    return m.add(x, x, layer.activation)


def _product(m: QdqModel, x: str, layer: Layer) -> str:
    return m.binary("Mul", x, m.relu(x), 40.0)


def _difference(m: QdqModel, x: str, layer: Layer) -> str:
    return m.binary("Sub", x, m.relu(x), 1.0)


def _minimum(m: QdqModel, x: str, layer: Layer) -> str:
    return m.binary("Min", x, m.relu(x), 1.0)


def _concat(m: QdqModel, x: str, layer: Layer) -> str:
    if m.shapes[x][1] > 64:
        return x
    return m.concat([x, m.relu(x)])


def _join(m: QdqModel, x: str, layer: Layer) -> str:
    """Convolutions of whole channel blocks, and x behind them."""
    if len(m.shapes[x]) != 4 or m.shapes[x][1] > 64:
        return x
    count = 1 + layer.dilation
    parts = [m.conv(x, 16, 1, activation=layer.activation) for _ in range(count)]
    return m.concat([*parts, x])


def _upsample(m: QdqModel, x: str, layer: Layer) -> str:
    if len(m.shapes[x]) != 4 or m.shapes[x][2] * m.shapes[x][3] > 150:
        return x
    return m.upsample(x, *layer.strides)


def _pool_window(m: QdqModel, x: str, layer: Layer) -> tuple[int, int, Any] | None:
    """Kernel, stride and pads of a pool, each pad smaller than the kernel."""
    kernel, stride = max(layer.kernel), max(layer.strides)
    pads = tuple(min(pad, kernel - 1) for pad in layer.pads)
    window = Window((kernel, kernel), (stride, stride), pads)  # type: ignore[arg-type]
    if len(m.shapes[x]) != 4 or min(window.places(m.shapes[x][2:])) < 1:
        return None
    return kernel, stride, pads


def _max_pool(m: QdqModel, x: str, layer: Layer) -> str:
    window = _pool_window(m, x, layer)
    return m.max_pool(x, *window) if window else x


def _average_pool(m: QdqModel, x: str, layer: Layer) -> str:
    window = _pool_window(m, x, layer)
    return m.average_pool(x, *window, include_pad=layer.bias) if window else x


def _global_pool(m: QdqModel, x: str, layer: Layer) -> str:
    return m.global_pool(x) if len(m.shapes[x]) == 4 else x


def _dense(m: QdqModel, x: str, layer: Layer) -> str:
    if len(m.shapes[x]) == 4:
        x = m.flatten(x)
    if layer.channels * m.shapes[x][1] > MOST:
        return x
    return m.dense(x, layer.channels, bias=layer.bias, transposed=layer.per_channel)


def _relu(m: QdqModel, x: str, layer: Layer) -> str:
    return m.relu(x)


def _clip(m: QdqModel, x: str, layer: Layer) -> str:
    return m.finished(x, m.pick(0.01, 0.05), (-1.0, 2.0))


KINDS = {
    "conv": _conv,
    "depthwise": _depthwise,
    "grouped": _grouped,
    "residual": _residual,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_pool": _global_pool,
    "dense": _dense,
    "twice": _twice,
    "minimum": _minimum,
    "join": _join,
    "upsample": _upsample,
    "product": _product,
    "difference": _difference,
    "concat": _concat,
    "relu": _relu,
    "clip": _clip,
}
