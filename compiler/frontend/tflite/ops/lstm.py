"""Long short-term memory over a sequence: UNIDIRECTIONAL_SEQUENCE_LSTM.

The state is zeros at the first vector of each run; LiteRT keeps it from run to run until a reset.
A file whose states are integers is computed in floats between its quantized input and output, which
isn't TFLite's integer kernel: results may differ by more than a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from vdla.compiler.frontend.tflite.operator import View, converts

# Operands by their numbers; gates are input, forget, cell, output.
KERNELS, RECURRENT, PEEPHOLES, BIASES = (1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11), (12, 13, 14, 15)
PROJECTION, STATES, NORMS = (16, 17), (18, 19), (20, 21, 22, 23)
GATES = (0, 3, 1, 2)  # ONNX's order: input, output, forget, cell
TANH = 4  # the number of the only activation that is translated


@converts("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(view: View) -> None:
    """Data [N, T, I], or [T, N, I] where the options say so."""
    _check(view)
    hidden = view.shape(RECURRENT[1])[1]
    by_time = view.flag("TimeMajor")
    data = view.real(0)
    if not by_time:
        data = view.emit("Transpose", [data], perm=(1, 0, 2))
    clip, steps = view.decimal("CellClip"), view.shape(0)[0 if by_time else 1]
    if clip and steps > clip:  # a cell grows by at most 1 a step
        result = _clipped(view, data, clip)
    else:
        states = [_joined(view, each) for each in (KERNELS, RECURRENT)]
        outputs = [view.draft.names.fresh(f"{view.name}.sequence")]
        operands = [data, *states, _biases(view)]
        view.draft.emit_all("LSTM", operands, outputs, hidden_size=hidden)
        result = view.emit("Squeeze", [outputs[0], view.integers_of([1])])
    if not by_time:
        result = view.emit("Transpose", [result], perm=(1, 0, 2))
    view.put(result)


def _check(view: View) -> None:
    """Raises UnsupportedError for forms that aren't translated."""
    if view.rank(0) != 3:
        raise view.error("data of shape [N, T, I]", list(view.shape(0)))
    parts = {
        "gates that are coupled (CIFG)": not all(view.has(i) for i in KERNELS),
        "peepholes": any(view.has(i) for i in PEEPHOLES),
        "a projection": any(view.has(i) for i in PROJECTION),
        "layer normalization": any(view.has(i) for i in NORMS),
        "an activation other than tanh": view.integer("FusedActivationFunction", TANH) != TANH,
    }
    for part, there_is in parts.items():
        if there_is:
            raise view.unsupported("four gates and tanh, as Keras has them", part)


def _joined(view: View, gates: Sequence[int]) -> str:
    """Weights of all gates in ONNX's order: [1, 4 * H, I]."""
    rows = view.emit("Concat", [view.real(gates[gate]) for gate in GATES], axis=0)
    return view.emit("Unsqueeze", [rows, view.integers_of([0])])


def _bias(view: View, gate: int) -> str:
    """The bias of a gate; zeros where it has none."""
    if view.has(BIASES[gate]):
        tensor = view.tensor(BIASES[gate])
        array = view.known(BIASES[gate])
        if array is not None and tensor.quantized:
            real = (array.astype(np.float64) * tensor.scale).astype(np.float32)
            return view.draft.constant(real, f"{view.name}.bias")
        return view.real(BIASES[gate])
    zeros = np.zeros(view.shape(RECURRENT[gate])[0], np.float32)
    return view.draft.constant(zeros, f"{view.name}.bias")


def _biases(view: View) -> str:
    """Biases of data and of states: [1, 8 * H]; TFLite has the former alone."""
    hidden = view.shape(RECURRENT[1])[0]
    zeros = view.draft.constant(np.zeros(4 * hidden, np.float32), f"{view.name}.zeros")
    row = view.emit("Concat", [*(_bias(view, gate) for gate in GATES), zeros], axis=0)
    return view.emit("Unsqueeze", [row, view.integers_of([0])])


# With cells that are clipped ----------------------------------------------------------------------


def _clipped(view: View, data: str, clip: float) -> str:
    """[T, N, H]: a Scan over the vectors, since ONNX's LSTM clips sums and no cells."""
    hidden = view.shape(RECURRENT[1])[0]
    batch = view.shape(0)[1 if view.flag("TimeMajor") else 0]
    kernel, recurrent = (
        view.emit(
            "Transpose",
            [view.emit("Concat", [view.real(gates[gate]) for gate in GATES], axis=0)],
            perm=(1, 0),
        )
        for gates in (KERNELS, RECURRENT)
    )
    bias = view.emit("Concat", [_bias(view, gate) for gate in GATES], axis=0)
    sums = view.emit("Add", [view.emit("MatMul", [data, kernel]), bias])
    zeros = view.draft.constant(np.zeros((batch, hidden), np.float32), f"{view.name}.zeros")
    bounds = [view.float_of(-clip), view.float_of(clip)]
    body = _step(view, recurrent, bounds, (batch, hidden))
    names = [view.draft.names.fresh(f"{view.name}.{each}") for each in ("state", "cell", "states")]
    view.draft.emit_all("Scan", [zeros, zeros, sums], names, body=body, num_scan_inputs=1)
    return names[2]


def _step(
    view: View, recurrent: str, bounds: Sequence[str], shape: tuple[int, int]
) -> onnx.GraphProto:
    """One vector: (state, cell, sums of the data) → (state, cell, state)."""
    batch, hidden = shape
    fresh = view.draft.names.fresh
    names = {
        each: fresh(f"{view.name}.step.{each}")
        for each in (
            *("h", "c", "x", "product", "all", "i", "o", "f", "g", "si", "so", "sf", "tg"),
            *("kept", "new", "sum", "cell", "tanh", "state", "out"),
        )
    }
    sizes = view.integers_of([hidden] * 4)

    def node(op_type: str, inputs: str, outputs: str, **attributes: int) -> onnx.NodeProto:
        read = [names.get(name, name) for name in inputs.split("|")]
        made = [names[name] for name in outputs.split("|")]
        return helper.make_node(op_type, read, made, fresh(f"{made[0]}/{op_type}"), **attributes)

    nodes = [
        node("MatMul", f"h|{recurrent}", "product"),
        node("Add", "x|product", "all"),
        node("Split", f"all|{sizes}", "i|o|f|g", axis=-1),
        *(node("Sigmoid", name, f"s{name}") for name in "iof"),
        node("Tanh", "g", "tg"),
        node("Mul", "sf|c", "kept"),
        node("Mul", "si|tg", "new"),
        node("Add", "kept|new", "sum"),
        node("Clip", f"sum|{bounds[0]}|{bounds[1]}", "cell"),
        node("Tanh", "cell", "tanh"),
        node("Mul", "so|tanh", "state"),
        node("Identity", "state", "out"),
    ]
    widths = {"h": hidden, "c": hidden, "x": 4 * hidden, "state": hidden, "cell": hidden}
    kinds = {
        each: helper.make_tensor_value_info(
            names[each], onnx.TensorProto.FLOAT, (batch, widths.get(each, hidden))
        )
        for each in ("h", "c", "x", "state", "cell", "out")
    }
    return helper.make_graph(
        nodes, "step", [kinds[n] for n in "hcx"], [kinds[n] for n in ("state", "cell", "out")]
    )
