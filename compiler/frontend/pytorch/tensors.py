"""PyTorch's tensors as numpy's arrays, and back; both share memory where they lie on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vdla.runtime.dtypes import dtype_of

Array = NDArray[Any]

# Dtypes that numpy has of ml_dtypes, and integers of their size, which both have.
STORED = {
    "bfloat16": (torch.bfloat16, torch.int16),
    "float8_e4m3fn": (torch.float8_e4m3fn, torch.int8),
    "float8_e5m2": (torch.float8_e5m2, torch.int8),
}


def to_array(value: object) -> Array:
    """A tensor's elements; complex ones as pairs along a last axis, as PyTorch's exporter does."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    tensor: torch.Tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    name = str(tensor.dtype).removeprefix("torch.")
    array: Array = (tensor.view(STORED[name][1]) if name in STORED else tensor).numpy()
    return array.view(dtype_of(name)) if name in STORED else array


def to_tensor(array: Array, complexes: bool = False) -> torch.Tensor:
    """A tensor of an array's elements; of complex ones, if its pairs are such."""
    if not array.flags["C_CONTIGUOUS"]:
        array = array.copy()
    if array.dtype.name in STORED:
        kind, _ = STORED[array.dtype.name]
        return torch.from_numpy(array.view(f"i{array.dtype.itemsize}")).view(kind)
    tensor = torch.from_numpy(array)
    return torch.view_as_complex(tensor) if complexes else tensor
