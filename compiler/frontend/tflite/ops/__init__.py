"""Converters of TFLite's operators to nodes of ONNX; importing a file registers those in it."""

from vdla.compiler.frontend.tflite.ops import (
    blocks,
    branching,
    comparing,
    elements,
    fourier,
    images,
    indexing,
    joining,
    lstm,
    products,
    reducing,
    rescaling,
    resized,
    shaping,
    slicing,
    sliding,
)

__all__ = [
    "blocks",
    "branching",
    "comparing",
    "elements",
    "fourier",
    "images",
    "indexing",
    "joining",
    "lstm",
    "products",
    "reducing",
    "rescaling",
    "resized",
    "shaping",
    "slicing",
    "sliding",
]
