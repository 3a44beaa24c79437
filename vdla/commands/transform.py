"""Commands that make files: compile and quantize."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vdla import api
from vdla.commands.output import check_folder, check_output_folder, log, print_json, progress, table
from vdla.commands.usage import UsageError
from vdla.compiler.build import Options
from vdla.runtime.module import Module


def compile_model(
    model: str,
    output: Path,
    config: str,
    device: str,
    vthreads: int,
    dump: Path | None,
    records: str | None,
    settings: Sequence[str],
    json: bool,
) -> None:
    """Compiles a model into a module file."""
    if device not in api.DEVICES:
        raise UsageError(f"--device: expected one of {', '.join(api.DEVICES)}, found {device}")
    check_folder(output)
    if dump is not None:
        check_output_folder(dump)
    place = "cpu" if device == "cpu" else "vdla"
    known = api.tuned(records)
    with progress() as update:
        options = Options(place, vthreads, records=known, dump=dump, progress=update)
        module = api.compile(model, config, settings, options)
    module.save(output)
    if json:
        print_json(
            {
                "module": str(output),
                "config": module.config["name"],
                "config_hash": module.config_hash,
                "bytes": output.stat().st_size,
                "placement": module.metadata["placement"],
                "layers": module.metadata["layers"],
            }
        )
        return
    print_placement(module)
    log.print(f"wrote {output}: {output.stat().st_size:,} bytes")


def print_placement(module: Module) -> None:
    """Where every operator runs, and why."""
    tiles = {layer["name"]: layer["tile"] for layer in module.metadata["layers"]}
    rows = [
        (p["name"], p["op"], p["device"], tiles.get(p["name"]) or p["reason"])
        for p in module.metadata["placement"]
    ]
    table("placement", ("name", "operator", "device", "schedule or reason"), rows)


def quantize(model: Path, output: Path, calibration: Path | None) -> None:
    """Quantizes a float model."""
    check_folder(output)
    api.quantize(model, output, calibration)
    if calibration is None:
        log.print("no --calibration: used random samples; good for speed, poor for accuracy")
    log.print(f"wrote {output}")
