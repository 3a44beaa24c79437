"""The bundled models, by name.

``digits`` is committed, really trained. The others are built once from fixed seeds and kept in a
cache folder (``VDLA_CACHE``, else ``$XDG_CACHE_HOME/vdla``, else ``~/.cache/vdla``), keyed by the
sources that build them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.ir import Array
from vdla.compiler.models import builder, networks, quantizer
from vdla.compiler.models.builder import images
from vdla.compiler.models.networks import RESNET18_CONVS, ConvShape
from vdla.compiler.models.quantizer import quantize, quantize_model
from vdla.support.files import cache_folder, digest, is_sealed, seal

__all__ = [
    "MODELS",
    "RESNET18_CONVS",
    "ConvShape",
    "digits_test",
    "images",
    "model_path",
    "model_paths",
    "quantize",
    "test_split",
]

DATA = Path(__file__).parent / "data"

MODELS = {
    "resnet18": "ResNet-18, 224x224, int8: seeded weights with realistic scales",
    "resnet18-convs": "ResNet-18's twelve distinct convolutions (C1-C12), each alone",
    "mobilenet": "MobileNet v1 1.0, 224x224, int8: seeded weights with realistic scales",
    "digits": "a small CNN trained on scikit-learn's 8x8 digits",
}


def model_path(name: str) -> Path:
    """The ONNX file of a bundled model that is one network.

    Raises:
        KeyError: there is no such model.
    """
    if name == "digits":
        return DATA / "digits.onnx"
    if name == "resnet18":
        return _built(name, networks.resnet18, networks.IMAGE)
    if name == "mobilenet":
        return _built(name, networks.mobilenet, networks.IMAGE)
    raise KeyError(name)


def model_paths(name: str) -> dict[str, Path]:
    """Every network of a bundled model: itself, or C1 to C12 for ``resnet18-convs``."""
    if name != "resnet18-convs":
        return {name: model_path(name)}
    return {shape.name: _conv_path(shape) for shape in RESNET18_CONVS}


def _conv_path(shape: ConvShape) -> Path:
    size = (1, shape.inputs, shape.size, shape.size)
    return _built(shape.name, lambda: networks.single_conv(shape), size)


def test_split(name: str) -> tuple[Array, Array] | None:
    """Labelled pictures of a bundled model, none of which it was trained on, where it has some."""
    return digits_test() if name == "digits" else None


def digits_test() -> tuple[Array, Array]:
    """The digits test split: float32 images [count, 1, 8, 8] and their labels."""
    with np.load(DATA / "digits_test.npz") as file:
        return file["images"], file["labels"]


@cache
def _version() -> str:
    """Changes with anything that could change a built model."""
    import onnxruntime

    makers = [Path(str(module.__file__)) for module in (builder, networks, quantizer)]
    return digest(makers, also=onnxruntime.__version__)


def _built(name: str, build: Callable[[], onnx.ModelProto], shape: tuple[int, ...]) -> Path:
    """The cached file, built first if it isn't there or is damaged."""
    path = cache_folder("models", _version()) / f"{name}.onnx"
    if not is_sealed(path):
        samples = [{"input": x[None]} for x in networks.calibration(shape)]
        try:
            quantize_model(build(), path, samples)
            seal(path)
        except OSError as error:
            expected = "a folder that can be written (VDLA_CACHE names another)"
            raise ModelError(str(path.parent), expected, error.strerror) from None
    return path
