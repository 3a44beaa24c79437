"""Trained networks quantized: what int8, a search and weights of 4 bits leave of their accuracy.

    python benchmarks/trained.py [digits patches scenes characters] [-c paper-full]

The bundled networks are trained anew by the scripts in ``training``, which takes from seconds
(digits) to a quarter of an hour (characters), since only their quantized forms are bundled. Scores
are of the test split: images or pixels that are right, in %; of characters the perplexity, in which
less is better. ``4 bits`` rounds to the nearest, ``4 bits, GPTQ`` by what layers read; fine-tuned
weights are trained to give what the floats give.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from vdla import api
from vdla.analysis.ort import ort_run
from vdla.options import Quantize

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

Array = NDArray[Any]
Score = Callable[[onnx.ModelProto], float]
RECIPES: Mapping[str, Mapping[str, Any]] = {
    "int8": {},
    "int8, GPTQ": {"gptq": True},
    "4 bits": {"weights": "int4"},
    "4 bits, GPTQ": {"weights": "int4", "gptq": True},
    "int8, fine-tuned": {"finetune": ("all",)},
    "4 bits, fine-tuned": {"weights": "int4", "finetune": ("all",)},
}


@dataclass(frozen=True)
class Trained:
    """A network of floats, samples and labels to search with, and its score on the test split."""

    floats: onnx.ModelProto
    samples: Array
    labels: Array
    score: Score
    metric: Callable[..., float] | None = None


def results(model: onnx.ModelProto, inputs: Array) -> Array:
    """The first output for inputs, one at a time, without fused operators."""
    name, output = model.graph.input[0].name, model.graph.output[0].name
    return np.concatenate([ort_run(model, {name: x[None]}, fuse=False)[output] for x in inputs])


def right(inputs: Array, labels: Array) -> Score:
    """The share of inputs, or of their pixels, whose best class is right, in %."""
    return lambda model: 100 * float((results(model, inputs).argmax(1) == labels).mean())


def digits_network() -> Trained:
    """The network of digits."""
    import digits

    x, labels, test, wanted = digits.load()
    floats = digits.model(digits.train(x, labels))
    return Trained(floats, x[:200], labels[:200], right(test, wanted))


def patches_network() -> Trained:
    """The transformer of patches."""
    import digits
    import patches

    x, labels, test, wanted = digits.load()
    network = patches.network()
    params = patches.train(patches.initial(network), x, labels)
    floats = patches.with_weights(network, params)
    return Trained(floats, x[:200], labels[:200], right(test, wanted))


def scenes_network() -> Trained:
    """The U-Net of scenes."""
    import digits
    import scenes

    x, labels, test, wanted = digits.load()
    floats = scenes.model(scenes.train(x, labels))
    rng = np.random.default_rng
    tests, classes = scenes.scenes(test, wanted, scenes.TESTS, rng(scenes.SEED + 1))
    samples, own = scenes.scenes(x, labels, 32, rng(scenes.SEED + 2))

    def pixels(outputs: Mapping[str, Array], truth: Array) -> float:
        (result,) = outputs.values()
        return 100 * float((result.argmax(1) == truth).mean())

    return Trained(floats, samples, own, right(tests, classes), pixels)


def characters_network() -> Trained:
    """The language model of characters; of what a search wants more, the perplexity is less."""
    import characters

    text, rest = characters.documents()
    rng = np.random.default_rng(characters.SEED + 1)
    tests = characters.windows(rest, characters.TESTS, rng)
    samples = characters.windows(text, characters.SAMPLES, rng)
    floats = characters.model(characters.trained(text))

    def less(outputs: Mapping[str, Array], truth: Array) -> float:
        (result,) = outputs.values()
        return -characters.perplexity(result, truth)

    def score(model: onnx.ModelProto) -> float:
        return float(characters.perplexity(results(model, tests[:, :-1]), tests[:, 1:]))

    return Trained(floats, samples[:, :-1], samples[:, 1:], score, less)


NETWORKS: Mapping[str, Callable[[], Trained]] = {
    "digits": digits_network,
    "patches": patches_network,
    "scenes": scenes_network,
    "characters": characters_network,
}


def rows_of(name: str, config: str) -> list[tuple[str, ...]]:
    """A network's scores: of the floats, by each recipe, and by the search."""
    trained = NETWORKS[name]()
    rows = [(name, "floats", f"{trained.score(trained.floats):.3f}", "", "")]
    calibration = {trained.floats.graph.input[0].name: trained.samples}
    with tempfile.TemporaryDirectory() as folder:
        source, target = (Path(folder) / f"{each}.onnx" for each in ("floats", "q"))
        onnx.save(trained.floats, str(source))
        for recipe, options in RECIPES.items():
            api.quantize(source, target, Quantize(calibration, **options))
            rows.append(("", recipe, f"{trained.score(onnx.load(str(target))):.3f}", "", ""))
        how = Quantize(
            calibration, labels=trained.labels, score=trained.metric, auto=True, drop=0.3,
            config=config,
        )  # fmt: skip
        best = api.search_quantization(source, target, how).chosen
        score = f"{trained.score(onnx.load(str(target))):.3f}"
        rows.append(("", "--auto --drop 0.3", score, best.name, f"{best.cycles:,}"))
    return rows


def main() -> None:
    """Trains, quantizes and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=[], help="default: all four")
    parser.add_argument("-c", "--config", default="paper-full")
    args = parser.parse_args()
    table = Table("network", "recipe", "score", "chosen", f"cycles, {args.config}")
    for name in args.networks or NETWORKS:
        for row in rows_of(name, args.config):
            table.add_row(*row)
            print(" ".join(row), file=sys.stderr)
    Console().print(table)


if __name__ == "__main__":
    main()
