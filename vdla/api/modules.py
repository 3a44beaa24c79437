"""Compiled modules: files of them, what they bring, and random inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.options.spelling import UsageError
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import Outside

Array = NDArray[Any]
UNSIGNED = ("uint4", "uint2")  # dtypes that are stored as others, without a sign


def refuse_native(module: Module, name: str) -> None:
    """Raises UsageError where a module brings more than programs for the accelerator."""
    result = [f"onnxruntime's {step}" for step in module.external]
    if module.host:
        result.append(f"code for {module.host.triple}")
    if module.kernels:
        result.append("kernels for a GPU")
    result += dict.fromkeys(f"code for {s.target}" for s in module.steps if isinstance(s, Outside))
    if result:
        raise UsageError(
            f"--no-native: expected {name} to hold programs for the accelerator alone, "
            f"found {', '.join(result)}"
        )


def random_inputs(module: Module, seed: int = 0) -> dict[str, Array]:
    """Standard normal inputs of a module's shapes, the same for a seed on every machine.

    Where the elements are wider integers, which count or point at something, none is negative;
    indices lie within their axis.
    """
    rng = np.random.default_rng(seed)
    result = {name: _random(module.tensors[name], rng) for name in module.inputs}
    sizes = module.metadata.get("indices", {})
    return {name: x % sizes[name] if name in sizes else x for name, x in result.items()}


def _random(kind: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements for one tensor."""
    values = np.asarray(rng.standard_normal(kind.shape))  # of no dimensions, a number
    dtype = dtype_of(kind.dtype)
    if dtype == np.bool_:
        return np.asarray(values > 0)
    wide = dtype.kind in "iu" and dtype.itemsize > 1
    positive = wide or kind.dtype in UNSIGNED
    return np.asarray(np.abs(values) if positive else values, dtype)
