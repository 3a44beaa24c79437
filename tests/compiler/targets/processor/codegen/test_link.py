"""Shared objects for other processors, with whichever linkers are here."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace
from importlib.util import find_spec

import pytest

from vdla.compiler import te
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.codegen import link
from vdla.compiler.targets.processor.codegen.llvm import compile_object
from vdla.compiler.targets.processor.description.processor import (
    AMX,
    AVX2,
    AVX512,
    DOTPROD,
    I8MM,
    NATIVE,
    NEON32,
    NEON64,
    PROCESSORS,
    SCALAR,
    SCALAR_UNFUSED,
    SIMD128,
    SSE,
    Processor,
    find_processor,
)
from vdla.support.install import pip_install

OTHERS = [name for name, target in PROCESSORS.items() if target != NATIVE]
LOADED = [name for name in OTHERS if PROCESSORS[name].shared]
MACHINES = {
    "x86-64-v3": 62, "x86-64-v4": 62, "sapphirerapids": 62,
    "cortex-a9": 40, "cortex-a53": 183, "cortex-a72": 183,
    "cortex-a76": 183, "neoverse-v1": 183,
    "x86_64": 62, "aarch64-linux": 183, "arm-linux": 40, "riscv64-linux": 243,
}  # fmt: skip
FLAGS_AT = {40: 36, 243: 48}  # where e_flags are, by the machine
FLAGS = {
    40: 0x400,  # EF_ARM_ABI_FLOAT_HARD
    243: 5,  # EF_RISCV_RVC, EF_RISCV_FLOAT_ABI_DOUBLE
}


def rounded(target):
    """An object file whose function calls the C library, and allocates."""
    a = te.placeholder((99, 99), "float32", "a")
    b = te.compute((99, 99), lambda y, x: te.rint(a[x, y]), "b")
    out = te.compute((99, 99), lambda y, x: b[x, y] + te.tanh(b[y, x]), "out")
    return compile_object([te.create_prim_func([a], out, "rounded")], target)


def present(linker, target):
    """Whether a linker is here."""
    if linker == "ziglang":
        return find_spec("ziglang")
    return shutil.which(f"{target.gnu}-ld" if linker == "gnu" else linker)


@pytest.mark.parametrize("linker", ["gnu", "ld.lld", "ziglang"])
@pytest.mark.parametrize("name", LOADED)
def test_shared_objects(name, linker, monkeypatch):
    target = find_processor(name)
    if not present(linker, target):
        pytest.skip(f"no {linker}")
    which = shutil.which
    wanted = f"{target.gnu}-ld" if linker == "gnu" else linker
    monkeypatch.setattr(shutil, "which", lambda tool: which(tool) if tool == wanted else None)
    made = link.link_shared(rounded(target), target)
    kind, machine = struct.unpack_from("<HH", made, 16)
    assert (kind, machine) == (3, MACHINES[name])  # ET_DYN
    assert b"\0rounded\0" in made
    assert b"\0malloc\0" in made
    assert b"__aeabi_unwind" not in made
    if machine in FLAGS:
        (flags,) = struct.unpack_from("<I", made, FLAGS_AT[machine])
        assert flags & FLAGS[machine] == FLAGS[machine]


@pytest.mark.parametrize("name", LOADED)
def test_no_linker(name, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    target = find_processor(name)
    with pytest.raises(TargetError) as caught:
        link.find_linker(target)
    gnu = {
        62: "x86_64-linux-gnu", 40: "arm-linux-gnueabihf", 183: "aarch64-linux-gnu",
        243: "riscv64-linux-gnu",
    }[MACHINES[name]]  # fmt: skip
    assert str(caught.value) == (
        f"target {name}: expected a linker ({gnu}-ld, ld.lld or ziglang), found none; "
        f"install with: apt-get install binutils-{gnu.replace('_', '-')}, "
        f"or {pip_install('arm')}"
    )


def test_a_linker_that_refuses(monkeypatch, tmp_path):
    target = find_processor("cortex-a9")
    tool = tmp_path / f"{target.gnu}-ld"
    tool.write_text("#!/bin/sh\necho first >&2\necho second >&2\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(TargetError) as caught:
        link.link_shared(b"", target)
    assert str(caught.value) == f"target cortex-a9: expected {tool} to link, found: first"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "cortex-a8",
            "target: expected one of native, x86-64-v3, x86-64-v4, sapphirerapids, cortex-a9, "
            "cortex-a53, cortex-a72, cortex-a76, neoverse-v1, x86_64, aarch64-linux, arm-linux, "
            "riscv64-linux, thumbv7em, wasm32, found cortex-a8",
        ),
        ("native,fast", "target: expected native or native,-winograd, found native,fast"),
    ],
)
def test_unknown_processors(name, line):
    with pytest.raises(TargetError) as caught:
        find_processor(name)
    assert str(caught.value) == line


def test_winograd_switched_off():
    assert find_processor("native,-winograd") == Processor(winograd=False)
    assert find_processor("native").winograd


def test_kinds_of_processors():
    """Records of schedules are found by these."""
    assert {name: find_processor(name).kind for name in OTHERS} == {
        "x86-64-v3": "x86-64-v3", "x86-64-v4": "x86-64-v4", "sapphirerapids": "x86-64-v4 vnni",
        "cortex-a9": "armv7 neon",
        "cortex-a53": "armv8", "cortex-a72": "armv8", "cortex-a76": "armv8 dotprod",
        "neoverse-v1": "armv8 i8mm", "x86_64": "x86-64-v2",
        "aarch64-linux": "armv8", "arm-linux": "armv7 neon", "riscv64-linux": "riscv64",
        "thumbv7em": "armv7e-m", "wasm32": "wasm32 simd128",
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_objects_suit_programs_without_shared_libraries(tmp_path):
    """The code model of shared objects asks for addresses of functions that such a program lacks:
    GNU's linker refuses R_X86_64_GOT64 of memcpy there."""
    target = find_processor("x86-64-v3")

    def relocations(target):
        path = tmp_path / "code.o"
        path.write_bytes(rounded(target))
        done = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True)
        return done.stdout

    assert "R_X86_64_GOT64" in relocations(target)
    assert "R_X86_64_GOT64" not in relocations(replace(target, shared=False))


def test_names_of_processors():
    """Settings that aren't the machine's leave a processor its name."""
    for name in OTHERS:
        assert replace(find_processor(name), shared=False, winograd=False).name == name
    assert Processor("mips-unknown-linux-gnu", "m14k").name == "m14k"
    assert Processor("mips-unknown-linux-gnu").name == "mips"


def test_vectors_of_processors():
    found = {name: find_processor(name).vectors for name in OTHERS}
    assert found == {
        "x86-64-v3": AVX2, "x86-64-v4": AVX512, "sapphirerapids": AMX,
        "cortex-a9": NEON32, "cortex-a53": NEON64,
        "cortex-a72": NEON64, "cortex-a76": DOTPROD, "neoverse-v1": I8MM, "x86_64": SSE,
        "aarch64-linux": NEON64, "arm-linux": NEON32,
        "riscv64-linux": SCALAR, "thumbv7em": SCALAR_UNFUSED, "wasm32": SIMD128,
    }  # fmt: skip
    assert Processor("x86_64-unknown-linux-gnu", "x86-64", "").vectors == SSE
    assert Processor("x86_64-unknown-linux-gnu", "x86-64", "+avx2").vectors == SSE  # no fma
