"""Bundled networks of floats: what they are before they are quantized."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx

from vdla.compiler.models import networks

FLOATS: Mapping[str, Callable[[], Any]] = {
    "resnet18-float32": networks.resnet18,
    "mobilenet-float32": networks.mobilenet,
}


def model_of(name: str, folder: Path) -> str:
    """A model's name or file; one of ``FLOATS`` becomes a file in a folder."""
    if name not in FLOATS:
        return name
    path = folder / f"{name}.onnx"
    onnx.save(FLOATS[name](), path)
    return str(path)
