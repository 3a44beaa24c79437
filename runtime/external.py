"""Operators that onnxruntime runs: an ONNX model, its inputs and results given by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.runtime.errors import InputError, ModuleError

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
            reason = one_line(error)
            raise ModuleError(
                f"{where}: expected operators that onnxruntime {ort.__version__} runs, "
                f"found {reason}"
            ) from None
        self.where = where
        self.inputs = [each.name for each in self.session.get_inputs()]

    @property
    def results(self) -> list[tuple[tuple[int | str | None, ...], str]]:
        """The shapes and element types of what :meth:`run_all` gives; a type that is no tensor's as
        onnxruntime spells it."""
        return [(tuple(o.shape or ()), _dtype(o.type)) for o in self.session.get_outputs()]

    def run(self, operands: Sequence[Array]) -> Array:
        """The one result for operands in the order of the model's inputs."""
        (result,) = self.run_all(operands)
        return result

    def run_all(self, operands: Sequence[Array]) -> list[Array]:
        """Every result for operands in the order of the model's inputs.

        Raises:
            InputError: onnxruntime stops at these operands.
        """
        given = dict(zip(self.inputs, operands, strict=True))
        try:
            results = self.session.run(None, given)
        except Exception as error:
            expected = "values that onnxruntime computes with"
            raise InputError(
                f"{self.where}: expected {expected}, found {one_line(error)}"
            ) from None
        return [np.asarray(result) for result in results]


def one_line(error: Exception) -> str:
    """Message of onnxruntime, in one line."""
    return " ".join(str(error).split())


def _dtype(kind: str) -> str:
    """The element type of a tensor; other types as they are."""
    if kind in TYPES or not kind.startswith("tensor("):
        return TYPES.get(kind, kind)
    return kind.removeprefix("tensor(").removesuffix(")")


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
    try:
        return _session(ort, model, fuse, exact=True)
    except Exception:
        return _session(ort, model, fuse, exact=False)


def _session(ort: Any, model: bytes | str, fuse: bool, exact: bool) -> Any:
    """A session of one thread; options of its own, since onnxruntime warns of a second value."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions
    if not fuse:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
