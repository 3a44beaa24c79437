"""LLVM's passes over the text of a module; a long text in parts, by several processes.

llvmlite has one lock for all calls of LLVM, so Python's threads can't run it side by side. Parts of
a long text are compiled by processes while the rest is still being written: each is this file run
as a program, which reads parts from its standard input and writes an object file or LLVM's bitcode
to its standard output, each behind its length.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import IO

import llvmlite.binding as llvm

from vdla.compiler.targets.llvm_passes import run_pipeline

LENGTH_BYTES = 8
MOST_WORKERS = 8
BITCODE, OBJECT = "bitcode", "object"  # what becomes of a part
FORMS: dict[str, Callable[[llvm.ModuleRef, llvm.TargetMachine], bytes]] = {
    BITCODE: lambda module, machine: module.as_bitcode(),
    OBJECT: lambda module, machine: machine.emit_object(module),
}


@dataclass(frozen=True)
class Settings:
    """Machine that LLVM is to optimize for: a triple, "" for this machine, a CPU and its features.

    ``quick`` leaves out what takes it long. ``fixed`` code stays where it is linked.
    """

    triple: str
    cpu: str
    features: str
    quick: bool
    abi: str = ""
    code_model: str = "jitdefault"
    fixed: bool = False

    def machine(self, reloc: str = "default") -> llvm.TargetMachine:
        """LLVM's description of the target, with which it optimizes and emits.

        Raises:
            RuntimeError: LLVM doesn't know the triple.
        """
        _initialize(native=not self.triple)
        target = llvm.Target.from_triple(self.triple or llvm.get_process_triple())
        native = not self.triple
        features = self.features or (llvm.get_host_cpu_features().flatten() if native else "")
        cpu = self.cpu or (llvm.get_host_cpu_name() if native else "")
        return target.create_target_machine(
            cpu=cpu, features=features, opt=3, reloc="static" if self.fixed else reloc,
            codemodel=self.code_model, abiname=self.abi,
        )  # fmt: skip


@cache
def _initialize(native: bool) -> None:
    """Makes LLVM know this machine's processor, or all that it was built for; once per process."""
    if native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def optimized(text: str, settings: Settings, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The parsed module after LLVM's -O3 pipeline for ``machine``, or the -O1 one."""
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=1 if settings.quick else 3)
    tuning.loop_vectorization = not settings.quick
    tuning.slp_vectorization = False  # it leads to wrong numbers on AVX2: decision 39
    tuning.loop_unrolling = False  # schedules and the emitter unroll what is worth it
    run_pipeline(module, machine, tuning)
    return module


def linked(modules: Iterable[llvm.ModuleRef]) -> llvm.ModuleRef:
    """One module of several, which are gone then."""
    first, *others = modules
    for other in others:
        first.link_in(other)
    return first


def compiled(text: str, settings: Settings, machine: llvm.TargetMachine, form: str) -> bytes:
    """A part that is optimized, in one of FORMS."""
    return FORMS[form](optimized(text, settings, machine), machine)


class Workers:
    """Processes that compile parts of a module to a form, as a context; ``count`` at most."""

    def __init__(self, settings: Settings, count: int, form: str = BITCODE) -> None:
        self.settings, self.form, self.own = settings, form, threading.local()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads = ThreadPoolExecutor(min(count, MOST_WORKERS))
        self.parts: list[Future[bytes]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.shutdown(cancel_futures=True)
        for process in self.processes:
            with suppress(BrokenPipeError), process:  # its pipes are closed, and it ends
                pass

    def add(self, text: str) -> None:
        """Has a worker compile a part."""
        self.parts.append(self.threads.submit(self._compiled, text.encode()))

    def results(self) -> list[bytes]:
        """The compiled parts, in the order in which they were added.

        Raises:
            RuntimeError: a worker ended early.
        """
        return [part.result() for part in self.parts]

    def _compiled(self, text: bytes) -> bytes:
        """A part in its form, by this thread's process."""
        process = getattr(self.own, "process", None) or self._start()
        try:
            _write(process.stdin, text)
            return _read(process.stdout)
        except (BrokenPipeError, EOFError):
            assert process.stderr is not None
            lines = process.stderr.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(lines[-1] if lines else "it ended without a word") from None

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", __file__, json.dumps(asdict(self.settings)), self.form]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        self.processes.append(process)
        self.own.process = process
        return process


def _write(stream: IO[bytes] | None, data: bytes) -> None:
    """Writes data behind its length."""
    assert stream is not None
    stream.write(len(data).to_bytes(LENGTH_BYTES, "little"))
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes] | None) -> bytes:
    """Reads data behind its length.

    Raises:
        EOFError: there is none, or not as much.
    """
    assert stream is not None
    size = int.from_bytes(stream.read(LENGTH_BYTES), "little")
    data = stream.read(size)
    if not size or len(data) < size:
        raise EOFError
    return data


def main() -> None:
    """Compiles parts until there are no more."""
    settings, form = Settings(**json.loads(sys.argv[1])), sys.argv[2]
    machine = settings.machine(reloc="pic")
    while True:
        try:
            text = _read(sys.stdin.buffer).decode()
        except EOFError:
            return
        try:
            result = compiled(text, settings, machine, form)
        except RuntimeError as error:
            sys.exit(" ".join(str(error).split()))
        _write(sys.stdout.buffer, result)


if __name__ == "__main__":
    main()
