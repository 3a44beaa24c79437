"""Places of bundled models that are built from seeds, found without what builds them.

A folder of the cache is named by a digest of the sources that build a model and of onnxruntime's
version, which measures its scales.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path

from vdla.support.files import cache_folder, digest, is_sealed

CLASSIC = ("builder", "networks", "quantizer")
RECENT = (*CLASSIC, "vision")
OTHERS = ("builder", "networks", "published", "quantizer", "recurrent", "transformers")
SEQUENCES = ("builder", "quantizer", "recurrent", "recurrent_quantizer", "transformers")
SOURCES = {
    **dict.fromkeys(("resnet18", "mobilenet", "resnet18-convs"), CLASSIC),
    **dict.fromkeys(
        ("dqn", "dcgan", "mobilenetv2", "efficientnet-lite0", "yolo-nano", "unet"), RECENT
    ),
    "lstm-lm": SEQUENCES,
    **dict.fromkeys(("mobilenetv3", "resnet18-nhwc", "speech-bilstm", "audio-encoder"), OTHERS),
}


def place_of(name: str, model: str) -> Path:
    """Path that a network of a bundled model has, or would have.

    Args:
        name: the network's.
        model: the bundled model's, one of ``SOURCES``.

    Raises:
        KeyError: no model of that name is built.
    """
    return cache_folder("models", _version(SOURCES[model])) / f"{name}.onnx"


def kept(name: str) -> Path | None:
    """The file of a bundled model that is built, where it is whole; None where it isn't there.

    Raises:
        KeyError: no model of that name is built.
    """
    path = place_of(name, name)
    return path if is_sealed(path) else None


@cache
def _version(sources: tuple[str, ...]) -> str:
    """Changes with anything that could change a model built by ``sources``."""
    folder = Path(__file__).parent
    return digest([folder / f"{stem}.py" for stem in sources], also=version("onnxruntime"))
