"""Host time by a model: ``vdla.host_time``, and modules that bring it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vdla.compiler import host_time as compiled
from vdla.compiler.build import Options, compile_graph, compile_model, import_graph
from vdla.compiler.by_cost import choices
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.placement import PROCESSOR, device_of
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.timing.machine import (
    NAMES,
    Machine,
    is_native,
    machine_for,
    machine_of,
)
from vdla.compiler.targets.processor.timing.model import HostTime
from vdla.isa.config import Config
from vdla.names.configs import resolve
from vdla.names.models import model_file
from vdla.names.schedules import tuned_functions
from vdla.names.where import Host
from vdla.options.spelling import UsageError
from vdla.runtime.module import Module

NATIVE_NAME = "native"
HOST_TIME = "host_time"  # of a module's metadata


def host_time(
    model: Module | str | Path,
    processor: str = NATIVE_NAME,
    *,
    device: str = "cpu",
    config: str | Path | Config = "paper",
    places: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
    machine: Machine | None = None,
) -> HostTime:
    """The time that a host takes for its part of a network, step by step, by a model.

    Nothing is measured, so the processor need not be at hand::

        vdla.host_time("resnet18", "cortex-a9").milliseconds          # all of it on the host
        vdla.host_time("resnet18", "cortex-a9", device="sim").steps   # what an accelerator leaves

    Args:
        model: an ONNX file or a bundled model; or a module that was compiled with ``host``.
        processor: "cortex-a9", "cortex-a53", "znver4"; "native" for this machine.
        device: "cpu" has the host run all; "sim" leaves to it what an accelerator doesn't run.
        config: the accelerator's.
        places: nodes that the caller places, as for ``compile``.
        shapes: sizes that the file leaves open.
        machine: the description of this machine's processor, where it is another than the bundled
            one: at a measured clock.

    Raises:
        TargetError: the processor isn't described.
        UsageError: a module without a host time.
    """
    if isinstance(model, Module):
        if HOST_TIME not in model.metadata:
            raise UsageError(
                "host_time: expected a module that was compiled with --host and a processor, "
                f"one of {', '.join(NAMES)}, found one without"
            )
        return HostTime.from_json(model.metadata[HOST_TIME])
    native = processor == NATIVE_NAME
    machine = machine or (machine_for(NATIVE) if native else machine_of(processor))
    options = Options(
        device=device_of(device),
        processor=NATIVE if native else machine.processor,
        places=places or {},
        functions=tuned_functions(None),
    )
    graph = import_graph(model_file(model), options, shapes)
    return compiled.host_time(graph, resolve(config), options, machine)


def timed_model(
    path: Path, config: Config, options: Options, shapes: Shapes | None, host: Host | None
) -> Module:
    """An ONNX file compiled with some options; for a ``host``, with its time or placed by it.

    Raises:
        As ``compile_model`` and ``host_time``.
    """
    if host is None:
        return compile_model(path, config, options, shapes)
    processor = NATIVE if is_native(host.machine) else host.machine.processor
    graph = import_graph(path, options, shapes)
    if host.by_cost:
        own = replace(options, processor=processor)
        better = choices(graph, config, own, host.machine)
        places = {**dict.fromkeys(better, PROCESSOR), **options.places}
        reasons = {name: choice.reason for name, choice in better.items()}
        options = replace(options, places=places, reasons=reasons)
    module = compile_graph(graph, config, options)
    if host.named:
        own = replace(options, processor=processor, dump=None)
        time = compiled.host_time(graph, config, own, host.machine)
        module.metadata[HOST_TIME] = time.to_json()
    return module


def times_of(
    paths: Mapping[str, Path], processor: str, config: Config, shapes: Shapes | None
) -> HostTime | None:
    """The time of the host of some models one after another, beside an accelerator; None for this
    machine where its processor isn't described.

    Raises:
        UsageError: there is no such processor.
    """
    if processor not in (NATIVE_NAME, *NAMES):
        raise UsageError(
            f"--host: expected {NATIVE_NAME} or one of {', '.join(NAMES)}, found {processor}"
        )
    try:
        times = [
            host_time(path, processor, device="sim", config=config, shapes=shapes)
            for path in paths.values()
        ]
    except TargetError:
        if processor == NATIVE_NAME:
            return None
        raise
    return replace(
        times[0],
        steps=tuple(step for each in times for step in each.steps),
        call_seconds=sum(each.call_seconds for each in times),
        shared_bytes=sum(each.shared_bytes for each in times),
        unknown=tuple(name for each in times for name in each.unknown),
        undecided=tuple(name for each in times for name in each.undecided),
    )
