"""The notebooks run, and print what they hold."""

from __future__ import annotations

import pytest
from scripts import load_script

notebooks = load_script("tools/notebooks.py")
PATHS = sorted(notebooks.FOLDER.glob("*.ipynb"))


SLOW = ("design-your-own", "latency-hiding")
EACH = [pytest.param(p, marks=pytest.mark.long) if p.stem in SLOW else p for p in PATHS]


@pytest.mark.parametrize("path", EACH, ids=lambda path: path.stem)
def test_it_prints_what_it_holds(path):
    kept = notebooks.nbformat.read(path, as_version=4)
    assert notebooks.texts(notebooks.executed(path)) == notebooks.texts(kept)


def test_a_cell_that_fails_is_an_error(tmp_path):
    path = tmp_path / "n.ipynb"
    format4 = notebooks.nbformat.v4
    notebooks.nbformat.write(format4.new_notebook(cells=[format4.new_code_cell("1 / 0")]), path)
    with pytest.raises(notebooks.CellExecutionError, match="ZeroDivisionError"):
        notebooks.executed(path)


def test_there_are_four():
    names = ["design-your-own", "first-result", "latency-hiding", "pynq"]
    assert [path.stem for path in PATHS] == names
