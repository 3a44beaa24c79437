"""Options add to seams, and their files are imported in the order of those that they are named
after."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from vdla.support.seams import Seam, import_like


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A package of two files, each of which notes that it was imported."""
    folder = tmp_path / "some_room"
    folder.mkdir()
    (folder / "__init__.py").write_text("order = []\n")
    for name in ("early", "late"):
        (folder / f"{name}.py").write_text(f"from some_room import order\norder.append('{name}')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("some_room")
    for name in [each for each in sys.modules if each.partition(".")[0] == "some_room"]:
        del sys.modules[name]


def modules(*names):
    return [ModuleType(f"isa.options.{name}") for name in names]


def test_a_seam_gives_all_that_was_added():
    seam = Seam[int]()
    assert [seam.add(each) for each in (3, 1, 2)] == [3, 1, 2]
    assert list(seam) == [3, 1, 2]


def test_files_come_in_the_order_of_their_namesakes(room):
    import_like(room, modules("late", "elsewhere", "early"))
    assert room.order == ["late", "early"]


def test_a_file_without_a_namesake(room):
    with pytest.raises(ImportError, match="expected files named early, found late"):
        import_like(room, modules("early"))
    assert room.order == []
