"""Configs by the names that users give, and the tables that energy is estimated by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from vdla.boards import find_board, memory_of
from vdla.isa.config import MEMORY, Config, load_config
from vdla.names.kinds import check_kind
from vdla.options.spelling import UsageError
from vdla.sim.energy import EnergyTable, load_table


def resolve(config: str | Path | Config, settings: Iterable[str] = ()) -> Config:
    """A config from its name, its file, or itself, with settings applied.

    Raises:
        ConfigError: the config doesn't exist or describes no machine.
        UsageError: it is none of these, or the settings are no list.
    """
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise UsageError(f"settings: expected a list of KEY=VALUE, found {settings!r}")
    if isinstance(config, Config):
        return config.override(settings)
    check_kind("config", "a config, its name or TOML file", config, str | Path)
    return load_config(config, settings)


def resolve_on(
    board: str | None, config: str | Path | Config | None, settings: Iterable[str] = ()
) -> Config:
    """A config in front of a board's memory, by default the board's; without a board, ``resolve``'s
    and by default ``paper``. Settings of the memory go before the board's.

    Raises:
        BoardError: there is no such board, or its memory can't carry what the config's core sends.
        ConfigError, UsageError: as ``resolve``.
    """
    if board is None:
        return resolve("paper" if config is None else config, settings)
    chosen = find_board(board)
    result = resolve(chosen.config if config is None else config, settings)
    if any(setting.startswith(MEMORY) for setting in settings):
        return result
    return replace(result, memory=memory_of(chosen, result))


def energy_table(name: str | None) -> EnergyTable | None:
    """The energy table of a name or a file; None without one.

    Raises:
        EnergyError: there is no such table, or it is malformed.
    """
    return None if name is None else load_table(name)
