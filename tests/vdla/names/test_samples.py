"""Ranges of samples, and what isn't samples."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.names.samples import ranges_of
from vdla.runtime.errors import InputError


def test_the_least_and_the_greatest_number_of_each_input(tmp_path):
    arrays = {"x": np.array([[1.5, -2.0], [0.25, 7.0]]), "n": np.arange(3)}
    wanted = {"x": (-2.0, 7.0), "n": (0.0, 2.0)}
    assert ranges_of(arrays) == wanted
    np.savez(tmp_path / "x.npz", **arrays)
    assert ranges_of(tmp_path / "x.npz") == wanted
    assert ranges_of(str(tmp_path / "x.npz")) == wanted
    assert ranges_of(None) == {}


@pytest.mark.parametrize(
    ("array", "content"),
    [
        (np.zeros((0, 3), np.float32), r"float32\[0, 3\]"),
        (np.array(["a"]), r"<U1\[1\]"),
        (np.array([1.0, np.nan]), "infinities or NaN"),
        (np.array([np.inf]), "infinities or NaN"),
    ],
)
def test_arrays_that_have_no_range(array, content):
    line = f"--calibration: x: expected finite numbers, found {content}"
    with pytest.raises(InputError, match=line):
        ranges_of({"x": array})


def test_files_that_have_no_arrays(tmp_path):
    (tmp_path / "x.npz").write_text("nothing")
    with pytest.raises(InputError, match=r"x.npz: expected an .npz file of arrays, found other"):
        ranges_of(tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"expected an .npz file of arrays, found No such file"):
        ranges_of(tmp_path / "y.npz")
