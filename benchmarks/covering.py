"""Which tests run a line of the sources, and how long each test takes.

All tests but three very slow ones (``LONGER``) run once as they are, under coverage.py with a
context for each test, and must pass. The notes are kept by the sources they are of. Not seen are
lines that another process runs, that run as machine code, and that a test needs but had been run
before it: what a fixture ran for the first test of a file therefore counts for all tests of that
file.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from coverage import CoverageData

OPTIONS = ("-q", "-p", "no:cacheprovider", "-m", "not long or formal or cases")
LONGER = (  # than all the tests that a mutant is given
    "tests/compiler/frontend/test_onnx_cases.py::test_cases[Attention]",
    "tests/e2e/test_fuzz.py::test_a_hundred_pairs",
    "tests/hw/formal/test_fetch.py::test_dispatch[paper]",
)
TIMES = re.compile(r"\s*([\d.]+)s (?:setup|call|teardown)\s+(\S.*?)\s*")


def digest(folder: Path, files: Iterable[str]) -> str:
    """Sixteen hex digits of a digest of files' names and contents."""
    result = hashlib.sha256()
    for name in files:
        result.update(f"{name}\n".encode() + (folder / name).read_bytes())
    return result.hexdigest()[:16]


class Covering:
    """What was noted of the tests of ``tree``, a folder with the sources; it is noted in ``notes``,
    a folder, where that hasn't been done."""

    def __init__(self, tree: Path, notes: Path) -> None:
        self.tree, self.notes = tree.resolve(), notes

    def note(self, environment: dict[str, str], workers: int) -> None:
        """Runs all tests. RuntimeError: one of them failed."""
        if (self.notes / "seconds.json").exists():
            return
        self.notes.mkdir(parents=True, exist_ok=True)
        settings = self.notes / "coverage.ini"
        settings.write_text(
            f"[run]\ndata_file = {self.notes / 'lines'}\nsource = .\nrelative_files = true\n"
        )  # the next tree has another name
        command = [sys.executable, "-m", "pytest", *OPTIONS, "-n", str(workers), "--durations=0",
                   "--durations-min=0", "-vv", "--cov", f"--cov-config={settings}",
                   "--cov-context=test", "--cov-report=",
                   *(f"--deselect={test}" for test in LONGER), "tests"]  # fmt: skip
        print("running all tests once as they are …", file=sys.stderr, flush=True)
        done = subprocess.run(
            command, cwd=self.tree, env=environment, capture_output=True, text=True, check=False
        )
        (self.notes / "log").write_text(done.stdout + done.stderr)
        if done.returncode:
            failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
            raise RuntimeError(
                f"expected that all tests pass as they are, found {failed or done.returncode}; "
                f"see {self.notes / 'log'}"
            )
        self._write_seconds(done.stdout)

    def _write_seconds(self, text: str) -> None:
        seconds: dict[str, float] = {}
        for line in text.splitlines():
            if result := TIMES.fullmatch(line):
                seconds[result[2]] = seconds.get(result[2], 0.0) + float(result[1])
        (self.notes / "seconds.json").write_text(json.dumps(seconds))

    @cached_property
    def seconds(self) -> dict[str, float]:
        """How long each test takes."""
        return dict(json.loads((self.notes / "seconds.json").read_text()))

    @cached_property
    def _data(self) -> Any:
        data = CoverageData(str(self.notes / "lines"))
        data.read()
        return data

    def tests(self, file: str, lines: range) -> list[str]:
        """Tests that run any of these lines, the quickest first. For lines that run at import
        only, all tests that run anything of the file."""
        by_line = self._data.contexts_by_lineno(file)
        result = self._named(by_line, lines)
        if not result and any("" in by_line.get(line, ()) for line in lines):
            result = self._named(by_line, by_line)
        return sorted(result, key=lambda test: (self.seconds[test], test))

    def _named(self, by_line: dict[int, list[str]], lines: Iterable[int]) -> set[str]:
        contexts = {each for line in lines for each in by_line.get(line, ()) if each}
        result, shared = set(), set()
        for context in contexts:
            test, _, phase = context.rpartition("|")
            result.add(test)
            if phase == "setup":
                shared.add(test.partition("::")[0])
        result |= {test for test in self.seconds if test.partition("::")[0] in shared}
        return result & set(self.seconds)
