"""Models made ready to run."""

from __future__ import annotations

from pathlib import Path

from vdla.api.kept import compiled
from vdla.api.modules import own_config
from vdla.boards import find_board
from vdla.boards.board import Board
from vdla.boards.connect import connect
from vdla.isa.config import Config
from vdla.names.configs import resolve_on
from vdla.names.kinds import check_device
from vdla.names.models import is_module
from vdla.options import Run
from vdla.options.spelling import UsageError, require
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.devices.named import NAMES, make_device
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module


def prepare(model: Module | str | Path, options: Run) -> tuple[Executor, Config]:
    """A model made ready to run as often as you like, and the config it runs on."""
    if options.farm is not None:
        raise UsageError(
            "--farm: expected a model that is run or profiled, found one to make ready here"
        )
    board = board_of(options)
    require(options, check=True)  # it may be a check that the model is made ready for
    if options.waves and options.device != "rtl":
        raise UsageError(
            f"--trace {options.waves}: expected --device rtl for waves, found {options.device}"
        )
    module, config = module_of(model, options, board)
    if board is None:
        device = make_device(module, options.device, config, waves=options.waves)
        return Executor(module, device, options.threads), config
    transport = connect(board, config, port=options.port, virtual=options.virtual)
    return Executor(module, BoardDevice(config, transport), options.threads), config


def module_of(
    model: Module | str | Path, options: Run, board: Board | None
) -> tuple[Module, Config]:
    """A model's module for the device that is to run it, compiled where it isn't yet, and the
    config it runs on.

    Raises:
        UsageError: options that don't go with it, or a module for another config.
        As ``vdla.compile``.
    """
    named = options.config or (board.config if board and not is_module(model) else None)
    if isinstance(model, Module) or is_module(model):
        return own_config(model, named, options)
    if options.no_native:
        raise UsageError(f"--no-native: expected a module, found the model {model}")
    config = resolve_on(options.board, named, options.settings)
    return compiled(model, config, options), config


def board_of(options: Run) -> Board | None:
    """The board to run on, for the device that is one."""
    check_device(options.device, (*NAMES, "board"))
    if options.device == "board":
        if options.board is None:
            raise UsageError("--device board: expected --board B, found none")
        return find_board(options.board)
    return None
