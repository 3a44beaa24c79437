"""onnxruntime, which models are compared with: its outputs and the tensors between layers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vdla.runtime.external import exact_session
from vdla.support.errors import UserError

if TYPE_CHECKING:
    from onnx import ModelProto

Array = NDArray[Any]


class OnnxruntimeError(UserError):
    """onnxruntime, which a model is compared with, doesn't run it."""


@contextmanager
def _named() -> Iterator[None]:
    """Turns onnxruntime's errors, which have no common base class, into one of the user's."""
    import onnxruntime

    try:
        yield
    except Exception as error:
        actual = " ".join(str(error).split())
        version = onnxruntime.__version__
        raise OnnxruntimeError(
            f"onnxruntime: expected a model that onnxruntime {version} runs, to compare with, "
            f"found {actual}"
        ) from None


def ort_session(model: ModelProto | str | Path, fuse: bool = True) -> Any:
    """An onnxruntime session on one thread for a path or a model in memory.

    Without ``fuse`` it runs every node as it stands in the file, so that it rounds in other places.
    Products of uint8 and int8 are exact where it can (``runtime.external.exact_session``).

    Raises:
        OnnxruntimeError: it doesn't take the model.
    """
    import onnxruntime

    source = str(model) if isinstance(model, str | Path) else model.SerializeToString()
    with _named():
        return exact_session(onnxruntime, source, fuse)


def ort_run(
    model: ModelProto | str | Path, inputs: Mapping[str, Array], fuse: bool = True
) -> dict[str, Array]:
    """The model's outputs, by name; ``fuse`` as for :func:`ort_session`.

    Raises:
        OnnxruntimeError: it doesn't take the model, or stops at these inputs.
    """
    return next(ort_runs(model, [inputs], fuse))


def ort_runs(
    model: ModelProto | str | Path, batches: Iterable[Mapping[str, Array]], fuse: bool = True
) -> Iterator[dict[str, Array]]:
    """The model's outputs for each of some inputs, by name, from one session.

    Raises:
        As ``ort_run``.
    """
    session = ort_session(model, fuse)
    names = [o.name for o in session.get_outputs()]
    for inputs in batches:
        with _named():
            outputs = session.run(names, dict(inputs))
        yield dict(zip(names, outputs, strict=True))


def ort_tensors(path: str | Path, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every integer tensor onnxruntime computes between the layers, and the outputs.

    Only results of QuantizeLinear become extra outputs, so that onnxruntime still fuses each layer
    into the integer kernel it runs otherwise. ``path`` may be a model in memory.
    """
    import onnx

    model = onnx.load(str(path)) if isinstance(path, str | Path) else copy.deepcopy(path)
    known = {o.name for o in model.graph.output}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.output[0] not in known:
            zero = next((t for t in model.graph.initializer if t.name in node.input[2:]), None)
            dtype = zero.data_type if zero is not None else onnx.TensorProto.UINT8
            model.graph.output.append(
                onnx.helper.make_tensor_value_info(node.output[0], dtype, None)
            )
    return {**inputs, **ort_run(model, inputs)}


def cosine(a: Array, b: Array) -> float:
    """The cosine of the angle between two tensors; 1 between zeros alone."""
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    sizes = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / sizes) if sizes else float(not x.any() and not y.any())
