"""Wrong input: exit code 2, one line with expected, found and where, and no file left behind."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from qdq import QdqModel

from vdla.compiler import models
from vdla.compiler.graph.window import Window
from vdla.isa.config import load_config
from vdla.isa.instructions import INSTRUCTIONS
from vdla.isa.options import OPTIONS
from vdla.runtime.module import FORMAT_VERSION, PREFIX


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


KEYS = (
    "block_in, block_out, inp_bytes, wgt_bytes, acc_bytes, uop_bytes, port_bytes, clock_mhz, "
    "command_queue, token_queue, burst_beats, reads_in_flight, read_buffer_beats, "
    f"writes_in_flight, {', '.join(option.parameter.name for option in OPTIONS)}"
)
NOT_QDQ = (
    "expected a quantized (QDQ) model; `vdla quantize` makes one, "
    "found no QuantizeLinear or DequantizeLinear node"
)


def test_models_that_are_not_there(refused):
    assert refused("run", "nosuch.onnx") == (
        f"nosuch.onnx: expected an ONNX file or one of {', '.join(models.MODELS)}, found neither"
    )
    assert refused("run", ".") == ".: expected an ONNX file, found a folder"
    assert refused("run", "resnet18-convs") == (
        "resnet18-convs: expected one network, found several; only compare takes it"
    )


@pytest.mark.parametrize("command", [("compile", "-o", "m.vdla"), ("run",), ("compare",)])
def test_files_that_are_no_models(refused, tmp_path, command):
    whole = models.model_path("digits").read_bytes()
    contents = {
        "text": b"not a model",
        "half": whole[: len(whole) // 2],
        "cut": whole[:-3],
    }
    verb, *options = command
    for name, content in contents.items():
        (tmp_path / f"{name}.onnx").write_bytes(content)
        line = refused(verb, f"{name}.onnx", *options)
        assert line.startswith(f"{name}.onnx: expected an ONNX model, found ")
    (tmp_path / "module.onnx").write_bytes(b"VDLAMOD\n")  # what it is, its first bytes say
    assert refused(verb, "module.onnx", *options) == (
        "module.onnx: expected at least 20 bytes, found 8: truncated"
        if verb == "run"
        else "model: expected an ONNX file or a bundled name, found module.onnx"
    )
    (tmp_path / "empty.onnx").touch()
    assert refused(verb, "empty.onnx", *options) == (
        "empty.onnx: expected an ONNX model, found no operators in it"
    )


@pytest.mark.parametrize("command", [("compile", "-o", "m.vdla"), ("run",), ("compare",)])
def test_models_that_no_device_runs(refused, command):
    verb, *options = command
    onnx.save(model("Relu"), "float.onnx")
    assert refused(verb, "float.onnx", *options) == f"float.onnx: {NOT_QDQ}"
    onnx.save(model("Relu", ("N", 8)), "dynamic.onnx")
    assert refused(verb, "dynamic.onnx", *options) == (
        "dynamic.onnx: input x: expected a static shape, "
        "found 'N' in dimension 0; give it: --shape N=SIZE"
    )
    assert refused(verb, "dynamic.onnx", *options, "--shape", "N=2") == f"dynamic.onnx: {NOT_QDQ}"
    assert refused(verb, "dynamic.onnx", *options, "--shape", "M=2") == (
        "dynamic.onnx: expected shapes for its inputs (x) or dimensions (N), found one for M"
    )
    onnx.save(model("Det", (1, 8, 8), (1,)), "op.onnx")
    assert refused(verb, "op.onnx", *options) == f"op.onnx: {NOT_QDQ}"
    onnx.save(model("NonZero", (1, 8), (2, "N")), "op.onnx")
    assert refused(verb, "op.onnx", *options) == f"op.onnx: {NOT_QDQ}"


def test_config_files(refused, tmp_path):
    assert refused("configs", "nosuch") == (
        "config nosuch: expected a .toml file or one of colorlight, nano, narrow, paper, "
        "paper-full, paper-plus, paper-ring, tiny, ulx3s, ulx3s-wide, vta, wide, xc7z020, "
        "found neither"
    )
    assert refused("configs", "missing.toml") == (
        "missing.toml: expected a readable file, found No such file or directory"
    )
    contents = {
        "bad": ("block_in = \n", "TOML, found Invalid value (at line 1, column 12)"),
        "key": ("blocks = 3\n", f"one of name, {KEYS}, found blocks"),
        "few": ("block_in = 4\n", "block_out, found no such key"),
        "type": ('block_in = "4"\n', "block_in to be an integer, found '4'"),
    }
    for name, (content, line) in contents.items():
        (tmp_path / f"{name}.toml").write_text(content)
        assert refused("configs", f"{name}.toml") == f"{name}.toml: expected {line}"
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert refused("configs", "binary.toml").startswith("binary.toml: expected TOML, found ")


@pytest.mark.parametrize(
    "command",
    [("run", "digits"), ("compare", "digits"), ("compile", "digits", "-o", "m.vdla"),
     ("configs", "paper"), ("isa", "doc"), ("isa", "header")],
)  # fmt: skip
@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("block_in=3", "config paper: expected block_in bytes to be a multiple of port_bytes = 8, "
         "found 3"),
        ("block_in=0", "config paper: expected 1 ≤ block_in ≤ 256, found 0"),
        ("vector_engine=2", "config paper: expected 0 ≤ vector_engine ≤ 1, found 2"),
        ("window_rows=2", "config paper: expected window_taps to be from 2 to block_in / 4 = 4 "
         "where window_rows = 2, found 0; change one of the two"),
        ("window_taps=9", "config paper: expected window_taps to be 0 or from 2 to block_in / 2 = "
         "8, found 9"),
        ("acc_bytes=64", "config paper: expected acc_bytes to hold at least 2 entries of 64 bytes, "
         "found 64"),
        ("block_in=x", "--set block_in=x: expected an integer, found 'x'"),
        ("delay=3", f"--set delay=3: expected KEY=VALUE with KEY one of {KEYS}, found 'delay'"),
        ("memory.delay=3", "--set memory.delay=3: expected KEY=VALUE with KEY one of "
         "memory.latency, memory.bytes_per_cycle, found 'memory.delay'"),
    ],
)  # fmt: skip
def test_settings(refused, command, setting, line):
    assert refused(*command, "--set", setting) == line


def test_a_config_that_holds_no_tile_falls_back_to_the_host(vdla):
    found = vdla("run", "digits", "-c", "tiny", "--set", "wgt_bytes=32", "--json").json
    reasons = {p["name"]: p["reason"] for p in found["placement"] if p["device"] == "cpu"}
    assert reasons["conv2"] == (
        "config tiny: expected buffers that hold one tile of a 3×3 convolution, "
        "found inp 256, wgt 2, acc 128 entries"
    )


@pytest.fixture
def chain(tmp_path):
    """An inverted bottleneck: three convolutions, the second of each channel by itself."""
    m = QdqModel(seed=5)
    y = m.conv(m.input("x", (1, 16, 10, 10)), 32, 1, activation="Relu")
    y = m.conv(y, 32, Window.square(3), groups=32, activation="Relu")
    m.output(m.conv(y, 16, 1))
    path = tmp_path / "chain.onnx"
    onnx.save(m.model(), path)
    return path


def test_a_chain_of_which_the_buffers_hold_no_tile_runs_apart(vdla, chain):
    small = ["run", chain, "-c", "paper-ring", "--set", "acc_bytes=1024"]
    rows = vdla(*small, "--json").json["placement"]
    assert [(row["name"], row["reason"]) for row in rows if row["device"] == "vdla"] == [
        ("conv4", "convolution on int8"),
        ("conv10", "convolution on int8; not one with conv4, conv16: no tile of them fits "
         "inp 2048, wgt 128, acc 16 entries"),
        ("conv16", "convolution on int8"),
    ]  # fmt: skip
    assert "no tile of them" in re.sub(r"[\s│]+", " ", vdla(*small).out)


def test_buffers_that_hold_a_chain_and_not_its_parts(vdla, chain):
    """Four tiles of weights are too few for the 3×3 convolution by itself."""
    results = [
        vdla("run", chain, "-c", "paper-ring", "--set", f"wgt_bytes={size}", "--json").json
        for size in (1024, 32768)
    ]
    for result in results:
        (row,) = [row for row in result["placement"] if row["device"] == "vdla"]
        assert row["reason"] == "conv4 → conv10 → conv16 on int8, as one"
    assert results[0]["outputs"] == results[1]["outputs"]


def test_modules(refused, vdla, tmp_path):
    vdla("compile", "digits", "-c", "tiny", "-o", tmp_path / "d.vdla")
    raw = (tmp_path / "d.vdla").read_bytes()
    tiny, paper = load_config("tiny").hash, load_config("paper").hash
    assert refused("run", "d.vdla", "-c", "paper") == (
        f"d.vdla: expected config paper ({paper}), found a module for tiny ({tiny})"
    )
    assert refused("isa", "disasm", "d.vdla", "-c", "paper") == (
        f"d.vdla: program0: expected a program for config paper ({paper}), found one for {tiny}"
    )
    assert refused("run", "d.vdla", "--check") == (
        "--check: expected an ONNX model to compare with, found d.vdla"
    )
    assert refused("run", "none.vdla") == (
        "none.vdla: expected a vdla module, found No such file or directory"
    )
    header = PREFIX.size + PREFIX.unpack_from(raw)[2]
    changed = {
        "empty": (b"", "expected a vdla module (b'VDLAMOD\\n'), found an empty file"),
        "foreign": (b"PK\3\4" + raw,
                    "expected a vdla module (b'VDLAMOD\\n'), found b'PK\\x03\\x04VDLA'"),
        "newer": (raw[:8] + b"\xff" + raw[9:],
                  f"expected module format {FORMAT_VERSION}, found format 255"),
        "cut": (raw[:1000], f"expected at least {header} bytes, found 1000: truncated"),
        "short": (raw[:-5],
                  f"expected at least {len(raw)} bytes, found {len(raw) - 5}: truncated"),
        "long": (raw + b"x", f"expected {len(raw)} bytes, found {len(raw) + 1}"),
    }  # fmt: skip
    for name, (content, line) in changed.items():
        (tmp_path / f"{name}.vdla").write_bytes(content)
        assert refused("run", f"{name}.vdla") == f"{name}.vdla: {line}"
    for at, what in ((PREFIX.size + 40, "header"), (len(raw) - 100, "section program:program0")):
        flipped = bytearray(raw)
        flipped[at] ^= 4
        (tmp_path / "flipped.vdla").write_bytes(flipped)
        assert re.fullmatch(
            f"flipped.vdla: {what}: expected checksum [0-9a-f]{{8}}, found [0-9a-f]{{8}}",
            refused("run", "flipped.vdla"),
        )


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
    np.savez("object.npz", image=np.array([{}], dtype=object))
    assert refused("run", "digits", "--input", "object.npz") == (
        "object.npz: expected an .npz file of arrays, found other content"
    )
    assert refused("run", "digits", "--input", "none.npz") == (
        "none.npz: expected a readable .npz file, found No such file or directory"
    )


@pytest.mark.parametrize("text", ["1,x", "0", "9", "1,1", ""])
def test_thread_counts(refused, text):
    assert refused("compare", "digits", "--vthreads", text) == (
        f"--vthreads: expected distinct numbers from 1 to 8, found {text!r}"
    )


@pytest.mark.parametrize("text", ["N", "N=", "=3", "N=1,x"])
@pytest.mark.parametrize(
    "command",
    [("run", "digits"), ("compile", "digits", "-o", "m"), ("compare", "digits"),
     ("tune", "digits", "--log", "l", "--searcher", "grid"), ("lockstep", "--model", "digits"),
     ("quantize", "f.onnx", "-o", "q.onnx")],
)  # fmt: skip
def test_shapes(refused, command, text):
    assert refused(*command, "--shape", text) == (
        f"--shape: expected NAME=N or INPUT=D0,D1,…, found {text!r}"
    )


def test_shapes_of_no_onnx_model(refused, vdla, tmp_path):
    assert vdla("compile", "digits", "-c", "tiny", "-o", tmp_path / "d.vdla").code == 0
    assert refused("run", "d.vdla", "--shape", "N=2") == (
        "--shape: expected an ONNX model, found the module d.vdla"
    )
    assert refused("lockstep", "--shape", "N=2") == "--shape: expected --model, found none"


def test_devices(refused):
    line = "--device: expected one of sim, rtl, cpu, gpu, {}found npu"
    assert refused("run", "digits", "--device", "npu") == line.format("board, ")
    assert refused("compile", "digits", "-o", "m.vdla", "--device", "npu") == line.format("")


def test_places_and_hosts(refused):
    for text in ("conv1", "=gpu", "conv1=", " = "):
        line = f"--place: expected NODE=DEVICE, found {text!r}"
        assert refused("run", "digits", "--place", text) == line
        assert refused("compile", "digits", "-o", "m.vdla", "--place", text) == line
    line = (
        "--host: expected cpu, gpu or a processor whose time is modelled, one of cortex-a53, "
        "cortex-a9, znver4, found npu"
    )
    assert refused("run", "digits", "--host", "npu") == line
    assert refused("compile", "digits", "-o", "m.vdla", "--host", "npu") == line


def test_strict_is_for_the_accelerator(refused, vdla, tmp_path):
    """A module is compiled already, and a processor alone computes floats anyway."""
    path = tmp_path / "m.vdla"
    assert vdla("compile", "digits", "-o", path).code == 0
    line = f"--strict: expected an ONNX model, found the module {path}"
    assert refused("run", path, "--strict") == line
    line = "--strict: expected --device sim or rtl or board, found cpu"
    assert refused("run", "digits", "--device", "cpu", "--strict") == line
    assert refused("compile", "digits", "-o", path, "--device", "cpu", "--strict") == line


def test_samples_of_inputs(refused, tmp_path):
    path, output = tmp_path / "x.npz", tmp_path / "m.vdla"
    line = (
        f"--calibration: {path}: expected an .npz file of arrays, found No such file or directory"
    )
    assert refused("compile", "digits", "-o", output, "--calibration", path) == line
    np.savez(path, other=np.zeros(3))
    line = "expected samples of the model's inputs, image, found other"
    assert refused("run", "digits", "--calibration", path).endswith(line)
    line = "--calibration: expected --device sim or rtl or board, found cpu"
    assert refused("run", "digits", "--device", "cpu", "--calibration", path) == line
    assert not output.exists()


def test_files_that_are_read_are_not_written(refused, tmp_path):
    """By whatever name: the same path, a relative one, a link of either kind."""
    (tmp_path / "in").mkdir()
    source = tmp_path / "in" / "m"
    source.write_bytes(b"as it was")
    (tmp_path / "soft").symlink_to(source)
    (tmp_path / "hard").hardlink_to(source)
    for command in (
        ("compile", "in/m", "-o"), ("compile", "digits", "-c", "in/m", "-o"),
        ("quantize", "in/m", "-o"), ("quantize", "f.onnx", "--calibration", "in/m", "-o"),
        ("run", "in/m", "--output"), ("run", "in/m", "--trace"),
        ("run", "digits", "--input", "in/m", "--output"), ("isa", "asm", "in/m", "-o"),
    ):  # fmt: skip
        for output in ("in/m", source, "in/../in/m", "soft", "hard"):
            assert refused(*command, output) == (
                f"{output}: expected a file that the command doesn't read, found in/m; "
                "write to another"
            )
    assert refused("explore", "in/m", "--report", "soft") == (
        "soft: expected a file that the command doesn't read, found in/m; write to another"
    )
    assert refused("quantize", "soft", "-o", "in/m") == (
        "in/m: expected a file that the command doesn't read, found soft; write to another"
    )
    (tmp_path / "own.toml").write_text(load_config("tiny").to_toml())
    assert refused("isa", "doc", "-c", "own.toml", "-o", "own.toml") == (
        "own.toml: expected a file that the command doesn't read, found own.toml; write to another"
    )
    assert source.read_bytes() == b"as it was"
    assert (tmp_path / "own.toml").read_text() == load_config("tiny").to_toml()


def test_places_to_write(refused, tmp_path):
    """Known before the work starts; nothing is written for a wrong option either."""
    (tmp_path / "file").touch()
    for command in (
        ("compile", "digits", "-o"), ("run", "digits", "--output"), ("run", "digits", "--trace"),
        ("quantize", "f.onnx", "-o"), ("isa", "doc", "-o"), ("isa", "asm", "file", "-o"),
    ):  # fmt: skip
        assert refused(*command, "none/x") == (
            "none/x: expected the folder none to exist, found none"
        )
        assert refused(*command, ".") == ".: expected a file to write, found a folder"
    for command in (("compare", "digits", "--out"), ("compile", "digits", "-o", "m", "--dump")):
        assert refused(*command, "file/x") == (
            f"file/x: expected a folder to write to, found {tmp_path / 'file'} to be a file"
        )
    assert refused("compare", "digits", "-c", "tiny", "--out", "a/b", "--trace-layer", "zz") == (
        "--trace-layer: expected one of conv1, conv2, fc, found zz"
    )
    assert refused("run", "digits", "--profile", "--check") == (
        "--profile: expected no --check, found both"
    )


def test_a_full_disk_is_named(vdla, tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    done = vdla("run", "digits", "-c", "tiny", "--images", 1, "--trace", tmp_path / "t.json")
    assert done.code == 2
    assert done.err.splitlines()[-1] == (
        f"vdla: {tmp_path / 't.json'}: expected a file that can be used, found No space left on "
        "device"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("run", "digits", "-c", "tiny"), ("models",)])
def test_an_interrupt_says_so(vdla, monkeypatch, command):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("vdla.commands.run.run", interrupted)
    monkeypatch.setattr("vdla.commands.catalog.models", interrupted)
    done = vdla(*command)
    assert (done.code, done.err) == (130, "vdla: interrupted; what was written is whole\n")


def test_the_end_of_a_file_is_no_interrupt(vdla, monkeypatch):
    """It is a bug's, and shows where it came from."""

    def ended(*args, **kwargs):
        raise EOFError("short")

    monkeypatch.setattr("vdla.commands.catalog.models", ended)
    with pytest.raises(EOFError, match="short"):
        vdla("models")


def test_usage(refused):
    assert refused("run") == "Missing argument 'MODEL|M.vdla'; see vdla run --help"
    assert refused("bogus") == "No such command 'bogus'; see vdla --help"
    assert refused("compile", "digits") == (
        "Missing option '-o' / '--output'; see vdla compile --help"
    )
    assert refused("run", "digits", "--samples", "x").startswith("Invalid value for '--samples': ")


def test_quantize(refused, tmp_path):
    assert refused("quantize", "none.onnx", "-o", "q.onnx") == (
        "none.onnx: expected an ONNX file, found no file"
    )
    (tmp_path / "text.onnx").write_text("not a model")
    assert refused("quantize", "text.onnx", "-o", "q.onnx").startswith(
        "text.onnx: expected an ONNX model, found "
    )


def test_assembly(refused, tmp_path):
    (tmp_path / "p.s").write_text("LOAD memory=INP\nJUMP\n")
    assert refused("isa", "asm", "p.s", "-o", "p.bin") == (
        f"p.s:2: expected one of {', '.join(cls.mnemonic for cls in INSTRUCTIONS)}, found JUMP"
    )
    (tmp_path / "p.s").write_text("GEMM dst_base=9999999\n")
    assert refused("isa", "asm", "p.s", "-o", "p.bin") == (
        "p.s:1: GEMM.dst_base: expected 0..2047 (11 bits in config paper), found 9999999"
    )
    (tmp_path / "p.s").write_bytes(b"\x7fELF\xff")
    assert refused("isa", "asm", "p.s", "-o", "p.bin") == (
        "p.s: expected assembly text, found other content"
    )
    assert refused("isa", "disasm", "p.s") == "p.s: expected a VDLA program, found other content"
    assert refused("isa", "disasm", "none.bin") == (
        "none.bin: expected a file that can be used, found No such file or directory"
    )
