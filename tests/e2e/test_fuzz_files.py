"""Damaged files of every kind: refused in one line, or taken; no traceback and no hang."""

from __future__ import annotations

import time
from pathlib import Path

import fuzz_files
import pytest

PART = 130  # files of a long test
TODAY = int(time.time()) // 86_400 * 100_000  # seeds of long tests move with the date


def assert_no_failure(seed: int, files: int) -> fuzz_files.Report:
    report = fuzz_files.fuzz(seed, files)
    print(f"seed {seed}, {files} files: {report}")
    assert not report.failed, (
        f"python tests/support/fuzz_files.py --seed {seed} --files {files}: {report.failed}"
    )
    return report


def test_a_file_of_each_kind():
    report = assert_no_failure(0, len(fuzz_files.TURNS))
    assert report.ended["refused"] > len(fuzz_files.TURNS) / 2


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_files_by_the_hundred(part):
    assert_no_failure(TODAY + part * PART, PART)


def test_every_kind_has_its_turn():
    assert set(fuzz_files.TURNS) == set(fuzz_files.KINDS)


@pytest.mark.parametrize("number", range(len(fuzz_files.TURNS)))
def test_a_file_follows_from_its_number(number, tmp_path, monkeypatch):
    """So that what fails can be run again."""
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        kind = fuzz_files.TURNS[number]
        command = fuzz_files.KINDS[kind](fuzz_files.Random(number))
        files.append((command, {p.name: _content(p) for p in Path().iterdir()}))
    assert files[0] == files[1]


def _content(path: Path) -> bytes | list[str]:
    """A file's bytes; of a zip, which holds the time, its names."""
    return [path.suffix] if path.suffix == ".npz" else path.read_bytes()


@pytest.mark.parametrize(
    ("code", "out", "err", "new", "how"),
    [
        (0, "x", "", [], "taken"),
        (1, "", "no", [], "checked"),
        (2, "", "vdla: m.onnx: expected x, found y\n", [], "refused"),
        (2, "", "vdla: compiling the simulator\nvdla: expected x\n", [], "refused"),
        (2, "", "vdla: m.onnx: expected x, found y\n", ["m.vdla"], "failed"),
        (2, "", "warning: z\nvdla: expected x\n", [], "failed"),
        (2, "", "", [], "failed"),
        (70, "", "x", [], "failed"),
        (1, "", "Traceback (most recent call last):\nKeyError: 'x'\n", [], "failed"),
        ("signal 11", "", "", [], "failed"),
        ("hang, 60 s of processor time", "", "", [], "failed"),
    ],
)
def test_what_counts_as_a_failure(code, out, err, new, how):
    assert fuzz_files._ending(code, out, err, new)[0] == how
