"""The bundled models that are built from fixed seeds: how each is built, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.types import Array
from vdla.compiler.models import networks, published, recurrent, vision
from vdla.compiler.models.built import place_of
from vdla.compiler.models.networks import RESNET18_CONVS, ConvShape
from vdla.compiler.models.quantizer import Samples, quantize_model
from vdla.support.files import is_sealed, seal


@dataclass(frozen=True)
class Network:
    """Recipe of a network: the function that builds it, the samples that it is calibrated on, and
    what writes its quantized form.
    """

    build: Callable[[], onnx.ModelProto]
    samples: Callable[[], Array]
    write: Callable[[onnx.ModelProto, Path, Samples], None] = quantize_model


def _pictures(shape: tuple[int, ...]) -> Callable[[], Array]:
    return lambda: networks.calibration(shape)


def _language_model() -> onnx.ModelProto:
    return recurrent.language_model().model("logits")


NETWORKS = {
    "resnet18": Network(networks.resnet18, _pictures(networks.IMAGE)),
    "mobilenet": Network(networks.mobilenet, _pictures(networks.IMAGE)),
    "dqn": Network(vision.dqn, _pictures(vision.SCREEN)),
    "dcgan": Network(vision.dcgan, lambda: vision.noise(vision.NOISE)),
    "mobilenetv2": Network(vision.mobilenet_v2, _pictures(networks.IMAGE)),
    "efficientnet-lite0": Network(vision.efficientnet_lite0, _pictures(networks.IMAGE)),
    "yolo-nano": Network(vision.yolo_nano, _pictures(vision.SCENE)),
    "unet": Network(vision.unet, _pictures(vision.SLICE)),
    "lstm-lm": Network(_language_model, recurrent.texts),
    "mobilenetv3": Network(published.mobilenet_v3, _pictures(networks.IMAGE)),
    "resnet18-nhwc": Network(published.resnet18_nhwc, published.photos),
    "speech-bilstm": Network(published.speech_bilstm, published.speech, published.write_as_left),
    "audio-encoder": Network(published.audio_encoder, published.sounds, published.write_products),
}


def path_of(name: str) -> Path:
    """The ONNX file of a model.

    Raises:
        KeyError: there is no such model.
        ModelError: it can't be written.
    """
    return _built(name, name, NETWORKS[name])


def convolution_paths() -> dict[str, Path]:
    """ResNet-18's distinct convolutions, C1 to C12, each alone."""
    return {shape.name: _conv_path(shape) for shape in RESNET18_CONVS}


def _conv_path(shape: ConvShape) -> Path:
    size = (1, shape.inputs, shape.size, shape.size)
    network = Network(lambda: networks.single_conv(shape), _pictures(size))
    return _built(shape.name, "resnet18-convs", network)


def _built(name: str, model: str, network: Network) -> Path:
    """The cached file of a bundled model's network, built first if it isn't there or is damaged."""
    path = place_of(name, model)
    if not is_sealed(path):
        samples = [{"input": x[None]} for x in network.samples()]
        try:
            network.write(network.build(), path, samples)
            seal(path)
        except OSError as error:
            expected = "a folder that can be written (VDLA_CACHE names another)"
            raise ModelError(str(path.parent), expected, error.strerror) from None
    return path
