"""The command that runs a model, and compares it with onnxruntime."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla import api
from vdla.analysis import hiding
from vdla.analysis.end_to_end import EndToEnd, end_to_end
from vdla.analysis.ort import ort_runs
from vdla.api.modules import random_inputs
from vdla.boards import find_board
from vdla.commands.inputs import TestImages, test_images, with_files
from vdla.commands.output import (
    check_folder,
    log,
    print_energy_table,
    print_json,
    print_placement,
    progress,
    say,
    table,
)
from vdla.compiler import models
from vdla.compiler.placement import processor_layers, processor_remark
from vdla.isa.config import Config
from vdla.names.configs import energy_table
from vdla.options import Run, RunFiles
from vdla.runtime.dtypes import to_write
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.plan import Outside, accelerator_steps, program_titles
from vdla.runtime.results import RunResult
from vdla.runtime.values import flat
from vdla.sim import machine
from vdla.sim.counts import Counts
from vdla.sim.energy import PJ_PER_UJ, Energy, EnergyTable, energy
from vdla.sim.trace import write_trace
from vdla.support.files import atomic_write

Array = NDArray[Any]
Ran = tuple[Module, Config, list[RunResult]]
REPEATED_SECONDS = 0.15  # for the shortest time of what the host runs


def run(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Runs a model once, or over a bundled test split."""
    for path in (files.output, files.trace):
        if path is not None:
            check_folder(path, model, files.input, files.energy, options.config, options.records)
    by = energy_table(files.energy)
    options = with_files(options, files)
    split = test_images(model, options, files)
    runs = _run_remotely if options.farm else _run_here
    module, config, results = runs(model, options, split)
    outputs = {name: _joined([r.outputs[name] for r in results]) for name in module.results}
    if files.output is not None:
        write_outputs(files.output, outputs)
    if options.waves:
        log.print(f"wrote {options.waves}")
    elif files.trace is not None:
        _write_run_trace(module, results[0], files.trace)
    board = find_board(options.board) if options.board else None
    whole = end_to_end(module, results, config, board)
    figures = _Figures(_estimate(results, config, by), whole)
    _report(_Place(module, config, options.device), results, outputs, figures, json)
    if split:
        accuracy = _accuracy(
            model, outputs[module.results[0]], _batches(module, options, split), split.labels
        )
        if len(results) < split.count:
            took = sum(result.seconds for result in results) / len(results)
            log.print(
                f"ran {len(results)} of {split.count} test images at {took:.1f} s each: "
                f"all would take {_minutes(took * split.count)}; --images N runs more"
            )
        (log.print if json else say)(accuracy)


def _minutes(seconds: float) -> str:
    """A time as one says it: ``40 s``, ``54 min``."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _run_here(model: str, options: Run, split: TestImages | None) -> Ran:
    """Runs a model on this machine."""
    with progress() as update:
        ready, config = api.prepare(model, replace(options, progress=update))
    return ready.module, config, _run_all(ready, _batches(ready.module, options, split))


def _run_remotely(model: str, options: Run, split: TestImages | None) -> Ran:
    """Runs a model on a worker of a farm."""
    from vdla.api.remote import remote  # which imports what compiles

    with progress() as update, remote(model, replace(options, progress=update)) as served:
        module, batches = served.module, _batches(served.module, options, split)
        update("run", 0, len(batches))
        return module, served.order.config, served.run(batches, _repeated(module, batches))


def _batches(module: Module, options: Run, split: TestImages | None) -> list[dict[str, Array]]:
    """The inputs of each run: test images, those given, or random ones."""
    if split:
        return [{module.inputs[0]: image[None]} for image in split.images]
    return [random_inputs(module) if options.inputs is None else dict(options.inputs)]


def _repeated(module: Module, batches: Sequence[Mapping[str, Array]]) -> float:
    """Seconds for the shortest time of what the host runs, where a single run measures it."""
    measured = module.accelerated and "host_time" not in module.metadata
    return REPEATED_SECONDS if measured and len(batches) == 1 else 0.0


def _run_all(ready: Executor, batches: Sequence[Mapping[str, Array]]) -> list[RunResult]:
    ready.repeats.left = _repeated(ready.module, batches)
    if len(batches) == 1:
        return [ready.run(batches[0])]
    results = []
    with progress() as update:
        for done, inputs in enumerate(batches):
            update("run", done, len(batches))
            results.append(ready.run(inputs))
    return results


def _joined(arrays: Sequence[Array]) -> Array:
    """One output of some runs, along its first axis; of a single run as it is: it may have none."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def write_outputs(path: Path, outputs: Mapping[str, Array]) -> None:
    """Writes an .npz file, whole or not at all; of a list ``y`` its elements as ``y[0]``,
    ``y[1]``."""
    with atomic_write(path) as beside, open(beside, "wb") as file:
        arrays = (each for name, value in outputs.items() for each in flat(name, value).items())
        written = {name: to_write(array) for name, array in arrays}
        np.savez(file, **dict[str, Any](written))


@dataclass(frozen=True)
class _Place:
    """Module that was run, and where: the config, the device."""

    module: Module
    config: Config
    device: str


def _report(
    place: _Place,
    results: Sequence[RunResult],
    outputs: Mapping[str, Array],
    figures: _Figures,
    json: bool,
) -> None:
    estimate, whole = figures.energy, figures.end_to_end
    module, config, device = place.module, place.config, place.device
    worker = results[0].worker
    cycles = sum(r.cycles or 0 for r in results)
    summary = {name: _summary(value) for name, value in outputs.items()}
    placement = module.metadata.get("placement", [])
    if json:
        print_json(
            {
                "device": device,
                **({"worker": worker} if worker else {}),
                "config": config.name,
                "cycles": None if results[0].cycles is None else cycles,
                "host_layers": processor_layers(placement)[0],
                "seconds": sum(r.seconds for r in results),
                "end_to_end": whole.to_json(),
                **({} if estimate is None else estimate.to_json()),
                "outputs": summary,
                "placement": placement,
                "programs": [_program_json(*each) for each in _traced(results[0]).items()],
            }
        )
        return
    print_placement(module)
    _print_causes(results[0], program_titles(module.steps))
    rows = [row for name, value in outputs.items() for row in _rows(name, value)]
    table("outputs", ("name", "shape", "dtype", "sha256"), rows)
    many = f"{len(results)} inputs, " if len(results) > 1 else ""
    time = f"{many}{sum(r.seconds for r in results):.3f} s on device {device}"
    time += f" of {worker}" if worker else ""
    if estimate is not None:
        print_energy_table(estimate.table, [estimate.energy])
    if module.accelerated:
        say(time)
    for line in _result_lines(module, config, results, figures, many):
        say(line)
    if not module.accelerated:
        say(time)


def _summary(value: Any) -> Any:
    """An output in ``vdla run --json``."""
    if isinstance(value, list):
        return [_summary(each) for each in value]
    return value if value is None else {
        "shape": list(value.shape),
        "dtype": str(value.dtype),
        "sha256": hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest(),
    }  # fmt: skip


def _rows(name: str, value: Any) -> list[tuple[str, str, str, str]]:
    """Rows of the table of outputs: one for each array; for an empty list or None one that says
    so."""
    rows = [
        (key, str(each["shape"]), each["dtype"], each["sha256"][:16])
        for key, array in flat(name, value).items()
        for each in (_summary(array),)
    ]
    return rows or [(name, "an empty list" if isinstance(value, list) else "none", "", "")]


def _result_lines(
    module: Module, config: Config, results: Sequence[RunResult], figures: _Figures, many: str
) -> Iterator[str]:
    """Result that a reader of a run looks for: cycles, utilization, energy, milliseconds."""
    cycles, whole = sum(r.cycles or 0 for r in results), figures.end_to_end
    if module.accelerated:
        yield (
            f"{many}{cycles:,} cycles on {config.name} (memory {config.memory.name}): "
            f"{cycles / whole.clock_mhz / 1e3:.2f} ms {whole.at_clock}"
        )
        if remark := processor_remark(module.metadata.get("placement", [])):
            yield remark
        macs = sum(_multiply_adds(module, result) for result in results)
        if macs and cycles:
            share = macs / config.macs_per_cycle / cycles
            yield f"utilization {100 * share:.1f} % of the multipliers"
    elif results[0].cycles is not None:
        targets = dict.fromkeys(s.target for s in module.steps if isinstance(s, Outside))
        yield f"{many}{cycles:,} cycles on {', '.join(targets)}"
    if figures.energy is not None:
        yield f"{many}{figures.energy.energy.total_uj:,.1f} µJ: {figures.energy.text}"
    if module.accelerated or whole.modelled:
        yield whole.text


def _multiply_adds(module: Module, result: RunResult) -> int:
    """The multiply-adds of all that ran on the accelerator."""
    macs = {layer["name"]: layer["macs"] for layer in module.metadata.get("layers", [])}
    layers = {step.program: step.layers for step in accelerator_steps(module.steps)}
    ran = (step.name for step in result.steps if step.name in layers)
    return sum(macs.get(layer, 0) for name in ran for layer in layers[name])


@dataclass(frozen=True)
class _Figures:
    """Figures of some runs: their energy, if a table is given, and their time."""

    energy: _Estimate | None
    end_to_end: EndToEnd


@dataclass(frozen=True)
class _Estimate:
    """The energy of all that ran on the accelerator, and the table that it is by."""

    table: EnergyTable
    energy: Energy

    @property
    def text(self) -> str:
        """The share of each part, the greatest first."""
        parts = sorted(self.energy.parts.items(), key=lambda part: -part[1])
        total = self.energy.total_pj
        return ", ".join(f"{name} {100 * pj / total:.1f} %" for name, pj in parts if pj)

    def to_json(self) -> dict[str, object]:
        """The keys of ``vdla run --json`` about energy, in µJ."""
        return {
            "energy_uj": self.energy.total_uj,
            "energy_table": self.table.name,
            "energy_parts_uj": {n: pj / PJ_PER_UJ for n, pj in self.energy.parts.items()},
        }


def _estimate(
    results: Sequence[RunResult], config: Config, table: EnergyTable | None
) -> _Estimate | None:
    """The energy of some runs; None without a table."""
    if table is None:
        return None
    devices = [step.device for result in results for step in result.steps]
    counts = sum((d.counts() for d in devices if d is not None and d.counts), Counts())
    return _Estimate(table, energy(counts, config, table))


def _print_causes(result: RunResult, titles: Mapping[str, str]) -> None:
    for name, runs in _traced(result).items():
        cycles, causes, work = _whole(runs)
        rows = [
            (
                engine,
                *(f"{100 * n / cycles:.1f} %" for n in own.values()),
                work[engine].text if engine in work else "",
            )
            for engine, own in causes.items()
        ]
        columns = ("engine", *next(iter(causes.values())), "work beside GEMM")
        title = titles.get(name, name) + (f", {len(runs):,} runs" if len(runs) > 1 else "")
        table(f"where each engine's cycles went: {title}", columns, rows)


def _traced(result: RunResult) -> dict[str, list[machine.Run]]:
    """The runs of each program of which it is known when each instruction ran."""
    traced: dict[str, list[machine.Run]] = {}
    for step in result.steps:
        if step.device and step.device.trace:
            traced.setdefault(step.name, []).append(step.device.trace)
    return traced


def _whole(
    runs: Sequence[machine.Run],
) -> tuple[int, dict[str, dict[str, int]], dict[str, hiding.Work]]:
    """Cycles of all runs of a program, those of each engine by their causes, and its work."""
    distinct = {id(run): run for run in runs}  # turns of a loop share what the simulator counted
    works = {number: hiding.work(run) for number, run in distinct.items()}
    causes = {
        engine: {cause: sum(run.causes[engine][cause] for run in runs) for cause in own}
        for engine, own in runs[0].causes.items()
    }
    work = {
        engine: hiding.total(works[id(run)][engine] for run in runs)
        for engine in works[id(runs[0])]
    }
    return sum(run.cycles for run in runs), causes, work


def _program_json(name: str, runs: Sequence[machine.Run]) -> dict[str, object]:
    cycles, causes, whole = _whole(runs)
    work = {engine: asdict(each) for engine, each in whole.items()}
    return {"name": name, "runs": len(runs), "cycles": cycles, "causes": causes, "work": work}


def _write_run_trace(module: Module, result: RunResult, path: Path) -> None:
    """The accelerator's cycles; the steps' seconds where it takes no part, and beside it
    where a device with a memory of its own does."""
    accelerated = next((s for s in result.steps if s.device and s.device.trace is not None), None)
    if accelerated is not None and accelerated.device is not None:
        trace = accelerated.device.trace
        layers, stages = module.stream_names(accelerated.name, len(trace.instructions))
        write_trace(trace, path, layers=layers, stages=stages)
        log.print(f"wrote {path}")
        if module.kernels is None:
            return
        path = path.with_suffix(".steps.json")
    from vdla.analysis.profile import write_timeline

    write_timeline(result, path)
    log.print(f"wrote {path}")


def _accuracy(
    model: str, logits: Array, batches: Sequence[Mapping[str, Array]], labels: Array
) -> str:
    path = models.model_path(model)
    reference = np.concatenate([next(iter(r.values())) for r in ort_runs(path, batches)])
    got, want = (float(np.mean(x.argmax(1) == labels)) for x in (logits, reference))
    images = f"{len(labels)} test image{'s' if len(labels) > 1 else ''}"
    return f"accuracy over {images}: {100 * got:.2f} %, onnxruntime {100 * want:.2f} %"
