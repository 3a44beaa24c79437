"""Loops on the processor: vdla's time beside onnxruntime's, in turns, on one thread each.

    python benchmarks/loops.py [FILE | NAME]...

Without names, all networks of this file: they spend their time in many short turns, or in choices.
``benchmarks/exported_loops.py`` writes files as PyTorch's exporter makes them. Inputs of files are
random; what is a number of turns is ``TURNS``. Each row says how far the outputs are from
onnxruntime's, the ratio of the times, and how many steps are onnxruntime's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.types import Array
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor
from vdla.runtime.plan import Onnx, Open

ROUNDS, TURNS, SEED = 30, 20, 0
Model = tuple[onnx.ModelProto, dict[str, Array]]
node, info = helper.make_node, helper.make_tensor_value_info
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model(
    nodes: Sequence[onnx.NodeProto],
    ends: tuple[Sequence[onnx.ValueInfoProto], Sequence[onnx.ValueInfoProto]],
    weights: Mapping[str, Array],
) -> onnx.ModelProto:
    """A checked model; ``ends`` are its inputs and outputs."""
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()]
    graph = helper.make_graph(list(nodes), "loops", *map(list, ends), constants)
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(proto)
    return proto


def body(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.GraphProto:
    """A graph inside a node."""
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs))


def newton(rng: np.random.Generator) -> Model:
    """Square roots of 64 numbers by 2,000 steps of Newton's."""
    step = body(
        [
            node("Mul", ["a", "a"], ["q"]), node("Sub", ["q", "x"], ["d"]),
            node("Add", ["a", "a"], ["aa"]), node("Div", ["d", "aa"], ["s"]),
            node("Sub", ["a", "s"], ["a2"]), node("Abs", ["d"], ["e"]),
            node("ReduceMax", ["e"], ["m"], keepdims=0), node("Greater", ["m", "eps"], ["go"]),
        ],
        [info("i", INT, []), info("c", BOOL, []), info("a", FLOAT, [64])],
        [info("go", BOOL, []), info("a2", FLOAT, [64])],
    )  # fmt: skip
    ends = [info("n", INT, []), info("x", FLOAT, [64])], [info("y", FLOAT, [64])]
    loop = node("Loop", ["n", "", "x"], ["y"], body=step)
    given = {"n": np.array(2000), "x": rng.uniform(1, 2, 64).astype(np.float32)}
    return model([loop], ends, {"eps": np.float32(-1)}), given


def scan(rng: np.random.Generator, hidden: int = 64, steps: int = 200) -> Model:
    """A recurrent cell over a sequence."""
    cell = body(
        [
            node("MatMul", ["h", "W"], ["p"]), node("MatMul", ["e", "U"], ["u"]),
            node("Add", ["p", "u"], ["z"]), node("Tanh", ["z"], ["h2"]),
            node("Identity", ["h2"], ["o"]),
        ],
        [info("h", FLOAT, [1, hidden]), info("e", FLOAT, [1, hidden])],
        [info("h2", FLOAT, [1, hidden]), info("o", FLOAT, [1, hidden])],
    )  # fmt: skip
    x = [info("x", FLOAT, [steps, 1, hidden])]
    y = [info("h", FLOAT, [1, hidden]), info("y", FLOAT, [steps, 1, hidden])]
    weights = {name: _real(rng, hidden, hidden) / 8 for name in "WU"}
    loop = node("Scan", ["h0", "x"], ["h", "y"], body=cell, num_scan_inputs=1)
    proto = model([loop], (x, y), {**weights, "h0": np.zeros((1, hidden), np.float32)})
    return proto, {"x": _real(rng, steps, 1, hidden)}


def lstm(rng: np.random.Generator, hidden: int = 128, steps: int = 100) -> Model:
    """An LSTM as tf2onnx writes one: a Loop that takes its steps and stacks its states."""
    gates = [f"g{n}" for n in range(4)]
    cell = body(
        [
            node("Gather", ["x", "i"], ["e"], axis=0), node("Concat", ["e", "h"], ["eh"], axis=1),
            node("MatMul", ["eh", "W"], ["g"]), node("Split", ["g"], gates, axis=1),
            *(node("Sigmoid", [f"g{n}"], [f"s{n}"]) for n in (0, 1, 3)),
            node("Tanh", ["g2"], ["s2"]), node("Mul", ["s1", "c"], ["fc"]),
            node("Mul", ["s0", "s2"], ["ig"]), node("Add", ["fc", "ig"], ["c2"]),
            node("Tanh", ["c2"], ["tc"]), node("Mul", ["s3", "tc"], ["h2"]),
            node("Identity", ["go"], ["go2"]), node("Identity", ["h2"], ["o"]),
        ],
        [info("i", INT, []), info("go", BOOL, []), *_states("h c", hidden)],
        [info("go2", BOOL, []), *_states("h2 c2 o", hidden)],
    )  # fmt: skip
    ends = (
        [info("n", INT, []), info("x", FLOAT, [steps, 1, hidden])],
        [*_states("h c", hidden), info("y", FLOAT, [None, 1, hidden])],
    )
    weights = {"W": _real(rng, 2 * hidden, 4 * hidden) / 16, "h0": np.zeros((1, hidden))}
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    loop = node("Loop", ["n", "", "h0", "h0"], ["h", "c", "y"], body=cell)
    given = {"n": np.array(steps), "x": _real(rng, steps, 1, hidden)}
    return model([loop], ends, weights), given


def choices(rng: np.random.Generator) -> Model:
    """A choice in each of 1,000 turns."""
    less = body([node("Mul", ["a", "half"], ["r"])], (), [info("r", FLOAT, [16])])
    more = body(
        [node("Mul", ["a", "three"], ["t"]), node("Add", ["t", "half"], ["r"])],
        (), [info("r", FLOAT, [16])],
    )  # fmt: skip
    turn = body(
        [
            node("ReduceSum", ["a"], ["s"], keepdims=0), node("Greater", ["s", "most"], ["big"]),
            node("If", ["big"], ["a2"], then_branch=less, else_branch=more),
            node("Identity", ["go"], ["go2"]),
        ],
        [info("i", INT, []), info("go", BOOL, []), info("a", FLOAT, [16])],
        [info("go2", BOOL, []), info("a2", FLOAT, [16])],
    )  # fmt: skip
    ends = [info("n", INT, []), info("x", FLOAT, [16])], [info("y", FLOAT, [16])]
    loop = node("Loop", ["n", "", "x"], ["y"], body=turn)
    weights = {"half": np.float32(0.5), "three": np.float32(3), "most": np.float32(50)}
    given = {"n": np.array(1000), "x": rng.uniform(1, 2, 16).astype(np.float32)}
    return model([loop], ends, weights), given


def detections(rng: np.random.Generator, classes: int = 8, boxes: int = 200) -> Model:
    """SSD's end: boxes of each class that are selected in a Loop, with rows of zeros to ten."""
    turn = body(
        [
            node("Gather", ["scores", "i"], ["row"], axis=1),
            node("Unsqueeze", ["row", "one"], ["own"]),
            node("NonMaxSuppression", ["boxes", "own", "ten", "iou", "least"], ["chosen"]),
            node("Gather", ["chosen", "two"], ["places"], axis=1),
            node("Squeeze", ["boxes", "zero"], ["flat"]), node("Squeeze", ["row", "zero"], ["r"]),
            node("Gather", ["flat", "places"], ["b"]), node("Gather", ["r", "places"], ["s"]),
            node("Unsqueeze", ["s", "one"], ["s1"]), node("Concat", ["b", "s1"], ["bs"], axis=1),
            node("Shape", ["places"], ["count"]), node("Sub", ["ten", "count"], ["left"]),
            node("Concat", ["none", "left", "zero"], ["pads"], axis=0),
            node("Pad", ["bs", "pads"], ["padded"]), node("Reshape", ["padded", "shape"], ["rows"]),
            node("Identity", ["go"], ["go2"]),
        ],
        [info("i", INT, []), info("go", BOOL, [])],
        [info("go2", BOOL, []), info("rows", FLOAT, [10, 5])],
    )  # fmt: skip
    ends = (
        [info("boxes", FLOAT, [1, boxes, 4]), info("scores", FLOAT, [1, classes, boxes])],
        [info("y", FLOAT, [classes, 10, 5])],
    )
    constants = {"zero": [0], "one": [1], "ten": [10], "none": [0, 0], "shape": [10, 5]}
    weights = {name: np.array(value, np.int64) for name, value in constants.items()}
    weights |= {"two": np.array(2, np.int64), "n": np.array(classes)}
    weights |= {"iou": np.array([0.5], np.float32), "least": np.array([0.6], np.float32)}
    corner = rng.uniform(0, 0.8, (1, boxes, 2))
    size = rng.uniform(0.05, 0.2, (1, boxes, 2))
    given = {
        "boxes": np.concatenate([corner, corner + size], -1).astype(np.float32),
        "scores": rng.uniform(0, 1, (1, classes, boxes)).astype(np.float32),
    }
    return model([node("Loop", ["n", ""], ["y"], body=turn)], ends, weights), given


def _states(names: str, hidden: int) -> list[onnx.ValueInfoProto]:
    """Types of states of a cell."""
    return [info(name, FLOAT, [1, hidden]) for name in names.split()]


def _real(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


NETWORKS: dict[str, Callable[[np.random.Generator], Model]] = {
    each.__name__: each for each in (newton, scan, lstm, choices, detections)
}


def from_file(path: Path, rng: np.random.Generator) -> Model:
    """A file with random inputs; whole numbers are ``TURNS`` where they are one, else below it."""
    proto, given = onnx.load(path), dict[str, Array]()
    for value in proto.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type == FLOAT:
            given[value.name] = _real(rng, *shape)
        else:
            given[value.name] = rng.integers(0, TURNS, shape) if shape else np.array(TURNS)
    return proto, given


def measured(proto: onnx.ModelProto, given: Mapping[str, Array]) -> tuple[float, float, int]:
    """Greatest difference from onnxruntime's outputs, vdla's time ÷ its, and its steps here."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    module = compile_graph(import_model(proto), load_config("tiny"), Options("cpu"))
    ready, given = Executor(module, threads=1), dict(given)
    wanted, outputs = session.run(None, given), ready.run(given).outputs.values()
    apart = max(
        float(np.abs(a.astype(float) - b).max(initial=0)) if a.shape == b.shape else np.inf
        for a, b in zip(outputs, wanted, strict=True)
    )
    calls = [lambda: ready.run(given), lambda: session.run(None, given)]
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for call, own in zip(calls, times, strict=True):
            began = time.perf_counter()
            call()
            own.append(time.perf_counter() - began)
    theirs = sum(isinstance(step, Onnx | Open) for step in module.steps)
    return apart, min(times[0]) / min(times[1]), theirs


def main() -> None:
    """Prints a row for each network."""
    rng, table = (
        np.random.default_rng(SEED),
        Table("network", "apart", "÷ onnxruntime", "its steps"),
    )
    for name in sys.argv[1:] or NETWORKS:
        proto, given = NETWORKS[name](rng) if name in NETWORKS else from_file(Path(name), rng)
        apart, ratio, theirs = measured(proto, given)
        table.add_row(Path(name).stem, f"{apart:.1e}", f"{ratio:.3f}", str(theirs))
    Console().print(table)


if __name__ == "__main__":
    main()
