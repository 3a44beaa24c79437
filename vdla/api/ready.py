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
    board = _board(options)
    require(options, check=True)  # it may be a check that the model is made ready for
    if options.waves and options.device != "rtl":
        raise UsageError(
            f"--trace {options.waves}: expected --device rtl for waves, found {options.device}"
        )
    named = options.config or (board.config if board and not is_module(model) else None)
    if isinstance(model, Module) or is_module(model):
        module, config = own_config(model, named, options)
    else:
        if options.no_native:
            raise UsageError(f"--no-native: expected a module, found the model {model}")
        config = resolve_on(options.board, named, options.settings)
        module = compiled(model, config, options)
    if board is None:
        device = make_device(module, options.device, config, waves=options.waves)
        return Executor(module, device, options.threads), config
    transport = connect(board, config, port=options.port, virtual=options.virtual)
    return Executor(module, BoardDevice(config, transport), options.threads), config


def _board(options: Run) -> Board | None:
    """The board to run on, for the device that is one."""
    check_device(options.device, (*NAMES, "board"))
    if options.device == "board":
        if options.board is None:
            raise UsageError("--device board: expected --board B, found none")
        return find_board(options.board)
    return None
