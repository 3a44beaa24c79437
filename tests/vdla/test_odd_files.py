"""Files that are right in form and odd in content: refused in one line, or read."""

from __future__ import annotations

import io
import json
import zipfile
import zlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import vdla
from vdla.runtime.module import PREFIX

DEEP = "[" * 100_000


@pytest.fixture
def module(vdla, tmp_path):
    """A module of digits, and what writes it with another header."""
    path = tmp_path / "d.vdla"
    assert vdla("compile", "digits", "-c", "tiny", "-o", path).code == 0
    data = path.read_bytes()
    magic, version, length, _ = PREFIX.unpack_from(data)
    header, rest = data[PREFIX.size :][:length], data[PREFIX.size + length :]

    def write(text: bytes):
        path.write_bytes(PREFIX.pack(magic, version, len(text), zlib.crc32(text)) + text + rest)
        return path

    return json.loads(header), write


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (DEEP, "expected a JSON header, found brackets more than 64 deep"),
        ("3", "header: expected a JSON object, found int"),
        ('[["a", 1]]', "header: expected a JSON object, found list"),
        ("null", "header: expected a JSON object, found NoneType"),
    ],
)
def test_headers(vdla, module, text, line):
    path = module[1](text.encode())
    done = vdla("run", path)
    assert (done.code, done.out, done.err) == (2, "", f"vdla: {path}: {line}\n")


@pytest.mark.parametrize("options", [(), ("--json",), ("--trace", "t.json"), ("--profile",)])
def test_a_module_without_metadata_runs(vdla, module, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header, write = module
    path = write(json.dumps({**header, "metadata": {}}).encode())
    done = vdla("run", path, *options)
    assert done.code == 0
    assert "placement" not in done.out or done.json["placement"] == []


@pytest.mark.parametrize("layers", [[["a", 1]], [["a", 1 << 62]], [["a", 1], ["b", 9999]]])
def test_a_module_that_names_layers_of_other_instructions(vdla, module, layers, tmp_path):
    header, write = module
    streams = {"program0": {"layers": layers, "stages": []}}
    path = write(
        json.dumps({**header, "metadata": {**header["metadata"], "streams": streams}}).encode()
    )
    done = vdla("run", path, "--trace", tmp_path / "t.json")
    count = sum(each for _, each in layers)
    assert done.code == 2
    assert "header: streams: program0: expected layers of" in done.err
    assert done.err.endswith(f"instructions, found those of {count}\n")
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_json_of_logs_and_designs(vdla, tmp_path, monkeypatch, opening):
    deep = opening * 100_000 + "\n"
    log = tmp_path / "log"
    log.write_text(deep)
    for command in (
        ("run", "digits", "-c", "tiny", "--records", log),
        ("tune", "digits", "-c", "tiny", "--log", log),
        ("explore", "digits", "--space", "small", "--resume", log),
    ):
        done = vdla(*command)
        assert (done.code, done.out) == (2, ""), command
        assert done.err.startswith(f"vdla: {log}"), command
    monkeypatch.setattr("sys.stdin", io.StringIO(f'{{"a":{deep}'))
    done = vdla("evaluate", "digits", "-c", "tiny", "--stdin")
    assert done.code == 2
    assert done.err.startswith("vdla: line 1: expected KEY=VALUE… or a JSON object of integers")


@pytest.mark.parametrize("text", ["a = " + "[" * 3000, "a = " + "{a=" * 1500])
@pytest.mark.parametrize(
    "command",
    [("configs",), ("explore", "digits", "--space"), ("run", "digits", "-c", "tiny", "--energy")],
)
def test_deep_toml(vdla, tmp_path, command, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    done = vdla(*command, path)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"vdla: {path}: expected TOML, found brackets within brackets, too deep\n"


def float_model(path, shape=(2, 8)):
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="node")], "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize("options", [(), ("--json",), ("--output", "y.npz"), ("--check",)])
def test_an_output_of_no_dimensions(vdla, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    model = float_model("m.onnx", ())
    done = vdla("run", model, "--device", "cpu", *options)
    assert done.code == 0
    if "--json" in options:
        assert done.json["outputs"]["y"]["shape"] == []
    if "--output" in options:
        assert np.load("y.npz")["y"].shape == ()


@pytest.mark.parametrize(
    ("array", "kind"), [("text", "<U4"), (b"PK", "|S2"), (np.ones((2, 8), complex), "complex128")]
)
def test_calibration_with_other_than_numbers(vdla, tmp_path, array, kind):
    model = float_model(tmp_path / "m.onnx")
    np.savez(tmp_path / "c.npz", x=array)
    done = vdla("quantize", model, "-o", tmp_path / "q.onnx", "--calibration", tmp_path / "c.npz")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"vdla: {tmp_path / 'c.npz'}: expected x to be an array of numbers, found {kind}\n"
    )


def test_calibration_with_an_entry_that_is_no_array(vdla, tmp_path):
    model = float_model(tmp_path / "m.onnx")
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as file:
        file.writestr("x", b"PK is no array")
    done = vdla("quantize", model, "-o", tmp_path / "q.onnx", "--calibration", tmp_path / "c.npz")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("expected x to be an array of numbers, found |S14\n")


def test_an_input_that_no_memory_holds(vdla, tmp_path):
    model = float_model(tmp_path / "m.onnx", (1 << 40,))
    done = vdla("quantize", model, "-o", tmp_path / "q.onnx")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"vdla: {model}: input x: expected a tensor of at most 2,147,483,647 elements, found "
        "float32[1099511627776], 4,398,046,511,104 bytes\n"
    )


def test_onnxruntime_says_nothing_of_its_own(tmp_path, capfd):
    """Its own log names tensors as they come, and shows tracebacks."""
    model = onnx.load(float_model(tmp_path / "m.onnx", (2, 4)))
    weight = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    model.graph.initializer.append(weight)
    model.graph.node[0].op_type = "MatMul"
    model.graph.node[0].input.append("w")
    for dim, value in zip(model.graph.output[0].type.tensor_type.shape.dim, (4, 2), strict=True):
        dim.dim_value = value
    onnx.save(model, tmp_path / "m.onnx")
    vdla.quantize(tmp_path / "m.onnx", tmp_path / "q.onnx")
    out, err = capfd.readouterr()
    assert "onnxruntime" not in out + err
    assert "Traceback" not in out + err


def test_what_onnxruntime_cannot_quantize_names_the_file_and_the_node(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("Only an existing tensor can be modified, 'y' is not.\nmore")

    monkeypatch.setattr("onnxruntime.quantization.quantize_static", fail)
    model = float_model(tmp_path / "m.onnx")
    with pytest.raises(vdla.UserError) as caught:
        vdla.quantize(model, tmp_path / "q.onnx")
    assert str(caught.value) == (
        f"{model}: expected a model onnxruntime can quantize, found Only an existing tensor can be "
        "modified, 'y' is not; y is a result of node node (Relu)"
    )
    assert not (tmp_path / "q.onnx").exists()
