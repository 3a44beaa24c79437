"""Configs by the names that users give, and the tables that energy is estimated by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from vdla.boards import find_board, memory_of
from vdla.boards.board import Board, BoardError
from vdla.isa.config import BANKS, MEMORY, Config, load_config
from vdla.names.kinds import check_kind
from vdla.options.spelling import UsageError
from vdla.sim.energy import EnergyTable, load_table

CLOCK_RATIO = BANKS + "clock_ratio"  # which a board's memory is computed for


def resolve(config: str | Path | Config, settings: Iterable[str] = ()) -> Config:
    """A config from its name, its file, or itself, with settings applied.

    Raises:
        ConfigError: the config doesn't exist or describes no machine.
        UsageError: it is none of these, or the settings are no list.
    """
    _check_settings(settings)
    if isinstance(config, Config):
        return config.override(settings)
    check_kind("config", "a config, its name or TOML file", config, str | Path)
    return load_config(config, settings)


def resolve_on(
    board: str | None, config: str | Path | Config | None, settings: Iterable[str] = ()
) -> Config:
    """A config in front of a board's memory, by default the board's; without a board, ``resolve``'s
    and by default ``paper``. Settings of the memory go before the board's, but for the ratio of
    clocks, for which the board's memory is computed.

    Raises:
        BoardError: there is no such board, or its memory can't carry what the config's core sends.
        ConfigError, UsageError: as ``resolve``.
    """
    if board is None:
        return resolve("paper" if config is None else config, settings)
    chosen = find_board(board)
    _check_settings(settings)
    ratios = [each for each in settings if each.partition("=")[0].strip() == CLOCK_RATIO]
    others = [each for each in settings if each not in ratios]
    named = chosen.config if config is None else config
    if any(setting.startswith(MEMORY) for setting in others):
        return resolve(named, settings)
    return _in_front(chosen, resolve(named, others), ratios)


def _in_front(board: Board, config: Config, ratios: list[str]) -> Config:
    """The config in front of the board's memory, at the ratio of clocks that a setting asks for."""
    if not ratios:
        return replace(config, memory=memory_of(board, config))
    if config.memory.banks is None:
        config = replace(config, memory=memory_of(board, config))
    config = config.override(ratios)
    result = replace(config, memory=memory_of(board, config))
    banks, asked = result.memory.banks, config.memory.banks
    if asked and banks and banks.clock_ratio != asked.clock_ratio:
        raise BoardError(
            f"board {board.name}: expected {CLOCK_RATIO} = {banks.clock_ratio}, "
            f"found {asked.clock_ratio}"
        )
    return result


def _check_settings(settings: Iterable[str]) -> None:
    """Raises UsageError when the settings are no list."""
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise UsageError(f"settings: expected a list of KEY=VALUE, found {settings!r}")


def energy_table(name: str | None) -> EnergyTable | None:
    """The energy table of a name or a file; None without one.

    Raises:
        EnergyError: there is no such table, or it is malformed.
    """
    return None if name is None else load_table(name)
