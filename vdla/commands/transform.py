"""Commands that make files: compile, prune and quantize."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vdla import api
from vdla.analysis.report import noise_page
from vdla.api.host import HOST_TIME, host_time
from vdla.api.quantizing import Frontier, frontier_noise
from vdla.commands.output import (
    check_folder,
    check_output_folder,
    log,
    print_json,
    print_placement,
    progress,
    table,
    write_text,
)
from vdla.compiler.models.accuracy import Accuracy
from vdla.compiler.models.frontier import Point
from vdla.compiler.models.noise import Noise
from vdla.options import Compile, Prune, Quantize

if TYPE_CHECKING:
    from vdla.compiler.finetuning import Tuning


def compile_model(model: str, output: Path, options: Compile, json: bool) -> None:
    """Compiles a model into a module file."""
    check_folder(output, model, options.config, options.records)
    if options.dump is not None:
        check_output_folder(options.dump)
    with progress() as update:
        module = api.compile(model, replace(options, progress=update))
    module.save(output)
    if json:
        print_json(
            {
                "module": str(output),
                "config": module.config["name"],
                "isa_hash": module.identity.isa,
                "config_hash": module.identity.config,
                "host": module.host.cpu if module.host else None,
                "bytes": output.stat().st_size,
                "placement": module.metadata["placement"],
                "layers": module.metadata["layers"],
                "memory": module.metadata["memory"],
                "host_time": module.metadata.get(HOST_TIME),
            }
        )
        return
    print_placement(module)
    memory = module.metadata["memory"]
    log.print(
        f"memory: {memory['constants']:,} bytes of constants, {memory['activations']:,} of "
        f"activations, which are {memory['tensors']:,} one by one"
    )
    if HOST_TIME in module.metadata:
        time = host_time(module)
        log.print(
            f"host time on {time.processor}, modelled: {time.milliseconds:.2f} ms for "
            f"{len(time.steps)} functions"
        )
    log.print(f"wrote {output}: {output.stat().st_size:,} bytes")


def prune(model: Path, output: Path, options: Prune, json: bool) -> None:
    """Prunes a float model; prints how much of each layer is zero, and what that leaves."""
    check_folder(output, model)
    layers = api.prune(model, output, options)
    if json:
        print_json(
            {
                "written": str(output),
                "blocks": list(options.blocks),
                "layers": [
                    {
                        "name": layer.name,
                        "op": layer.op,
                        "blocks": layer.blocks,
                        "zero": layer.zero_share,
                        "kept": layer.kept_share,
                    }
                    for layer in layers
                ],
            }
        )
        return
    rows = [
        (
            layer.name,
            layer.op,
            f"{layer.blocks:,}",
            f"{100 * layer.zero_share:.1f} %",
            f"{100 * layer.kept_share:.1f} %",
        )
        for layer in layers
    ]
    columns = ("layer", "operator", "blocks", "zero", "energy kept")
    table("{}x{} blocks of weights".format(*options.blocks), columns, rows)
    log.print(f"wrote {output}")


def quantize(model: Path, output: Path, options: Quantize, report: Path | None, json: bool) -> None:
    """Quantizes a float model; prints and draws the noise that this adds."""
    check_folder(output, model, options.calibration)
    if report is not None:
        check_folder(report, model, output)
    with progress() as update:
        result = _quantized(model, output, replace(options, progress=update), report, json)
    if result.noise is not None and report is not None:
        calibration = options.calibration
        named = calibration.name if isinstance(calibration, Path) else "random numbers"
        tried = result.frontier.to_json() if result.frontier else None
        page = noise_page(model.stem, result.noise, named, tried)
        write_text(report, page, model, output)
    _show_scores(result)
    if json:
        print_json({"written": str(output), **result.to_json()})
    else:
        _show(result)
    if options.calibration is None:
        log.print("no --calibration: used random samples; good for speed, poor for accuracy")
    log.print(f"wrote {output}")
    if report is not None:
        log.print(f"wrote {report}")


@dataclass(frozen=True)
class _Quantized:
    """Figures of a quantization, as far as they are asked for: ``accuracy`` and ``score`` are
    before and after."""

    noise: Noise | None
    accuracy: tuple[Accuracy, Accuracy] | None
    score: tuple[float, float] | None
    frontier: Frontier | None
    tuning: Tuning | None

    def to_json(self) -> dict[str, object]:
        """The figures for JSON."""
        both, score, noise = self.accuracy, self.score, self.noise
        names = ("floats", "quantized")
        return {
            "samples": noise.samples if noise else 0,
            "accuracy": dict(zip(names, map(vars, both), strict=True)) if both else None,
            "score": dict(zip(names, score, strict=True)) if score else None,
            "frontier": self.frontier.to_json() if self.frontier else None,
            "finetuned": self.tuning.to_json() if self.tuning else None,
            "layers": [layer.to_json() for layer in noise.layers] if noise else [],
        }


def _quantized(
    model: Path, output: Path, options: Quantize, report: Path | None, json: bool
) -> _Quantized:
    """Quantizes, and measures what is asked for."""
    frontier = noise = accuracy = score = tuning = None
    if options.auto:
        frontier = api.search_quantization(model, output, options, _tell)
    else:
        tuning = api.quantize(model, output, options)
    if report or json:
        of_search = frontier and frontier_noise(model, frontier, options)
        noise = of_search or api.quantization_noise(model, output, options)
    if options.labels is not None and options.score is None:
        accuracy = api.quantization_accuracy(model, output, options)
    elif options.labels is not None:
        score = api.quantization_score(model, output, options)
    return _Quantized(noise, accuracy, score, frontier, tuning)


def _show_scores(result: _Quantized) -> None:
    """Says what the task is worth before and after."""
    if result.accuracy is not None:
        before, after = result.accuracy
        log.print(f"accuracy of {before.samples:,} samples: floats {before}, quantized {after}")
    if result.score is not None:
        log.print(f"score: floats {result.score[0]:.4g}, quantized {result.score[1]:.4g}")


def _show(result: _Quantized) -> None:
    """Prints the recipes that were tried, what training has gained, the layers that lose most."""
    if result.frontier is not None:
        _show_frontier(result.frontier)
    if result.tuning is not None:
        _show_tuning(result.tuning)
    if result.noise is not None:
        _show_noise(result.noise)


def _show_tuning(tuning: Tuning) -> None:
    """Says what the training of weights has gained."""
    if not tuning.layers:
        log.print("fine-tuning: no layer loses as much, so none was trained")
        return
    layers = f"{len(tuning.layers)} layer{'s' * (len(tuning.layers) > 1)}"
    log.print(
        f"fine-tuned {layers}: on samples that were held back, the outputs have "
        f"{tuning.after:.1f} dB, {tuning.before:.1f} before"
    )


def _tell(point: Point) -> None:
    """Says what a recipe has come to, while others are tried."""
    log.print(f"{point.name}: {point.score:.2f}, {point.cycles:,} cycles")


def _show_frontier(frontier: Frontier) -> None:
    """Prints what was tried, and whether what was written is good enough."""
    rows = [
        (
            "→" if point is frontier.chosen else "",
            point.name,
            f"{point.score:.2f}",
            f"{point.cycles:,}",
            f"{point.bytes:,}",
            str(point.wide),
        )
        for point in frontier.points
    ]
    columns = ("", "recipe", frontier.unit, f"cycles, {frontier.config}", "bytes", "16 bits")
    table("recipes, in the order in which they were tried", columns, rows)
    if frontier.chosen.score < frontier.wanted:
        log.print(
            f"no recipe reaches {frontier.wanted:.2f} {frontier.unit}: wrote the best, "
            f"{frontier.chosen.score:.2f}"
        )


MOST_ROWS = 10  # of layers that lose most


def _show_noise(noise: Noise) -> None:
    """Prints the layers that lose most themselves."""
    worst = sorted(noise.layers, key=lambda layer: layer.own)[:MOST_ROWS]
    rows = [
        (layer.name, layer.op, *map(_decibels, (layer.own, layer.weights, layer.network)))
        for layer in worst
    ]
    columns = ("layer", "operator", "alone", "its weights", "in the network")
    table("signal to noise of the layers that lose most, in dB", columns, rows)


def _decibels(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
