"""A network on a board's processor alone and with the accelerator: ``vdla.offload``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla.analysis.end_to_end import transfer_seconds
from vdla.analysis.offload import OffloadResult, layer_cycles, offloaded_layers
from vdla.api.comparisons import compare
from vdla.api.host import host_time
from vdla.api.models import compile
from vdla.api.modules import random_inputs
from vdla.boards import clocked, find_board
from vdla.boards.board import Board, clock_on
from vdla.isa.config import Config
from vdla.names.configs import resolve_on
from vdla.names.models import model_file
from vdla.options import Compare, Offload
from vdla.options.spelling import UsageError, takes
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.runtime.plan import Accelerate, accelerator_steps, runs


@takes(Offload)
def offload(model: str | Path, options: Offload) -> OffloadResult:
    """A network on a board's processor alone, and with the accelerator beside it, layer by layer.

    The processor's time is a model's, the accelerator's the simulator's cycles in front of the
    board's memory, at the board's clock. No board need be at hand.

    Raises:
        ModelError: the model can't be taken.
        BoardError: there is no such board.
        TargetError: nothing describes its processor.
        UsageError: the accelerator runs no layer.
    """
    board = find_board(options.board)
    config = resolve_on(options.board, options.config, options.settings)
    board = clocked(board, config)
    file, shapes = model_file(model), options.shapes
    alone = host_time(file, board.host, config=config, shapes=shapes)
    left = host_time(file, board.host, device="sim", config=config, shapes=shapes)
    accelerated = _accelerated(file, config, options, board)
    if not accelerated:
        raise UsageError(f"{model}: expected a layer for the accelerator, found none")
    compared = Compare(config, records=options.records, shapes=shapes, progress=options.progress)
    return OffloadResult(
        model=Path(model).stem,
        board=board.name,
        processor=alone.processor,
        processor_mhz=alone.clock_mhz,
        config=config,
        clock_mhz=board.clock_hz / 1e6,
        clock_source=clock_on(board, config).source,
        layers=offloaded_layers(alone, left, accelerated),
        calls=(1e3 * alone.call_seconds, 1e3 * left.call_seconds),
        transfers=1e3 * transfer_seconds(left.shared_bytes, left.processor, board),
        hiding=compare(file, compared),
        undecided=alone.undecided,
    )


def _accelerated(file: Path, config: Config, options: Offload, board: Board) -> dict[str, float]:
    """Milliseconds of the accelerator's layers, by name; each program runs, whatever way data would
    lead, and counts as often as its plan says."""
    module = compile(file, config, records=options.records, shapes=options.shapes)
    each = zip(module.steps, runs(module.steps), strict=True)
    often = {step.program: count for step, count in each if isinstance(step, Accelerate)}
    alone = replace(module, steps=tuple(accelerator_steps(module.steps)))
    ready = Executor(alone, SimDevice(config, numerics=False))
    result = dict[str, float]()
    for step in ready.run(random_inputs(module)).steps:
        assert step.device is not None
        layers = module.metadata["streams"][step.name]["layers"]
        for name, cycles in layer_cycles(step.device.trace, layers).items():
            seconds = often[step.name] * cycles / board.clock_hz
            result[name] = result.get(name, 0.0) + 1e3 * seconds
    return result
