"""Arguments and results that are more than a tensor each."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vdla.runtime.errors import InputError, ModuleError
from vdla.runtime.values import (
    Absent,
    Each,
    Listed,
    Maybe,
    Rows,
    assembled,
    from_json,
    taken_apart,
    tensors_of,
    to_json,
)

VALUES = [
    "x", Rows("x", "n"), Each("x", "n"), Each("x", "n", "s"), Listed(),
    Listed(("x", Each("y", "n"))), Listed((Listed(("x",)), Absent())), Absent(),
    Maybe("x", "c"), Maybe(Listed(("x", "y")), "c"),
]  # fmt: skip
TENSORS = {
    "x": np.arange(12).reshape(4, 3), "y": np.ones(2), "n": np.array([2]), "yes": np.array(True),
    "no": np.array(False), "s": np.array([[2], [1], [9], [9]]),
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_json_reads_back(value):
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


@pytest.mark.parametrize("given", [
    None, 3, {}, {"kind": "Pair"}, {"kind": "Rows", "tensor": "x"}, {"kind": "Rows", "rows": "x"},
    {"kind": "Rows", "tensor": "x", "count": 3}, {"kind": "Listed"},
    {"kind": "Listed", "values": 1}, {"kind": "Listed", "values": [1]},
    {"kind": "Maybe", "value": "x"},
    {"kind": "Maybe", "value": None, "condition": "c"}, {"kind": "Absent", "value": "x"},
])  # fmt: skip
def test_what_is_no_value_is_refused(given):
    with pytest.raises(ModuleError, match=r"^values: expected .*, found ") as error:
        from_json(given)
    assert "\n" not in str(error.value)


def test_the_tensors_of_a_value():
    value = Listed(("x", Rows("y", "n"), Maybe("z", "c"), Each("e", "k", "s"), Absent()))
    assert tensors_of(value) == ["x", "y", "n", "c", "z", "e", "k", "s"]
    assert tensors_of(Each("e", "k")) == ["e", "k"]


@pytest.mark.parametrize(("value", "wanted"), [
    ("y", [1, 1]), (Rows("x", "n"), [[0, 1, 2], [3, 4, 5]]), (Absent(), None),
    (Maybe("y", "yes"), [1, 1]), (Maybe("y", "no"), None),
    (Each("x", "n"), [[0, 1, 2], [3, 4, 5]]), (Each("x", "n", "s"), [[0, 1], [3]]),
    (Listed(("y", Each("x", "n"), "y")), [[1, 1], [0, 1, 2], [3, 4, 5], [1, 1]]), (Listed(), []),
    (Listed((Listed(("y",)), Absent())), [[[1, 1]], None]),
], ids=str)  # fmt: skip
def test_results_are_put_together(value, wanted):
    def plain(given):
        if isinstance(given, list):
            return [plain(each) for each in given]
        return given.tolist() if isinstance(given, np.ndarray) else given

    assert plain(assembled(value, TENSORS.__getitem__)) == wanted


def test_results_are_copies():
    for value in ("x", Rows("x", "n")):
        assert not np.shares_memory(assembled(value, TENSORS.__getitem__), TENSORS["x"])
    for value in (Each("x", "n"), Each("x", "n", "s")):
        assert not np.shares_memory(assembled(value, TENSORS.__getitem__)[0], TENSORS["x"])


def test_arguments_are_taken_apart():
    arguments = {"l": Listed(("a", Listed(("b", "c")))), "o": Absent()}
    inputs = {"x": 1, "l": [2, [3, 4]], "o": None}
    assert taken_apart(arguments, inputs) == {"x": 1, "a": 2, "b": 3, "c": 4}


@pytest.mark.parametrize(("given", "expected"), [
    ({"l": [1]}, r"input l: expected a list of 2 arrays, found 1"),
    ({"l": np.ones(2)}, r"input l: expected a list of 2 arrays, found ndarray"),
    ({"l": [1, 2]}, r"input l\[1\]: expected a list of 1 arrays, found int"),
    ({"o": 1}, r"input o: expected None, found int"),
])  # fmt: skip
def test_arguments_of_another_structure(given, expected):
    arguments = {"l": Listed(("a", Listed(("b",)))), "o": Absent()}
    with pytest.raises(InputError, match=f"^{expected}$"):
        taken_apart(arguments, given)
