"""A GPU of NVIDIA's from the command line and from Python, by PTX.

The driver is one for tests, which runs none of these kernels; where there is a GPU of NVIDIA's, the
tests that take ``nvidia`` compare its numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
from cuda_driver import ptx_module

import vdla as api
from tests.support.kernels import on_tensor_cores, tiled
from tests.support.ptxas import check_assembles
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.gpu.description import ANY, Gpu
from vdla.compiler.targets.gpu.mma import mma_f16, mma_s8
from vdla.compiler.targets.search.function_records import FunctionRecords
from vdla.compiler.tir.interp import run
from vdla.names.where import Where
from vdla.options.spelling import UsageError
from vdla.runtime.gpu import cuda as runtime
from vdla.runtime.gpu import libcuda

RNG = np.random.default_rng(7)
UNKNOWN = (
    "gpu: expected opencl, or an architecture of NVIDIA's that LLVM knows, as sm_80, found 'sm_77'"
)


@pytest.fixture
def nvidia():
    """The ``--gpu`` of this machine's first GPU of NVIDIA's; skipped where there is none."""
    found, why = runtime.gpus()
    if not found:
        pytest.skip(f"no GPU of NVIDIA's: {why}")
    return found[0].architecture


def test_a_module_for_an_architecture(vdla, cuda, tmp_path):
    path = tmp_path / "m.vdla"
    done = vdla("compile", "digits", "--device", "gpu", "--gpu", "sm_80", "-o", path)
    assert done.code == 0, done.err
    module = api.load(path)
    assert (module.kernels.language, module.kernels.architecture) == ("ptx", "sm_80")
    assert {row["device"] for row in module.metadata["placement"]} == {"gpu"}
    done = vdla("run", path, "--device", "gpu", "--json")
    assert done.code == 0, done.err
    launches = [x.kernel for f in module.kernels.functions.values() for x in f.launches]
    assert set(launches) == {line.split()[0] for line in cuda.launches}


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
def test_a_network_assembles(architecture, tmp_path):
    module = api.compile("digits", device="gpu", gpu=architecture)
    check_assembles(module.kernels.source, architecture, tmp_path)


def test_beside_the_accelerator():
    module = api.compile("digits", host="gpu", gpu="sm_90a")
    assert (module.kernels.language, module.kernels.architecture) == ("ptx", "sm_90a")


def test_which_gpu(vdla, cuda, monkeypatch):
    """The one that is named, and what it doesn't take."""
    command = ("run", "digits", "--images", 1, "--device", "gpu", "--gpu", "sm_90")
    done = vdla(*command)
    line = (
        "vdla: gpu Fake 80 (CUDA): expected kernels for sm_80 or less, found kernels for sm_90; "
        "compile the module with --gpu sm_80"
    )
    assert (done.code, done.err.splitlines()[-1]) == (2, line)
    monkeypatch.setenv("VDLA_GPU", "fake 90")
    assert vdla(*command).code == 0


def test_without_a_driver(vdla, monkeypatch):
    monkeypatch.setattr(libcuda, "LIBRARY", "libnone.so.1")
    done = vdla("run", "digits", "--device", "gpu", "--gpu", "sm_80")
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "vdla: gpu: expected a device of CUDA, found none: no libnone.so.1, which NVIDIA's driver "
        "brings; compile the module with --gpu opencl for other GPUs",
    )


def test_where_the_option_counts(vdla, tmp_path):
    done = vdla("compile", "digits", "--gpu", "sm_80", "-o", tmp_path / "m.vdla")
    assert (done.code, done.err) == (
        2,
        "vdla: --gpu sm_80: expected --device gpu or --host gpu, found --device sim and --host "
        "cpu\n",
    )
    with pytest.raises(UsageError, match="--gpu sm_80: expected --device gpu or --host gpu"):
        api.run("digits", device="cpu", gpu="sm_80")
    with pytest.raises(UsageError, match="--gpu: expected an ONNX model, found a module"):
        api.run(ptx_module(), device="gpu", gpu="sm_80")


def test_architectures_that_there_are(vdla, tmp_path):
    out = tmp_path / "m.vdla"
    done = vdla("compile", "digits", "--device", "gpu", "--gpu", "sm_77", "-o", out)
    assert (done.code, done.err) == (2, f"vdla: {UNKNOWN}\n")
    with pytest.raises(TargetError) as error:
        api.build(tiled(16, 8, 2, 4), target="sm_77")
    assert str(error.value) == UNKNOWN


def test_tuned_schedules_are_for_the_gpu_at_hand(cuda, monkeypatch):
    named, tuned = Gpu(language="ptx", architecture="sm_80"), FunctionRecords([])
    assert Where("gpu", gpu="sm_80").described_gpu(None) == named
    assert Where("cpu").described_gpu(tuned) == ANY
    found = Where("sim", "gpu", gpu="sm_80").described_gpu(tuned)
    assert (found.language, found.architecture, found.name) == ("ptx", "sm_80", "Fake 80 (CUDA)")
    assert (found.group, found.sides, found.shared) == (1024, (1024, 512, 64), 49152)
    monkeypatch.setattr(libcuda, "LIBRARY", "libnone.so.1")
    assert Where("gpu", gpu="sm_80").described_gpu(tuned) == named


# Kernels of schedules -----------------------------------------------------------------------------


def test_a_schedule_s_kernel(cuda):
    kernel = api.build(tiled(16, 8, 2, 4), target="sm_80")
    assert ".target sm_80" in kernel.passes["ptx"]
    assert "alloc" in kernel.passes["deal_threads"]
    arrays = [RNG.uniform(size=(16, 16)).astype(np.float32) for _ in range(3)]
    assert kernel(*arrays).seconds == pytest.approx(1e-3)
    assert cuda.launches == ["main_0 grid 2 2 1 group 4 4 1 shared 0 at 0 1024 2048"]


@pytest.mark.parametrize("make", [
    lambda: tiled(), lambda: on_tensor_cores(mma_f16), lambda: on_tensor_cores(mma_s8),
], ids=["tiled", "mma_f16", "mma_s8"])  # fmt: skip
def test_numbers_of_a_gpu(nvidia, make):
    s = make()
    arrays = [RNG.integers(-8, 8, p.shape).astype(p.dtype) for p in s.mod.params]
    wanted = [a.copy() for a in arrays]
    run(s.mod, wanted)
    api.build(s, target=nvidia)(*arrays)
    np.testing.assert_array_equal(arrays[2], wanted[2])


def test_the_same_bytes_on_a_gpu(vdla, nvidia):
    found = [
        vdla("run", "digits", "--images", 3, "--json", *args).json["outputs"]
        for args in (("--device", "cpu"), ("--device", "gpu", "--gpu", nvidia))
    ]
    assert found[0] == found[1]
