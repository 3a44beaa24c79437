"""Networks on a design: cycles that no schedule goes below, and those of the compiled streams.

A network that a design can't run as config ``paper`` does has a refusal in place of cycles: a layer
that stays on the host takes time which no cycle counts, so its cycles couldn't be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vdla.compiler.assemble import LinkedNetwork
from vdla.compiler.build import Options, import_graph, link_graph, placed_graphs
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph.ir import BY_OP
from vdla.compiler.placement import ACCELERATOR, report
from vdla.compiler.targets.accelerator.estimates import layer_cycles
from vdla.compiler.targets.accelerator.loop_store import user_store
from vdla.compiler.targets.accelerator.operators.template import Operator
from vdla.compiler.targets.accelerator.part import StreamPart
from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
from vdla.compiler.targets.accelerator.search.workload import sources
from vdla.compiler.targets.accelerator.target import NO_KERNEL
from vdla.isa.config import Config, load_config
from vdla.runtime.plan import Accelerate
from vdla.runtime.plan import runs as runs_of
from vdla.sim.counts import Counts, counts_of
from vdla.sim.machine import Run, run_stream
from vdla.sim.stream import Stream
from vdla.support.errors import CheckError, UserError
from vdla.support.files import digest
from vdla.support.garbage import rare_collection

REFERENCE = "paper"  # the config whose accelerated layers every design has to take


class Work(NamedTuple):
    """Work that a network asks of a design: multiply-adds, bytes that cross the port at least, and
    why the design can't do it; "" where it can."""

    macs: int
    dram_bytes: int
    refusal: str = ""


class Estimate(NamedTuple):
    """Cycles by the analytic model, infinite where ``refusal`` says why there are none."""

    cycles: float
    refusal: str = ""


@dataclass(frozen=True)
class NetworkRun:
    """One network on one design.

    ``cycles`` are those of all its streams together; None where ``refusal`` says why there are
    none. ``layers`` shares them out: a layer has the cycles from the end of the layers before it in
    its stream to its own end. ``runs`` are the simulated streams, without numbers; ``counts`` are
    what they do, where they were counted.
    """

    cycles: int | None
    layers: Mapping[str, int] = field(default_factory=dict)
    refusal: str = ""
    runs: tuple[Run, ...] = ()
    counts: Counts | None = None


class Networks:
    """Some networks, imported once, to be run on many designs; they can be pickled.

    ``digest`` are 12 hex digits over the files and the other arguments.

    Args:
        paths: ONNX files by the networks' names.
        shapes: sizes that the files leave open.
        vthreads: virtual threads of schedules that no record gives.
        kept: whether scheduled loops are kept on disk, in the cache of the machine that compiles.

    Raises:
        ModelError: a file is not a quantized model that can be compiled.
    """

    def __init__(
        self,
        paths: Mapping[str, Path],
        shapes: Shapes | None = None,
        vthreads: int = 2,
        *,
        kept: bool = False,
    ) -> None:
        self.vthreads, self.kept = vthreads, kept
        self.graphs = {name: import_graph(path, None, shapes) for name, path in paths.items()}
        known = (sorted(paths), sorted((shapes or {}).items()), vthreads)
        files = [path for _, path in sorted(paths.items())]
        self.digest = digest(files, also=repr(known), digits=12)

    @property
    def names(self) -> tuple[str, ...]:
        """The networks' names."""
        return tuple(self.graphs)

    @cached_property
    def accelerated(self) -> dict[str, frozenset[str]]:
        """By network, the layers that config ``paper`` runs on the accelerator."""
        paper, result = load_config(REFERENCE), {}
        for name, graph in self.graphs.items():
            result[name] = frozenset(
                node
                for each in placed_graphs(graph, paper, self._options())
                for node, where in each.placements.items()
                if where.device == ACCELERATOR
            )
        return result

    def _options(self, records: TileRecords | None = None) -> Options:
        loops = user_store(sources()) if self.kept else None
        return Options(vthreads=self.vthreads, records=records, timing=True, loops=loops)

    def layers(self, name: str, config: Config) -> tuple[list[tuple[Operator, int]], str]:
        """A network's accelerated layers on a design, before any schedule, each with how often it
        runs as far as is known; and why the design can't run it, "" where nothing speaks against
        it yet."""
        options, operators, rows = self._options(), list[tuple[Operator, int]](), []
        try:
            for graph, placements, runs in placed_graphs(self.graphs[name], config, options):
                own = options.accelerator(config).operators(graph, placements)
                operators += [(operator, runs) for operator in own.values()]
                rows += report(graph, placements)
        except (*NO_KERNEL, UserError) as error:
            return [], _line(error)
        return operators, self._refusal(name, rows)

    def work(self, config: Config) -> dict[str, Work]:
        """Work that each network asks of a design, by name; nothing is compiled."""
        return {name: self._work(name, config) for name in self.graphs}

    def _work(self, name: str, config: Config) -> Work:
        operators, refusal = self.layers(name, config)
        macs = sum(runs * op.macs for op, runs in operators)
        moved = sum(runs * op.dram_bytes for op, runs in operators)
        return Work(macs, moved, refusal)

    def estimate(self, config: Config) -> dict[str, Estimate]:
        """Cycles of each network by the analytic model, each layer by itself; no instruction is
        made. Neither a bound nor exact, it follows what the bound doesn't see: the buffers, and
        where no tile of a layer fits them."""
        return {name: self._estimate(name, config) for name in self.graphs}

    def _estimate(self, name: str, config: Config) -> Estimate:
        operators, refusal = self.layers(name, config)
        if refusal:
            return Estimate(float("inf"), refusal)
        try:
            each = (runs * layer_cycles(op, config, self.vthreads) for op, runs in operators)
            return Estimate(sum(each))
        except NO_KERNEL as error:
            return Estimate(float("inf"), _line(error))

    def _refusal(self, name: str, rows: Sequence[Mapping[str, str]]) -> str:
        """Reason for which a network can't be compared, by its placement's rows: a layer that stays
        on the host and would be no layer of the host's on ``paper``; "" where there is none."""
        own = self.accelerated[name]
        left = [row for row in rows if row["device"] != ACCELERATOR and row["name"] in own]
        left.sort(key=lambda row: row["op"] in BY_OP and BY_OP[row["op"]].CONVERTS)
        return f"{left[0]['name']} stays on the host: {left[0]['reason']}" if left else ""

    def bound(self, config: Config) -> dict[str, float]:
        """Cycles that no schedule of each network goes below, by name: its multiply-adds on all
        multipliers, or its bytes at the port's rate, whichever are more. Infinity where the design
        can't run it; nothing is compiled.

        Layers overlap, so the maximum is taken of a network's sums, not of each of its layers.
        """
        return {name: bound_cycles(work, config) for name, work in self.work(config).items()}

    def exact(
        self, config: Config, records: TileRecords | None = None, *, counted: bool = False
    ) -> dict[str, NetworkRun]:
        """Each network compiled and its streams simulated, by name.

        The cycles are those that ``vdla run --device sim`` counts; where only a run knows how often
        steps run, each of them counts once.

        Args:
            config: the design.
            records: tuned schedules; without them all are the analytic model's.
            counted: whether what the streams do is counted, too, as energy asks for.
        """
        options = self._options(records)
        with rare_collection():
            return {name: self._exact(name, config, options, counted) for name in self.graphs}

    def _exact(self, name: str, config: Config, options: Options, counted: bool) -> NetworkRun:
        try:
            linked = link_graph(self.graphs[name], config, options)
            rows = report(linked.network.graph, linked.network.placements)
            refusal = self._refusal(name, rows)
            if refusal:
                return NetworkRun(None, refusal=refusal)
            return _simulated(linked, config, counted)
        except (*NO_KERNEL, UserError, CheckError) as error:
            return NetworkRun(None, refusal=_line(error))


def bound_cycles(work: Work, config: Config) -> float:
    """Cycles that no schedule of a network goes below; infinity where the design can't run it."""
    if work.refusal:
        return float("inf")
    beat = -(-config.port_bytes // config.memory.bytes_per_cycle)  # cycles; docs/timing.md, 2
    moving = work.dram_bytes * beat / config.port_bytes
    return max(work.macs / config.macs_per_cycle, moving)


def _simulated(linked: LinkedNetwork, config: Config, counted: bool) -> NetworkRun:
    """The streams of a network, one after another. Of DRAM, cycles depend on micro-ops alone."""
    streams = linked.parts[ACCELERATOR]
    assert isinstance(streams, StreamPart)
    dram = np.zeros(linked.dram_bytes, np.uint8)
    for address, uops in streams.uops.items():
        dram[address : address + uops.size] = uops
    each = zip(linked.steps, runs_of(linked.steps), strict=True)
    often = {step.program: count for step, count in each if isinstance(step, Accelerate)}
    runs, layers, counts = [], dict[str, int](), Counts()
    for name, program in streams.programs.items():
        stream = Stream.of(config, program.instructions, program.base)
        run = run_stream(stream, dram, numerics=False)
        runs += [run] * often[name]
        own = dict[str, int]()
        _share(run, streams.linked[name].layers, own)
        for layer, cycles in own.items():
            layers[layer] = layers.get(layer, 0) + often[name] * cycles
        counts = sum([counts_of(stream, dram)] * often[name] if counted else [], counts)
    cycles = sum(run.cycles for run in runs)
    return NetworkRun(cycles, layers, runs=tuple(runs), counts=counts if counted else None)


def _share(run: Run, owners: Sequence[str], layers: dict[str, int]) -> None:
    """Adds a stream's cycles to its layers', which own its instructions one by one; instructions
    without a layer count with the layer before them."""
    ends = np.maximum.accumulate(run.finish)
    begin, position, layer = 0, 0, next((name for name in owners if name), "")
    for name, group in groupby(owners):
        position += len(list(group))
        layer = name or layer
        end = run.cycles if position == len(ends) else int(ends[position - 1])
        layers[layer] = layers.get(layer, 0) + end - begin
        begin = end


def _line(error: Exception) -> str:
    """An error's text in one line."""
    return " ".join(str(error).split())
