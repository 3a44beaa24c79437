"""Trains the bundled model of characters: an LSTM that says which character of a text comes next.

    python training/characters.py

writes ``characters.onnx`` and ``characters_test.npz`` into ``compiler/models/data``, and prints the
perplexity of the float network on the test texts: 2 to the cross-entropy in bits for each
character. The texts are this repository's documents; every eighth part of them is for tests.
Numpy's gradient descent takes about ten minutes on two cores; the same documents and seeds give the
same files on one machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET
from vdla.compiler.models.quantizer import quantize_model

ROOT = Path(__file__).parents[1]
DATA = ROOT / "compiler" / "models" / "data"
SEED = 13
FIRST, LAST = 32, 126  # of ASCII's characters that are printed; the one behind them ends a line
CHARACTERS = LAST - FIRST + 2
FEATURES, HIDDEN, LENGTH = 32, 128, 64
PART = 4096  # characters of a part of the documents
STEPS, BATCH, RATE = 6000, 32, 4e-3
SAMPLES, TESTS = 16, 32
Params = dict[str, Array]


# Texts -------------------------------------------------------------------------------------------


def codes(text: str) -> Array:
    """A text's characters as numbers below ``CHARACTERS``, without those that aren't ASCII."""
    plain = np.frombuffer(text.encode("ascii", "ignore"), np.uint8).astype(np.int64)
    result = np.where(plain == ord("\n"), CHARACTERS - 1, plain - FIRST)
    return result[(result >= 0) & (result < CHARACTERS)]


def documents(root: Path = ROOT) -> tuple[Array, Array]:
    """Texts that are trained on and texts that are tested on, as numbers."""
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    whole = codes("\n".join(path.read_text() for path in paths))
    parts = [whole[start : start + PART] for start in range(0, len(whole) - PART, PART)]
    tests = [part for number, part in enumerate(parts) if number % 8 == 7]
    rest = [part for number, part in enumerate(parts) if number % 8 != 7]
    return np.concatenate(rest), np.concatenate(tests)


def windows(text: Array, count: int, rng: np.random.Generator) -> Array:
    """Runs of ``LENGTH`` characters and the one behind them, from anywhere: [count, LENGTH + 1]."""
    starts = rng.integers(0, len(text) - LENGTH - 1, count)
    return np.stack([text[start : start + LENGTH + 1] for start in starts])


# The network and its gradients -------------------------------------------------------------------


def parameters(rng: np.random.Generator) -> Params:
    """Weights before training; gates in ONNX's order: input, output, forget, new."""
    bias = np.zeros(4 * HIDDEN)
    bias[2 * HIDDEN : 3 * HIDDEN] = 1.0  # cells keep what they have at first
    shapes = {
        "embedding": (CHARACTERS, FEATURES),
        "W": (4 * HIDDEN, FEATURES),
        "R": (4 * HIDDEN, HIDDEN),
        "head": (HIDDEN, CHARACTERS),
    }
    params = {
        name: rng.standard_normal(shape) / np.sqrt(shape[1 if name in "WR" else 0])
        for name, shape in shapes.items()
    }
    params |= {"B": bias, "offset": np.zeros(CHARACTERS)}
    params["embedding"] = 0.5 * rng.standard_normal(shapes["embedding"])
    return {name: array.astype(np.float32) for name, array in params.items()}


def gradients(p: Params, text: Array) -> tuple[float, Params]:
    """The cross-entropy in nats for each character of windows [N, T + 1], and its gradients."""
    count, length = len(text), text.shape[1] - 1
    x = p["embedding"][text[:, :-1]]
    state = cell = np.zeros((count, HIDDEN), np.float32)
    states, cells, gates = [state], [cell], list[Array]()
    for step in range(length):
        total = x[:, step] @ p["W"].T + state @ p["R"].T + p["B"]
        gate = np.empty_like(total)
        gate[:, : 3 * HIDDEN] = 1 / (1 + np.exp(-total[:, : 3 * HIDDEN]))
        gate[:, 3 * HIDDEN :] = np.tanh(total[:, 3 * HIDDEN :])
        take, show, keep, new = np.split(gate, 4, axis=1)
        cell = keep * cell + take * new
        state = show * np.tanh(cell)
        states.append(state), cells.append(cell), gates.append(gate)
    loss, d_states, g = _head(p, np.stack(states[1:], 1), text[:, 1:])
    g |= {name: np.zeros_like(p[name]) for name in ("embedding", "W", "R", "B")}
    d_state = d_cell = np.zeros((count, HIDDEN), np.float32)
    for step in reversed(range(length)):
        take, show, keep, new = np.split(gates[step], 4, axis=1)
        d_state, shown = d_state + d_states[:, step], np.tanh(cells[step + 1])
        d_cell = d_cell + d_state * show * (1 - shown**2)
        slopes = (
            d_cell * new * take * (1 - take),
            d_state * shown * show * (1 - show),
            d_cell * cells[step] * keep * (1 - keep),
            d_cell * take * (1 - new**2),
        )
        d = np.concatenate(slopes, axis=1)
        g["W"] += d.T @ x[:, step]
        g["R"] += d.T @ states[step]
        g["B"] += d.sum(0)
        np.add.at(g["embedding"], text[:, step], d @ p["W"])
        d_state, d_cell = d @ p["R"], d_cell * keep
    return loss, g


def _head(p: Params, states: Array, wanted: Array) -> tuple[float, Array, Params]:
    """The cross-entropy of states [N, T, H], its gradient for them and for the last layer."""
    logits = states @ p["head"] + p["offset"]
    logits -= logits.max(-1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(-1, keepdims=True)
    rows, columns = np.indices(wanted.shape)
    chosen = shares[rows, columns, wanted]
    d = shares / wanted.size
    d[rows, columns, wanted] -= 1 / wanted.size
    head = np.einsum("nth,ntc->hc", states, d, optimize=True)
    g = {"head": head, "offset": d.sum((0, 1))}
    return float(-np.log(chosen).mean()), d @ p["head"].T, g


def trained(text: Array, steps: int = STEPS, batch: int = BATCH) -> Params:
    """Parameters after Adam's steps (Kingma and Ba, 2015), whose rate falls to 0."""
    rng = np.random.default_rng(SEED)
    params = parameters(rng)
    mean = {name: np.zeros_like(array) for name, array in params.items()}
    square = {name: np.zeros_like(array) for name, array in params.items()}
    for step in range(1, steps + 1):
        loss, g = gradients(params, windows(text, batch, rng))
        norm = np.sqrt(sum(float((each**2).sum()) for each in g.values()))
        rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
        for name, each in g.items():
            each = each * min(1.0, 1.0 / norm)
            mean[name] = 0.9 * mean[name] + 0.1 * each
            square[name] = 0.999 * square[name] + 0.001 * each**2
            ahead = mean[name] / (1 - 0.9**step)
            params[name] -= rate * ahead / (np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8)
        if step % 500 == 0:
            print(f"step {step}: perplexity {np.exp(loss):.3f}", flush=True)
    return params


# The files ---------------------------------------------------------------------------------------


def model(p: Params) -> onnx.ModelProto:
    """The network for one text: characters int64 [1, T] to logits [1, T, characters]."""
    arrays = {
        "embedding": p["embedding"],
        "W": p["W"][np.newaxis],
        "R": p["R"][np.newaxis],
        "B": np.concatenate([p["B"], np.zeros_like(p["B"])])[np.newaxis],
        "head": p["head"],
        "offset": p["offset"],
        "one": np.array([1]),
    }
    nodes = [
        helper.make_node("Gather", ["embedding", "characters"], ["embedded"], "embedded"),
        helper.make_node("Transpose", ["embedded"], ["steps"], "steps", perm=[1, 0, 2]),
        helper.make_node("LSTM", ["steps", "W", "R", "B"], ["all"], "lstm", hidden_size=HIDDEN),
        helper.make_node("Squeeze", ["all", "one"], ["states"], "states"),
        helper.make_node("Transpose", ["states"], ["rows"], "rows", perm=[1, 0, 2]),
        helper.make_node("MatMul", ["rows", "head"], ["product"], "product"),
        helper.make_node("Add", ["product", "offset"], ["logits"], "logits"),
    ]
    kind, shape = onnx.TensorProto.FLOAT, [1, LENGTH, CHARACTERS]
    graph = helper.make_graph(
        nodes,
        "characters",
        [helper.make_tensor_value_info("characters", onnx.TensorProto.INT64, [1, LENGTH])],
        [helper.make_tensor_value_info("logits", kind, shape)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="vdla"
    )


def perplexity(logits: Array, wanted: Array) -> float:
    """2 to the cross-entropy in bits of logits [N, T, characters], for the characters [N, T]."""
    logits = logits.astype(np.float64)
    top = logits.max(-1, keepdims=True)
    total = top[..., 0] + np.log(np.exp(logits - top).sum(-1))
    chosen = np.take_along_axis(logits, wanted[..., np.newaxis], -1)[..., 0]
    return float(np.exp((total - chosen).mean()))


def main(folder: Path = DATA, steps: int = STEPS, batch: int = BATCH) -> float:
    """Writes both files into ``folder``; gives the float network's perplexity."""
    text, rest = documents()
    rng = np.random.default_rng(SEED + 1)
    tests, samples = windows(rest, TESTS, rng), windows(text, SAMPLES, rng)
    network = model(trained(text, steps, batch))
    feeds = [{"characters": sample[np.newaxis, :-1]} for sample in samples]
    quantize_model(network, folder / "characters.onnx", feeds)
    logits = [ort_run(network, {"characters": t[np.newaxis, :-1]})["logits"] for t in tests]
    result = perplexity(np.concatenate(logits), tests[:, 1:])
    np.savez_compressed(
        folder / "characters_test.npz",
        characters=tests.astype(np.uint8),
        perplexity=np.float64(result),
    )
    return result


if __name__ == "__main__":
    print(f"perplexity of the float network on the test texts: {main():.4f}")
