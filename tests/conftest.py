"""Shared by all tests: the command, run in this process; every program's text parses back, and
every object that a command prints fits its schema."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("vdla", deadline=None, max_examples=60)  # a slow machine is no fault
settings.load_profile("vdla")
sys.path.insert(0, str(Path(__file__).parent / "support"))  # the tests are no package


OLD_POCL = "unknown target CPU 'generic'"  # its LLVM was made before this processor


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout."""
        return json.loads(self.out)


@pytest.fixture
def vdla(monkeypatch, capsys):
    """Runs ``vdla ARGS``, as where no terminal says how wide it is: pytest-xdist sets COLUMNS."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args) -> Done:
        from vdla.commands.cli import main

        monkeypatch.setattr(sys, "argv", ["vdla", *map(str, args)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        if OLD_POCL in err:
            pytest.skip(f"pocl: {OLD_POCL}")
        return Done(code, out, err)

    return run


@pytest.fixture
def gpu():
    """A GPU, or what passes for one; the test is skipped where there is none."""
    pytest.importorskip("pyopencl")
    from vdla.runtime.errors import DeviceError
    from vdla.runtime.gpu.opencl import find_gpu
    from vdla.runtime.kernels import OPENCL, Kernels

    try:
        device = find_gpu()
        device.load(Kernels(OPENCL, "", "__kernel void nothing(void) {}", {}), 0)
    except DeviceError as error:
        pytest.skip(str(error))
    return device


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that pocl couldn't compile a kernel for, as it can't any on this machine, is
    skipped."""
    report = yield
    if report.failed and OLD_POCL in (report.longreprtext + report.caplog + report.capstderr):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: pocl: {OLD_POCL}")
    return report


@pytest.fixture(scope="session")
def compiled_cuda(tmp_path_factory):
    """The library of a driver of CUDA's for tests."""
    from cuda_driver import compile_fake

    return compile_fake(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def cuda(compiled_cuda, tmp_path, monkeypatch):
    """A driver of CUDA's for tests, in place of this machine's."""
    from cuda_driver import FakeCuda

    from vdla.runtime.gpu import libcuda

    fake = FakeCuda(compiled_cuda, tmp_path)
    monkeypatch.setattr(libcuda, "LIBRARY", fake.path)
    monkeypatch.delenv("VDLA_GPU", raising=False)
    return fake


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """What takes long is made once for all tests: ``once(name, make)`` gives what ``make`` gave."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers

    def shared(name, make):
        path = folder / f"once-{name}"
        with open(f"{path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_bytes(pickle.dumps(make()))
        return pickle.loads(path.read_bytes())

    return shared


@pytest.fixture(scope="session")
def resnet18(once):
    """ResNet-18, compiled for ``paper``."""
    from vdla import api
    from vdla.runtime import Module

    return Module.from_bytes(once("resnet18", lambda: api.compile("resnet18").to_bytes()))


@pytest.fixture(scope="session")
def on_cpu(once):
    """``on_cpu(name)`` is a bundled network, compiled for the processor alone."""
    from vdla import api
    from vdla.runtime import Module

    def module(name):
        return Module.from_bytes(
            once(f"{name}-cpu", lambda: api.compile(name, device="cpu").to_bytes())
        )

    return module


@pytest.fixture(scope="session")
def convolutions(once):
    """The comparison of ResNet-18's twelve convolutions with one virtual thread and with two."""
    from vdla import api

    return once("convolutions", lambda: api.compare("resnet18-convs"))


@pytest.fixture(scope="session", autouse=True)
def every_program_reads_back():
    """Whatever programs and graphs the tests compile, their texts parse back."""
    from readback import every_program_reads_back

    with every_program_reads_back():
        yield


@pytest.fixture(scope="session", autouse=True)
def every_object_fits():
    """Whatever commands the tests run in this process, their JSON fits the schemas."""
    from schemas import every_object_fits

    with every_object_fits():
        yield


@pytest.fixture(autouse=True)
def denormal_numbers_stay():
    """Fails where a test leaves this thread taking denormal numbers for zeros, which changes what
    every later one computes, LLVM's own floats among it."""
    yield
    smallest = np.array([1e-45], np.float32)
    assert (smallest * np.float32(3))[0] > 0, "this thread takes denormal numbers for zeros"
