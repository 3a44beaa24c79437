"""Packaged networks as programs: ``run_raw.c`` around them, compiled by the system or by zig."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import vdla
from vdla.runtime.module import Module

SOURCE = Path(__file__).with_name("run_raw.c")
EMULATED = {  # a target: zig's name of it, and what runs its programs
    "aarch64-linux": ("aarch64-linux-musl", "qemu-aarch64"),
    "arm-linux": ("arm-linux-musleabihf", "qemu-arm"),
    "riscv64-linux": ("riscv64-linux-musl", "qemu-riscv64"),
}


def c_compiler() -> str:
    """This system's compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler of C")
    return compiler


def emulation(target: str) -> tuple[list[str], list[str]]:
    """A compiler for another machine, and what runs what it makes."""
    zig, qemu = EMULATED[target]
    if find_spec("ziglang") is None or shutil.which(qemu) is None:
        pytest.skip(f"no ziglang or no {qemu}: see `make qemu`")
    return [sys.executable, "-m", "ziglang", "cc", "-target", zig, "-static"], [qemu]


def program(name: str, folder: Path, compiler: list[str], *flags: str) -> Path:
    """The program around a package of a name in a folder."""
    path = folder / "program"
    own = [
        f'-DNAME_H="{name}.h"',
        f"-DNAME_OPEN={name}_open",
        f"-DNAME_MEMORY={name.upper()}_MEMORY",
    ]
    sources = [*folder.glob("*.[cs]"), *folder.glob("*.a"), *folder.glob("*.so")]
    command = [*compiler, "-Wall", "-Werror", "-O1", f"-I{folder}", *own, *flags, SOURCE, *sources]
    subprocess.run([*command, "-o", path, "-lm", "-lpthread"], check=True)
    return path


def raw(module: Module, inputs) -> bytes:
    """The bytes of inputs, in order."""
    return b"".join(np.ascontiguousarray(inputs[name]).tobytes() for name in module.inputs)


def wanted(module: Module, inputs) -> bytes:
    """The bytes of the outputs that Python's executor gives."""
    outputs = vdla.run(module, inputs).outputs
    return b"".join(np.ascontiguousarray(value).tobytes() for value in outputs.values())


def run(command: list, given: bytes, **more) -> bytes:
    """The bytes that a program writes."""
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout
