"""The public contract: what each command prints, writes and returns."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from qdq import QdqModel

import vdla as api
from vdla.api.modules import random_inputs
from vdla.commands import inputs
from vdla.commands import run as run_command
from vdla.compiler import models
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import config_names, load_config
from vdla.options import Run, RunFiles
from vdla.runtime.plan import Accelerate
from vdla.sim.machine import warm_up

ROOT = Path(__file__).parents[3]


def test_run_json_has_the_contract_keys(vdla):
    done = vdla("run", "digits", "-c", "tiny", "--json")
    assert done.code == 0
    found = done.json
    assert list(found) == [
        "device", "config", "cycles", "host_layers", "seconds", "end_to_end", "outputs",
        "placement", "programs",
    ]  # fmt: skip
    assert (found["device"], found["config"]) == ("sim", "tiny")
    assert found["cycles"] == 360 * 12719
    (output,) = found["outputs"].values()
    assert output["shape"] == [360, 10]
    assert output["dtype"] == "float32"
    assert len(output["sha256"]) == 64
    assert set(found["placement"][0]) == {"op", "name", "device", "reason"}
    assert {p["device"] for p in found["placement"]} == {"vdla", "cpu"}


def test_digits_is_as_accurate_as_onnxruntime(vdla):
    line = vdla("run", "digits").out.strip().splitlines()[-1]
    words = line.replace(",", "").split()
    assert line.startswith("accuracy over 360 test images")
    got, want = (float(w) for w in words if w.replace(".", "").isdigit() and "." in w)
    assert abs(got - want) <= 0.3
    assert got > 95


def test_some_test_images(vdla):
    done = vdla("run", "digits", "-c", "tiny", "--images", 3, "--json")
    assert next(iter(done.json["outputs"].values()))["shape"] == [3, 10]
    left, accuracy = done.err.splitlines()[-2:]
    assert accuracy.startswith("accuracy over 3 test images: ")
    assert re.fullmatch(r"ran 3 of 360 test images at 0\.\d s each: all would take \d+ s; "
                        r"--images N runs more", left)  # fmt: skip
    done = vdla("run", "digits", "-c", "tiny", "--images", 999, "--json")
    assert next(iter(done.json["outputs"].values()))["shape"] == [360, 10]
    assert "all would take" not in done.err
    refused = vdla("run", "resnet18", "--images", 2)
    assert (refused.code, refused.err.splitlines()[-1]) == (
        2,
        "vdla: --images: expected a bundled model with test images, as digits, found resnet18",
    )


def test_a_check_on_test_images(vdla):
    done = vdla("run", "digits", "-c", "tiny", "--check", "--images", 2, "--json")
    assert done.json["holds"]
    assert len(done.json["whole"]) == 2
    assert vdla("run", "digits", "--check", "--images", 2, "--samples", 3).err == (
        "vdla: --samples: expected no --images, found both\n"
    )
    assert vdla("run", "resnet18", "--check", "--images", 2).err == (
        "vdla: --images: expected a bundled model with test images, as digits, found resnet18\n"
    )


def test_a_virtual_board_takes_one_test_image():
    """Where each takes seconds; others take all."""
    virtual = Run(device="board", board="ulx3s", virtual=True)
    for options, files, count in (
        (virtual, RunFiles(), 1),
        (virtual, RunFiles(images=7), 7),
        (replace(virtual, virtual=False), RunFiles(), 360),
        (Run(), RunFiles(), 360),
    ):
        split = inputs.test_images("digits", options, files)
        assert (len(split.images), len(split.labels), split.count) == (count, count, 360)
    assert [run_command._minutes(s) for s in (8.6, 119, 130, 3240)] == [
        "9 s",
        "119 s",
        "2 min",
        "54 min",
    ]


def test_cpu_and_sim_give_the_same_bytes(vdla):
    on_sim, on_cpu = (vdla("run", "digits", "--device", d, "--json").json for d in ("sim", "cpu"))
    assert on_sim["outputs"] == on_cpu["outputs"]
    assert on_cpu["cycles"] is None


def test_check_agrees_with_onnxruntime(vdla):
    done = vdla("run", "digits", "--check", "--json")
    assert done.code == 0
    assert done.json["holds"] is True
    assert all(layer["largest"] <= 1 for layer in done.json["layers"])
    assert len(done.json["whole"]) == 8


def accelerator_alone(path):
    """A module of int8 in and out, all of whose steps are the accelerator's: no host code."""
    kind = TensorType((1, 16, 8, 8), "int8", block=4)
    node = QMinimum(
        name="m", output="y", a="a", b="b", zeros=(0, 0), requant=Requant((0.5, 0.25), 0)
    )
    plain = replace(kind, block=0)
    graph = Graph(("a", "b"), ("y",), (node,), dict.fromkeys("aby", plain))
    module = compile_graph(graph, load_config("tiny"), Options())
    steps = tuple(step for step in module.steps if isinstance(step, Accelerate))
    replace(module, steps=steps, host=None).save(path)


def test_modules_that_bring_code_can_be_refused(vdla, tmp_path):
    """An accelerator's programs reach its memory alone; native code has the caller's rights."""
    path, mixed = tmp_path / "a.vdla", tmp_path / "d.vdla"
    accelerator_alone(path)
    vdla("compile", "digits", "-c", "tiny", "-o", mixed)
    assert vdla("run", path, "--no-native").code == 0
    done = vdla("run", mixed, "--no-native")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        f"vdla: --no-native: expected {mixed} to hold programs for the accelerator alone, "
        "found code for x86_64-"
    )
    with pytest.raises(api.UserError, match=r"^--no-native: expected module to hold programs for"):
        api.run(api.load(mixed), no_native=True)
    with pytest.raises(api.UserError, match=r"^--no-native: expected a module, found the model di"):
        api.run("digits", no_native=True)
    module = replace(api.load(path), external={"odd": b"onnx"})
    with pytest.raises(api.UserError, match=r"alone, found onnxruntime's odd$"):
        api.run(module, no_native=True)


def test_help_and_readme_say_whose_code_a_module_runs(vdla):
    """Nothing else warns of it: a checksum is no signature."""
    told = " ".join(vdla("run", "--help").out.replace("│", " ").split())
    assert "brings code that runs on this processor with your rights" in told
    assert "A module (`M.vdla`) contains native code" in (ROOT / "README.md").read_text()


def test_check_takes_an_input(vdla, tmp_path):
    """One comparison, on that input, which is held to the model's like any other."""
    x = random_inputs(api.compile("digits", "tiny"))
    np.savez(tmp_path / "x.npz", **x)
    done = vdla("run", "digits", "-c", "tiny", "--check", "--input", tmp_path / "x.npz", "--json")
    assert done.code == 0
    assert len(done.json["whole"]) == 1
    np.savez(tmp_path / "x.npz", z=np.zeros(3))
    done = vdla("run", "digits", "-c", "tiny", "--check", "--input", tmp_path / "x.npz")
    assert (done.code, done.err.splitlines()[-1]) == (2, "vdla: inputs: expected image, found z")


def test_run_takes_a_target(vdla, tmp_path):
    """What the processor's code is, as compile has it: Winograd's sums differ from plain ones."""
    kind = (TensorProto.FLOAT, [1, 64, 32, 32])
    weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["t"], pads=[1] * 4),
         helper.make_node("Conv", ["t", "w"], ["y"], pads=[1] * 4)], "g",
        [helper.make_tensor_value_info("x", *kind)], [helper.make_tensor_value_info("y", *kind)],
        [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    found = []
    for name in ("native", "native,-winograd"):
        out = tmp_path / f"{name}.npz"
        assert vdla("run", path, "--device", "cpu", "--target", name, "--output", out).code == 0
        found.append(np.load(out)["y"])
    assert found[0].tobytes() != found[1].tobytes()
    np.testing.assert_allclose(found[0], found[1], atol=1e-5 * np.abs(found[0]).max())
    refused = vdla("run", path, "--device", "cpu", "--target", "z80")
    assert refused.code == 2
    assert refused.err.startswith("vdla: target: expected one of native, x86-64-v3, ")


@pytest.mark.long
def test_check_of_resnet18(vdla):
    """Issue numbers: ≤ 1 LSB on ≤ 0.1 % of each layer, cosine ≥ 0.999, the same top-1."""
    done = vdla("run", "resnet18", "--check", "--json")
    assert done.code == 0
    assert max(layer["share"] for layer in done.json["layers"]) <= 0.001
    assert min(a["cosine"] for a in done.json["whole"]) >= 0.999
    assert all(a["same_top1"] or a["tie"] for a in done.json["whole"])


def test_compile_then_run_a_module(vdla, tmp_path):
    module, given, got = tmp_path / "d.vdla", tmp_path / "x.npz", tmp_path / "y.npz"
    done = vdla("compile", "digits", "-c", "tiny", "-o", module, "--json")
    assert done.code == 0
    assert done.json["config"] == "tiny"
    images, _ = models.digits_test()
    (name,) = api.load(module).inputs
    np.savez(given, **{name: images[:1]})
    done = vdla("run", module, "--input", given, "--output", got, "--json")
    assert done.code == 0
    with np.load(got) as file:
        want = api.run("digits", {name: images[:1]}, config="tiny").outputs
        for output, array in want.items():
            np.testing.assert_array_equal(file[output], array)


def test_dump_writes_the_processors_loops_and_code(vdla, tmp_path):
    folder = tmp_path / "dump"
    vdla("compile", "digits", "--device", "cpu", "-o", tmp_path / "d.vdla", "--dump", folder)
    assert (folder / "conv2" / "01_loops.txt").read_text().startswith("func host_conv2(in0: int8[")
    assert 'define void @"host_conv2"' in (folder / "conv2" / "02_llvm.txt").read_text()
    assert "host_conv2:" in (folder / "conv2" / "03_assembly.txt").read_text()


def test_dump_writes_every_pass(vdla, tmp_path):
    vdla("compile", "digits", "-c", "tiny", "-o", tmp_path / "d.vdla", "--dump", tmp_path / "dump")
    layer = sorted(p.name for p in (tmp_path / "dump" / "conv2").iterdir())
    assert layer == [
        "01_expression.txt", "02_schedule.txt", "03_loops.txt", "04_virtual_threads.txt",
        "05_in_place.txt", "06_allocate.txt", "07_instructions.txt",
    ]  # fmt: skip
    stream = (tmp_path / "dump" / "stream" / "01_program0.txt").read_text()
    assert "push_next" in stream
    assert stream.rstrip().endswith("FINISH")
    assert (tmp_path / "dump" / "graph" / "01_imported.txt").exists()


def test_compare_json_plots_and_trace(vdla, tmp_path):
    done = vdla("compare", "digits", "-c", "tiny", "--out", tmp_path, "--json")
    assert done.code == 0
    found = done.json
    assert list(found) == ["config", "memory", "layers", "host_layers", "end_to_end", "total"]
    assert list(found["layers"][0]) == [
        "name", "macs", "dram_bytes", "compute_cycles", "memory_cycles", "bound_cycles",
        "cycles", "utilization", "work",
    ]  # fmt: skip
    assert list(found["total"]) == ["macs", "bound_cycles", "cycles", "utilization", "work"]
    for layer in found["layers"]:
        assert layer["bound_cycles"] == max(layer["compute_cycles"], layer["memory_cycles"])
        for v in ("1", "2"):
            assert layer["utilization"][v] == layer["compute_cycles"] / layer["cycles"][v]
    pictures = sorted(tmp_path.glob("*.png"))
    assert [p.name for p in pictures] == ["digits-tiny-roofline.png", "digits-tiny-utilization.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)
    (trace,) = tmp_path.glob("*.trace.json")
    events = json.loads(trace.read_text())["traceEvents"]
    starts = [e for e in events if e["ph"] == "s"]
    assert starts
    assert len(starts) == sum(e["ph"] == "f" for e in events)


@pytest.mark.long
def test_every_layer_is_at_its_bound(convolutions):
    """C2 to C12 within 5 % of the bound (C3, bound twice: 10 %), 97 % of peak in the mean."""
    layers = {layer["name"]: layer for layer in convolutions.to_json()["layers"]}
    assert list(layers) == [f"C{i}" for i in range(1, 13)]
    assert all(layer["cycles"]["2"] < layer["cycles"]["1"] for layer in layers.values())
    assert layers.pop("C1")["utilization"]["2"] >= 0.91  # 147 of 160 lanes
    for name, layer in layers.items():
        of_bound = layer["bound_cycles"] / layer["cycles"]["2"]
        assert of_bound >= (0.90 if name == "C3" else 0.95), name
    assert max(layer["utilization"]["2"] for layer in layers.values()) >= 0.99
    compute = sum(layer["compute_cycles"] for layer in layers.values())
    assert compute / sum(layer["cycles"]["2"] for layer in layers.values()) >= 0.97


def test_the_whole_network_is_one_program(resnet18):
    """Only the image's quantization and the logits' floats are the host's."""
    rows = resnet18.metadata["placement"]
    on_host = [row["op"] for row in rows if row["device"] != "vdla"]
    assert on_host == ["Quantize", "Dequantize"]
    assert len(resnet18.programs) == 1
    assert api.run(resnet18, random_inputs(resnet18)).cycles <= 7_532_764


def test_configs_json_has_what_follows(vdla):
    found = vdla("configs", "paper", "--json").json
    assert (found["macs_per_cycle"], found["peak_gops"]) == (256, 102.4)
    follows = {"hash", "bytes_per_cycle", "instruction_bytes", "entries", "field_bits", "uop_bits"}
    assert follows <= set(found)
    assert vdla("configs", "paper", "--set", "clock_mhz=100", "--json").json["peak_gops"] == 51.2
    tables = {c["name"]: c["tables"] for c in vdla("configs", "--json").json["configs"]}
    assert (tables["paper"], tables["paper-plus"]) == (0, 4)
    assert "tables" in vdla("configs").out
    options = {c["name"]: c["options"] for c in vdla("configs", "--json").json["configs"]}
    assert (options["paper"], options["paper-plus"]) == ([], ["tables"])
    window = ["a window", "a window of two rows"]
    assert options["paper-ring"] == ["forwarding", *window, "a vector engine"]


def test_progress_is_for_terminals_alone(vdla, tmp_path):
    warm_up(load_config("tiny"))
    assert vdla("compile", "digits", "-c", "tiny", "-o", tmp_path / "d.vdla", "--json").err == ""
    assert vdla("run", tmp_path / "d.vdla", "--json").err == ""


def test_listings_load_no_compiler():
    """Help and listings come at once: nothing heavy is imported for them."""
    heavy = {"numpy", "numba", "llvmlite", "onnx", "onnxruntime", "matplotlib"}
    for args in (["--help"], ["configs"], ["isa", "doc"]):
        code = (
            "import contextlib, io, sys; from vdla.commands.cli import main\n"
            f"sys.argv = ['vdla', *{args}]\n"
            "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
            "    main()\n"
            f"print(sorted({heavy} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("[]\n", "")


def test_set_changes_the_machine_and_the_memory(vdla, tmp_path):
    def cycles(*settings):
        args = [a for s in settings for a in ("--set", s)]
        out = ("--out", tmp_path, "--vthreads", "2", "--json")
        return vdla("compare", "digits", "-c", "tiny", *out, *args).json["total"]["cycles"]["2"]

    assert cycles("memory.latency=256") > cycles() > cycles("memory.latency=0")
    assert cycles("acc_bytes=1024") != cycles()


def float_model(path, batch):
    """Writes a convolution of floats."""
    weight = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        "float",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 16, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 16, 8, 8])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 10  # what the installed onnxruntime reads
    onnx.save(model, str(path))


def test_quantize_writes_a_model_that_runs(vdla, tmp_path):
    source, target = tmp_path / "f.onnx", tmp_path / "q.onnx"
    float_model(source, 1)
    assert vdla("quantize", source, "-o", target).code == 0
    found = vdla("run", target, "-c", "tiny", "--json").json
    assert "vdla" in {p["device"] for p in found["placement"]}
    refused = vdla("compare", source, "--out", tmp_path)
    assert refused.code == 2
    assert "vdla quantize" in refused.err


@pytest.mark.parametrize("later", [
    ("compare", "-c", "tiny"), ("compare", "-c", "tiny", "-c", "narrow"), ("run", "-c", "tiny"),
    ("compile", "-o", "q.vdla"), ("evaluate", "--level", "model"),
    ("offload", "--board", "pynq-z2"),
])  # fmt: skip
def test_sizes_given_to_quantize_are_given_for_good(vdla, tmp_path, monkeypatch, later):
    monkeypatch.chdir(tmp_path)
    float_model("f.onnx", "batch")
    assert vdla("quantize", "f.onnx", "-o", "q.onnx", "--shape", "batch=1").code == 0
    command, *options = later
    done = vdla(command, "q.onnx", *options)
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", config_names())
def test_configs_print_what_load_reads(vdla, tmp_path, name):
    text = vdla("configs", name).out
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert vdla("configs", file, "--json").json == vdla("configs", name, "--json").json


def test_listings(vdla):
    assert {c["name"] for c in vdla("configs", "--json").json["configs"]} == set(config_names())
    assert set(vdla("models", "--json").json["models"]) == set(models.MODELS)
    assert "numpy" in vdla("doctor", "--json").json["found"]
    assert vdla("--version").out.startswith("vdla ")


def test_isa_commands(vdla, tmp_path):
    source, program = tmp_path / "p.s", tmp_path / "p.bin"
    source.write_text("LOAD memory=WGT x_size=2 y_size=1 z_size=1\nFINISH\n")
    assert vdla("isa", "asm", source, "-o", program, "-c", "tiny").code == 0
    module = tmp_path / "d.vdla"
    vdla("compile", "digits", "-c", "tiny", "-o", module)
    assert vdla("isa", "disasm", module).out.startswith("; program0\n; config tiny ")
    wider = vdla("isa", "header", "--set", "block_in=32").out
    assert wider.splitlines()[1:] != vdla("isa", "header").out.splitlines()[1:]
    text = vdla("isa", "disasm", program, "-c", "tiny").out
    assert "LOAD memory=WGT x_size=2 y_size=1 z_size=1" in text
    assert "#define VDLA_OPCODE_GEMM 2" in vdla("isa", "header").out


def test_the_manual_is_current(vdla):
    from pathlib import Path

    manual = Path(__file__).parents[3] / "isa" / "ISA.md"
    assert vdla("isa", "doc").out == manual.read_text(), "run: vdla isa doc -o isa/ISA.md"


def test_the_api(tmp_path):
    module = api.compile("digits", config="tiny")
    module.save(tmp_path / "d.vdla")
    images, labels = models.digits_test()
    result = api.run(tmp_path / "d.vdla", {module.inputs[0]: images[:1]})
    assert result.cycles == 12719
    assert int(next(iter(result.outputs.values())).argmax()) == labels[0]
    assert api.compare("digits", config="tiny").utilization(2) > 0


def unsigned_weights(zero):
    """Two convolutions, the second with uint8 weights for the whole tensor, as some tools make."""
    m = QdqModel(seed=7)
    x = m.conv(m.input("x", (1, 8, 6, 6)), 8, 3)
    integers = m.constant("w", m.rng.integers(0, 256, (8, 8, 3, 3)).astype(np.uint8))
    scale, zp = m.constant("ws", np.array(0.004, np.float32)), m.constant("wz", np.uint8(zero))
    weight = m.node("DequantizeLinear", [integers, scale, zp], (8, 8, 3, 3))
    m.output(m.quantized(m.node("Conv", [x, weight], (1, 8, 2, 2)), 0.5))
    return m.model()


def test_uint8_weights_that_are_int8_moved_by_128_stay_on_the_accelerator(vdla, tmp_path):
    onnx.save(unsigned_weights(128), tmp_path / "w.onnx")
    done = vdla("run", tmp_path / "w.onnx", "-c", "tiny", "--json")
    assert done.json["host_layers"] == []
    assert "on the host" not in vdla("run", tmp_path / "w.onnx", "-c", "tiny").out
    assert vdla("run", tmp_path / "w.onnx", "-c", "tiny", "--check").code == 0


def weights_by_input():
    """Two convolutions, the second with a scale for each input channel of its weights."""
    m = QdqModel(seed=7)
    x = m.conv(m.input("x", (1, 8, 6, 6)), 8, 3)
    integers = m.constant("w", m.rng.integers(-127, 128, (8, 8, 3, 3)).astype(np.int8))
    scale = m.constant("ws", np.linspace(0.001, 0.01, 8).astype(np.float32))
    zero = m.constant("wz", np.zeros(8, np.int8))
    weight = m.node("DequantizeLinear", [integers, scale, zero], (8, 8, 3, 3), axis=1)
    m.output(m.quantized(m.node("Conv", [x, weight], (1, 8, 2, 2)), 0.5))
    return m.model()


def test_layers_that_left_for_the_host_are_named_beside_the_cycles(vdla, tmp_path):
    """Fewer cycles because a layer isn't there must not look like a gain."""
    onnx.save(weights_by_input(), tmp_path / "w.onnx")
    remark = "1 of 2 layers on the host: their time is not in the cycles"
    options = (tmp_path / "w.onnx", "-c", "tiny")
    found = vdla("run", *options, "--json").json
    (left,) = found["host_layers"]
    (row,) = (row for row in found["placement"] if row["name"] == left)
    assert row["reason"] == (
        "float operator Conv2d: expected int8 weights per output channel, found int8 along axis 1"
    )
    assert remark in vdla("run", *options).out
    assert remark in vdla("compare", *options, "--out", tmp_path / "out").out
    compared = vdla("compare", *options, "--out", tmp_path / "out", "--json").json
    assert compared["host_layers"] == [left]


def test_an_interrupted_command_says_so(vdla, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("vdla.commands.catalog.configs", stop)
    done = vdla("configs")
    assert (done.code, done.out, done.err) == (
        130,
        "",
        "vdla: interrupted; what was written is whole\n",
    )


def test_an_unexpected_end_of_a_file_is_no_interruption(vdla, monkeypatch):
    """Somebody's parser read too far: a bug, which shows its traceback."""

    def read_too_far(*args, **kwargs):
        raise EOFError("Ran out of input")

    monkeypatch.setattr("vdla.commands.catalog.configs", read_too_far)
    with pytest.raises(EOFError, match="Ran out of input"):
        vdla("configs")
