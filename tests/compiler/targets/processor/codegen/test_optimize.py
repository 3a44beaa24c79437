"""A long text in parts, optimized by processes: the same numbers, one line where one ends early."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import llvmlite.binding as binding
import numpy as np
import pytest

from vdla import te
from vdla.compiler.targets.processor.codegen import llvm, optimize
from vdla.compiler.targets.processor.codegen.llvm import CodegenError
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.runtime.archive import archive_of
from vdla.runtime.module import HostCode
from vdla.runtime.native import NativeLibrary, host_machine

SIZE = 24
SETTINGS = optimize.Settings("", "", "", quick=True)


def functions(count):
    """So many functions: each multiplies and adds numbers of its own."""
    result = []
    for n in range(count):
        a = te.placeholder((SIZE,), "float32", "a")
        out = te.compute((SIZE,), lambda i, a=a, n=n: a[i] * float(n + 1) + float(n), "out")
        result.append(te.create_prim_func([a], out, f"f{n}"))
    return result


def numbers(code):
    """What each of the functions writes."""
    a, found = np.linspace(-3, 3, SIZE, dtype=np.float32), {}
    for name, function in code.items():
        found[name] = np.zeros(SIZE, np.float32)
        function(a, found[name])
    return found


@pytest.fixture
def started(monkeypatch):
    """The processes that were started, where parts are short and there are two processors."""
    processes, start = [], subprocess.Popen

    def popen(*args, **kwargs):
        processes.append(start(*args, **kwargs))
        return processes[-1]

    monkeypatch.setattr(llvm._texts, "__defaults__", (30,))  # instructions of a part
    monkeypatch.setattr(llvm, "available", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", popen)
    return processes


def program(monkeypatch, text):
    """Has workers be another program, a text of Python."""
    start = subprocess.Popen

    def popen(command, **kwargs):
        return start([command[0], "-c", f"import os, signal, sys\n{text}"], **kwargs)

    monkeypatch.setattr(subprocess, "Popen", popen)


def modules(texts, count=2):
    """Texts, optimized by so many workers."""
    with optimize.Workers(SETTINGS, count) as workers:
        for text in texts:
            workers.add(text)
        return [binding.parse_bitcode(part) for part in workers.results()]


def ended(processes):
    """All have ended, nobody waits for them, and their pipes are closed."""
    for process in processes:
        assert process.returncode is not None
        with pytest.raises(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
        assert process.stdin.closed
        assert process.stdout.closed
        assert process.stderr.closed
    return bool(processes)


def test_processes_compute_what_one_does(started, monkeypatch):
    shared = numbers(llvm.jit(functions(9)))
    assert len(started) == 2
    assert ended(started)
    monkeypatch.setattr(llvm, "available", lambda: 1)
    alone = numbers(llvm.jit(functions(9)))
    assert len(started) == 2
    monkeypatch.setattr(llvm._texts, "__defaults__", (1 << 30,))
    whole = numbers(llvm.jit(functions(9)))
    assert shared.keys() == alone.keys() == whole.keys() == {f"f{n}" for n in range(9)}
    a = np.linspace(-3, 3, SIZE, dtype=np.float32)
    for n, name in enumerate(whole):
        np.testing.assert_array_equal(shared[name], whole[name])
        np.testing.assert_array_equal(alone[name], whole[name])
        np.testing.assert_allclose(whole[name], a * (n + 1) + n, rtol=1e-6, atol=1e-6)


def test_an_object_of_parts_exports_all_functions(started):
    assembly = llvm.compile_assembly(functions(7))
    assert ended(started)
    assert [n for n in range(9) if f"\nf{n}:" in assembly] == list(range(7))


def test_object_files_of_parts_are_one_program(started, monkeypatch):
    """Each has functions of its own, constants in memory and calls of what the last one has."""
    shared = llvm.compile_objects(functions(9))
    assert ended(started)
    assert len(shared) > 2
    monkeypatch.setattr(llvm, "available", lambda: 1)
    assert llvm.compile_objects(functions(9)) == shared
    library = NativeLibrary(HostCode(archive_of(shared), *host_machine(), {}))
    a, expected = np.linspace(-3, 3, SIZE, dtype=np.float32), numbers(llvm.jit(functions(9)))
    for name, values in expected.items():
        out = np.zeros(SIZE, np.float32)
        pointers = (ctypes.c_void_p * 3)(a.ctypes.data, out.ctypes.data, None)
        library.function(name, ctypes.POINTER(ctypes.c_void_p))(pointers)
        np.testing.assert_array_equal(out, values)


def test_a_short_text_is_one_object_file():
    assert len(llvm.compile_objects(functions(9))) == 1


def test_a_short_text_starts_no_process(started, monkeypatch):
    monkeypatch.setattr(llvm._texts, "__defaults__", (llvm.PART_INSTRUCTIONS,))
    assert numbers(llvm.jit(functions(2))).keys() == {"f0", "f1"}
    assert started == []


@pytest.mark.parametrize("most", [1, 30, 60, 5000])
def test_parts_have_all_functions_once(most):
    texts = list(llvm._texts(iter(functions(9)), NATIVE, most))
    assert len(texts) == {1: 9, 5000: 1}.get(most, len(texts))
    entries = [f'define void @"f{n}"(' for n in range(9)]
    assert [sum(text.count(entry) for text in texts) for entry in entries] == [1] * 9


SILENT = "it ended without a word"
EARLY = {
    "fails": ("sys.exit('first\\nno memory')", "no memory"),
    "ends": ("", SILENT),
    "ends while it reads": ("sys.stdin.buffer.read(100); sys.exit('no memory')", "no memory"),
    "ends while it writes": ("sys.stdout.buffer.write(bytes([9] + 7 * [0]) + b'half')", SILENT),
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", SILENT),
}


@pytest.mark.parametrize(("text", "reason"), EARLY.values(), ids=EARLY)
def test_a_process_that_ends_early(text, reason, started, monkeypatch):
    program(monkeypatch, text)
    with pytest.raises(CodegenError) as found:
        llvm.jit(functions(9))
    assert str(found.value) == f"LLVM: expected a process to compile, found {reason}"
    assert ended(started)


def test_a_part_too_long_for_a_pipe(started, monkeypatch):
    """It is in the buffer of a pipe that nobody reads when the process is closed."""
    program(monkeypatch, "sys.exit('no memory')")
    with pytest.raises(RuntimeError, match=r"^no memory$"):
        modules(["; " * (1 << 20)] * 4)
    assert ended(started)


def test_a_text_that_is_broken_is_named_in_one_line(started):
    with pytest.raises(RuntimeError) as found:
        modules(["define void @f() { ret void }", "define nonsense"])
    assert str(found.value).startswith("LLVM IR parsing error <string>:1:8: error: expected type")
    assert "\n" not in str(found.value)
    assert ended(started)


def test_parts_come_back_in_their_order(started):
    texts = [f"define i32 @f{n}() {{ ret i32 {n} }}" for n in range(7)]
    names = [[f.name for f in module.functions] for module in modules(texts, 3)]
    assert names == [[f"f{n}"] for n in range(7)]
    assert 1 <= len(started) <= 3
    assert ended(started)


def test_an_error_in_the_block_ends_the_processes(started):
    def fails():
        with optimize.Workers(SETTINGS, 2) as workers:
            for n in range(4):
                workers.add(f"define i32 @f{n}() {{ ret i32 {n} }}")
            workers.parts[0].result()
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert ended(started)


def test_the_program_ends_with_its_input():
    command = [sys.executable, "-P", optimize.__file__, '{"triple": "", "cpu": "", "features": "", '
               '"quick": true}', optimize.BITCODE]  # fmt: skip
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
