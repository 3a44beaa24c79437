"""Operators that onnxruntime runs: an ONNX model with one result, its inputs given by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.runtime.errors import ModuleError

Array = NDArray[Any]
TYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}  # the others have numpy's names


class Session:
    """A model made ready.

    Raises:
        ModuleError: onnxruntime isn't there, or can't run the model.
    """

    def __init__(self, model: bytes, where: str = "operator") -> None:
        ort = _onnxruntime(where)
        try:
            self.session = exact_session(ort, model)
        except Exception as error:  # onnxruntime has no common base class for its errors
            reason = " ".join(str(error).split())
            raise ModuleError(
                f"{where}: expected operators that onnxruntime {ort.__version__} runs, "
                f"found {reason}"
            ) from None
        self.inputs = [each.name for each in self.session.get_inputs()]

    @property
    def result(self) -> tuple[tuple[int | str | None, ...], str]:
        """The shape and element type of what :meth:`run` gives."""
        (output,) = self.session.get_outputs()
        kind = TYPES.get(output.type, output.type.removeprefix("tensor(").removesuffix(")"))
        return tuple(output.shape), kind

    def run(self, operands: Sequence[Array]) -> Array:
        """The result for operands in the order of the model's inputs."""
        (result,) = self.session.run(None, dict(zip(self.inputs, operands, strict=True)))
        return np.asarray(result)


def _onnxruntime(where: str) -> Any:
    """onnxruntime, which only modules with such operators need."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise ModuleError(
            f"{where}: expected the package onnxruntime, which runs operators that vdla lacks, "
            "found none; install with: pip install onnxruntime"
        ) from None
    return onnxruntime


def exact_session(ort: Any, model: bytes | str, fuse: bool = True) -> Any:
    """An onnxruntime session on one thread, with exact products of uint8 and int8 where it can.

    Without VNNI an x86 adds two such products in 16 bits, which saturate. The mode that makes them
    exact turns weights into uint8; some operators don't take these, and run as they are.

    Args:
        ort: the module onnxruntime.
        model: an ONNX file's bytes, or its path.
        fuse: whether onnxruntime may fuse and rewrite nodes; else it runs each as it stands.

    Raises:
        Exception: onnxruntime doesn't take the model; its errors have no common base class.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions
    if not fuse:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    try:
        options.add_session_config_entry("session.x64quantprecision", "1")
        return ort.InferenceSession(model, options, providers=providers)
    except Exception:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return ort.InferenceSession(model, options, providers=providers)
