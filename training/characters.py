"""Trains the bundled model of characters with vdla: an LSTM that says which one comes next.

    python training/characters.py FOLDER

writes ``characters.onnx`` and ``characters_test.npz`` into a folder, and prints the perplexity of
the float network on the test texts: 2 to the cross-entropy in bits for each character. The texts
are this repository's documents; every eighth part of them is for tests. It takes minutes; the same
documents and seeds give the same files on one machine. The bundled file is of the same training by
numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from descent import compiled, cross_entropy, descend, falling, folder_of
from onnx import helper, numpy_helper

import vdla
from vdla.analysis.ort import ort_run
from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET
from vdla.compiler.models.quantizer import quantize_model

ROOT = Path(__file__).parents[1]
SEED = 13
FIRST, LAST = 32, 126  # of ASCII's characters that are printed; the one behind them ends a line
CHARACTERS = LAST - FIRST + 2
FEATURES, HIDDEN, LENGTH = 32, 128, 64
PART = 4096  # characters of a part of the documents
STEPS, BATCH, RATE = 8000, 32, 4e-3
MOST = 1.0  # the norm of all gradients
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


# The network and its training --------------------------------------------------------------------


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


def states(p: Params, text: Array) -> Array:
    """The LSTM's states [T, N, H] behind each character of texts [N, T]."""
    steps = np.swapaxes(np.take(p["embedding"], text, axis=0), 0, 1)
    sums, recurrent = steps @ p["W"].T + p["B"], p["R"].T

    def turn(before: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], Array]:
        state, cell = before
        total = row + state @ recurrent
        take, show, keep = np.split(vdla.sigmoid(total[:, : 3 * HIDDEN]), 3, axis=1)
        cell = keep * cell + take * np.tanh(total[:, 3 * HIDDEN :])
        state = show * np.tanh(cell)
        return (state, cell), state

    zeros = np.zeros((len(text), HIDDEN), np.float32)
    return vdla.scan(turn, (zeros, zeros), sums)[1]


def loss(p: Params, text: Array, wanted: Array) -> Array:
    """Cross-entropy in nats for each character of texts [N, T] and those behind them."""
    logits = states(p, text).reshape(-1, HIDDEN) @ p["head"] + p["offset"]
    return cross_entropy(logits, np.swapaxes(wanted, 0, 1).reshape(-1))


def batches(text: Array, batch: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Texts of one step after another, and the characters behind each of theirs."""
    while True:
        chosen = windows(text, batch, rng)
        yield chosen[:, :-1], chosen[:, 1:]


def trained(text: Array, steps: int = STEPS, batch: int = BATCH) -> Params:
    """Parameters after Adam's steps (Kingma and Ba, 2015), whose rate falls to 0."""
    rng, adam = np.random.default_rng(SEED), vdla.optim.Adam()
    params, step = parameters(rng), compiled(loss, adam, MOST)
    return descend(step, adam, params, batches(text, batch, rng), falling(RATE, steps))[0]


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


def main(folder: Path, steps: int = STEPS, batch: int = BATCH) -> float:
    """Writes both files into ``folder``; gives the float network's perplexity."""
    text, rest = documents()
    rng = np.random.default_rng(SEED + 1)
    tests, samples = windows(rest, TESTS, rng), windows(text, SAMPLES, rng)
    network = model(trained(text, steps, batch))
    feeds = [{"characters": sample[np.newaxis, :-1]} for sample in samples]
    folder.mkdir(parents=True, exist_ok=True)
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
    print(f"perplexity of the float network on the test texts: {main(folder_of(__doc__)):.4f}")
