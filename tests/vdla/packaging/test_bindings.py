"""Bindings of C's interface to other languages: each language's example, and wrong calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from languages import LANGUAGES, WARNINGS, done
from raw_runs import c_compiler

import vdla
from vdla.compiler.targets.processor.part import native_code
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import Clear
from vdla.runtime.values import Absent, Each, Listed, Maybe

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/packages"
PROGRAMS = ROOT / "tests/support/bindings"
SLOW = {"Go": pytest.mark.long}  # 9 s of Go's own cgo, where nothing has built it yet
each_language = pytest.mark.parametrize(
    "language", [pytest.param(name, marks=SLOW.get(name, ())) for name in LANGUAGES]
)


def source_of(folder: Path, name: str, suffix: str) -> Path:
    """A program in a language; Java's files begin with a capital letter."""
    return folder / f"{name.title() if suffix == 'java' else name}.{suffix}"


def printed(model, name: str, language: str, source: Path, folder: Path) -> str:
    """The text that a program of a language prints with a packaged network."""
    kind = LANGUAGES[language]
    made = vdla.package(model, form=kind.form, name=name, out=folder)
    return done(kind.build(source, made.files[0].parent))


# Examples -----------------------------------------------------------------------------------------


def check_scores(text: str, path: Path) -> None:
    """Whether an example printed the scores that Python's executor gives, to the bit."""
    rows = re.findall(r"[.+#]{8}", path.read_text())
    assert len(rows) == 8
    pixels = [".+#".index(pixel) / 2 for row in rows for pixel in row]
    image = np.array(pixels, np.float32).reshape(1, 1, 8, 8)
    wanted = vdla.run(vdla.compile("digits", device="cpu"), {"image": image}).outputs["logits"]
    first, *scores = text.splitlines()
    assert first == "digit 7"
    assert np.array(scores, np.float32).tobytes() == wanted.tobytes()


@each_language
def test_examples(language, tmp_path):
    source = source_of(EXAMPLES, "recognize", LANGUAGES[language].suffix)
    check_scores(printed("digits", "digits", language, source, tmp_path), source)


def test_the_example_in_python(tmp_path):
    (wheel,) = vdla.package("digits", form="wheel", out=tmp_path).files
    zipfile.ZipFile(wheel).extractall(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    source = EXAMPLES / "recognize.py"
    check_scores(done([sys.executable, source], env=environment), source)


def test_the_example_in_javascript(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("no node: apt-get install nodejs")
    module, _ = vdla.package("digits", form="wasm", out=tmp_path).files
    source = EXAMPLES / "recognize.mjs"
    shutil.copy(source, module.parent)
    check_scores(done(["node", module.parent / source.name, module]), source)


def test_examples_show_the_same_image():
    images = {"".join(re.findall(r"[.+#]{8}", p.read_text())) for p in EXAMPLES.glob("*ecognize.*")}
    assert len(images) == 1


# Lists, optional outputs, wrong calls -------------------------------------------------------------


@pytest.fixture(scope="module")
def lists():
    """A module whose outputs are lists and optional values of what its inputs say."""
    tensors = {
        "rows": TensorInfo((3, 2, 2), "float32", 0), "count": TensorInfo((), "int64", 64),
        "sizes": TensorInfo((3, 2), "int64", 128), "flag": TensorInfo((), "bool", 192),
    }  # fmt: skip
    values = {
        "plain": "rows", "each": Each("rows", "count"), "cut": Each("rows", "count", "sizes"),
        "none": Absent(), "maybe": Maybe("rows", "flag"), "empty": Listed(),
        "list": Listed(("rows", Each("rows", "count"))),
    }  # fmt: skip
    spare = {"spare": TensorInfo((1,), "int8", 200)}
    steps = (Clear("c", ("spare",)),)
    made = Module({**tensors, **spare}, [*tensors], ["rows"], 256, steps, values=values)
    made.host = native_code([], empty=True)  # what clears
    return made


TEXT = """\
rows float32 3x2x2x
count int64
sizes int64 3x2x
flag bool
inputs: expected rows, count, sizes, flag, found picture
input rows: expected FLOAT[12], found FLOAT[11]
input rows: expected FLOAT[12], found DOUBLE[12]
output plain: expected a run after inputs are written, found none
input rows: expected its elements before each run, found none
input rows: expected its elements before each run, found none
 0 1 2 3 4 5 6 7 8 9 10 11
2x2x 0 1 2 3
2x2x 4 5 6 7
1x2x 0 1
2x1x 4 6
3x2x2x 0 1 2 3 4 5 6 7 8 9 10 11
2x2x 0 1 2 3
2x2x 4 5 6 7
1 0 0 1 1 1
 0 1 2 3 4 5 6 7 8 9 10 11
output none: expected an array, found none
output each: expected an array, found a list
output plain: expected to be read as FLOAT, found DOUBLE
outputs: expected plain, each, cut, none, maybe, empty, list[0], list[1], found lists
threads: expected 1 to 64, started once, found 65
"""
NAMES = {"Java": ("float", "double")}  # of types, in errors; elsewhere those of Python


@each_language
def test_lists_and_wrong_calls(lists, language, tmp_path):
    source = source_of(PROGRAMS, "lists", LANGUAGES[language].suffix)
    names = NAMES.get(language, ("float32", "float64"))
    text = TEXT.replace("FLOAT", names[0]).replace("DOUBLE", names[1])
    lines = printed(lists, "lists", language, source, tmp_path).splitlines()
    assert [line.rstrip() for line in lines] == text.splitlines()


# Headers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standard", ["c99", "c11", "c++20"])
def test_headers_have_no_warnings(standard, tmp_path):
    made = vdla.package("digits", out=tmp_path)
    is_cpp = standard.startswith("c++")
    compiler = shutil.which("g++") if is_cpp else c_compiler()
    if compiler is None:
        pytest.skip("no g++: apt-get install g++")
    kind, name = ("c++", "vdla.hpp") if is_cpp else ("c", "vdla.h")
    command = [compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-x", kind, "-"]
    text = f'#include "digits.h"\n#include "{name}"\n'
    folder = made.files[0].parent
    subprocess.run([*command, f"-I{folder}"], input=text, text=True, check=True)


@pytest.mark.parametrize(("form", "target", "names"), [
    ("static", None, {"vdla.h", "vdla.hpp", "vdla.rs", "vdla.go"}),
    ("shared", None, {"vdla.h", "vdla.hpp", "vdla.rs", "vdla.go", "Vdla.java"}),
    ("static", "thumbv7em", {"vdla.h", "vdla.hpp"}),
])  # fmt: skip
def test_packages_have_bindings(form, target, names, tmp_path):
    files = {
        path.name for path in vdla.package("digits", form=form, target=target, out=tmp_path).files
    }
    assert {name for name in files if name.lower().startswith("vdla.")} == names
