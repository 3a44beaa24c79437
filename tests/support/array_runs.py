"""What a covering array's configs compute: lockstep and small networks, and what differs.

Random programs run on simulator and RTL in lockstep. A network of each kind runs on both, too, each
program of it, and its outputs are the host's, bit for bit. A softmax on the accelerator isn't the
host's: there the outputs are those that numpy computes of the graph that the accelerator got. A
config with more than LARGEST multipliers has no RTL here, and its networks run on the simulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import onnx
from covering_array import LARGEST, Array, Pair, Row, config_of, pairs_of
from random_networks import Layer, Network

from vdla.analysis import lockstep
from vdla.analysis.lockstep import LockstepDevice
from vdla.analysis.machines import Machines
from vdla.compiler.build import Options, compile_model, place_models
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.recurrent import Sizes, cells
from vdla.compiler.models.transformers import SequenceBuilder
from vdla.isa.config import Config, load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.support.errors import UserError

HOST = load_config("tiny")  # of a module for the processor alone: it means nothing there
Values = Mapping[str, Any]


@dataclass
class Runs:
    """What ran so far. ``pairs`` met in a config that ran, ``refused`` are networks by the first
    words of the error, ``differences`` say what to type."""

    configs: int = 0
    with_rtl: int = 0
    programs: int = 0
    networks: int = 0
    layers: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    pairs: set[Pair] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)

    def share(self, array: Array) -> float:
        """Of the array's pairs, those that met."""
        return len(self.pairs & array.pairs) / len(array.pairs)

    def __str__(self) -> str:
        refused = f", {self.refused.total()} refused" if self.refused else ""
        return (
            f"{self.configs} configs, {self.with_rtl} with RTL; {self.programs} programs, "
            f"{self.networks} networks with {self.layers} layers on the accelerator{refused}"
        )


# Networks ---------------------------------------------------------------------------------------


def _layers(shape: tuple[int, int, int, int], *layers: Layer) -> Callable[[Path], Values]:
    def write(path: Path) -> Values:
        onnx.save(Network(3, shape, "int8", layers).model(), path)
        return {"x": np.random.default_rng(1).uniform(-6, 6, shape).astype(np.float32)}

    return write


def _attention(path: Path) -> Values:
    data = np.random.default_rng(5).standard_normal((1, 6, 8)).astype(np.float32)
    b = SequenceBuilder("attention", 3, data)
    quantize_model(b.model(b.attention("head", "input", 1)), path, [{"input": data}])
    return {"input": data}


def _recurrent(path: Path) -> Values:
    b = cells("lstm", Sizes(steps=3, inputs=6, hidden=8))
    inputs = {"input": b.values["input"]}
    quantize_model(b.model("states"), path, [inputs])
    return inputs


SQUARE: dict[str, Any] = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}
NETWORKS: Mapping[str, Callable[[Path], Values]] = {
    "dense": _layers((1, 9, 2, 2), Layer("dense", channels=10)),
    "convolution": _layers((1, 5, 6, 6), Layer("conv", channels=9, activation="Relu", **SQUARE)),
    "depthwise": _layers((1, 9, 6, 6), Layer("depthwise", **SQUARE)),
    "residual": _layers((1, 8, 5, 5), Layer("residual", **SQUARE)),
    "pooling": _layers(
        (1, 8, 6, 6),
        Layer("max_pool", kernel=(2, 2), strides=(2, 2)),
        Layer("average_pool", **SQUARE),
        Layer("global_pool"),
    ),
    "attention": _attention,
    "recurrent": _recurrent,
}


@cache
def network(kind: str) -> tuple[Path, Values]:
    """The file of a network, which stays until the process ends, and its inputs."""
    path = _folder() / f"{kind}.onnx"
    return path, NETWORKS[kind](path)


@cache
def _folder() -> Path:
    return Path(mkdtemp(prefix="vdla-array-"))


@cache
def on_host(kind: str) -> Values:
    """What the host computes of a network."""
    path, inputs = network(kind)
    module = compile_model(path, HOST, Options(device="cpu"))
    return dict(Executor(module, CpuDevice()).run(inputs).outputs)


# Runs -------------------------------------------------------------------------------------------


def run_rows(rows: Iterable[Row], programs: int, seed: int = 0) -> Runs:
    """Runs each row's config: so many programs from ``seed`` on, and every network."""
    runs = Runs()
    for row in rows:
        run_row(runs, row, programs, seed)
    return runs


def run_row(runs: Runs, row: Row, programs: int, seed: int) -> None:
    """Runs a row's config, and adds to ``runs``."""
    config, settings = config_of(row), settings_of(row)
    runs.configs += 1
    runs.pairs.update(pairs_of(row))
    if config.macs_per_cycle > LARGEST:
        devices = [SimDevice(config)]
    else:
        machines = Machines(config)
        runs.with_rtl += 1
        runs.programs += programs
        *_, tally = lockstep.lockstep(machines, programs, seed, keep=0, memories=1)
        if tally.failed:
            count = tally.mismatches + tally.unexpected_endings
            text = f"{count} of {programs} programs from seed {seed} on"
            runs.differences.append(f"lockstep, {text}: {settings}")
        devices = [LockstepDevice(machines)]
    for kind in NETWORKS:
        if wrong := _network_fault(runs, kind, config, devices[0]):
            runs.differences.append(f"{kind}, {wrong}: {settings}")


def _network_fault(runs: Runs, kind: str, config: Config, device: Any) -> str:
    """What is wrong with a network on a device; nothing where it is equal or refused."""
    path, inputs = network(kind)
    try:
        module = compile_model(path, config, Options())
    except UserError as error:
        runs.refused[f"{kind}: {error}"] += 1
        return ""
    try:
        outputs = Executor(module, device).run(inputs).outputs
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    runs.networks += 1
    runs.layers += sum(row["device"] == "vdla" for row in module.metadata["placement"])
    if isinstance(device, LockstepDevice) and device.tally.failed:
        device.tally = lockstep.Tally()
        return "simulator and RTL differ"
    if _same(outputs, on_host(kind)):
        return ""
    graph = place_models({kind: path}, config)[kind].graphs[0].graph
    return "" if _same(outputs, evaluate(graph, inputs)) else "other outputs than the host's"


def _same(outputs: Values, wanted: Values) -> bool:
    return all(np.array_equal(array, wanted[name]) for name, array in outputs.items())


def settings_of(row: Row) -> str:
    """The config's own lines, as one."""
    lines = config_of(row).to_toml().splitlines()
    return "; ".join(line.partition("#")[0].strip() for line in lines if line)
