"""Samples of inputs, and what isn't samples."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.names.samples import samples_of
from vdla.runtime.errors import InputError


def test_arrays_by_the_names_of_inputs(tmp_path):
    arrays = {"x": np.array([[1.5, -2.0], [0.25, 7.0]]), "n": np.arange(3)}
    np.savez(tmp_path / "x.npz", **arrays)
    for given in (arrays, tmp_path / "x.npz", str(tmp_path / "x.npz")):
        result = samples_of(given)
        assert result.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(result[name], array)
    assert samples_of(None) == {}


@pytest.mark.parametrize(
    ("array", "content"),
    [
        (np.zeros((0, 3), np.float32), r"float32\[0, 3\]"),
        (np.array(["a"]), r"<U1\[1\]"),
        (np.array([1.0, np.nan]), "infinities or NaN"),
        (np.array([np.inf]), "infinities or NaN"),
    ],
)
def test_arrays_that_are_no_samples(array, content):
    line = f"--calibration: x: expected finite numbers, found {content}"
    with pytest.raises(InputError, match=line):
        samples_of({"x": array})


def test_files_that_have_no_arrays(tmp_path):
    (tmp_path / "x.npz").write_text("nothing")
    with pytest.raises(InputError, match=r"x.npz: expected an .npz file of arrays, found other"):
        samples_of(tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"expected an .npz file of arrays, found No such file"):
        samples_of(tmp_path / "y.npz")


def test_no_samples_at_all():
    with pytest.raises(InputError, match="expected samples of the model's inputs, found none"):
        samples_of({})
