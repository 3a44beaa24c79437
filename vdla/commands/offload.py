"""The command that shows what a board's accelerator takes off its processor."""

from __future__ import annotations

from dataclasses import replace

from vdla.analysis.offload import NOWHERE, OffloadResult, milliseconds_text
from vdla.analysis.offload_plot import save_offload_plot
from vdla.api.offloading import offload as measure
from vdla.commands.output import (
    check_output_folder,
    log,
    print_json,
    progress,
    say,
    table,
)
from vdla.options import Offload, OffloadOutput


def offload(model: str, options: Offload, output: OffloadOutput, json: bool) -> None:
    """Prints both ways to run a network, layer by layer, and writes their picture."""
    check_output_folder(output.out)
    with progress() as update:
        result = measure(model, replace(options, progress=update))
    output.out.mkdir(parents=True, exist_ok=True)
    stem = f"{result.model}-{result.config.name}-{result.board}-offload"
    paths = [output.out / f"{stem}.{kind}" for kind in output.formats]
    for path in paths:
        save_offload_plot(result, path)
    if json:
        print_json(result.to_json())
    else:
        _print(result)
    for path in paths:
        log.print(f"wrote {path}")


def _print(result: OffloadResult) -> None:
    rows = [
        (
            layer.name,
            " ".join(layer.operators),
            milliseconds_text(layer.alone),
            layer.device,
            "" if layer.device == NOWHERE else milliseconds_text(layer.together),
            f"{layer.alone / layer.together:.1f}×" if layer.alone and layer.together else "",
        )
        for layer in result.layers
    ]
    accelerator = f"with the accelerator (config {result.config.name})"
    columns = ("layer", "operators", f"{result.processor} alone", "device", accelerator, "speedup")
    table(f"{result.model} on {result.board}", columns, rows)
    alone, together = result.convolutions
    modelled = f"{result.processor} alone, modelled at {result.processor_mhz:g} MHz"
    lines = [
        f"{modelled}: {milliseconds_text(result.alone)}",
        f"{accelerator} {result.at_clock}: {milliseconds_text(result.together)} "
        f"(host {milliseconds_text(result.host)}, transfers {milliseconds_text(result.transfers)}, "
        f"accelerator {milliseconds_text(result.accelerator)})",
    ]
    if together:
        lines.append(
            f"convolutions on the accelerator: {milliseconds_text(alone)} and "
            f"{milliseconds_text(together)}, {alone / together:.1f}×"
        )
    lines.append(f"speedup: {result.speedup:.1f}×")
    if result.undecided:
        lines.append(f"choices in full, loops and calls once: {', '.join(result.undecided)}")
    for line in lines:
        say(line)
