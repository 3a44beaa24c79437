"""The command that shows what a board's accelerator takes off its processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla.analysis.offload import NOWHERE, OffloadResult
from vdla.analysis.offload_plot import save_offload_plot
from vdla.api.offloading import offload as measure
from vdla.commands.output import (
    check_output_folder,
    console,
    log,
    print_json,
    progress,
    table,
)
from vdla.options import Offload


def offload(model: str, options: Offload, out: Path, json: bool) -> None:
    """Prints both ways to run a network, layer by layer, and writes their picture."""
    check_output_folder(out)
    with progress() as update:
        result = measure(model, replace(options, progress=update))
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{result.model}-{result.config.name}-{result.board}-offload"
    path = save_offload_plot(result, out / f"{stem}.png")
    if json:
        print_json(result.to_json())
    else:
        _print(result)
    log.print(f"wrote {path}")


def _print(result: OffloadResult) -> None:
    rows = [
        (
            layer.name,
            " ".join(layer.operators),
            f"{layer.alone:,.2f}",
            layer.device,
            "" if layer.device == NOWHERE else f"{layer.together:,.2f}",
            f"{layer.alone / layer.together:.1f}×" if layer.alone and layer.together else "",
        )
        for layer in result.layers
    ]
    title = f"{result.model} on {result.board}, milliseconds"
    columns = ("layer", "operators", result.processor, "device", "both", "speedup")
    table(title, columns, rows)
    parts = f"host {result.host:,.1f}, transfers {result.transfers:,.1f}"
    alone, together = result.convolutions
    modelled = f"{result.processor} alone, modelled at {result.processor_mhz:g} MHz"
    lines = [
        f"{modelled}: {result.alone:,.1f} ms",
        f"with {result.config.name} at {result.clock_mhz:g} MHz: {result.together:,.1f} ms "
        f"({parts}, accelerator {result.accelerator:,.1f})",
        f"speedup: {result.speedup:.1f}×",
    ]
    if together:
        lines.append(
            f"convolutions on the accelerator: {alone:,.1f} ms and {together:,.1f} ms, "
            f"{alone / together:.1f}×"
        )
    for line in lines:
        console.print(line, highlight=False)
