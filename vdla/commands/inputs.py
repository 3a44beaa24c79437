"""Inputs that models are run on: an .npz file's arrays, or a bundled model's test images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.commands.output import log
from vdla.compiler import models
from vdla.options import Run, RunFiles
from vdla.options.spelling import UsageError
from vdla.runtime.errors import InputError
from vdla.runtime.values import collected

Array = NDArray[Any]


def with_files(options: Run, files: RunFiles) -> Run:
    """The options with what the files say, and with this terminal to report to."""
    trace = files.trace
    return replace(
        options,
        inputs=read_inputs(files.input) if files.input else None,
        waves=trace if trace is not None and trace.suffix == ".fst" else None,
        report=log.print,
    )


@dataclass(frozen=True)
class TestImages:
    """Test images of a bundled model's to run, of ``count`` that there are."""

    images: Array
    labels: Array
    count: int


def test_images(model: str, options: Run, files: RunFiles) -> TestImages | None:
    """The test images to run: all by default; one on a virtual board, where each takes seconds, and
    on a farm's board, which may be one.

    Raises:
        UsageError: a number of images for a model that has none.
    """
    split = models.test_split(model) if options.inputs is None else None
    if split is None:
        if files.images:
            known = "a bundled model with test images, as digits"
            raise UsageError(f"--images: expected {known}, found {model}")
        return None
    images, labels = split
    slow = options.virtual or (options.farm is not None and options.device == "board")
    count = files.images or (1 if slow else len(images))
    return TestImages(images[:count], labels[:count], len(images))


def read_inputs(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file; ``x[0]``, ``x[1]`` … are a list ``x``.

    Raises:
        InputError: it isn't one.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return collected({name: file[name] for name in file.files})
    except OSError as error:
        result = error.strerror or "something else"
        raise InputError(f"{path}: expected a readable .npz file, found {result}") from None
    except Exception:
        raise InputError(f"{path}: expected an .npz file of arrays, found other content") from None
