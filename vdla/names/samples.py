"""Samples of a model's inputs: arrays, or an .npz file of such."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vdla.runtime.errors import InputError

Given = str | Path | Mapping[str, object]  # an .npz file, or arrays by the inputs' names


def samples_of(samples: Given | None) -> dict[str, np.ndarray]:
    """The samples of each input, by its name; none where there are none.

    Raises:
        InputError: they aren't an .npz file of numbers, or arrays of such.
    """
    if samples is None:
        return {}
    arrays = samples if isinstance(samples, Mapping) else _read(Path(samples))
    if not arrays:
        raise InputError("--calibration: expected samples of the model's inputs, found none")
    return {name: _numbers(name, np.asarray(array)) for name, array in arrays.items()}


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """An input's numbers, all of them finite."""
    if array.dtype.kind not in "fiub" or not array.size or not np.isfinite(array).all():
        numbers = array.dtype.kind in "fiub" and array.size
        content = "infinities or NaN" if numbers else f"{array.dtype}{list(array.shape)}"
        raise InputError(f"--calibration: {name}: expected finite numbers, found {content}")
    return array


def _read(path: Path) -> dict[str, object]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        content = error.strerror or "something else"
    except Exception:
        content = "other content"
    raise InputError(f"--calibration: {path}: expected an .npz file of arrays, found {content}")
