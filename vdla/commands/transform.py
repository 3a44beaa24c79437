"""Commands that make files: compile and quantize."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vdla import api
from vdla.boards import find_board
from vdla.commands.output import check_folder, check_output_folder, log, print_json, progress, table
from vdla.commands.usage import UsageError, sizes
from vdla.compiler.build import Options
from vdla.compiler.codegen.link import find_linker
from vdla.compiler.codegen.target import find_target
from vdla.compiler.placement.partition import device_of
from vdla.runtime.module import Module


def compile_model(
    model: str,
    output: Path,
    config: str | None,
    device: str,
    board: str | None,
    host: str | None,
    vthreads: int,
    dump: Path | None,
    records: str | None,
    settings: Sequence[str],
    shapes: Sequence[str],
    json: bool,
) -> None:
    """Compiles a model into a module file."""
    if device not in api.DEVICES:
        raise UsageError(f"--device: expected one of {', '.join(api.DEVICES)}, found {device}")
    chosen = find_board(board) if board else None
    target = find_target(host or (chosen.host if chosen else "native"))
    if not target.is_native:
        find_linker(target)  # there, or said so before the work
    check_folder(output)
    if dump is not None:
        check_output_folder(dump)
    known, given = api.tuned(records), sizes(shapes)
    with progress() as update:
        options = Options(
            device_of(device), vthreads, records=known, dump=dump, progress=update, host=target
        )
        machine = config or (chosen.config if chosen else "paper")
        module = api.compile(model, machine, settings, options, given)
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


def quantize(model: Path, output: Path, calibration: Path | None, shapes: Sequence[str]) -> None:
    """Quantizes a float model."""
    check_folder(output)
    api.quantize(model, output, calibration, sizes(shapes))
    if calibration is None:
        log.print("no --calibration: used random samples; good for speed, poor for accuracy")
    log.print(f"wrote {output}")
