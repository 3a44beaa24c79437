"""The command that runs a model, and compares it with onnxruntime."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla import api
from vdla.analysis import difference, hiding
from vdla.analysis.end_to_end import EndToEnd, end_to_end
from vdla.analysis.ort import ort_runs
from vdla.analysis.profile import write_timeline
from vdla.api.modules import random_inputs
from vdla.boards import find_board
from vdla.commands.output import (
    check_folder,
    console,
    log,
    print_energy_table,
    print_json,
    progress,
    table,
)
from vdla.commands.transform import print_placement
from vdla.compiler import models
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import input_values
from vdla.compiler.placement import processor_layers, processor_remark
from vdla.isa.config import Config
from vdla.names.configs import energy_table
from vdla.names.models import model_file
from vdla.options import Run, RunFiles
from vdla.options.spelling import UsageError
from vdla.runtime.dtypes import to_write
from vdla.runtime.errors import InputError
from vdla.runtime.executor import Executor, RunResult, StepResult
from vdla.runtime.module import Module
from vdla.runtime.plan import Outside
from vdla.sim import machine
from vdla.sim.counts import Counts
from vdla.sim.energy import PJ_PER_UJ, Energy, EnergyTable, energy
from vdla.sim.trace import write_trace
from vdla.support.files import atomic_write

Array = NDArray[Any]


def run(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Runs a model once, or over a bundled test split."""
    for path in (files.output, files.trace):
        if path is not None:
            check_folder(path, model, files.input, files.energy, options.config, options.records)
    by = energy_table(files.energy)
    options = _told(options, files)
    split = _test_images(model, options, files)
    ready, config = _prepare(model, options)
    module = ready.module
    if split:
        batches = [{module.inputs[0]: image[None]} for image in split.images]
    else:
        given = options.inputs
        batches = [random_inputs(module) if given is None else dict(given)]
    results = _run_all(ready, batches)
    outputs = {name: _joined([r.outputs[name] for r in results]) for name in module.results}
    if files.output is not None:
        write_outputs(files.output, outputs)
    if options.waves:
        log.print(f"wrote {options.waves}")
    elif files.trace is not None:
        _write_run_trace(module, results[0], files.trace)
    board = find_board(options.board) if options.board else None
    whole = end_to_end(module, results, config, board)
    _report(ready, config, results, outputs, _Figures(_estimate(results, config, by), whole), json)
    if split:
        _report_accuracy(model, outputs[module.results[0]], batches, split.labels)
        if len(batches) < split.count:
            took = sum(result.seconds for result in results) / len(results)
            log.print(
                f"ran {len(batches)} of {split.count} test images at {took:.1f} s each: "
                f"all would take {_minutes(took * split.count)}; --images N runs more"
            )


@dataclass(frozen=True)
class _Split:
    """Test images of a bundled model's to run, of ``count`` that there are."""

    images: Array
    labels: Array
    count: int


def _test_images(model: str, options: Run, files: RunFiles) -> _Split | None:
    """The test images to run: all by default; one on a virtual board, where each takes seconds.

    Raises:
        UsageError: a number of images for a model that has none.
    """
    split = models.test_split(model) if options.inputs is None else None
    if split is None:
        if files.images:
            known = "a bundled model with test images, as digits"
            raise UsageError(f"--images: expected {known}, found {model}")
        return None
    images, labels = split
    count = files.images or (1 if options.virtual else len(images))
    return _Split(images[:count], labels[:count], len(images))


def _minutes(seconds: float) -> str:
    """A time as one says it: ``40 s``, ``54 min``."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _told(options: Run, files: RunFiles) -> Run:
    """The options with what the files say, and with this terminal to report to."""
    trace = files.trace
    return replace(
        options,
        inputs=read_inputs(files.input) if files.input else None,
        waves=trace if trace is not None and trace.suffix == ".fst" else None,
        report=log.print,
    )


def _prepare(model: str, options: Run) -> tuple[Executor, Config]:
    with progress() as update:
        return api.prepare(model, replace(options, progress=update))


def _run_all(ready: Executor, batches: Sequence[Mapping[str, Array]]) -> list[RunResult]:
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


def read_inputs(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file.

    Raises:
        InputError: it isn't one.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        result = error.strerror or "something else"
        raise InputError(f"{path}: expected a readable .npz file, found {result}") from None
    except Exception:
        raise InputError(f"{path}: expected an .npz file of arrays, found other content") from None


def write_outputs(path: Path, outputs: Mapping[str, Array]) -> None:
    """Writes an .npz file, whole or not at all."""
    with atomic_write(path) as beside, open(beside, "wb") as file:
        written = {name: to_write(array) for name, array in outputs.items()}
        np.savez(file, **dict[str, Any](written))


def _report(
    ready: Executor,
    config: Config,
    results: Sequence[RunResult],
    outputs: Mapping[str, Array],
    figures: _Figures,
    json: bool,
) -> None:
    estimate, whole = figures.energy, figures.end_to_end
    module, device = ready.module, ready.device.name
    cycles = sum(r.cycles or 0 for r in results)
    seconds = sum(r.seconds for r in results)
    summary = {
        name: {
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
        }
        for name, array in outputs.items()
    }
    placement = module.metadata.get("placement", [])
    if json:
        print_json(
            {
                "device": device,
                "config": config.name,
                "cycles": None if results[0].cycles is None else cycles,
                "host_layers": processor_layers(placement)[0],
                "seconds": seconds,
                "end_to_end": whole.to_json(),
                **({} if estimate is None else estimate.to_json()),
                "outputs": summary,
                "placement": placement,
                "programs": [_program_json(step.name, run) for step, run in _traced(results[0])],
            }
        )
        return
    print_placement(module)
    _print_causes(results[0])
    rows = [(n, str(s["shape"]), s["dtype"], str(s["sha256"])[:16]) for n, s in summary.items()]
    table("outputs", ("name", "shape", "dtype", "sha256"), rows)
    many = f"{len(results)} inputs, " if len(results) > 1 else ""
    if module.accelerated:
        console.print(
            f"{many}{cycles:,} cycles on {config.name} (memory {config.memory.name}): "
            f"{cycles / whole.clock_mhz / 1e3:.2f} ms at {whole.clock_mhz:g} MHz"
        )
        if remark := processor_remark(placement):
            console.print(remark)
    elif results[0].cycles is not None:
        targets = dict.fromkeys(s.target for s in module.steps if isinstance(s, Outside))
        console.print(f"{many}{cycles:,} cycles on {', '.join(targets)}")
    if module.accelerated or whole.modelled:
        console.print(whole.text)
    console.print(f"{many}{seconds:.3f} s on device {device}")
    if estimate is not None:
        console.print(f"{many}{estimate.energy.total_uj:,.1f} µJ: {estimate.text}")
        print_energy_table(estimate.table, [estimate.energy])


@dataclass(frozen=True)
class _Figures:
    """What is said of some runs: their energy, if a table is given, and their time."""

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


def _print_causes(result: RunResult) -> None:
    for step, run in _traced(result):
        work = hiding.work(run)
        rows = [
            (
                engine,
                *(f"{100 * n / run.cycles:.1f} %" for n in causes.values()),
                work[engine].text if engine in work else "",
            )
            for engine, causes in run.causes.items()
        ]
        columns = ("engine", *next(iter(run.causes.values())), "work beside GEMM")
        table(f"{step.name}: where each engine's cycles went", columns, rows)


def _traced(result: RunResult) -> list[tuple[StepResult, machine.Run]]:
    """The steps of which it is known when each instruction ran."""
    return [(s, s.device.trace) for s in result.steps if s.device and s.device.trace]


def _program_json(name: str, run: machine.Run) -> dict[str, object]:
    work = {engine: asdict(each) for engine, each in hiding.work(run).items()}
    return {"name": name, "cycles": run.cycles, "causes": run.causes, "work": work}


def _write_run_trace(module: Module, result: RunResult, path: Path) -> None:
    """The accelerator's cycles; the steps' seconds where it takes no part, and where a GPU does,
    beside it."""
    accelerated = next((s for s in result.steps if s.device and s.device.trace is not None), None)
    if accelerated is not None and accelerated.device is not None:
        trace = accelerated.device.trace
        layers, stages = module.stream_names(accelerated.name, len(trace.instructions))
        write_trace(trace, path, layers=layers, stages=stages)
        log.print(f"wrote {path}")
        if module.kernels is None:
            return
        path = path.with_suffix(".steps.json")
    write_timeline(result, path)
    log.print(f"wrote {path}")


def _report_accuracy(
    model: str, logits: Array, batches: Sequence[Mapping[str, Array]], labels: Array
) -> None:
    path = models.model_path(model)
    reference = np.concatenate([next(iter(r.values())) for r in ort_runs(path, batches)])
    got, want = (float(np.mean(x.argmax(1) == labels)) for x in (logits, reference))
    images = f"{len(labels)} test image{'s' if len(labels) > 1 else ''}"
    log.print(f"accuracy over {images}: {100 * got:.2f} %, onnxruntime {100 * want:.2f} %")


# run --profile ----------------------------------------------------------------------------------


def profile(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Prints where the time goes."""
    with progress() as update:
        result = api.profile(model, replace(_told(options, files), progress=update))
    if json:
        print_json(asdict(result))
        return
    rows = [
        (
            step.name,
            step.op,
            "" if step.seconds is None else f"{1e3 * step.seconds:.3f}",
            "" if step.share is None else f"{100 * step.share:.1f} %",
            "" if step.cycles is None else f"{step.cycles:,}",
            "" if step.operations is None else f"{step.operations / 1e6:.2f}",
            "" if step.gops is None else f"{step.gops:.1f}",
            "" if step.of_peak is None else f"{100 * step.of_peak:.0f} %",
        )
        for step in result.steps
    ]
    columns = ("step", "operator", "ms", "share", "cycles", "Mop", "Gop/s", "of peak")
    table(f"time on {result.threads} threads, the shortest of some runs", columns, rows)
    most = ", ".join(f"{n:.0f} Gop/s of {dtype}" for dtype, n in result.peaks.items() if n)
    seconds = sum(s.seconds or 0.0 for s in result.steps)
    console.print(f"{1e3 * seconds:.3f} ms; the peak is {most}")
    if any(step.seconds is None for step in result.steps):
        console.print(
            "the accelerator is simulated: its steps have cycles, and no share of the time"
        )


def check(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Compares with onnxruntime; exit code 1 when a bound doesn't hold."""
    options = _told(options, files)
    if files.images and (split := _test_images(model, options, files)):
        (value,) = input_values(load_onnx(model_file(model)).graph)
        options = replace(options, batches=[{value.name: image[None]} for image in split.images])
    with progress() as update:
        result = api.check(model, replace(options, progress=update))
    layers, agreement = result.layers, result.whole
    if json:
        print_json(
            {
                "layers": [{**vars(d), "share": d.share} for d in layers],
                "whole": [vars(a) for a in agreement],
                "holds": result.holds,
            }
        )
    else:
        rows = [
            (
                d.name,
                d.op,
                f"{d.elements:,}",
                f"{d.different:,}",
                f"{d.ties:,}",
                f"{100 * d.share:.4f} %",
                str(d.largest),
            )
            for d in layers
        ]
        columns = ("layer", "operator", "elements", "differ", "ties", "share", "largest")
        if result.quantized:
            table("difference from onnxruntime, per layer", columns, rows)
        checks = [
            (
                str(i),
                f"{a.cosine:.6f}",
                f"{a.largest:.4g}",
                f"{a.relative:.2g}",
                f"{a.rounding:.4g}",
                _best_class(a),
            )
            for i, a in enumerate(agreement)
        ]
        titles = (
            "input", "cosine of outputs", "largest difference", "relative", "its rounding",
            "best class",
        )  # fmt: skip
        table("whole network; the reference's rounding is its difference unfused", titles, checks)
    if not result.holds:
        log.print(_bounds(result))
        raise SystemExit(1)


def _bounds(checked: difference.Check) -> str:
    """What didn't hold."""
    if not checked.quantized:
        largest = max(a.relative for a in checked.whole)
        return (
            f"expected every output within {checked.bound:.2g} of its largest value, "
            f"found {largest:.2g}"
        )
    if wrong := next((layer for layer in checked.layers if not layer.holds), None):
        return (
            f"layer {wrong.name}: expected ≤ 1 on ≤ {100 * wrong.most:g} % of elements, ties left "
            f"out, found {wrong.largest} on {100 * wrong.share:.2g} %"
        )
    least = max(a.least for a in checked.whole)
    return (
        f"expected a cosine ≥ {least:.4f} with the same best class or one within the reference's "
        f"rounding, found {min(a.cosine for a in checked.whole):.4f}"
    )


def _best_class(agreement: difference.Agreement) -> str:
    if agreement.same_top1:
        return "same"
    return f"{'tie' if agreement.tie else 'differs'}: {agreement.behind:.4g} behind"
