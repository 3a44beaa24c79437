"""The command that runs a model, and compares it with onnxruntime."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla import api, difference
from vdla.boards import find_board
from vdla.boards.board import Board
from vdla.boards.reach import connect
from vdla.commands.output import check_folder, console, log, print_json, progress, table
from vdla.commands.transform import print_placement
from vdla.commands.usage import UsageError, sizes
from vdla.compiler import models
from vdla.compiler.build import Options
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph.compare import ort_run
from vdla.compiler.graph.passes import optimize
from vdla.compiler.placement.partition import device_of, host_layers, host_remark
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.errors import InputError
from vdla.runtime.executor import Executor, RunResult
from vdla.runtime.module import Module
from vdla.sim.trace import write_trace
from vdla.support.files import atomic_write

Array = NDArray[Any]
MAX_SHARE = 0.001  # elements of a layer that may differ from onnxruntime, by at most 1
MIN_COSINE = 0.999


@dataclass(frozen=True)
class Target:
    """Where to run: a device, and for ``board`` which one, and how to reach it."""

    device: str
    board: str | None
    port: str | None
    virtual: bool

    def find(self) -> Board | None:
        """The board, if it is one.

        Raises:
            UsageError, BoardError: no such device or board, or one that isn't asked for.
        """
        known = (*api.DEVICES, "board")
        if self.device not in known:
            raise UsageError(f"--device: expected one of {', '.join(known)}, found {self.device}")
        if self.device == "board":
            if self.board is None:
                raise UsageError("--device board: expected --board B, found none")
            return find_board(self.board)
        for name, given in (("board", self.board), ("port", self.port), ("virtual", self.virtual)):
            if given:
                raise UsageError(f"--{name}: expected --device board, found {self.device}")
        return None


def run(
    model: str,
    target: Target,
    config: str | None,
    input: Path | None,
    output: Path | None,
    check: bool,
    samples: int,
    trace: Path | None,
    records: str | None,
    settings: Sequence[str],
    shapes: Sequence[str],
    json: bool,
) -> None:
    """Runs a model once, or over a bundled test split, or against onnxruntime."""
    device, board = target.device, target.find()
    for path in (output, trace):
        if path is not None:
            check_folder(path)
    config = config or (board.config if board and not model.endswith(".vdla") else None)
    arrays = read_inputs(input) if input else None
    given = _shapes(model, shapes, arrays)
    module, chosen = _prepare(model, device, config, records, settings, given)
    waves = trace if trace is not None and trace.suffix == ".fst" else None
    if waves and device != "rtl":
        raise UsageError(f"--trace {waves}: expected --device rtl for waves, found {device}")
    if board is None:
        ready = api.executor(module, device, chosen, waves=waves, report=log.print)
    else:
        transport = connect(
            board, chosen, port=target.port, virtual=target.virtual, report=log.print
        )
        ready = Executor(module, BoardDevice(chosen, transport))
    if check:
        _check(model, module, ready, chosen, device, samples, given, json)
        return
    split = models.test_split(model) if input is None else None
    if split:
        batches = [{module.inputs[0]: image[None]} for image in split[0]]
    else:
        batches = [arrays if arrays is not None else api.random_inputs(module)]
    results = _run_all(ready, batches)
    outputs = {name: np.concatenate([r.outputs[name] for r in results]) for name in module.outputs}
    if output is not None:
        write_outputs(output, outputs)
    if waves:
        log.print(f"wrote {waves}")
    elif trace is not None:
        _write_run_trace(module, results[0], trace)
    _report(module, device, chosen, results, outputs, json)
    if split:
        _report_accuracy(model, outputs[module.outputs[0]], batches, split[1])


def _shapes(model: str, texts: Sequence[str], arrays: Mapping[str, Array] | None) -> Shapes:
    """What ``--shape`` gives, or else the input's shapes for a model that leaves them open."""
    given = sizes(texts)
    if api.is_module(model):
        if given:
            raise UsageError(f"--shape: expected an ONNX model, found the module {model}")
        return given
    return given or (api.open_shapes(model, arrays) if arrays else {})


def _prepare(
    model: str,
    device: str,
    config: str | None,
    records: str | None,
    settings: Sequence[str],
    shapes: Shapes,
) -> tuple[Module, Config]:
    if api.is_module(model):
        module = api.load(model)
        own = api.module_config(module)
        chosen = api.resolve(config, settings) if config else own.override(settings)
        if module.identity.isa != isa_hash():
            raise UsageError(f"{model}: {other_isa(isa_hash(), module.identity.isa)}")
        if chosen.hash != module.identity.config:
            raise UsageError(
                f"{model}: expected config {chosen.name} ({chosen.hash}), "
                f"found a module for {own.name} ({module.identity.config})"
            )
        return module, chosen
    chosen = api.resolve(config or "paper", settings)
    known = api.tuned(records)
    with progress() as update:
        options = Options(device=device_of(device), records=known, progress=update)
        return api.compile(model, chosen, (), options, shapes), chosen


def _run_all(ready: Executor, batches: Sequence[Mapping[str, Array]]) -> list[RunResult]:
    if len(batches) == 1:
        return [ready.run(batches[0])]
    results = []
    with progress() as update:
        for done, inputs in enumerate(batches):
            update("run", done, len(batches))
            results.append(ready.run(inputs))
    return results


def read_inputs(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file.

    Raises:
        InputError: it isn't one.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        found = error.strerror or "something else"
        raise InputError(f"{path}: expected a readable .npz file, found {found}") from None
    except Exception:
        raise InputError(f"{path}: expected an .npz file of arrays, found other content") from None


def write_outputs(path: Path, outputs: Mapping[str, Array]) -> None:
    """Writes an .npz file, whole or not at all."""
    with atomic_write(path) as beside, open(beside, "wb") as file:
        np.savez(file, **dict[str, Any](outputs))


def _report(
    module: Module,
    device: str,
    config: Config,
    results: Sequence[RunResult],
    outputs: Mapping[str, Array],
    json: bool,
) -> None:
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
    placement = module.metadata["placement"]
    if json:
        print_json(
            {
                "device": device,
                "config": config.name,
                "cycles": cycles if module.accelerated else None,
                "host_layers": host_layers(placement)[0],
                "seconds": seconds,
                "outputs": summary,
                "placement": placement,
            }
        )
        return
    print_placement(module)
    _print_causes(results[0])
    rows = [(n, str(s["shape"]), s["dtype"], str(s["sha256"])[:16]) for n, s in summary.items()]
    table("outputs", ("name", "shape", "dtype", "sha256"), rows)
    many = f"{len(results)} inputs, " if len(results) > 1 else ""
    if module.accelerated:
        at_clock = 1e3 * cycles / (config.clock_mhz * 1e6)
        console.print(
            f"{many}{cycles:,} cycles on {config.name} (memory {config.memory.name}): "
            f"{at_clock:.2f} ms at {config.clock_mhz} MHz"
        )
        if remark := host_remark(placement):
            console.print(remark)
    console.print(f"{many}{seconds:.3f} s on device {device}")


def _print_causes(result: RunResult) -> None:
    for step in result.steps:
        if step.device is None or step.device.trace is None:
            continue
        run = step.device.trace
        rows = [
            (engine, *(f"{100 * n / run.cycles:.1f} %" for n in causes.values()))
            for engine, causes in run.causes.items()
        ]
        causes = list(next(iter(run.causes.values())))
        table(f"{step.name}: where each engine's cycles went", ("engine", *causes), rows)


def _write_run_trace(module: Module, result: RunResult, path: Path) -> None:
    for step in result.steps:
        if step.device is not None and step.device.trace is not None:
            stream = module.metadata["streams"][step.name]
            layers = [name for name, count in stream["layers"] for _ in range(count)]
            write_trace(step.device.trace, path, layers=layers, stages=stream["stages"])
            log.print(f"wrote {path}")
            return
    raise UsageError(f"--trace {path}: expected an accelerator program, found host steps alone")


def _report_accuracy(
    model: str, logits: Array, batches: Sequence[Mapping[str, Array]], labels: Array
) -> None:
    path = models.model_path(model)
    reference = np.concatenate([next(iter(ort_run(path, b).values())) for b in batches])
    got, want = (float(np.mean(x.argmax(1) == labels)) for x in (logits, reference))
    log.print(
        f"accuracy over {len(labels)} test images: {100 * got:.2f} %, "
        f"onnxruntime {100 * want:.2f} %"
    )


# run --check ------------------------------------------------------------------------------------


def _check(
    model: str,
    module: Module,
    ready: Executor,
    config: Config,
    device: str,
    samples: int,
    shapes: Shapes,
    json: bool,
) -> None:
    """Compares with onnxruntime; exit code 1 when a bound doesn't hold."""
    if model.endswith(".vdla"):
        raise UsageError(f"--check: expected an ONNX model to compare with, found {model}")
    path = models.model_path(model) if model in models.MODELS else Path(model)
    inputs = [api.random_inputs(module, seed) for seed in range(samples)]
    log.print("comparing every layer with onnxruntime, each fed onnxruntime's tensors")
    graph = optimize(import_onnx(path, shapes))
    layers = difference.per_layer(graph, path, inputs[0], config, device)
    agreement = difference.whole(graph, path, ready, inputs)
    layers_hold = all(d.largest <= 1 and d.share <= MAX_SHARE for d in layers)
    whole_holds = all(a.cosine >= MIN_COSINE and a.holds for a in agreement)
    if json:
        print_json(
            {
                "layers": [{**vars(d), "share": d.share} for d in layers],
                "whole": [vars(a) for a in agreement],
                "holds": layers_hold and whole_holds,
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
        table("difference from onnxruntime, per layer", columns, rows)
        checks = [
            (str(i), f"{a.cosine:.6f}", f"{a.largest:.4g}", f"{a.rounding:.4g}", _best_class(a))
            for i, a in enumerate(agreement)
        ]
        titles = ("input", "cosine of outputs", "largest difference", "its rounding", "best class")
        table("whole network; the reference's rounding is its difference unfused", titles, checks)
    if not (layers_hold and whole_holds):
        log.print(
            f"expected ≤ 1 on ≤ {100 * MAX_SHARE} % of elements per layer, ties left out, and a "
            f"cosine ≥ {MIN_COSINE} with the same best class or one within the reference's rounding"
        )
        raise SystemExit(1)


def _best_class(agreement: difference.Agreement) -> str:
    if agreement.same_top1:
        return "same"
    return f"{'tie' if agreement.tie else 'differs'}: {agreement.behind:.4g} behind"
