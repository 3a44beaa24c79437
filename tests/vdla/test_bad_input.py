"""Wrong input: exit code 2, one line with expected, found and where, and no file left behind."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from vdla.compiler import models


@pytest.fixture
def refused(vdla, tmp_path, monkeypatch):
    """Runs a command in a folder of its own; gives its one line. It must not write anything."""
    monkeypatch.chdir(tmp_path)

    def run(*args) -> str:
        before = sorted(p.name for p in tmp_path.rglob("*"))
        done = vdla(*args)
        assert done.code == 2, done
        assert done.out == ""
        assert sorted(p.name for p in tmp_path.rglob("*")) == before
        (line,) = done.err.strip().splitlines()
        return line.removeprefix("vdla: ")

    return run


def model(op: str, shape=(1, 8), out=None, **attributes):
    """A float model of one operator."""
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], name="node", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out or shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def test_models(refused, tmp_path):
    assert refused("run", "nosuch.onnx") == (
        "nosuch.onnx: expected an ONNX file or one of resnet18, resnet18-convs, mobilenet, digits, "
        "found neither"
    )
    (tmp_path / "text.onnx").write_text("not a model")
    assert refused("compile", "text.onnx", "-o", "m.vdla").startswith(
        "text.onnx: expected an ONNX model, found "
    )
    whole = models.model_path("digits").read_bytes()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    assert refused("compile", "cut.onnx", "-o", "m.vdla").startswith("cut.onnx: expected ")
    onnx.save(model("Relu", ("N", 8)), "dynamic.onnx")
    assert "expected" in refused("run", "dynamic.onnx")
    assert "N" in refused("run", "dynamic.onnx")
    onnx.save(model("Det", (1, 8, 8), (1,)), "op.onnx")
    line = refused("compile", "op.onnx", "-o", "m.vdla")
    assert "Det" in line
    assert "expected" in line
    assert refused("run", "resnet18-convs") == (
        "resnet18-convs: expected one network, found several; only compare takes it"
    )


def test_configs(refused, tmp_path):
    assert refused("configs", "nosuch") == (
        "config nosuch: expected a .toml file or one of narrow, paper, tiny, ulx3s, vta, wide, "
        "found neither"
    )
    assert refused("configs", "missing.toml") == (
        "missing.toml: expected a readable file, found No such file or directory"
    )
    (tmp_path / "bad.toml").write_text("block_in = \n")
    assert refused("configs", "bad.toml").startswith("bad.toml: expected TOML, found ")
    (tmp_path / "key.toml").write_text("blocks = 3\n")
    assert refused("configs", "key.toml").endswith("found blocks")
    assert refused("run", "digits", "--set", "block_in=3") == (
        "config paper: expected block_in bytes to be a multiple of port_bytes = 8, found 3"
    )
    assert refused("compare", "digits", "--set", "memory.delay=3").endswith("found 'memory.delay'")
    assert refused("configs", "tiny", "--set", "block_in=x") == (
        "--set block_in=x: expected an integer, found 'x'"
    )
    assert refused("configs", "tiny", "--set", "acc_bytes=16") == (
        "config tiny: expected acc_bytes to hold at least 2 entries of 16 bytes, found 16"
    )


def test_a_config_that_holds_no_tile_falls_back_to_the_host(vdla):
    found = vdla("run", "digits", "-c", "tiny", "--set", "wgt_bytes=32", "--json").json
    reasons = {p["name"]: p["reason"] for p in found["placement"] if p["device"] == "cpu"}
    assert reasons["conv2"] == (
        "config tiny: expected buffers that hold one tile of a 3×3 convolution, "
        "found inp 256, wgt 2, acc 128 entries"
    )


def test_modules(refused, vdla, tmp_path):
    vdla("compile", "digits", "-c", "tiny", "-o", tmp_path / "d.vdla")
    raw = (tmp_path / "d.vdla").read_bytes()
    assert refused("run", "d.vdla", "-c", "paper").startswith("d.vdla: expected config paper (")
    (tmp_path / "cut.vdla").write_bytes(raw[:1000])
    assert refused("run", "cut.vdla").startswith("cut.vdla: expected at least ")
    flipped = bytearray(raw)
    flipped[len(raw) // 2] ^= 4
    (tmp_path / "flip.vdla").write_bytes(bytes(flipped))
    assert "checksum" in refused("run", "flip.vdla")
    (tmp_path / "foreign.vdla").write_bytes(b"PK\3\4" + raw)
    assert refused("run", "foreign.vdla").startswith("foreign.vdla: expected ")


def test_inputs(refused, tmp_path):
    np.savez("name.npz", other=np.zeros((1, 1, 8, 8), np.float32))
    assert refused("run", "digits", "--input", "name.npz") == (
        "inputs: expected image, found other"
    )
    np.savez("shape.npz", image=np.zeros((1, 8, 8), np.float32))
    assert refused("run", "digits", "--input", "shape.npz") == (
        "input image: expected float32[1, 1, 8, 8], found float32[1, 8, 8]"
    )
    np.savez("dtype.npz", image=np.zeros((1, 1, 8, 8)))
    assert refused("run", "digits", "--input", "dtype.npz") == (
        "input image: expected float32[1, 1, 8, 8], found float64[1, 1, 8, 8]"
    )
    (tmp_path / "text.npz").write_text("text")
    assert refused("run", "digits", "--input", "text.npz") == (
        "text.npz: expected an .npz file of arrays, found other content"
    )
    assert refused("run", "digits", "--input", "none.npz") == (
        "none.npz: expected a readable .npz file, found No such file or directory"
    )


def test_options(refused):
    assert refused("run", "digits", "--device", "gpu") == (
        "--device: expected one of sim, cpu, found gpu"
    )
    assert refused("compare", "digits", "--vthreads", "1,x") == (
        "--vthreads: expected distinct numbers from 1 to 8, found '1,x'"
    )
    assert refused("compile", "digits", "-o", "none/m.vdla") == (
        "none/m.vdla: expected the folder none to exist, found none"
    )
    assert refused("isa", "asm", "none.s", "-o", "p.bin").startswith("none.s: expected ")


def test_assembly(refused, tmp_path):
    (tmp_path / "p.s").write_text("LOAD memory=INP\nJUMP\n")
    assert refused("isa", "asm", "p.s", "-o", "p.bin") == (
        "p.s:2: expected one of LOAD, STORE, GEMM, ALU, FINISH, found JUMP"
    )
    (tmp_path / "p.s").write_text("GEMM dst_base=9999999\n")
    assert refused("isa", "asm", "p.s", "-o", "p.bin") == (
        "p.s:1: GEMM.dst_base: expected 0..2047 (11 bits in config paper), found 9999999"
    )
