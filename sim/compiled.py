"""Loops that numba compiles, once for a version of the sources, and what is said meanwhile."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
from numba.core import event
from numba.extending import register_jitable

from vdla import isa
from vdla.support.files import SEAL, cache_folder, digest, is_sealed, seal, seal_of
from vdla.support.progress import report

F = TypeVar("F", bound=Callable[..., Any])

OWNERS = {".checker.": "checker", ".compiler.": "compiler"}  # of loops by a part of their names

_loops: set[str] = set()  # the names of all that numba shall compile
_cached: list[Any] = []  # those that it keeps in its cache


def _key_cache() -> None:
    """Keys numba's cache by the sources of the rooms it compiles.

    numba notices a change of the file a function stands in, not of the files whose functions and
    constants it inlines; without this an edited machine would run as the one before.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = cache_folder("numba", digest((Path(__file__).parent, Path(isa.__file__).parent)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home to write to
        folder = Path(tempfile.mkdtemp(prefix="vdla-"))
    numba.config.CACHE_DIR = str(folder)


def compile_once(what: str, run: Callable[[], object]) -> None:
    """Calls ``run``, which compiles some loops or fetches them from numba's cache.

    numba's cache mixes up entries that two processes write at once, so one compiles at a time. When
    it is done it seals every entry and leaves a mark in the cache; who finds the mark, and every
    sealed entry whole, only reads and waits for nobody. Damaged entries are compiled again: numba
    would run what stands in them. Where numba is switched off, nothing is compiled.
    """
    if numba.config.DISABLE_JIT:
        run()
        return
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or CACHE_DIR)
    mark = folder / f"{what}-{_circumstances(what)}.compiled"
    if mark.exists() and all(map(is_sealed, _sealed())):
        run()
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / "lock", what), event.install_listener("numba:compile", _Reporter(what)):
        for entry in {*_entries(), *_sealed()}:
            if not is_sealed(entry):
                entry.unlink(missing_ok=True)
                seal_of(entry).unlink(missing_ok=True)
        run()
        for entry in _entries():
            if not is_sealed(entry):
                seal(entry)
        mark.touch()


def _entries() -> set[Path]:
    """Every file that numba keeps of our loops."""
    return {path for ending in ("nbi", "nbc") for path in _files(f"*.{ending}")}


def _sealed() -> set[Path]:
    """The entries that have been sealed, whether they are still there or not."""
    return {path.with_suffix("") for path in _files(f"*{SEAL}")}


def _files(pattern: str) -> Iterator[Path]:
    """Files in the folders of numba's cache that hold our loops."""
    for folder in {Path(loop.stats.cache_path) for loop in _cached}:
        yield from folder.glob(pattern)


def _owner(loop: str) -> str:
    """The first word of what a loop is compiled with."""
    return next((what for part, what in OWNERS.items() if part in loop), "simulator")


class _Reporter(event.Listener):  # type: ignore[misc]  # numba has no types
    """Reports how many of the loops of ``what`` numba has compiled."""

    def __init__(self, what: str) -> None:
        self.what = _compiling(what)
        self.left = {name for name in _loops if _owner(name) == what.split()[0]}
        self.total = len(self.left)

    def on_start(self, event: event.Event) -> None:
        """A loop begins."""

    def on_end(self, event: event.Event) -> None:
        """A loop is compiled; numba's own are not counted."""
        self.left.discard(_name(event.data["dispatcher"].py_func))
        report(self.what, self.total - len(self.left), self.total)


@contextmanager
def _lock(path: Path, what: str) -> Iterator[None]:
    """Held by the one process that compiles; who waits says why."""
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell(f"waiting for another process that compiles; then the {what} is compiled")
            fcntl.flock(lock, fcntl.LOCK_EX)
        _tell(_compiling(what))
        yield


def _compiling(what: str) -> str:
    return f"compiling the {what}, once for this version"


def _tell(text: str) -> None:
    """Says it to the listener, else on stderr: a log without a word looks as if nothing went on."""
    if not report(text, 0, 1):
        print(f"vdla: {text}", file=sys.stderr, flush=True)


def _circumstances(what: str) -> str:
    """Digits over all that decides whether numba takes a cached loop: sources, itself, the CPU."""
    own = [loop.py_func for loop in _cached if _owner(_name(loop.py_func)) == what.split()[0]]
    sources = {*Path(__file__).parent.rglob("*.py"), *(Path(f.__code__.co_filename) for f in own)}
    files = [(str(p), p.stat().st_mtime_ns) for p in sorted(sources) if p.exists()]
    cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    text = repr((numba.__version__, sys.version, cpu, files))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_key_cache()
CACHE_DIR = numba.config.CACHE_DIR  # numba forgets it when the environment changes


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def jit(function: F) -> F:
    """Compiles a loop with numba and caches the machine code on disk."""
    _loops.add(_name(function))
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    _cached.append(compiled)
    return compiled


def jit_lean(function: F) -> F:
    """Compiles a loop that makes no array and never divides by 0, leaner than ``jit`` does.

    Numba counts references to arrays at every call, inlined or not, and took nine tenths of the
    time for it; it looks at every divisor, which took a twentieth.
    """
    _loops.add(_name(function))
    compiled: F = numba.njit(cache=True, nogil=True, _nrt=False, error_model="numpy")(function)
    _cached.append(compiled)
    return compiled


def inline(function: F) -> F:
    """Lets compiled loops inline a helper; called from Python it is the plain function.

    Numba compiles it where a loop calls it, without entries from Python and C: nobody uses them,
    and they took a third of the time. Like a lean loop it makes no array and divides by no 0.
    """
    _loops.add(_name(function))
    entries = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    lean = {"_nrt": False, "error_model": "numpy"}
    helper: F = register_jitable(nogil=True, forceinline=True, **lean, **entries)(function)
    return helper


def shared(function: F) -> F:
    """Compiles a helper once for all of its callers, where ``inline`` would copy it into each.

    As a loop of its own it would be compiled anew for every constant that it is called with.
    """
    _loops.add(_name(function))
    entries = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    helper: F = register_jitable(nogil=True, **entries)(function)
    return helper
