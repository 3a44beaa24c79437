"""The bundled models, by name.

``digits``, ``scenes``, ``characters`` and ``patches`` are committed, really trained. The others are
built once from fixed seeds and kept in a cache folder (``VDLA_CACHE``, else
``$XDG_CACHE_HOME/vdla``, else ``~/.cache/vdla``), keyed by the sources that build them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labelled = tuple[NDArray[Any], NDArray[Any]]
DATA = Path(__file__).parent / "data"

MODELS = {
    "resnet18": "ResNet-18, 224x224, int8: seeded weights with realistic scales",
    "resnet18-convs": "ResNet-18's twelve distinct convolutions (C1-C12), each alone",
    "mobilenet": "MobileNet v1 1.0, 224x224, int8: seeded weights with realistic scales",
    "digits": "a small CNN trained on UCI's 8x8 digits",
    "scenes": "a small U-Net trained to name the digit of each pixel, 32x32",
    "dqn": "the deep Q-network of Atari games, 4x84x84, int8",
    "dcgan": "DCGAN's generator, 100 numbers to a 64x64 picture, int8",
    "mobilenetv2": "MobileNetV2 1.0, 224x224, int8",
    "efficientnet-lite0": "EfficientNet-Lite0, 224x224, int8",
    "yolo-nano": "a detector like YOLOv5n with neck and three heads, 256x256, int8",
    "unet": "a small U-Net, 128x128, int8",
    "characters": "an LSTM trained to say which character of a text comes next, 64 at a time",
    "patches": "a vision transformer trained on UCI's 8x8 digits, in patches",
    "lstm-lm": "a language model of two LSTM of 650, 35 words of 10,000, int8",
    "mobilenetv3": "MobileNetV3 small with its gates, 224x224, int8",
    "resnet18-nhwc": "ResNet-18 as TensorFlow exports it: channels last, normalization in pieces",
    "speech-bilstm": "two bidirectional LSTM of 128 as onnxruntime's quantizer leaves them",
    "audio-encoder": "an encoder of sounds like Whisper's, of which only products are quantized",
}


def model_path(name: str) -> Path:
    """The ONNX file of a bundled model that is one network.

    Raises:
        KeyError: there is no such model.
    """
    if name in COMMITTED:
        return DATA / f"{name}.onnx"
    from vdla.compiler.models import built

    if (path := built.kept(name)) is not None:
        return path
    from vdla.compiler.models import seeded  # what builds models takes long to import

    return seeded.path_of(name)


def model_paths(name: str) -> dict[str, Path]:
    """Every network of a bundled model: itself, or C1 to C12 for ``resnet18-convs``."""
    if name != "resnet18-convs":
        return {name: model_path(name)}
    from vdla.compiler.models import seeded

    return seeded.convolution_paths()


def test_split(name: str) -> Labelled | None:
    """Labelled pictures of a bundled model, none of which it was trained on, where it has some."""
    return TRAINED[name]() if name in TRAINED else None


def digits_test() -> Labelled:
    """The digits test split: float32 images [count, 1, 8, 8] and their labels."""
    with np.load(DATA / "digits_test.npz") as file:
        return file["images"], file["labels"]


def scenes_test() -> Labelled:
    """The test scenes: float32 images [count, 1, 32, 32] and the class of each pixel, 10 for the
    ground: uint8 [count, 32, 32]."""
    with np.load(DATA / "scenes_test.npz") as file:
        return file["images"] / np.float32(255), file["labels"]


def characters_test() -> tuple[NDArray[np.int64], float]:
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
