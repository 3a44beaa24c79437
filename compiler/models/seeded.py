"""The bundled models that are built from fixed seeds: how each is built, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.types import Array
from vdla.compiler.models import (
    builder,
    networks,
    published,
    quantizer,
    recurrent,
    recurrent_quantizer,
    transformers,
    vision,
)
from vdla.compiler.models.networks import RESNET18_CONVS, ConvShape
from vdla.compiler.models.quantizer import Samples, quantize_model
from vdla.support.files import cache_folder, digest, is_sealed, seal


@dataclass(frozen=True)
class Network:
    """Recipe of a network: the function that builds it, the sources that it is built from, the
    samples that it is calibrated on, and what writes its quantized form.
    """

    build: Callable[[], onnx.ModelProto]
    sources: tuple[ModuleType, ...]
    samples: Callable[[], Array]
    write: Callable[[onnx.ModelProto, Path, Samples], None] = quantize_model


def _pictures(shape: tuple[int, ...]) -> Callable[[], Array]:
    return lambda: networks.calibration(shape)


CLASSIC, RECENT = (builder, networks, quantizer), (builder, networks, quantizer, vision)
OTHERS = (builder, networks, published, quantizer, recurrent, transformers)
SEQUENCES = (builder, quantizer, recurrent, recurrent_quantizer, transformers)


def _language_model() -> onnx.ModelProto:
    return recurrent.language_model().model("logits")


NETWORKS = {
    "resnet18": Network(networks.resnet18, CLASSIC, _pictures(networks.IMAGE)),
    "mobilenet": Network(networks.mobilenet, CLASSIC, _pictures(networks.IMAGE)),
    "dqn": Network(vision.dqn, RECENT, _pictures(vision.SCREEN)),
    "dcgan": Network(vision.dcgan, RECENT, lambda: vision.noise(vision.NOISE)),
    "mobilenetv2": Network(vision.mobilenet_v2, RECENT, _pictures(networks.IMAGE)),
    "efficientnet-lite0": Network(vision.efficientnet_lite0, RECENT, _pictures(networks.IMAGE)),
    "yolo-nano": Network(vision.yolo_nano, RECENT, _pictures(vision.SCENE)),
    "unet": Network(vision.unet, RECENT, _pictures(vision.SLICE)),
    "lstm-lm": Network(_language_model, SEQUENCES, recurrent.texts),
    "mobilenetv3": Network(published.mobilenet_v3, OTHERS, _pictures(networks.IMAGE)),
    "resnet18-nhwc": Network(published.resnet18_nhwc, OTHERS, published.photos),
    "speech-bilstm": Network(
        published.speech_bilstm, OTHERS, published.speech, published.write_as_left
    ),
    "audio-encoder": Network(
        published.audio_encoder, OTHERS, published.sounds, published.write_products
    ),
}


def path_of(name: str) -> Path:
    """The ONNX file of a model.

    Raises:
        KeyError: there is no such model.
        ModelError: it can't be written.
    """
    return _built(name, NETWORKS[name])


def convolution_paths() -> dict[str, Path]:
    """ResNet-18's distinct convolutions, C1 to C12, each alone."""
    return {shape.name: _conv_path(shape) for shape in RESNET18_CONVS}


def _conv_path(shape: ConvShape) -> Path:
    size = (1, shape.inputs, shape.size, shape.size)
    return _built(
        shape.name, Network(lambda: networks.single_conv(shape), CLASSIC, _pictures(size))
    )


@cache
def _version(sources: tuple[ModuleType, ...]) -> str:
    """Changes with anything that could change a model built by ``sources``."""
    import onnxruntime

    makers = [Path(str(module.__file__)) for module in sources]
    return digest(makers, also=onnxruntime.__version__)


def _built(name: str, network: Network) -> Path:
    """The cached file, built first if it isn't there or is damaged."""
    path = cache_folder("models", _version(network.sources)) / f"{name}.onnx"
    if not is_sealed(path):
        samples = [{"input": x[None]} for x in network.samples()]
        try:
            network.write(network.build(), path, samples)
            seal(path)
        except OSError as error:
            expected = "a folder that can be written (VDLA_CACHE names another)"
            raise ModelError(str(path.parent), expected, error.strerror) from None
    return path
