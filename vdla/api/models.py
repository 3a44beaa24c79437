"""Models, compiled: ``vdla.compile``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.api.host import timed_model
from vdla.boards import find_board
from vdla.compiler.build import Options
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import Shapes, shapes_like
from vdla.isa.config import Config
from vdla.names.configs import resolve_on
from vdla.names.kinds import check_device
from vdla.names.models import model_file
from vdla.names.samples import samples_of
from vdla.names.schedules import tuned_functions, tuned_tiles
from vdla.names.where import Code, Where
from vdla.options import Compile, Run
from vdla.options.spelling import require, takes
from vdla.runtime.devices.named import NAMES
from vdla.runtime.module import Module

if TYPE_CHECKING:
    pass


@takes(Compile)
def compile(model: str | Path, options: Compile) -> Module:
    """Compiles an ONNX file, or a bundled model by a name that ``vdla models`` lists; or a file of
    another kind that vdla reads: TFLite's, PyTorch's ``.pt2``, ``FILE.py:NAME``.

    The device ``cpu`` takes models of floats; those with an accelerator take QDQ models.

    Raises:
        ModelError: the model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
        BoardError, TargetError: no such board or processor, or the board can't have the config.
        UsageError: no such device.
    """
    check_device(options.device, NAMES)
    require(options)
    where = Where.of(options)
    board = find_board(options.board) if options.board else None
    code = where.code_to_ship(board.host if board else None)
    config = resolve_on(options.board, options.config, options.settings)
    how = replace(
        compile_options(options, where, code), vthreads=options.vthreads, dump=options.dump
    )
    host = where.described_host(code.processor)
    return timed_model(model_file(model), config, how, options.shapes, host)


def compile_to_run(path: Path, config: Config, options: Run) -> Module:
    """Compiles an ONNX file for the device that is to run it.

    Raises:
        As ``compile``.
    """
    where = Where.of(options)
    code = where.code_to_run()
    how, host = compile_options(options, where, code), where.described_host(code.processor)
    return timed_model(path, config, how, given_shapes(path, options), host)


def given_shapes(path: Path, options: Run) -> Shapes | None:
    """Sizes that an ONNX model leaves open: those given, or else the inputs' own."""
    if options.shapes or options.inputs is None:
        return options.shapes
    return shapes_like(load_onnx(path).graph, options.inputs)


def compile_options(options: Compile | Run, where: Where, code: Code) -> Options:
    """Options of a compilation by a user's options, which say where it runs, and the code's kind.

    Raises:
        InputError: the samples aren't numbers, or their file holds something else.
        RecordError: the tuned schedules' file holds something else.
        TargetError: there is no such architecture.
    """
    return replace(
        where.options(code, tuned_functions(options.records)),
        strict=options.strict,
        samples=samples_of(options.calibration),
        turns=options.turns,
        records=tuned_tiles(options.records, options.board),
        progress=options.progress,
    )
