"""A GPU from the command line and from Python: who runs what, and the same bytes as elsewhere."""

from __future__ import annotations

import json
import sys

import pytest
from gpus import gpu_module, handle

import vdla as api
from vdla.commands import catalog
from vdla.options.spelling import UsageError
from vdla.runtime.gpu import libcuda, opencl
from vdla.support.install import pip_install


def run(vdla, *args):
    done = vdla("run", "digits", "--images", 3, "--json", *args)
    assert done.code == 0, done.err
    return done.json


def devices(found):
    return {row["name"]: row["device"] for row in found["placement"]}


def test_the_same_bytes_on_a_gpu(vdla, gpu):
    alone = run(vdla, "--device", "cpu")
    whole = run(vdla, "--device", "gpu")
    assert whole["outputs"] == alone["outputs"]
    assert (whole["device"], whole["cycles"]) == ("gpu", None)
    assert set(devices(whole).values()) == {"gpu"}
    beside = run(vdla, "--host", "gpu")
    assert beside["outputs"] == alone["outputs"]
    assert (beside["device"], devices(beside)["image_QuantizeLinear"]) == ("sim", "gpu")
    assert devices(beside)["conv1"] == "vdla"


def test_nodes_that_the_user_places(vdla, gpu):
    alone = run(vdla, "--device", "cpu")
    found = run(vdla, "--device", "gpu", "--place", "conv2=cpu", "--place", "fc = cpu")
    placed = devices(found)
    assert (placed["conv1"], placed["conv2"], placed["fc"]) == ("gpu", "cpu", "cpu")
    assert found["outputs"] == alone["outputs"]
    module = api.compile("digits", device="gpu", places={"conv2": "cpu"})
    assert {row["name"]: row["device"] for row in module.metadata["placement"]}["conv2"] == "cpu"


def test_a_module_s_kernels_need_a_gpu_and_no_name(vdla, gpu, tmp_path):
    path = tmp_path / "m.vdla"
    assert vdla("compile", "digits", "--device", "gpu", "-o", path).code == 0
    found = [vdla("run", path, "--device", d, "--json").json["outputs"] for d in ("gpu", "cpu")]
    assert found[0] == found[1]


def test_a_module_has_its_places_already(vdla, tmp_path):
    path = tmp_path / "m.vdla"
    vdla("compile", "digits", "--device", "cpu", "-o", path)
    for option, value in (("--host", "gpu"), ("--place", "conv1=gpu")):
        done = vdla("run", path, option, value)
        assert (done.code, done.err) == (
            2, f"vdla: {option}: expected an ONNX model, found the module {path}\n",
        )  # fmt: skip


def test_kernels_are_code_of_somebody_s(vdla, tmp_path):
    """As host code is: whoever refuses the one refuses the other."""
    module = gpu_module(config=api.compile("digits", "tiny").config)
    module.identity = api.compile("digits", "tiny").identity
    path = tmp_path / "m.vdla"
    module.save(path)
    done = vdla("run", path, "--device", "gpu", "--no-native")
    assert (done.code, done.err) == (
        2,
        f"vdla: --no-native: expected {path} to hold programs for the accelerator alone, found "
        "kernels for a GPU\n",
    )


@pytest.mark.parametrize("function", [api.run, api.compile, api.check])
@pytest.mark.parametrize("wrong", ["conv1=gpu", ["conv1"], {"conv1": 3}, {3: "gpu"}])
def test_places_are_a_dictionary(function, wrong):
    with pytest.raises(UsageError) as caught:
        function("digits", places=wrong)
    assert str(caught.value) == (
        f"places: expected a dictionary of names, as {{'conv1': 'gpu'}}, found {wrong!r}"
    )


def test_without_a_driver(vdla, monkeypatch):
    """One line, and what to install."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    done = vdla("run", "digits", "--device", "gpu")
    assert (done.code, done.out, done.err.splitlines()[-1]) == (
        2,
        "",
        f"vdla: gpu: expected pyopencl, found none; `{pip_install('gpu')}` installs it",
    )


def test_where_the_time_goes(vdla, gpu):
    """Copies are steps; the processor's peak says nothing of kernels."""
    steps = vdla("run", "digits", "--device", "gpu", "--profile", "--json").json["steps"]
    assert [steps[0]["name"], steps[0]["op"], steps[0]["device"]] == [
        "image to gpu",
        "copy",
        "copy",
    ]
    (conv,) = (step for step in steps if step["name"] == "conv1")
    assert (conv["device"], conv["of_peak"]) == ("gpu", None)
    assert conv["gops"] > 0
    assert sum(step["share"] for step in steps) == pytest.approx(1)


# vdla doctor --------------------------------------------------------------------------------------


def test_the_doctor_lists_devices(vdla, gpu):
    found = vdla("doctor", "--json").json["found"]
    assert f"opencl: {gpu.name}" in found
    assert found["pyopencl"] != "missing"


def devices_found(monkeypatch, *names):
    devices = [opencl.OpenClGpu(handle(*name)) for name in names]
    monkeypatch.setattr(opencl.OpenClGpu, "is_gpu", property(lambda g: g.handle.type == 4))
    monkeypatch.setattr(opencl, "gpus", lambda: iter(devices))
    return catalog._opencl_devices()


def test_what_the_doctor_says_of_devices(monkeypatch):
    checker = ("opencl: Simulator (Oclgrind)", "checks kernels; VDLA_GPU=Oclgrind takes it", "")
    missing = ("opencl", "missing", opencl.INSTALL)
    assert devices_found(monkeypatch, ("Fast", "A", 4), ("Slow", "B", 2)) == [
        ("opencl: Fast (A)", "a GPU", ""),
        ("opencl: Slow (B)", "not a GPU, and slower", ""),
    ]
    assert devices_found(monkeypatch, ("Simulator", "Oclgrind", 4)) == [checker, missing]
    assert devices_found(monkeypatch) == [missing]


def test_the_doctor_without_pyopencl(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert catalog._opencl_devices() == []


def test_the_doctor_lists_cuda_s_devices(vdla, cuda):
    assert catalog._cuda_devices() == [
        ("cuda: Fake 80 (CUDA)", "a GPU, for --gpu sm_80", ""),
        ("cuda: Fake 90 (CUDA)", "a GPU, for --gpu sm_90", ""),
    ]
    assert "cuda: Fake 80 (CUDA)" in vdla("doctor", "--json").json["found"]
    cuda.fail("cuDeviceGetName", 999)
    assert catalog._cuda_devices() == [
        ("cuda", "missing", "gpu device 10: expected it to run, found status 999")
    ]


def test_the_doctor_says_why_there_is_no_cuda(vdla, monkeypatch):
    monkeypatch.setattr(libcuda, "LIBRARY", "libnone.so.1")
    found = vdla("doctor", "--json").json
    assert found["found"]["cuda"] == "missing"
    assert found["install"]["cuda"] == "no libnone.so.1, which NVIDIA's driver brings"


def test_a_gpu_is_no_host_of_a_processor(vdla):
    done = vdla("run", "digits", "--device", "cpu", "--host", "gpu")
    assert done.code == 2
    assert "--host: expected --device sim or rtl or board, found cpu" in done.err


def test_the_trace_shows_copies_and_kernels(vdla, gpu, tmp_path):
    path = tmp_path / "trace.json"
    done = vdla("run", "digits", "--images", 1, "--host", "gpu", "--trace", path)
    assert done.code == 0, done.err
    assert "traceEvents" in json.loads(path.read_text())
    steps = json.loads((tmp_path / "trace.steps.json").read_text())["traceEvents"]
    names = [event["name"] for event in steps if event["ph"] == "X"]
    assert names[:2] == ["image to gpu", "image_QuantizeLinear"]
    assert names[-1] == "logits to cpu"
    assert "program0" in names
