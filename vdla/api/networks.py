"""``vdla.network``: a network's file as a function of its weights and inputs."""

from __future__ import annotations

from pathlib import Path

from vdla.compiler.frontend.onnx import load
from vdla.compiler.tracing.network import Network
from vdla.names.models import model_file


def network(model: str | Path) -> Network:
    """The network of a file as a function that has gradients: ``net(weights, *inputs)``.

    ``net.weights`` are the file's weights of floats by their names, as numpy's arrays. Inside
    ``vdla.fn``, ``vdla.grad`` and ``vdla.value_and_grad`` the network is written out in the graph.

    Args:
        model: an ONNX file, a bundled model's name, or a file of another kind, as ``vdla.compile``
            takes them.

    Raises:
        ModelError: there is none, or it can't be read.
    """
    return Network(load(model_file(model)), Path(model).name)
