"""Element types by name, and arrays of them that went through a file."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.runtime.dtypes import STORED, dtype_of, read_as, to_write


@pytest.mark.parametrize("name", [*STORED, "float32", "bool"])
def test_a_type_and_an_array_that_numpy_saved(name, tmp_path):
    array = np.array([1, 1]).astype(dtype_of(name))
    assert array.dtype.name == name
    np.savez(tmp_path / "a.npz", a=to_write(array))
    with np.load(tmp_path / "a.npz") as file:
        again = read_as(file["a"], name)
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again.astype("f4"), 1)


def test_bytes_of_another_size_stay_bytes():
    array = np.zeros(3, "V1")
    assert read_as(array, "bfloat16") is array


def test_no_such_type():
    with pytest.raises(TypeError):
        dtype_of("float7")
