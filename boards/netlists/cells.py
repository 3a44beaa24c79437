"""Netlists as JSON, of yosys and of nextpnr: a module's cells, and the pads at its ports.

Both write ``{"modules": {name: {"ports", "cells"}}}`` with bits that are numbers of nets, or the
constants ``0``, ``1`` and ``x``. A parameter is a string: binary digits, or text, to which yosys
adds a blank where it would read as digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vdla.boards.board import BoardError
from vdla.boards.netlists.circuit import number_of

Bit = int | str
NOTES = "$scopeinfo"  # cells that are none


@dataclass(frozen=True)
class Cell:
    """A cell: its kind, its parameters, and the bits at its pins, the lowest first."""

    name: str
    kind: str
    parameters: Mapping[str, str]
    pins: Mapping[str, Sequence[Bit]]

    def text(self, name: str, default: str = "") -> str:
        """A parameter that is text."""
        return self.parameters.get(name, default).strip()

    def number(self, name: str, default: int = 0) -> int:
        """A parameter that is a number."""
        value = self.parameters.get(name)
        return default if value is None else number_of(value.strip())


@dataclass(frozen=True)
class Module:
    """A netlist's top: its cells, and its ports' bits."""

    cells: Mapping[str, Cell]
    ports: Mapping[str, Sequence[Bit]]


def read_module(path: Path) -> Module:
    """The top module of a netlist.

    Raises:
        BoardError: the file can't be read, or holds no netlist.
    """
    try:
        modules = json.loads(path.read_text())["modules"]
        top = next(m for m in modules.values() if not _is_cell(m))
        return Module(
            {
                name: _cell(name, cell)
                for name, cell in top["cells"].items()
                if cell["type"] != NOTES
            },
            {name: port["bits"] for name, port in top["ports"].items()},
        )
    except OSError as error:
        raise BoardError(f"{path}: expected a netlist, found {error.strerror}") from None
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise BoardError(f"{path}: expected a netlist as JSON, found {error!r}") from None


def _is_cell(module: Mapping[str, Any]) -> bool:
    """Whether a module is what a device has, not the design."""
    return any(module["attributes"].get(name) for name in ("blackbox", "whitebox"))


def _cell(name: str, cell: Mapping[str, Any]) -> Cell:
    return Cell(name, cell["type"], cell["parameters"], cell["connections"])
