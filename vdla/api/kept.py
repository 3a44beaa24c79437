"""Modules that were compiled for a run, kept in the cache folder for the next run of the same.

A module is taken when all that decided it is as it was: the ONNX file, the config, the options that
say how it is compiled, the compiler's sources, this machine's processor, the packages that take
part. Not kept is what depends on more than that: schedules that the user tuned, another package's
target, operators that this process registered, a host whose time is modelled, weights beside the
file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from vdla.isa.config import Config
from vdla.names.models import model_file
from vdla.options import Run
from vdla.options.spelling import spelling
from vdla.runtime.errors import ModuleError
from vdla.runtime.module import Module
from vdla.runtime.plan import HOSTS
from vdla.runtime.threads import available
from vdla.runtime.values import described
from vdla.support.files import cache_folder, digest_of_file, is_sealed, keep_newest, seal

SOURCES = ("vdla", *(f"vdla.{room}" for room in ("boards", "compiler", "isa", "runtime", "sim")))
NO_SOURCES = (".pyc", ".onnx", ".npz")  # ends of files in these folders that decide no module
PACKAGES = ("numpy", "onnx", "onnxruntime")
MOST_BYTES = 1 << 30  # of all modules that are kept; the longest unused go first


def compiled(model: str | Path, config: Config, options: Run) -> Module:
    """An ONNX model, compiled for the device that is to run it, now or before.

    Raises:
        As ``vdla.compile``.
    """
    path = model_file(model)
    place = _place(path, config, options)
    if place is not None and (module := _kept(place)):
        return module
    from vdla.api.models import compile_to_run  # what compiles takes most of a second to import

    module = compile_to_run(path, config, options)
    if place is not None and not _has_files_beside(path):
        with suppress(OSError, ModuleError):  # a folder that can't be written, a full disk
            _keep(module, place)
    return module


def _place(path: Path, config: Config, options: Run) -> Path | None:
    """Path of the module, which need not exist; None where it isn't kept."""
    plain = options.records is None and options.target is None and options.host in HOSTS
    plain = plain and options.calibration is None  # a file, which may change
    user = sys.modules.get("vdla.compiler.user")
    if not plain or options.placement != "capability" or (user and user.REGISTERED):
        return None
    if not path.is_file():  # what is wrong with it is for the compiler to say
        return None
    named = {f.name for f in fields(options) if (how := spelling(f)) and how.compiles}
    named |= {"device", "board"}  # a board's records go before the simulator's
    values = {name: getattr(options, name) for name in sorted(named)}
    given = options.inputs or {}
    decided = {
        "options": {name: repr(value) for name, value in values.items()},
        "inputs": {name: described(value) for name, value in given.items()},
        "config": config.to_dict(),
        "file": digest_of_file(path),
        "here": facts(),
    }
    key = hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()
    return cache_folder("modules") / f"{key[:24]}.vdla"


def _kept(place: Path) -> Module | None:
    """The module that is kept there, whole."""
    if not is_sealed(place):
        return None
    try:
        result = Module.load(place, sealed=True)
    except ModuleError:
        return None
    with suppress(OSError):
        os.utime(place)  # used just now
    return result


def _keep(module: Module, place: Path) -> None:
    """Keeps a module, and lets go those unused the longest if there are too many."""
    place.parent.mkdir(parents=True, exist_ok=True)
    module.save(place)
    seal(place)
    keep_newest(place.parent, "*.vdla", MOST_BYTES)


def _has_files_beside(path: Path) -> bool:
    """Whether an ONNX file may have tensors in other files, wherever it uses them: their names
    stand beside this word."""
    return b"location" in path.read_bytes()


@cache
def facts() -> list[str]:
    """Facts that decide a module on this machine, whatever the model: a digest of the sources,
    versions, the processor."""
    result = hashlib.sha256()
    for name in SOURCES:
        for folder in import_module(name).__path__:
            for path in _files(folder):
                result.update(Path(path).read_bytes())
    specs = [find_spec(name) for name in PACKAGES]
    packages = [str(spec.origin and os.stat(spec.origin)) for spec in specs if spec]
    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    versions = sys.version, platform.machine(), llvmlite.__version__
    return [result.hexdigest(), *packages, *processor, *versions, str(available())]


def _files(folder: str) -> Iterator[str]:
    """The files of a folder that may decide a module, by name."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif not entry.name.endswith(NO_SOURCES):
            yield entry.path
