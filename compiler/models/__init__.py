"""The bundled models, by name.

``digits``, ``scenes``, ``characters`` and ``patches`` are committed, really trained. The others are
built once from fixed seeds and kept in a cache folder (``VDLA_CACHE``, else
``$XDG_CACHE_HOME/vdla``, else ``~/.cache/vdla``), keyed by the sources that build them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.ir import Array
from vdla.compiler.models import (
    builder,
    networks,
    quantizer,
    recurrent,
    recurrent_quantizer,
    transformers,
    vision,
)
from vdla.compiler.models.builder import images
from vdla.compiler.models.networks import RESNET18_CONVS, ConvShape
from vdla.compiler.models.quantizer import quantize, quantize_model
from vdla.support.files import cache_folder, digest, is_sealed, seal

__all__ = [
    "DATA",
    "MODELS",
    "RESNET18_CONVS",
    "ConvShape",
    "characters_test",
    "digits_test",
    "images",
    "model_path",
    "model_paths",
    "patches_accuracy",
    "quantize",
    "scenes_test",
    "test_split",
]

DATA = Path(__file__).parent / "data"

MODELS = {
    "resnet18": "ResNet-18, 224x224, int8: seeded weights with realistic scales",
    "resnet18-convs": "ResNet-18's twelve distinct convolutions (C1-C12), each alone",
    "mobilenet": "MobileNet v1 1.0, 224x224, int8: seeded weights with realistic scales",
    "digits": "a small CNN trained on scikit-learn's 8x8 digits",
    "scenes": "a small U-Net trained to name the digit of each pixel, 32x32",
    "dqn": "the deep Q-network of Atari games, 4x84x84, int8",
    "dcgan": "DCGAN's generator, 100 numbers to a 64x64 picture, int8",
    "mobilenetv2": "MobileNetV2 1.0, 224x224, int8",
    "efficientnet-lite0": "EfficientNet-Lite0, 224x224, int8",
    "yolo-nano": "a detector like YOLOv5n with neck and three heads, 256x256, int8",
    "unet": "a small U-Net, 128x128, int8",
    "characters": "an LSTM trained to say which character of a text comes next, 64 at a time",
    "patches": "a vision transformer trained on scikit-learn's 8x8 digits, in patches",
    "lstm-lm": "a language model of two LSTM of 650, 35 words of 10,000, int8",
}


@dataclass(frozen=True)
class _Network:
    """How a network is built, from which sources, and the samples that it is calibrated on."""

    build: Callable[[], onnx.ModelProto]
    sources: tuple[ModuleType, ...]
    samples: Callable[[], Array]


def _pictures(shape: tuple[int, ...]) -> Callable[[], Array]:
    return lambda: networks.calibration(shape)


CLASSIC, RECENT = (builder, networks, quantizer), (builder, networks, quantizer, vision)
SEQUENCES = (builder, quantizer, recurrent, recurrent_quantizer, transformers)


def _language_model() -> onnx.ModelProto:
    return recurrent.language_model().model("logits")


NETWORKS = {
    "resnet18": _Network(networks.resnet18, CLASSIC, _pictures(networks.IMAGE)),
    "mobilenet": _Network(networks.mobilenet, CLASSIC, _pictures(networks.IMAGE)),
    "dqn": _Network(vision.dqn, RECENT, _pictures(vision.SCREEN)),
    "dcgan": _Network(vision.dcgan, RECENT, lambda: vision.noise(vision.NOISE)),
    "mobilenetv2": _Network(vision.mobilenet_v2, RECENT, _pictures(networks.IMAGE)),
    "efficientnet-lite0": _Network(vision.efficientnet_lite0, RECENT, _pictures(networks.IMAGE)),
    "yolo-nano": _Network(vision.yolo_nano, RECENT, _pictures(vision.SCENE)),
    "unet": _Network(vision.unet, RECENT, _pictures(vision.SLICE)),
    "lstm-lm": _Network(_language_model, SEQUENCES, recurrent.texts),
}


def model_path(name: str) -> Path:
    """The ONNX file of a bundled model that is one network.

    Raises:
        KeyError: there is no such model.
    """
    if name in COMMITTED:
        return DATA / f"{name}.onnx"
    return _built(name, NETWORKS[name])


def model_paths(name: str) -> dict[str, Path]:
    """Every network of a bundled model: itself, or C1 to C12 for ``resnet18-convs``."""
    if name != "resnet18-convs":
        return {name: model_path(name)}
    return {shape.name: _conv_path(shape) for shape in RESNET18_CONVS}


def _conv_path(shape: ConvShape) -> Path:
    size = (1, shape.inputs, shape.size, shape.size)
    return _built(
        shape.name, _Network(lambda: networks.single_conv(shape), CLASSIC, _pictures(size))
    )


def test_split(name: str) -> tuple[Array, Array] | None:
    """Labelled pictures of a bundled model, none of which it was trained on, where it has some."""
    return TRAINED[name]() if name in TRAINED else None


def digits_test() -> tuple[Array, Array]:
    """The digits test split: float32 images [count, 1, 8, 8] and their labels."""
    with np.load(DATA / "digits_test.npz") as file:
        return file["images"], file["labels"]


def scenes_test() -> tuple[Array, Array]:
    """The test scenes: float32 images [count, 1, 32, 32] and the class of each pixel, 10 for the
    ground: uint8 [count, 32, 32]."""
    with np.load(DATA / "scenes_test.npz") as file:
        return file["images"] / np.float32(255), file["labels"]


def characters_test() -> tuple[Array, float]:
    """Test texts of 64 characters and the one behind them, int64 [count, 65], and the perplexity
    that the float network has on them."""
    with np.load(DATA / "characters_test.npz") as file:
        return file["characters"].astype(np.int64), float(file["perplexity"])


def patches_accuracy() -> float:
    """The share of ``digits_test`` that the float vision transformer names right."""
    with np.load(DATA / "patches_test.npz") as file:
        return float(file["accuracy"])


TRAINED = {"digits": digits_test, "scenes": scenes_test, "patches": digits_test}
COMMITTED = (*TRAINED, "characters")


@cache
def _version(sources: tuple[ModuleType, ...]) -> str:
    """Changes with anything that could change a model built by ``sources``."""
    import onnxruntime

    makers = [Path(str(module.__file__)) for module in sources]
    return digest(makers, also=onnxruntime.__version__)


def _built(name: str, network: _Network) -> Path:
    """The cached file, built first if it isn't there or is damaged."""
    path = cache_folder("models", _version(network.sources)) / f"{name}.onnx"
    if not is_sealed(path):
        samples = [{"input": x[None]} for x in network.samples()]
        try:
            quantize_model(network.build(), path, samples)
            seal(path)
        except OSError as error:
            expected = "a folder that can be written (VDLA_CACHE names another)"
            raise ModelError(str(path.parent), expected, error.strerror) from None
    return path
