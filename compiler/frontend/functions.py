"""Functions of Python that are networks: PyTorch's modules, and JAX's functions, as ONNX models.

What captures one is imported when it is first needed: neither PyTorch nor JAX needs to be there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.packages import missing

Array = NDArray[Any]
Function = Callable[..., Any]  # a torch.nn.Module, or a function of JAX's arrays


class Captured(Protocol):
    """An ONNX model of a function, and what its inputs and outputs are for a caller."""

    @property
    def model(self) -> onnx.ModelProto:
        """The ONNX model."""

    def arrays(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Array]:
        """The model's inputs of a call's arguments, by their names.

        Raises:
            ModelError: the arguments aren't those of the function that was captured.
        """

    def results(self, arrays: Mapping[str, Array]) -> Any:
        """Results of the function, of the model's outputs by their names."""

    def leaves(self, results: object) -> list[Array]:
        """Results of a call of the function itself, as the model's outputs in their order."""


def capture_function(
    function: object,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    sizes: object,
    where: str,
) -> Captured:
    """The ONNX model of a function that is called with some arguments.

    Args:
        function: a ``torch.nn.Module`` in evaluation mode, or a function of JAX's arrays.
        args: its positional arguments, of the shapes that it is captured for.
        kwargs: its others.
        sizes: those that stay open: for an argument, by its place or its name, the names of its
            axes, as ``{"x": {0: "batch"}}``.
        where: what opens every error.

    Raises:
        ModelError: it can't be captured; names the line of Python.
        UserError: the package that captures it is missing.
    """
    if is_torch(function):
        try:
            from vdla.compiler.frontend.pytorch.capture import capture as capture_module
        except ModuleNotFoundError as error:
            raise missing(where, error, "torch") from None
        return capture_module(function, args, kwargs, sizes, where)
    if not callable(function):
        kinds = "a PyTorch module or a function of JAX"
        raise ModelError(where, kinds, type(function).__name__)
    try:
        from vdla.compiler.frontend.jax_functions import capture
    except ModuleNotFoundError as error:
        raise missing(where, error, "jax") from None
    return capture(function, args, kwargs, sizes, where)


def is_torch(value: object) -> bool:
    """Whether a value is a PyTorch module; PyTorch isn't imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def name_of(function: Function) -> str:
    """A function's name, or a module's class."""
    return getattr(function, "__name__", type(function).__name__)


def as_array(value: object) -> Array:
    """Elements of an array of any kind, by DLPack or numpy's protocol."""
    detached = value.detach() if hasattr(value, "detach") else value  # a tensor that has a gradient
    return np.asarray(detached)
