"""A small convolution on config ``tiny``, as an operator."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.build import Options, accelerator_layers
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config


@pytest.fixture(scope="session")
def tiny():
    """The config."""
    return load_config("tiny")


@pytest.fixture(scope="session")
def layer(tiny):
    """16 to 16 channels, 3×3, on 12×12 pixels."""
    rng = np.random.default_rng(1)
    node = ops.QConv2d(
        name="conv",
        output="y",
        data="x",
        weight="w",
        bias="b",
        pads=(1, 1, 1, 1),
        zeros=(3,),
        requant=Requant((0.001,) * 16, -5),
    )
    tensors = {
        "x": TensorType((1, 16, 12, 12), "int8"),
        "y": TensorType((1, 16, 12, 12), "int8"),
        "w": TensorType((16, 16, 3, 3), "int8"),
        "b": TensorType((16,), "int32"),
    }
    constants = {
        "w": rng.integers(-128, 128, (16, 16, 3, 3), np.int8),
        "b": rng.integers(-99, 99, 16, np.int32),
    }
    graph = Graph(("x",), ("y",), (node,), tensors, constants)
    (operator,), _ = accelerator_layers(graph, tiny, Options(min_fill=0.0))
    return operator
