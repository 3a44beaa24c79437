"""Archives of object files: what binutils read, and one line where one is broken."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from vdla.runtime.archive import archive_of, objects_in
from vdla.runtime.errors import ModuleError

OBJECTS = [b"\x7fELF one", b"\x7fELF the second", b"", b"!<arch>\n"]


@pytest.mark.parametrize("count", range(len(OBJECTS) + 1))
def test_objects_come_back_as_they_were(count):
    assert objects_in(archive_of(OBJECTS[:count]), "a file") == OBJECTS[:count]


def test_an_object_file_is_the_only_one():
    assert objects_in(OBJECTS[0], "a file") == OBJECTS[:1]


@pytest.mark.skipif(not shutil.which("ar"), reason="no binutils")
def test_binutils_read_it(tmp_path):
    (tmp_path / "code.a").write_bytes(archive_of(OBJECTS))
    subprocess.run(["ar", "x", "code.a"], cwd=tmp_path, check=True)
    assert [(tmp_path / f"{n}.o").read_bytes() for n in range(len(OBJECTS))] == OBJECTS


@pytest.mark.parametrize("cut", [9, 30, 67, 68, 75])
def test_an_archive_that_is_cut(cut):
    with pytest.raises(ModuleError) as found:
        objects_in(archive_of(OBJECTS)[:cut], "module m.vdla")
    line = str(found.value)
    assert line.startswith("module m.vdla: expected an archive of object files, found a file")
    assert line.endswith(f"at byte 8 of {cut}")


def test_a_header_that_is_none():
    code = bytearray(archive_of(OBJECTS))
    code[8 + 48] = ord("x")
    with pytest.raises(ModuleError, match="has no header, at byte 8 of"):
        objects_in(bytes(code), "a file")
