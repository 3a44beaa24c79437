"""Devices of OpenCL: which is taken, what it refuses, and modules that run there."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from gpus import SOURCE, Error, MemoryError_, RuntimeError_, gpu_module, handle, kernels

from vdla.analysis.profile import write_timeline
from vdla.runtime import DeviceError, Executor, Module, ModuleError, TensorInfo
from vdla.runtime.gpu import opencl
from vdla.runtime.gpu.opencl import INSTALL, OpenClGpu, find_gpu
from vdla.runtime.kernels import PTX, KernelFunction
from vdla.runtime.plan import Gpu
from vdla.support.install import pip_install

X = np.array([1, 2, 3, 4], np.float32)


def device_error(call):
    with pytest.raises(DeviceError) as caught:
        call()
    return str(caught.value)


# Which device -------------------------------------------------------------------------------------


def test_gpus_come_first(driver):
    driver([handle("slow", kind=2)], [handle("Oclgrind Simulator", "Oclgrind")], [handle("fast")])
    assert find_gpu().name == "fast (Some)"
    driver([handle("Oclgrind Simulator", "Oclgrind")], [handle("slow", kind=2)])
    assert find_gpu().name == "slow (Some)"


def test_a_part_of_a_name_chooses(driver, monkeypatch):
    driver([handle("slow", kind=2), handle("fast")], [handle("Simulator", "Oclgrind")])
    for wanted, name in (("SLO", "slow (Some)"), ("oclgrind", "Simulator (Oclgrind)")):
        monkeypatch.setenv("VDLA_GPU", wanted)
        assert find_gpu().name == name
    monkeypatch.setenv("VDLA_GPU", "none such")
    assert device_error(find_gpu) == (
        "gpu: expected VDLA_GPU to name one of slow (Some), fast (Some), Simulator (Oclgrind), "
        "found none such"
    )


def test_no_device(driver):
    line = f"gpu: expected a device of OpenCL, found none; {INSTALL}"
    assert "pip install pocl-binary-distribution" in INSTALL
    for platforms in ((), ([],), (Error("DEVICE_NOT_FOUND"),)):
        driver(*platforms)
        assert device_error(find_gpu) == line


def test_a_checker_is_taken_by_name_alone(driver):
    driver([handle("Simulator", "Oclgrind")])
    assert device_error(find_gpu) == (
        "gpu: expected a device of OpenCL, found Oclgrind alone, which checks kernels; "
        f"{INSTALL}, or set VDLA_GPU=Oclgrind"
    )


def test_no_pyopencl(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert device_error(find_gpu) == (
        f"gpu: expected pyopencl, found none; `{pip_install('gpu')}` installs it"
    )
    assert device_error(lambda: Executor(gpu_module())).startswith("gpu: expected pyopencl")


# What a device refuses ----------------------------------------------------------------------------


def test_limits_are_the_driver_s(driver):
    driver()
    limits = OpenClGpu(handle("toy")).limits
    assert (limits.group, limits.sides, limits.shared, limits.buffer) == (
        128, (64, 32, 16), 1024, 4096,
    )  # fmt: skip
    assert OpenClGpu(handle("toy", max_work_item_sizes=[64])).limits.sides == (64, 1, 1)
    module = gpu_module(dram_bytes=5000)
    assert device_error(lambda: Executor(module, gpu=OpenClGpu(handle("toy")))) == (
        "gpu toy (Some): expected a module of at most 4,096 bytes, found 5,376: out of device "
        "memory"
    )


def test_kernels_in_another_language(driver):
    driver()
    module = gpu_module(kernels=replace(kernels(), language=PTX, architecture="sm_80"))
    assert device_error(lambda: Executor(module, gpu=OpenClGpu(handle("toy")))) == (
        "gpu toy (Some): expected kernels in OpenCL C, found ptx for sm_80"
    )


@pytest.mark.parametrize(("error", "line"), [
    (RuntimeError_("clFinish failed: OUT_OF_RESOURCES\nand more"),
     "gpu toy (Some): expected it to run, found clFinish failed: OUT_OF_RESOURCES"),
    (MemoryError_("clCreateBuffer failed"),
     "gpu toy (Some): expected 77 bytes of its memory to be free, found it has 8,192 in all and "
     "not as many left: out of device memory"),
])  # fmt: skip
def test_a_device_that_goes_away(driver, error, line):
    driver()

    def run():
        with opencl._errors(OpenClGpu(handle("toy")), 77):
            raise error

    assert device_error(run) == line


def test_other_errors_are_ours(driver):
    driver()
    with pytest.raises(KeyError), opencl._errors(OpenClGpu(handle("toy")), 77):
        raise KeyError


def program(gpu, **changes):
    """A program of a device as it is, less the driver's parts that ``changes`` replace."""
    loaded = gpu.load(kernels(), 320)
    for name, value in changes.items():
        setattr(loaded, name, value)
    return loaded


def test_a_lost_device_while_running(gpu):
    """Waiting, and asking how long it took."""
    cl = opencl._pyopencl()

    def lost(*args, **options):
        raise cl.RuntimeError("device lost")

    line = f"gpu {gpu.name}: expected it to run, found device lost"
    found = program(gpu, queue=SimpleNamespace(finish=lost))
    assert device_error(found.finish) == line
    found = program(gpu, built=dict.fromkeys(("twice", "more"), lost))
    assert device_error(lambda: found.launch("twice", (64, 192))) == line

    class Event:
        @property
        def profile(self):
            lost()

    found = program(gpu, built={"twice": lambda *args: Event()})
    assert device_error(found.launch("twice", (64, 192))) == line


def test_a_source_that_does_not_compile(gpu):
    broken = kernels(SOURCE.replace("2.0f", "none_such"))
    line = device_error(lambda: gpu.load(broken, 320))
    assert line.startswith(f"gpu {gpu.name}: expected to compile the module's kernels, found ")
    assert "none_such" in line
    assert "\n" not in line


def test_kernels_that_the_source_has_not(gpu):
    for source, line in (
        (SOURCE.replace("twice", "thrice"), "module: expected a kernel twice in its source, "
                                            "found none"),
        (SOURCE.replace("ulong y)", "ulong y, ulong z)"),
         "module: expected a kernel twice of 3 arguments, found one of 4"),
    ):  # fmt: skip
        with pytest.raises(ModuleError) as caught:
            gpu.load(kernels(source), 320)
        assert str(caught.value) == line


# Modules that run ---------------------------------------------------------------------------------


def test_steps_in_a_row(gpu):
    """Copies have steps of their own, at either end alone."""
    steps = (
        Gpu("double", "twice", ("x", "t")),
        Gpu("again", "four", ("t", "z")),
        Gpu("plus", "more", ("z", "y")),
    )
    executor = Executor(gpu_module(*steps, outputs=("y", "t")), gpu=gpu)
    for value in (X, 3 * X):
        result = executor.run({"x": value})
        np.testing.assert_array_equal(result.outputs["t"], 2 * value)
        np.testing.assert_array_equal(result.outputs["y"], 8 * value + 1)
    assert [(s.name, s.kind, s.cycles) for s in result.steps] == [
        ("x to gpu", "copy", None),
        ("double", "gpu", None),
        ("again", "gpu", None),
        ("plus", "gpu", None),
        ("y to cpu", "copy", None),
        ("t to cpu", "copy", None),
    ]
    assert all(step.seconds >= 0 for step in result.steps)
    assert result.cycles is None


def test_constants_are_copied_once(gpu):
    steps = (Gpu("double", "twice", ("w", "y")),)
    module = gpu_module(*steps, constants=(5 * X).tobytes() + bytes(48))
    result = Executor(module, gpu=gpu).run({"x": X})
    np.testing.assert_array_equal(result.outputs["y"], 10 * X)
    assert [step.name for step in result.steps] == ["double", "y to cpu"]


def test_a_tensor_of_no_bytes(gpu):
    """Nothing to copy, and nobody who copies it."""
    empty = TensorInfo((0,), "float32", 0)
    module = gpu_module(kernels=kernels(none=KernelFunction((0, 0), (), ())))
    module.tensors.update(x=empty, y=empty)
    module.steps = (Gpu("nothing", "none", ("x", "y")),)
    assert Executor(module, gpu=gpu).run({"x": X[:0]}).outputs["y"].shape == (0,)


def test_through_a_file(gpu, tmp_path):
    module = gpu_module(Gpu("again", "four", ("x", "y")))
    module.save(tmp_path / "m.vdla")
    loaded = Module.load(tmp_path / "m.vdla")
    assert loaded == module
    result = Executor(loaded, gpu=gpu).run({"x": X})
    np.testing.assert_array_equal(result.outputs["y"], 4 * X)


def test_a_timeline_of_kernels_and_copies(gpu, tmp_path):
    path = tmp_path / "t.json"
    write_timeline(Executor(gpu_module(), gpu=gpu).run({"x": X}), path)
    events = json.loads(path.read_text())["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert [(e["name"], rows[e["tid"]]) for e in events if e["ph"] == "X"] == [
        ("x to gpu", "copy"), ("double", "gpu"), ("y to cpu", "copy"),
    ]  # fmt: skip


# What a module's steps may say --------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "line"), [
    ({"kernels": None}, "steps: expected a program, host code, kernels, ONNX model or code of the "
     "module, found Gpu(name='s', function='twice', args=('x', 'y'))"),
    ({"steps": (Gpu("s", "ghost", ("x", "y")),)},
     "step s: expected a function of kernels, found ghost"),
    ({"steps": (Gpu("s", "twice", ("x",)),)},
     "step s: expected tensors of 16, 16 bytes, found 16"),
    ({"steps": (Gpu("s", "twice", ("x", "ghost")),)},
     "step s: expected known tensors, found ghost"),
])  # fmt: skip
def test_steps_that_point_outside(changes, line):
    module = gpu_module(**{"steps": (Gpu("s", "twice", ("x", "y")),), **changes})
    with pytest.raises(ModuleError) as caught:
        Executor(module)
    assert str(caught.value) == line
