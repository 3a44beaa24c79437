"""Files are there whole or not at all; what is cached lies where the user says."""

import pytest

from vdla.support.files import atomic_write, cache_folder, digest, is_sealed, seal, write_bytes


def half_written(path):
    with atomic_write(path) as beside:
        beside.write_bytes(b"ne")
        assert beside.suffix == path.suffix
        raise ZeroDivisionError


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    write_bytes(path, b"old")
    with pytest.raises(ZeroDivisionError):
        half_written(path)
    assert path.read_bytes() == b"old"
    write_bytes(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.txt", b"new")]


def test_nothing_is_left_where_nothing_can_be(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_bytes(tmp_path / "no" / "a.txt", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_sealed_file_is_as_it_was(tmp_path):
    path = tmp_path / "a.so"
    assert not is_sealed(path)
    path.write_bytes(b"machine code")
    assert not is_sealed(path)
    seal(path)
    assert is_sealed(path)
    for damaged in (b"machine", b"", b"machine node"):
        path.write_bytes(damaged)
        assert not is_sealed(path)
    path.unlink()
    assert not is_sealed(path)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("VDLA_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("rtl", "x") == tmp_path / ".cache/vdla/rtl/x"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/vdla"
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "own"))
    assert cache_folder("rtl") == tmp_path / "own/rtl"


def test_a_digest_changes_with_all_that_it_is_of(tmp_path):
    room = tmp_path / "room"
    (room / "deep").mkdir(parents=True)
    (room / "deep" / "a.py").write_text("1")
    first = digest([room], also="tool 1")
    assert first == digest([room], also="tool 1")
    assert len(first) == 16
    assert first.startswith(digest([room], also="tool 1", digits=12))
    (room / "notes.txt").write_text("no source")
    assert digest([room], also="tool 1") == first
    assert digest([room], also="tool 2") != first
    (room / "b.v").write_text("module b; endmodule")
    assert digest([room], also="tool 1") != first
