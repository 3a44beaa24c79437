"""Models, compiled and quantized: ``vdla.compile``, ``vdla.quantize``."""

from __future__ import annotations

from pathlib import Path

from vdla.api.host import Host, host_by, timed_model
from vdla.boards import find_board
from vdla.compiler.build import Options
from vdla.compiler.models.quantizer import quantize as quantize_model
from vdla.compiler.placement import device_of
from vdla.names.configs import resolve_on
from vdla.names.models import model_file
from vdla.names.schedules import tuned_functions, tuned_tiles
from vdla.names.targets import check_placement, compile_target, gpu_of, host_of
from vdla.options import Compile, Quantize, Run
from vdla.options.spelling import UsageError, require, takes
from vdla.runtime.devices.named import NAMES
from vdla.runtime.module import Module


@takes(Compile)
def compile(model: str | Path, options: Compile) -> Module:
    """Compiles an ONNX file, or a bundled model by a name that ``vdla models`` lists.

    The device ``cpu`` takes models of floats; those with an accelerator take QDQ models.

    Raises:
        ModelError: the model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
        BoardError, TargetError: no such board or processor, or the board can't have the config.
        UsageError: no such device.
    """
    if options.device not in NAMES:
        raise UsageError(f"--device: expected one of {', '.join(NAMES)}, found {options.device}")
    require(options)
    host, machine = host_of(options.host, options.device)
    check_placement(options.placement, host)
    board = find_board(options.board) if options.board else None
    named = options.target or (board.host if board and machine is None else None)
    target, code_for = compile_target(named, options.device, machine)
    config = resolve_on(options.board, options.config, options.settings)
    functions = tuned_functions(options.records)
    compile_options = Options(
        device=device_of(options.device),
        host=host,
        places=options.places or {},
        strict=options.strict,
        vthreads=options.vthreads,
        records=tuned_tiles(options.records, options.board),
        functions=functions,
        gpu=gpu_of(options.gpu, options.device, host, functions),
        dump=options.dump,
        progress=options.progress,
        processor=code_for,
        target=target,
    )
    timed = host_by(machine, code_for, options.placement)
    return timed_model(model_file(model), config, compile_options, options.shapes, timed)


def options_to_run(options: Run) -> tuple[Options, Host | None]:
    """How a model that is to be run is compiled, and the host whose time is modelled, if any."""
    host, machine = host_of(options.host, options.device)
    check_placement(options.placement, host)
    target, code_for = compile_target(options.target, options.device)
    functions = tuned_functions(options.records)
    result = Options(
        device=device_of(options.device),
        host=host,
        places=options.places or {},
        strict=options.strict,
        records=tuned_tiles(options.records, options.board),
        functions=functions,
        gpu=gpu_of(options.gpu, options.device, host, functions),
        progress=options.progress,
        processor=code_for,
        target=target,
    )
    return result, host_by(machine, code_for, options.placement)


def quantize(model: str | Path, output: str | Path, options: Quantize | None = None) -> None:
    """Writes the QDQ form of a float model to ``output``; without ``options`` on random samples.

    Raises:
        ModelError: the model or the samples don't fit, or a size is open and no samples have it.
    """
    options = options or Quantize()
    quantize_model(model, output, options.calibration, options.shapes)
