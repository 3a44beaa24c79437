"""Modules for another processor: `vdla compile --board` and `--target`."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla import api
from vdla.boards import MODULES, find_board
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.codegen import link
from vdla.compiler.targets.processor.description.processor import PROCESSORS, find_processor
from vdla.runtime import Executor, Module, ModuleError, native
from vdla.runtime.module import HostCode
from vdla.runtime.native import check_machine

SHARED = b"\x7fELF".ljust(16, b"\0") + b"\x03\0".ljust(16, b"\0")  # an ELF header's beginning
HOSTS = {
    "ulx3s": "native", "colorlight-i9": "native", "tang-nano-20k": "native",
    "pynq-z1": "cortex-a9", "pynq-z2": "cortex-a9", "arty-z7-20": "cortex-a9",
    "ultra96-v2": "cortex-a53",
}  # fmt: skip


def test_every_board_names_its_processor():
    assert {name: find_board(name).host for name in MODULES} == HOSTS
    for name in HOSTS.values():
        find_processor(name)


@pytest.fixture
def compiled(vdla, tmp_path):
    """Compiles digits; the command's JSON and the module."""

    def run(*options):
        path = tmp_path / "m.vdla"
        done = vdla("compile", "digits", *options, "-o", path, "--json")
        assert done.code == 0, done.err
        return done.json, Module.load(path)

    return run


@pytest.mark.parametrize(
    ("options", "config", "processor"),
    [
        (("--board", "pynq-z2"), "paper", "cortex-a9"),
        (("--board", "ultra96-v2", "-c", "tiny"), "tiny", "cortex-a53"),
        (("--board", "pynq-z2", "--target", "cortex-a53"), "paper", "cortex-a53"),
        (("--target", "cortex-a9", "-c", "tiny"), "tiny", "cortex-a9"),
    ],
)
def test_modules_for_boards(options, config, processor, compiled, vdla, tmp_path):
    target = find_processor(processor)
    try:
        link.find_linker(target)
    except TargetError as error:
        pytest.skip(str(error))
    summary, module = compiled(*options)
    assert (summary["config"], summary["host"]) == (config, processor)
    assert module.host.triple == target.triple
    assert struct.unpack_from("<H", module.host.code, 16) == (3,)  # ET_DYN
    done = vdla("run", tmp_path / "m.vdla")
    assert done.code == 2
    assert done.out == ""
    assert done.err == (
        f"vdla: host code: expected host code for x86_64-linux-gnu, "
        f"found {target.triple} ({processor})\n"
    )


@pytest.mark.parametrize(
    ("name", "magic"), [("thumbv7em", b"\x7fELF"), ("wasm32", b"\0asm\x01\0\0\0")]
)
def test_modules_for_machines_that_load_nothing(name, magic, compiled, vdla, tmp_path, monkeypatch):
    """They have object files, which take no linker; none of them runs here."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    target = find_processor(name)
    _, module = compiled("--device", "cpu", "--target", name)
    assert module.host.code.startswith(magic)
    assert not native.is_shared(module.host.code)
    done = vdla("run", tmp_path / "m.vdla")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"vdla: host code: expected host code for x86_64-unknown-linux-gnu, "
        f"found {target.triple} ({target.cpu})\n"
    )


@pytest.mark.parametrize("name", [n for n, p in PROCESSORS.items() if not p.is_native])
def test_object_files_of_any_processor(name):
    """Whoever links a program of his own takes the code so."""
    target = replace(find_processor(name), shared=False)
    code = api.compile("digits", device="cpu", target=target).host.code
    relocatable = code.startswith(b"\0asm") or struct.unpack_from("<H", code, 16) == (1,)
    assert relocatable


@pytest.mark.parametrize("options", [("--target", "native"), ("--board", "ulx3s"), ()])
def test_modules_for_this_machine(options, compiled, vdla, tmp_path):
    summary, module = compiled(*options)
    assert summary["config"] == ("ulx3s" if "ulx3s" in options else "paper")
    assert struct.unpack_from("<H", module.host.code, 16) == (1,)  # ET_REL
    assert vdla("run", tmp_path / "m.vdla").code == 0


def here(name) -> bool:
    """Whether this machine runs what is made for a processor."""
    target = find_processor(name)
    try:
        link.find_linker(target)
        check_machine(HostCode(SHARED, target.triple, target.cpu, target.features, {}), "here")
    except (TargetError, ModuleError):
        return False
    return True


def floats(path):
    """Two convolutions in blocks of channels and a dense layer."""
    rng = np.random.default_rng(0)
    shapes = {"w": (32, 3, 3, 3), "v": (48, 32, 3, 3), "d": (48, 10)}
    weights = {n: 0.1 * rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Conv", ["b", "v"], ["c"], "second", strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "d"], ["y"], "dense"),
    ]
    kinds = {"x": (1, 3, 20, 20), "y": (1, 10)}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in kinds.items())
    known = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], known)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("model", ["digits", "floats"])
def test_other_instructions_have_the_same_results(name, model, tmp_path):
    if not here(name):
        pytest.skip(f"no {name}")
    path = floats(tmp_path / "m.onnx") if model == "floats" else model
    ours, theirs = (api.compile(path, device="cpu", target=p) for p in ("native", name))
    given = {
        n: np.random.default_rng(3).standard_normal(ours.tensors[n].shape).astype(np.float32)
        for n in ours.inputs
    }
    (want,), (found,) = (Executor(m).run(given).outputs.values() for m in (ours, theirs))
    if model == "digits":
        np.testing.assert_array_equal(found, want)
    else:
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_a_processor_that_lacks_instructions(monkeypatch, tmp_path):
    target = find_processor("x86-64-v4")
    cpuinfo = tmp_path / "cpuinfo"
    flags = "avx2 bmi1 bmi2 f16c fma abm movbe avx512f avx512cd"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\nprocessor : 1\nflags : all\n")
    monkeypatch.setattr(native, "CPUINFO", cpuinfo)
    monkeypatch.setattr(native.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(native.sysconfig, "get_config_var", lambda name: "x86_64-linux-gnu")
    assert native.board_machine()[2].startswith("+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,")
    with pytest.raises(ModuleError) as caught:
        check_machine(HostCode(SHARED, target.triple, target.cpu, target.features, {}), "m.vdla")
    assert str(caught.value) == (
        "m.vdla: expected host code for this x86_64, found code for x86-64-v4 that needs "
        "avx512bw, avx512dq, avx512vl"
    )


def test_wrong_names_and_missing_linkers(vdla, tmp_path, monkeypatch):
    def refused(*options) -> str:
        done = vdla("compile", "digits", *options, "-o", tmp_path / "m.vdla")
        assert done.code == 2
        assert not list(tmp_path.iterdir())
        (line,) = done.err.splitlines()
        return line

    assert refused("--target", "cortex-a8") == (
        "vdla: target: expected one of native, x86-64-v3, x86-64-v4, sapphirerapids, cortex-a9, "
        "cortex-a53, cortex-a72, cortex-a76, neoverse-v1, x86_64, aarch64-linux, arm-linux, "
        "riscv64-linux, thumbv7em, wasm32, found cortex-a8"
    )
    assert refused("--board", "pynq-z3") == (
        f"vdla: board: expected one of {', '.join(MODULES)}, found pynq-z3; "
        "docs/my-board.md says what another takes"
    )
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    assert refused("--board", "pynq-z2").startswith(
        "vdla: target cortex-a9: expected a linker (arm-linux-gnueabihf-ld, ld.lld or ziglang), "
        "found none; install with: "
    )
