"""Every command and figure that takes a model, with models that have choices, loops and lists."""

from __future__ import annotations

import pickle
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla
from vdla.compiler.build import Options, import_graph, placed_graphs
from vdla.explore.networks import Networks
from vdla.isa.config import load_config
from vdla.runtime.plan import Accelerate, decided, runs, undecided

TINY = load_config("tiny")
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
CHANNELS = 8
IMAGE = [1, CHANNELS, 4, 4]
node, info = helper.make_node, helper.make_tensor_value_info


def sequence(name, *shape):
    return helper.make_tensor_sequence_value_info(name, FLOAT, list(shape))


def body(nodes, inputs=(), outputs=()):
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs))


def save(folder, name, nodes, inputs, outputs, weights):
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(proto)
    onnx.save(proto, folder / f"{name}.onnx")


def qdq(data, output):
    """A tensor quantized and back."""
    return [
        node("QuantizeLinear", [data, "s", "z"], [f"{output}.q"], name=f"{output}.q"),
        node("DequantizeLinear", [f"{output}.q", "s", "z"], [output], name=f"{output}.real"),
    ]


def convolution(name, data, output):
    """A convolution for the accelerator, between quantizations."""
    weights = node("DequantizeLinear", ["w", "ws", "z"], [f"{name}.w"])
    operands = [f"{name}.x", f"{name}.w"]
    return [
        *qdq(data, f"{name}.x"),
        weights,
        node("Conv", operands, [f"{name}.y"], name=name, kernel_shape=[3, 3], pads=[1] * 4),
        *qdq(f"{name}.y", output),
    ]


TURN = [info("i", INT, []), info("c", BOOL, []), info("a", FLOAT, IMAGE)]
AFTER = [info("go", BOOL, []), info("a2", FLOAT, IMAGE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """ONNX files: a loop of so many turns as an input says and one of many known turns, with a
    convolution in each; a choice of convolutions; lists; selected boxes in a loop."""
    folder, rng = tmp_path_factory.mktemp("control"), np.random.default_rng(0)
    w = rng.integers(-20, 20, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8)
    weights = {"s": np.float32(1 / 16), "z": np.int8(0), "ws": np.float32(1 / 64), "w": w}
    turn = body([*convolution("conv", "a", "a2"), node("Identity", ["c"], ["go"])], TURN, AFTER)
    x, y = [info("x", FLOAT, IMAGE)], [info("y", FLOAT, IMAGE)]
    loop = node("Loop", ["n", "", "x"], ["y"], body=turn, name="loop")
    save(folder, "open", [loop], [info("n", INT, []), *x], y, weights)
    cell = body(
        [*convolution("conv", "h", "h1"), node("Add", ["h1", "e"], ["h2"], name="sum")],
        [info("h", FLOAT, IMAGE), info("e", FLOAT, IMAGE)],
        [info("h2", FLOAT, IMAGE)],
    )
    scan = node("Scan", ["x", "xs"], ["y"], body=cell, num_scan_inputs=1, name="scan")
    save(folder, "known", [scan], [*x, info("xs", FLOAT, [100, *IMAGE])], y, weights)
    then = body(convolution("one", "x", "t"), (), [info("t", FLOAT, IMAGE)])
    both = [*convolution("first", "x", "m"), *convolution("second", "m", "e")]
    other = body(both, (), [info("e", FLOAT, IMAGE)])
    choice = node("If", ["p"], ["y"], then_branch=then, else_branch=other, name="choice")
    save(folder, "choice", [choice], [info("p", BOOL, []), *x], y, weights)
    places = {"zero": np.array(0), "one": np.array(1)}
    nodes = [
        node("SequenceAt", ["x", "zero"], ["a"]), node("SequenceAt", ["x", "one"], ["b"]),
        node("Relu", ["a"], ["r"], name="relu"), node("Add", ["b", "b"], ["d"], name="double"),
        node("SequenceConstruct", ["r", "d"], ["y"]),
    ]  # fmt: skip
    save(folder, "lists", nodes, [sequence("x", None)], [sequence("y", None)], places)
    grow = body(
        [
            node("Mul", ["a", "half"], ["a2"], name="mul"),
            node("SequenceInsert", ["q", "a2"], ["q2"]), node("Identity", ["c"], ["go"]),
        ],
        [*TURN[:2], info("a", FLOAT, [4]), sequence("q", 4)],
        [AFTER[0], info("a2", FLOAT, [4]), sequence("q2", 4)],
    )  # fmt: skip
    loop = node("Loop", ["n", "", "x", "none"], ["y", "all"], body=grow, name="loop")
    inputs = [info("n", INT, []), info("x", FLOAT, [4])]
    outputs = [info("y", FLOAT, [4]), sequence("all", 4)]
    start = node("SequenceEmpty", [], ["none"])
    save(folder, "grown", [start, loop], inputs, outputs, {"half": np.float32(0.5)})
    select = body(
        [
            node("NonMaxSuppression", ["boxes", "scores", "most"], ["chosen"]),
            node("Gather", ["chosen", "two"], ["places"], axis=1),
            node("Gather", ["flat", "places"], ["b"]),
            node("ReduceSum", ["b", "axes"], ["r"], keepdims=0), node("Identity", ["c"], ["go"]),
        ],
        TURN[:2],
        [AFTER[0], info("r", FLOAT, [4])],
    )  # fmt: skip
    boxes = rng.uniform(0, 1, (6, 4)).astype(np.float32)
    constants = {
        "n": np.array(3), "boxes": boxes[None], "flat": boxes, "most": np.array([2]),
        "two": np.array(2), "axes": np.array([0]),
    }  # fmt: skip
    loop = node("Loop", ["n", ""], ["y"], body=select, name="loop")
    scores = [info("scores", FLOAT, [1, 1, 6])]
    save(folder, "selected", [loop], scores, [info("y", FLOAT, [3, 4])], constants)
    x = rng.standard_normal(IMAGE).astype(np.float32)
    np.savez(folder / "open.npz", n=np.array(3), x=x)
    np.savez(folder / "choice.npz", p=np.array(False), x=x)
    row = np.ones(3, np.float32)
    np.savez(folder / "lists.npz", **{"x[0]": row, "x[1]": row})
    np.savez(folder / "grown.npz", n=np.array(2), x=np.ones(4, np.float32))
    return folder


@pytest.fixture
def run(vdla, folder):
    """Runs a command on a model, and says what it prints as JSON."""

    def run(command, name, *options):
        done = vdla(command, folder / f"{name}.onnx", *options, "--json")
        assert done.code == 0, done.err
        return done.json

    return run


def given(folder, name):
    return "--input", folder / f"{name}.npz"


# Runs -------------------------------------------------------------------------------------------


def test_a_run_counts_each_turn(run, folder):
    """Cycles, energy and multiply-adds are those of all turns; a program has one entry."""
    table = "--energy", "horowitz-45nm"
    done = run("run", "open", "-c", "tiny", *given(folder, "open"), *table)
    (program,) = done["programs"]
    assert program["runs"] == 3
    assert program["cycles"] == done["cycles"]
    assert all(sum(own.values()) == done["cycles"] for own in program["causes"].values())
    once = run("evaluate", "open", "-c", "tiny", *table)
    assert 3 * once["cycles"] == done["cycles"]
    assert done["energy_uj"] == pytest.approx(3 * once["energy_uj"])
    assert done["end_to_end"]["transfer_bytes"] == 3 * 2 * 4 * 4 * CHANNELS


def test_a_runs_text(vdla, folder):
    done = vdla("run", folder / "open.onnx", "-c", "tiny", *given(folder, "open"))
    assert done.out.count("where each engine's cycles went") == 1
    assert "conv, 3 runs" in done.out
    share = float(re.search(r"utilization ([\d.]+) % of the multipliers", done.out)[1])
    assert 50 < share < 100


def test_rows_of_the_report(run, folder):
    rows = run("run", "choice", "-c", "tiny", *given(folder, "choice"))["placement"]
    (own,) = (row for row in rows if row["op"] == "If")
    assert own["reason"] == "steps of the run plan; 3 of 3 layers in it on the accelerator"
    done = run("run", "choice", "-c", "tiny", *given(folder, "choice"))
    assert done["host_layers"] == []


def test_profile_has_a_row_for_a_step(run, folder):
    steps = run("run", "open", "-c", "tiny", *given(folder, "open"), "--profile")["steps"]
    names = [step["name"] for step in steps]
    assert len(names) == len(set(names))
    inside = next(step for step in steps if step["name"].endswith(".real") or step["cycles"])
    assert inside["gops"] is None


@pytest.mark.parametrize("name", ["open", "choice"])
def test_check(run, folder, name):
    assert run("run", name, "-c", "tiny", *given(folder, name), "--check")["holds"]


@pytest.mark.parametrize("name", ["lists", "grown"])
def test_check_of_lists(run, folder, name):
    assert run("run", name, "--device", "cpu", *given(folder, name), "--check")["holds"]


def test_selected_boxes_are_steps_in_a_loop(run):
    """Nodes of a body that have no names are no two of one name for onnxruntime."""
    rows = run("run", "selected", "--device", "cpu")["placement"]
    assert [row["op"] for row in rows if row["name"] == "loop"] == ["Scan"]
    assert any(row["device"] == "onnxruntime" for row in rows)


# Lists ------------------------------------------------------------------------------------------


def test_lists_are_printed_and_written(vdla, folder, tmp_path):
    output = tmp_path / "y.npz"
    options = "--device", "cpu", *given(folder, "lists"), "--output", output
    done = vdla("run", folder / "lists.onnx", *options)
    assert done.code == 0, done.err
    assert "y[0]" in done.out
    assert "y[1]" in done.out
    with np.load(output) as arrays:
        assert {n: a.tolist() for n, a in arrays.items()} == {"y[0]": [1] * 3, "y[1]": [2] * 3}


def test_lists_of_the_interface(folder):
    path, row = folder / "lists.onnx", np.array([1, -1], np.float32)
    for rows in ([row, row], (row, row)):
        result = vdla.run(path, device="cpu", inputs={"x": rows})
        assert repr(result).endswith("; y: [float32[2], float32[2]])")
        np.testing.assert_array_equal(result.outputs["y"], [[1, 0], [2, -2]])
    module = vdla.compile(path, device="cpu", shapes={"x": [(2,), (2,)]})
    inputs = vdla.random_inputs(module)
    assert [each.shape for each in inputs["x"]] == [(2,), (2,)]
    assert "y: [float32[2], float32[2]]" in vdla.run(module, device="cpu")._repr_html_()
    assert len(vdla.profile(path, device="cpu", inputs={"x": [row, row]}).steps) == 2
    assert vdla.check(path, device="cpu", inputs={"x": [row, row]}).holds


def test_a_list_without_elements(vdla, run, folder, tmp_path):
    np.savez(tmp_path / "x.npz", n=np.array(0), x=np.ones(4, np.float32))
    options = "--device", "cpu", "--input", tmp_path / "x.npz"
    assert run("run", "grown", *options)["outputs"]["all"] == []
    assert "an empty list" in vdla("run", folder / "grown.onnx", *options).out
    assert run("run", "grown", *options, "--check")["holds"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.ones(3, np.float32)}, "input x: expected a list of 2 arrays, found ndarray"),
        ({"x[0]": np.ones(3, np.float32)}, "input x: expected a list of 2 arrays, found 1"),
    ],
)
def test_what_is_no_such_list_is_one_line(vdla, folder, tmp_path, arrays, words):
    np.savez(tmp_path / "x.npz", **arrays)
    options = "--device", "cpu", "--shape", "x=3;3", "--input", tmp_path / "x.npz"
    done = vdla("run", folder / "lists.onnx", *options, "--output", tmp_path / "y.npz")
    assert (done.code, done.err.strip().splitlines()[-1]) == (2, f"vdla: {words}")
    assert not (tmp_path / "y.npz").exists()


# Placement --------------------------------------------------------------------------------------


def test_nodes_in_regions_are_placed(run, vdla, folder, tmp_path):
    out = "-o", tmp_path / "m.vdla"
    rows = run("compile", "choice", "-c", "tiny", "--place", "choice.then.one=cpu", *out)
    where = {row["name"]: row["device"] for row in rows["placement"]}
    assert (where["choice.then.one"], where["choice.else.first"]) == ("cpu", "vdla")
    done = vdla("compile", folder / "open.onnx", "-c", "tiny", "--place", "conv=cpu", *out)
    assert done.err.endswith(
        "--place conv=cpu: expected a node's name, as loop.body.conv, found conv\n"
    )
    done = vdla("compile", folder / "open.onnx", "-c", "tiny", "--place", "loop=no", *out)
    assert done.err.endswith("--place loop=no: expected one of vdla, cpu, found no\n")


def test_placement_by_cost_sees_regions(run, tmp_path):
    """What the accelerator would do at a clock of 1 MHz, the host does."""
    slow = "-c", "tiny", "--set", "clock_mhz=1", "-o", tmp_path / "m.vdla"
    rows = run("compile", "open", *slow, "--placement", "cost", "--host", "cortex-a9")
    (conv,) = (row for row in rows["placement"] if row["name"] == "loop.body.conv")
    assert conv["device"] == "cpu"
    assert conv["reason"].startswith("by cost: ")


# Times and searches -----------------------------------------------------------------------------


def test_turns_of_a_plan(folder):
    known = vdla.compile(folder / "known.onnx", "tiny").steps
    counts = dict(zip(known, runs(known), strict=True))
    assert {counts[each] for each in known if isinstance(each, Accelerate)} == {100}
    assert all(decided(known))
    assert undecided(known) == []
    choice = vdla.compile(folder / "choice.onnx", "tiny").steps
    assert undecided(choice) == ["choice"]
    programs = [n for n, step in enumerate(choice) if isinstance(step, Accelerate)]
    assert not any(decided(choice)[n] for n in programs)
    assert undecided(vdla.compile(folder / "open.onnx", "tiny").steps) == ["loop"]


def test_host_time_counts_known_turns(folder):
    known = vdla.host_time(folder / "known.onnx", "cortex-a9", device="sim", config="tiny")
    assert {step.runs for step in known.steps if ".body." in step.name} == {100}
    assert known.undecided == ()
    assert known.seconds > 100 * sum(step.seconds for step in known.steps)
    opened = vdla.host_time(folder / "open.onnx", "cortex-a9")
    assert {step.runs for step in opened.steps} == {1}
    assert opened.undecided == ("loop",)


def test_a_modelled_host_is_said(vdla, folder):
    options = "-c", "tiny", "--host", "cortex-a9"
    done = vdla("run", folder / "open.onnx", *options, *given(folder, "open"))
    assert "choices in full, loops and calls once: loop" in " ".join(done.out.split())


def test_offload_counts_what_data_would_leave_out(folder):
    """Random inputs take no turn; the figure has one, on both sides."""
    result = vdla.offload(folder / "open.onnx", board="pynq-z2", config="tiny")
    (conv,) = (layer for layer in result.layers if layer.name == "loop.body.conv")
    assert conv.device == "vdla"
    assert conv.together > 0
    assert result.undecided == ("loop",)


def test_compare_has_layers_of_regions(folder):
    result = vdla.compare(folder / "choice.onnx", "tiny")
    names = ["choice.then.one", "choice.else.first", "choice.else.second"]
    assert [layer.name for layer in result.layers] == names


def test_tuning_has_layers_of_regions(run, tmp_path):
    log = "--log", tmp_path / "l.jsonl", "--trials", "1", "--searcher", "random"
    (task,) = run("tune", "choice", "-c", "tiny", *log)["layers"]
    assert "choice.then.one" in str(task)


def test_exploration_counts_known_turns(folder):
    networks = Networks({"known": folder / "known.onnx", "open": folder / "open.onnx"})
    networks = pickle.loads(pickle.dumps(networks))  # as workers get them
    exact, bound = networks.exact(TINY), networks.bound(TINY)
    estimate = networks.estimate(TINY)
    ratio = exact["known"].cycles / exact["open"].cycles
    assert ratio == pytest.approx(100, rel=0.1)
    for name, result in exact.items():
        assert bound[name] <= result.cycles
        assert estimate[name].cycles == pytest.approx(result.cycles, rel=0.2)
        assert sum(result.layers.values()) == result.cycles


def test_graphs_with_regions(folder):
    graph = import_graph(folder / "known.onnx")
    whole = placed_graphs(graph, TINY, Options())
    assert [each.runs for each in whole] == [1, 100]
    assert pickle.loads(pickle.dumps(graph)).nodes[0].name == "scan"


def test_quantize_leaves_loops_that_run(vdla, folder, tmp_path):
    """onnxruntime's quantization leaves a loop's inner nodes; the rest is for the accelerator."""
    w = np.random.default_rng(1).normal(size=(CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 9
    inner = node("Conv", ["a", "w"], ["a2"], name="inner", pads=[1] * 4)
    turn = body([inner, node("Identity", ["c"], ["go"])], TURN, AFTER)
    nodes = [
        node("Conv", ["x", "w"], ["first"], name="outer", pads=[1] * 4),
        node("Loop", ["n", "", "first"], ["y"], body=turn, name="loop"),
    ]
    ends = [info("x", FLOAT, IMAGE)], [info("y", FLOAT, IMAGE)]
    save(tmp_path, "float", nodes, *ends, {"w": w, "n": np.array(3)})
    output = tmp_path / "q.onnx"
    assert vdla("quantize", tmp_path / "float.onnx", "-o", output).code == 0
    rows = vdla("run", output, "-c", "tiny", "--json").json["placement"]
    assert {row["name"] for row in rows if row["device"] == "vdla"} == {"outer"}
