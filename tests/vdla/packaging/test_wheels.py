"""Wheels: what pip reads of them, and what the package in them does."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from control_models import model, op

import vdla
from vdla.packaging import wheel
from vdla.packaging.wheel import TAGS


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A folder with the wheel of digits as pip installs it, and the file."""
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = vdla.package("digits", form="wheel", version="1.2", out=folder).files
    site = folder / "site"
    command = ["pip", "install", "-q", "--no-deps", "--no-index", "--target", site, path]
    subprocess.run([sys.executable, "-m", *command], check=True)
    return site, path


def python(site, *args, **more):
    """A process of Python that has the package, and no vdla."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *args], env=environment, capture_output=True, text=True, **more
    )


def test_the_licence_is_of_the_installed_vdla(tmp_path, monkeypatch):
    """A build in a checkout leaves another description of vdla in its folder, without a licence."""
    (tmp_path / "vdla.egg-info").mkdir()
    (tmp_path / "vdla.egg-info" / "PKG-INFO").write_text("Name: vdla\nVersion: 0.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "Apache License" in wheel._license()


def test_metadata(unpacked):
    site, path = unpacked
    info = site / "digits-1.2.dist-info"
    text = (info / "METADATA").read_text()
    for line in (
        "Name: digits",
        "Version: 1.2",
        "Requires-Dist: numpy",
        "License-File: LICENSE",
        "- Input `image`: float32[1, 1, 8, 8]",
        "- Output `logits`: float32[1, 10]",
    ):
        assert f"\n{line}\n" in text
    assert "Apache License" in (info / "licenses/LICENSE").read_text()
    tags = [f"Tag: py3-none-{tag}" for tag in TAGS["x86_64"].split(".")]
    assert (info / "WHEEL").read_text().splitlines()[-2:] == tags
    assert path.name.endswith(f"-py3-none-{TAGS['x86_64']}.whl")


def test_records(unpacked):
    with zipfile.ZipFile(unpacked[1]) as file:
        lines = file.read("digits-1.2.dist-info/RECORD").decode().splitlines()
        for line in lines[:-1]:
            name, digest, size = line.split(",")
            data = file.read(name)
            own = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={own}", len(data))
        assert {line.split(",")[0] for line in lines} == {*file.namelist()}


def test_it_is_small(unpacked):
    assert unpacked[1].stat().st_size <= 60_000


def test_the_same_model_is_the_same_wheel(unpacked, tmp_path):
    (path,) = vdla.package("digits", form="wheel", version="1.2", out=tmp_path).files
    assert path.read_bytes() == unpacked[1].read_bytes()


def test_runs(unpacked, digits, tmp_path):
    """With the same outputs as vdla's, which isn't imported."""
    _, given, output = digits
    np.savez(tmp_path / "x.npz", image=np.frombuffer(given, "f4").reshape(1, 1, 8, 8))
    args = ("--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz", "--threads", "2")
    done = python(unpacked[0], "-m", "digits", *args)
    assert done.returncode == 0, done.stderr
    assert " ms\nlogits = [[" in done.stdout
    with np.load(tmp_path / "y.npz") as file:
        assert file["logits"].tobytes() == output
    assert python(unpacked[0], "-m", "digits").returncode == 0
    script = "import sys, digits; print(digits.inputs, digits.outputs, 'vdla' in sys.modules)"
    assert python(unpacked[0], "-c", script).stdout == (
        "{'image': ('float32', (1, 1, 8, 8))} ['logits'] False\n"
    )
    assert python(
        unpacked[0], "-c", "import sys, digits; print('numpy' in sys.modules)"
    ).stdout == ("False\n")


@pytest.mark.parametrize(("call", "text"), [
    ("digits.run()", "TypeError: inputs: expected image, found "),
    ("digits.run(1, 2)", "TypeError: inputs: expected image, found image"),
    ("digits.run(x=1)", "TypeError: inputs: expected image, found x"),
    ("digits.run(numpy.zeros((8, 8)))",
     "TypeError: input image: expected float32[1, 1, 8, 8], found float64[8, 8]"),
    ("digits.Network(65)",
     "digits.NetworkError: threads: expected 1 to 64, started once, found 65"),
    ("digits.more", "AttributeError: module 'digits' has no attribute 'more'"),
])  # fmt: skip
def test_wrong_calls(unpacked, call, text):
    done = python(unpacked[0], "-c", f"import digits, numpy; {call}")
    assert done.stderr.splitlines()[-1].rstrip() == text.rstrip()


def test_wrong_files(unpacked, tmp_path):
    np.savez(tmp_path / "x.npz", other=np.zeros(3))
    done = python(unpacked[0], "-m", "digits", "--input", tmp_path / "x.npz")
    assert (done.returncode, done.stderr) == (1, "inputs: expected image, found other\n")
    done = python(unpacked[0], "-m", "digits", "--input", tmp_path / "none.npz")
    assert done.returncode == 1
    assert done.stderr.endswith("No such file or directory: '" + str(tmp_path / "none.npz") + "'\n")


def test_lists(tmp_path):
    """A model that takes an array, and gives a list of its parts."""
    proto = model(
        [op("Relu", "x", "r"), op("SplitToSequence", "r n", "parts", axis=0)],
        {"x": np.zeros((6, 2), np.float32)}, ["l parts"], n=np.array([2, 1, 3]),
    )  # fmt: skip
    onnx.save(proto, tmp_path / "lists.onnx")
    (path,) = vdla.package(tmp_path / "lists.onnx", form="wheel", out=tmp_path).files
    zipfile.ZipFile(path).extractall(tmp_path / "site")
    script = (
        "import lists, numpy as np; y = lists.run(np.arange(-3, 9, dtype='f4').reshape(6, 2)); "
        "print([each.tolist() for each in y['parts']])"
    )
    assert python(tmp_path / "site", "-c", script).stdout == (
        "[[[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]]\n"
    )


ROOT = Path(__file__).parents[3]
EMULATED = {"arm-linux": ("qemu-arm", "armhf"), "aarch64-linux": ("qemu-aarch64", "arm64")}


@pytest.mark.parametrize(
    "target", ["arm-linux", pytest.param("aarch64-linux", marks=pytest.mark.long)]
)
def test_other_machines(digits, tmp_path, target):
    """Under Debian's Python for ARM, as on a board."""
    qemu, debian = EMULATED[target]
    system = ROOT / "build/arm" / debian
    if shutil.which(qemu) is None or not (system / "ready").exists():
        pytest.skip(f"no {qemu}, or no build/arm/{debian}: see `make qemu`")
    _, given, output = digits
    (path,) = vdla.package("digits", form="wheel", target=target, out=tmp_path).files
    assert TAGS[target.partition("-")[0]] in path.name
    zipfile.ZipFile(path).extractall(tmp_path)
    np.savez(tmp_path / "x.npz", image=np.frombuffer(given, "f4").reshape(1, 1, 8, 8))
    interpreter = next((system / "usr/bin").glob("python3.*"))
    command = [qemu, "-L", system, interpreter, "-m", "digits", "--input", "x.npz"]
    subprocess.run([*command, "--output", "y.npz"], cwd=tmp_path, check=True, env={})
    with np.load(tmp_path / "y.npz") as file:
        assert file["logits"].tobytes() == output
