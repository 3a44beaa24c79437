"""Which tests run a line of some files, and how long each test takes.

All tests but three very slow ones (``LONGER``) run once as they are, under coverage.py with a
context for each test, and must pass. They run folder by folder, and the notes of each are kept by
the sources they are of: a run that was stopped goes on with the next folder. Not seen are
lines that another process runs, that run as machine code, and that a test needs but had been run
before it: what a fixture ran for the first test of a file therefore counts for all tests of that
file.
"""

from __future__ import annotations

import ast
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
SECONDS, LINES = "seconds.json", "lines"  # of a folder of notes
NO_TESTS = 5  # pytest's exit status where all are left out
TIMES = re.compile(r"\s*([\d.]+)s (?:setup|call|teardown)\s+(\S.*?)\s*")


def digest(folder: Path, files: Iterable[str]) -> str:
    """Sixteen hex digits of a digest of files' names and contents."""
    result = hashlib.sha256()
    for name in files:
        result.update(f"{name}\n".encode() + (folder / name).read_bytes())
    return result.hexdigest()[:16]


class Covering:
    """Notes of the tests of ``tree``, a folder with the sources, and of the lines of ``files`` in
    it; it is noted in ``notes``, a folder, where that hasn't been done: in a folder for each of the
    tests'. Lines of other files aren't followed, which takes less time."""

    def __init__(self, tree: Path, files: Iterable[str], notes: Path) -> None:
        self.tree, self.files, self.notes = tree.resolve(), sorted(files), notes

    def note(self, environment: dict[str, str], workers: int) -> None:
        """Runs all tests. RuntimeError: one of them failed."""
        parts = _parts(self.tree)
        for number, (part, files) in enumerate(parts.items(), 1):
            if not (self.notes / part / SECONDS).exists():
                print(f"running {part} as it is, {number} of {len(parts)} …", file=sys.stderr,
                      flush=True)  # fmt: skip
                self._note(self.notes / part, files, environment, workers)

    def _note(
        self, notes: Path, files: list[str], environment: dict[str, str], workers: int
    ) -> None:
        """Runs the tests of some files."""
        notes.mkdir(parents=True, exist_ok=True)
        settings = notes / "coverage.ini"
        followed = "\n    ".join(["", *(str(self.tree / file) for file in self.files)])
        settings.write_text(
            f"[run]\ndata_file = {notes / LINES}\nrelative_files = true\ninclude ={followed}\n"
        )  # the next tree has another name
        command = [sys.executable, "-m", "pytest", *OPTIONS, "-n", str(workers), "--durations=0",
                   "--durations-min=0", "-vv", "--cov", f"--cov-config={settings}",
                   "--cov-context=test", "--cov-report=",
                   *(f"--deselect={test}" for test in LONGER), *files]  # fmt: skip
        done = subprocess.run(
            command, cwd=self.tree, env=environment, capture_output=True, text=True, check=False
        )
        (notes / "log").write_text(done.stdout + done.stderr)
        if done.returncode not in (0, NO_TESTS):
            failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
            raise RuntimeError(
                f"expected that all tests pass as they are, found {failed or done.returncode}; "
                f"see {notes / 'log'}"
            )
        (notes / SECONDS).write_text(json.dumps(_seconds(done.stdout)))

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds that each test takes."""
        notes = (json.loads(path.read_text()) for path in self.notes.rglob(SECONDS))
        return {test: seconds for each in notes for test, seconds in each.items()}

    @cached_property
    def _data(self) -> list[Any]:
        result = [CoverageData(str(path)) for path in self.notes.rglob(LINES)]
        for data in result:
            data.read()
        return result

    def tests(self, file: str, lines: range) -> list[str]:
        """Tests that run any of these lines, the quickest first. For lines that run at import, all
        tests that run anything of the file: which one imported it first is chance."""
        by_line: dict[int, set[str]] = {}
        for data in self._data:
            for line, contexts in data.contexts_by_lineno(file).items():
                by_line.setdefault(line, set()).update(contexts)
        at_import = by_line.keys() & set(lines) and not self._bodies(file).intersection(lines)
        result = self._named(by_line, by_line if at_import else lines)
        return sorted(result, key=lambda test: (self.seconds[test], test))

    def _bodies(self, file: str) -> set[int]:
        """The lines of a file's functions, without their heads."""
        nodes = ast.walk(ast.parse((self.tree / file).read_text()))
        functions = (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        return {
            line for f in functions for line in range(f.body[0].lineno, (f.end_lineno or 0) + 1)
        }

    def _named(self, by_line: dict[int, set[str]], lines: Iterable[int]) -> set[str]:
        contexts = {each for line in lines for each in by_line.get(line, ()) if each}
        result, shared = set(), set()
        for context in contexts:
            test, _, phase = context.rpartition("|")
            result.add(test)
            if phase == "setup":
                shared.add(test.partition("::")[0])
        result |= {test for test in self.seconds if test.partition("::")[0] in shared}
        return result & set(self.seconds)


def _parts(tree: Path) -> dict[str, list[str]]:
    """The files of tests, by the folder that they lie in, both from the tree."""
    result: dict[str, list[str]] = {}
    for path in sorted((tree / "tests").rglob("test_*.py")):
        part = str(path.parent.relative_to(tree))
        result.setdefault(part, []).append(str(path.relative_to(tree)))
    return result


def _seconds(text: str) -> dict[str, float]:
    """Seconds that each test took, by what pytest printed."""
    seconds: dict[str, float] = {}
    for line in text.splitlines():
        if result := TIMES.fullmatch(line):
            seconds[result[2]] = seconds.get(result[2], 0.0) + float(result[1])
    return seconds
