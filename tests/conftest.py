"""Shared by all tests: the command, run in this process."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout."""
        return json.loads(self.out)


@pytest.fixture
def vdla(monkeypatch, capsys):
    """Runs ``vdla ARGS``."""

    def run(*args) -> Done:
        from vdla.cli import main

        monkeypatch.setattr(sys, "argv", ["vdla", *map(str, args)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run
