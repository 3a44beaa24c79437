"""Shared by all tests: the command, run in this process; every program's text parses back."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))  # the tests are no package


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


@pytest.fixture(scope="session", autouse=True)
def every_program_reads_back():
    """Whatever programs and graphs the tests compile, their texts parse back."""
    from readback import every_program_reads_back

    with every_program_reads_back():
        yield
