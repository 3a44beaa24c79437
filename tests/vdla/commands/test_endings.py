"""How the command ends where a terminal, a disk, memory or a user's patience does."""

from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
import time

import pytest

from vdla.commands import endings

VDLA = (sys.executable, "-m", "vdla")
SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            print("importing", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
from vdla.__main__ import main
main()
"""


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line of bash, in which $vdla is the command; the exit code is the command's."""
    command = f'vdla="{" ".join(VDLA)}"; {line}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)


def test_an_interrupt_while_vdla_is_imported():
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "vdla: interrupted; what was written is whole\n")


def test_an_interrupt_while_a_library_in_c_is_set_up(vdla, monkeypatch):
    """The library says that it couldn't be, because of the interrupt."""

    def interrupted(arguments):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("vdla.commands.cli._invoke", interrupted)
    done = vdla("models")
    assert (done.code, done.err) == (130, "vdla: interrupted; what was written is whole\n")


@pytest.mark.parametrize("pause", [0.5, 0.9])
def test_an_interrupt_at_some_time_of_a_command(pause):
    process = subprocess.Popen(
        [*VDLA, "run", "digits", "-c", "tiny"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    # CPython ends by the signal itself where the interrupt came while it ran a string, as a
    # dataclass's methods are made: a shell calls that 130, too.
    assert process.returncode in (0, 130, -signal.SIGINT), err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("$vdla models | true", 141, ""),
        ("$vdla --help | true", 141, ""),
        ("$vdla isa doc | head -1 > /dev/null", 0, ""),
        ("$vdla configs nosuch 2> /dev/full", 2, ""),
        ("$vdla configs >&-", 2, "vdla: stdout: expected to be open, found it closed\n"),
        ("$vdla configs > /dev/full", 2,
         "vdla: stdout: expected a place to write to, found No space left on device\n"),
        ("$vdla configs paper --json > /dev/full", 2,
         "vdla: stdout: expected a place to write to, found No space left on device\n"),
    ],
)  # fmt: skip
def test_outputs_that_end(line, code, text):
    done = shell(line)
    assert (done.returncode, done.stderr) == (code, text)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (MemoryError(), 2, "expected enough memory, found an allocation that failed"),
        (MemoryError("Unable to allocate 8 TiB"), 2,
         "expected enough memory, found Unable to allocate 8 TiB"),
        (ImportError("libx.so: failed to map segment from shared object"), 2,
         "expected enough memory, found libx.so: failed to map segment from shared object"),
        (OSError(errno.ENOENT, "No such file", "x.onnx"), 2,
         "x.onnx: expected a file that can be used, found No such file"),
        (KeyboardInterrupt(), 130, "interrupted; what was written is whole"),
    ],
)  # fmt: skip
def test_errors_that_are_no_bugs(vdla, monkeypatch, error, code, text):
    def ended(*args):
        raise error

    monkeypatch.setattr("vdla.commands.catalog.models", ended)
    done = vdla("models")
    assert (done.code, done.err) == (code, f"vdla: {text}\n")


@pytest.mark.parametrize("error", [ImportError("no module x"), TypeError("x")])
def test_bugs_show_where_they_come_from(vdla, monkeypatch, error):
    def ended(*args):
        raise error

    monkeypatch.setattr("vdla.commands.catalog.models", ended)
    with pytest.raises(type(error)):
        vdla("models")


def test_a_limit_of_memory_is_named(monkeypatch, capsys):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (400 << 20, 400 << 20))
    assert endings.out_of_memory(MemoryError()) == 2
    assert endings.interrupted() == 130
    assert capsys.readouterr().err == (
        "vdla: expected enough memory within the limit of 400 MiB (ulimit -v), found an allocation "
        "that failed\n"
        "vdla: interrupted; what was written is whole; or OpenBLAS has found no memory within the "
        "limit of 400 MiB (ulimit -v)\n"
    )
