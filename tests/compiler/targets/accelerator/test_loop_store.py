"""Loops on disk give the kernels that are made without them, and never stand in the way."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from vdla.compiler.targets.accelerator.kernels import kernel_of
from vdla.compiler.targets.accelerator.loop_store import KEPT, LoopStore, user_store
from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d
from vdla.isa.config import load_config

WINDOW = (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)
CONV = Conv2d(1, 1, 4, 2, 9, 7, *WINDOW, 3, 0, -128, 127)
TINY = load_config("tiny")
TILE = CONV.best(TINY, 2)


@pytest.fixture
def store(tmp_path) -> LoopStore:
    """A store in which there is one operator."""
    result = LoopStore(tmp_path / "loops")
    result.folder.mkdir()
    kernel_of(CONV, TILE, TINY, result)
    return result


def files(store: LoopStore) -> list[str]:
    return [str(path) for path in store.folder.rglob("*") if path.is_file()]


def test_kernels_of_stored_loops_are_those_of_schedules(store, tmp_path):
    copy = LoopStore(shutil.copytree(store.folder, tmp_path / "elsewhere"))  # no process's memory
    kernel = kernel_of(CONV, TILE, TINY, copy)
    assert kernel.ops == lower_schedule(CONV.schedule(TILE, TINY), TINY).ops
    assert len(files(copy)) == 1


def test_designs_of_other_buffers_and_paces_read_the_same_loops(store):
    other = replace(TINY, inp_bytes=2 * TINY.inp_bytes, reads_in_flight=7, clock_mhz=3)
    kernel_of(CONV, TILE, other, store)
    assert len(files(store)) == 1
    kernel_of(replace(CONV, in_zero=1), TILE, TINY, store)
    assert len(files(store)) == 2


@pytest.mark.parametrize("content", [b"", b"loops", b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
def test_what_cannot_be_read_is_made_again(store, tmp_path, content):
    copy = LoopStore(shutil.copytree(store.folder, tmp_path / "elsewhere"))
    (path,) = copy.folder.rglob("??????????*")
    whole = path.read_bytes()
    path.write_bytes(content)
    assert kernel_of(CONV, TILE, TINY, copy).ops == kernel_of(CONV, TILE, TINY).ops
    assert path.read_bytes() == whole


def test_a_disk_that_takes_nothing_is_an_empty_store(tmp_path):
    folder = tmp_path / "file"
    folder.write_text("no folder")
    kernel = kernel_of(CONV, TILE, TINY, LoopStore(folder))
    assert kernel.ops == kernel_of(CONV, TILE, TINY).ops
    assert folder.read_text() == "no folder"


def test_the_users_store_keeps_the_latest_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    for age in range(KEPT + 2):
        folder = tmp_path / "loops" / f"sources {age}"
        folder.mkdir(parents=True)
        os.utime(folder, (1e9 - age, 1e9 - age))
    own = user_store("today's").folder
    kept = sorted(path.name for path in own.parent.iterdir() if path != own)
    assert kept == [f"sources {age}" for age in range(KEPT - 1)]
