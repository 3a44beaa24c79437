"""Checks a release: one version everywhere, and a wheel and an sdist that work where they are new.

    python tools/release.py             # all checks; `make release` runs it on a clean tree
    python tools/release.py --user      # seconds and megabytes of a user's install

The version is that of pyproject.toml; the package, CITATION.cff, the FAQ's BibTeX and CHANGELOG.md
must have it, too. The wheel is installed into an empty environment with the oldest versions that
pyproject.toml allows, and into another one with the newest, and runs networks in each; a wheel that
is made from the sdist has the same files. Nothing is uploaded: `twine upload dist/*` does that.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIRST_RESULT = ("compare", "resnet18-convs", "-c", "paper", "--out", "out")
COMMANDS = (
    ("--version",),
    ("run", "digits", "-c", "tiny", "--images", "20"),
    ("run", "digits", "-c", "paper", "--check", "--samples", "1"),
    ("run", "digits", "--device", "cpu", "--images", "20"),
    ("compare", "digits", "-c", "paper", "--out", "out", "--report", "report.html"),
    ("quantize", "float.onnx", "-o", "int8.onnx"),
    ("run", "int8.onnx", "-c", "paper"),
)
MODEL = """
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
w = numpy_helper.from_array(np.random.default_rng(0).normal(size=(8, 4, 3, 3)).astype("f"), "w")
node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])
graph = helper.make_graph([node], "g", [x], [y], [w])
opset = [helper.make_opsetid("", 17)]
save(helper.make_model(graph, opset_imports=opset, ir_version=9), "float.onnx")
"""


class ReleaseError(Exception):
    """A reason for which this can't be released."""


def project() -> dict[str, object]:
    """The table [project] of pyproject.toml."""
    table: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def versions() -> dict[str, str | None]:
    """The version that each file has."""
    patterns = {
        "vdla/__init__.py": r'__version__ = "(.+)"',
        "CITATION.cff": r"^version: (.+)$",
        "docs/faq.md": r"^  version = \{(.+)\},$",
        "CHANGELOG.md": r"^## \[(\d.+)\] - \d{4}-\d\d-\d\d$",
    }
    result: dict[str, str | None] = {"pyproject.toml": str(project()["version"])}
    for name, pattern in patterns.items():
        match = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
        result[name] = match[1] if match else None
    return result


def check_versions() -> str:
    """The version, which all files have.

    Raises:
        ReleaseError: one has another.
    """
    actual = versions()
    if len(set(actual.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in actual.items())
        raise ReleaseError(f"expected one version, found {listed}")
    return str(actual["pyproject.toml"])


def lowest() -> Iterator[str]:
    """The dependencies with the oldest versions that they may have, as ``numpy==2.0``."""
    for requirement in project()["dependencies"]:  # type: ignore[attr-defined]
        name, _, version = requirement.partition(">=")
        if not version:
            raise ReleaseError(f"expected a lowest version, found {requirement}")
        yield f"{name}=={version}"


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Output of a command.

    Raises:
        ReleaseError: it fails; with its last lines.
    """
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        text = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise ReleaseError(f"{' '.join(map(str, command))}:\n{text}")
    return done.stdout


def made(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel, the latter made from the former, as an index's users build it."""
    run([sys.executable, "-m", "build", "--outdir", folder], ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def check_files(wheel: Path, folder: Path) -> None:
    """Compares the wheel out of the sdist with one that is made of the tree.

    Raises:
        ReleaseError: a file is in one of both alone.
    """
    run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], ROOT)
    (direct,) = folder.glob("*.whl")
    files = [set(zipfile.ZipFile(each).namelist()) for each in (wheel, direct)]
    if difference := sorted(files[0] ^ files[1]):
        raise ReleaseError(f"expected the same files in both wheels, found {difference[:9]} in one")


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The folder of the programs of a new environment with some packages."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    run([programs / "pip", "install", "-q", "--disable-pip-version-check", *packages], ROOT)
    return programs


def check_environment(name: str, packages: Sequence[str]) -> None:
    """Runs networks in a new environment.

    Raises:
        ReleaseError: the packages can't be installed together, or a command fails.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        programs = environment(folder / "env", packages)
        run([programs / "python", "-c", MODEL], folder)
        for command in COMMANDS:
            run([programs / "vdla", *command], folder)
    print(f"{name}: {len(COMMANDS)} commands ran")


def check_release() -> None:
    """All checks, with a line for each.

    Raises:
        ReleaseError: one doesn't hold.
    """
    print(f"version {check_versions()} everywhere")
    if changed := run(["git", "status", "--porcelain"], ROOT):
        raise ReleaseError(f"expected a tree without changes, found\n{changed.rstrip()}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sdist, wheel = made(folder / "dist")
        check_files(wheel, folder / "direct")
        print(f"{sdist.name}, {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, the same files")
        check_environment("lowest versions", [str(wheel), *lowest()])
        check_environment("newest versions", ["--upgrade", str(wheel)])


def measure_user() -> None:
    """Prints what a user waits for, and the space that it takes: packages are downloaded before."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _, wheel = made(folder / "dist")
        run([sys.executable, "-m", "pip", "download", "-q", "-d", folder / "files", wheel], ROOT)
        venv.create(folder / "env", with_pip=True)
        before = _megabytes(folder / "env")
        started = time.monotonic()
        pip = [folder / "env" / "bin" / "pip", "install", "-q", "--disable-pip-version-check"]
        run([*pip, "--no-index", "--find-links", folder / "files", wheel], ROOT)
        installed = time.monotonic()
        run([folder / "env" / "bin" / "vdla", *FIRST_RESULT], folder)
        ended = time.monotonic()
        size = _megabytes(folder / "env") - before
    print(f"install {installed - started:.0f} s after the download, {size:.0f} MB")
    print(f"vdla {' '.join(FIRST_RESULT)}: {ended - installed:.0f} s")


def _megabytes(folder: Path) -> float:
    """Space that the files of a folder take, each once."""
    files = {p.stat().st_ino: p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    return sum(files.values()) / 1e6


def main() -> int:
    """Runs the checks, or measures a user's install."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", action="store_true", help="measure a user's install")
    options = parser.parse_args()
    try:
        measure_user() if options.user else check_release()
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
