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
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors come as exceptions
        # Without VNNI an x86 adds two products of uint8 and int8 in 16 bits, which saturate.
        options.add_session_config_entry("session.x64quantprecision", "1")
        try:
            self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has no common base class for its errors
            found = " ".join(str(error).split())
            raise ModuleError(
                f"{where}: expected operators that onnxruntime {ort.__version__} runs, "
                f"found {found}"
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
