"""Bundled models that are built from seeds: where they are kept, and that finding them is quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vdla.compiler import models
from vdla.compiler.models import built, seeded
from vdla.support.files import is_sealed


def test_every_network_that_is_built_has_its_sources():
    assert {*seeded.NETWORKS} == {*built.SOURCES} - {"resnet18-convs"}
    assert {*built.SOURCES} | {*models.COMMITTED} == {*models.MODELS}


def test_one_that_is_kept_is_found_without_what_builds_it():
    """A second run needs none of ONNX, which takes longer to import than the network to load."""
    path = models.model_path("dqn")
    assert is_sealed(path)
    script = (
        "import sys; from vdla.names.models import model_file\n"
        f"assert str(model_file('dqn')) == {str(path)!r}\n"
        f"assert str(model_file({str(path)!r})) == {str(path)!r}\n"
        "print([name for name in ('onnx', 'onnxruntime', 'llvmlite') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_one_that_is_damaged_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    assert built.kept("dqn") is None
    place = built.place_of("dqn", "dqn")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half of it")
    assert built.kept("dqn") is None


def test_what_is_not_built_has_no_place():
    with pytest.raises(KeyError):
        built.kept("digits")
