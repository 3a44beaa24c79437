"""Commands that make files: compile and quantize."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla import api
from vdla.api.host import HOST_TIME, host_time
from vdla.commands.output import (
    check_folder,
    check_output_folder,
    log,
    print_json,
    print_placement,
    progress,
)
from vdla.options import Compile, Quantize


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


def quantize(model: Path, output: Path, options: Quantize) -> None:
    """Quantizes a float model."""
    check_folder(output, model, options.calibration)
    with progress() as update:
        api.quantize(model, output, replace(options, progress=update))
    if options.calibration is None:
        log.print("no --calibration: used random samples; good for speed, poor for accuracy")
    log.print(f"wrote {output}")
