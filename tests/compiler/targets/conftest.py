"""A small product, as a function to be scheduled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support import kernel_numbers
from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.description.processor import find_processor
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.runtime.native import missing_features


@pytest.fixture(autouse=True)
def same_numbers(monkeypatch):
    """Numbers of kernels don't depend on the tests before."""
    monkeypatch.setattr(kernel_numbers, "RNG", np.random.default_rng(3))


@pytest.fixture(scope="session")
def product():
    """60 rows by 96 columns, over 12, with a ReLU, for processors with AVX-512."""
    a, b = te.placeholder((60, 12), "float32", "a"), te.placeholder((12, 96), "float32", "b")
    r = te.reduce_axis((0, 12), "r")
    acc = te.compute((60, 96), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "acc")
    zero = te.const(0.0, "float32")
    result = te.compute((60, 96), lambda y, x: te.maximum(acc[y, x], zero), "out")
    built, processor = create_schedule(result).built, find_processor("x86-64-v4")
    return ProcessorFunction(("product",), built, result, (), None, processor)


@pytest.fixture(scope="session")
def own_product(product):
    """The same for the best level of x86-64 that this machine has, to be run."""
    levels = [find_processor(name) for name in ("x86-64-v4", "x86-64-v3")]
    own = next(p for p in levels if not missing_features(p.triple, p.features))
    return replace(product, processor=own)
