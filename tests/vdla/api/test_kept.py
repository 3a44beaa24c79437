"""Modules that are kept between runs: taken where all that decided them is the same."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import onnx
import pytest

import vdla
from vdla.api import kept, models
from vdla.compiler.models import model_path
from vdla.compiler.user import REGISTERED
from vdla.isa.config import load_config
from vdla.options import Run
from vdla.runtime.errors import ModuleError
from vdla.support.files import seal_of

TINY = load_config("tiny")


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """What is compiled, in a cache of its own."""
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "cache"))
    made, whole = [], models.compile_to_run
    monkeypatch.setattr(
        models, "compile_to_run", lambda *given: made.append(given) or whole(*given)
    )
    return made


def test_the_second_run_takes_the_same_module(compilations):
    first, second = (kept.compiled("digits", TINY, Run()) for _ in range(2))
    assert len(compilations) == 1
    assert first.to_bytes() == second.to_bytes()


CHANGES = {
    "another config": (load_config("tiny", ["memory.latency=9"]), Run()),
    "another device": (TINY, Run(device="cpu")),
    "a board's records": (TINY, Run(board="ulx3s")),
    "stricter": (TINY, Run(strict=True)),
    "a place": (TINY, Run(places={"fc": "cpu"})),
    "sizes": (TINY, Run(shapes={"batch": 1})),
    "inputs' sizes": (TINY, Run({"input": np.zeros((1, 1, 8, 8), np.float32)})),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_decides_a_module_changes_its_place(compilations, change):
    usual = kept._place(model_path("digits"), TINY, Run())
    assert kept._place(model_path("digits"), *CHANGES[change]) != usual
    assert kept._place(model_path("digits"), TINY, Run(samples=3, threads=1)) == usual


def test_every_option_that_compiles_decides():
    """An option that says how a model is compiled changes the place, or nothing is kept."""
    others = {
        "shapes": {"n": 2}, "records": "none", "target": "x86-64-v3", "places": {"a": "cpu"},
        "host": "cortex-a9", "gpu": "sm_80", "strict": True, "placement": "cost", "turns": 7,
        "calibration": "x.npz", "denormals": "keep",
    }  # fmt: skip
    named = {
        each.name for each in kept.fields(Run) if (how := kept.spelling(each)) and how.compiles
    }
    assert named == set(others)
    usual = kept._place(model_path("digits"), TINY, Run())
    for name, value in others.items():
        assert kept._place(model_path("digits"), TINY, Run(**{name: value})) != usual, name


def test_another_file_of_the_same_name_is_compiled(compilations, tmp_path):
    path = tmp_path / "m.onnx"
    shutil.copy(model_path("digits"), path)
    kept.compiled(path, TINY, Run())
    changed = onnx.load(path)
    changed.graph.name = "other"
    onnx.save(changed, path)
    kept.compiled(path, TINY, Run())
    assert len(compilations) == 2
    kept.compiled("digits", TINY, Run())  # what the file was at first
    assert len(compilations) == 2


def test_weights_beside_the_file_are_read_every_time(compilations, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.load(model_path("digits")), path, save_as_external_data=True, size_threshold=0)
    for _ in range(2):
        kept.compiled(path, TINY, Run())
    assert len(compilations) == 2


@pytest.mark.parametrize("damage", [b"", b"VDLAMOD\n", None])
def test_a_damaged_module_is_compiled_again(compilations, damage):
    kept.compiled("digits", TINY, Run())
    place = kept._place(model_path("digits"), TINY, Run())
    if damage is None:
        seal_of(place).unlink()
    else:
        place.write_bytes(damage)
    kept.compiled("digits", TINY, Run())
    assert len(compilations) == 2
    assert kept._kept(place)


def test_a_module_of_another_format_is_compiled_again(compilations, monkeypatch):
    kept.compiled("digits", TINY, Run())

    def refuse(path, sealed):
        raise ModuleError(f"{path}: expected another version")

    monkeypatch.setattr(kept.Module, "load", refuse)
    kept.compiled("digits", TINY, Run())
    assert len(compilations) == 2


def test_other_sources_or_another_processor_compile_again(compilations, monkeypatch):
    usual = kept._place(model_path("digits"), TINY, Run())
    here = kept.facts()
    for number in range(len(here)):
        other = [*here[:number], "other", *here[number + 1 :]]
        monkeypatch.setattr(kept, "facts", lambda other=other: other)
        assert kept._place(model_path("digits"), TINY, Run()) != usual


def test_nothing_is_kept_where_operators_are_registered(monkeypatch):
    monkeypatch.setitem(REGISTERED, "mine::Swish", None)
    assert kept._place(model_path("digits"), TINY, Run()) is None


def test_a_folder_that_cannot_be_written(compilations, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    for _ in range(2):
        assert kept.compiled("digits", TINY, Run()).programs
    assert len(compilations) == 2


def test_the_longest_unused_go_first(compilations, monkeypatch):
    configs = [TINY, *(load_config("tiny", [f"memory.latency={n}"]) for n in (9, 11))]
    places = [kept._place(model_path("digits"), config, Run()) for config in configs]
    for config in configs[:2]:
        kept.compiled("digits", config, Run())
    size = places[0].stat().st_size
    kept.os.utime(places[0], (1, 1))
    kept.os.utime(places[1], (2, 2))
    kept.compiled("digits", configs[0], Run())  # used again
    monkeypatch.setattr(kept, "MOST_BYTES", 2 * size + size // 2)
    kept.compiled("digits", configs[2], Run())
    assert [place.exists() for place in places] == [True, False, True]
    assert not seal_of(places[1]).exists()


def test_a_run_that_took_a_module_is_a_run_that_compiled(compilations):
    options = Run(device="sim", config="tiny")
    one, two = (vdla.run("digits", replace(options)) for _ in range(2))
    assert one.cycles == two.cycles
    for name, array in one.outputs.items():
        assert np.array_equal(array, two.outputs[name])


def test_a_full_disk_keeps_nothing_and_spoils_nothing(compilations, monkeypatch):
    def full(self, path):
        raise ModuleError(f"{path}: expected a place to write, found No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(kept.Module, "save", full)
        assert kept.compiled("digits", TINY, Run()).programs
    place = kept._place(model_path("digits"), TINY, Run())
    assert not place.exists()


def test_what_is_no_file_has_no_place(tmp_path):
    assert kept._place(tmp_path, TINY, Run()) is None
