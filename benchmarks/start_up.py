"""Processor time from a command to its end: with nothing cached, and the second time.

    python benchmarks/start_up.py [--runs 3] [--json]

Each command is a process, with a cache folder of its own that is empty at first; of the later ones
the shortest time counts. Then again as in a container, where Python keeps no byte code and the home
can't be written: there everything is as the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

VDLA = ["-m", "vdla"]
COMMANDS = {
    "vdla run digits -c tiny": [*VDLA, "run", "digits", "-c", "tiny"],
    "vdla run digits -c paper-full": [*VDLA, "run", "digits", "-c", "paper-full"],
    "vdla --help": [*VDLA, "--help"],
    "import vdla": ["-c", "import vdla"],
    "python alone": ["-c", ""],
}


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Processor seconds of a process of Python.

    Raises:
        RuntimeError: it failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *command], env={**os.environ, **environment}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: expected it to succeed, found {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(runs: int) -> dict[str, dict[str, float]]:
    """Seconds of each command: first, later, and where nothing can be kept."""
    result: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        kept = {"VDLA_CACHE": str(Path(folder, "cache")), "PYTHONDONTWRITEBYTECODE": ""}
        home = Path(folder, "home")
        home.mkdir(0o500)
        nothing = {"HOME": str(home / "none"), "XDG_CACHE_HOME": "/dev/null/cache",
                   "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        seconds(["-c", "import vdla.commands.run, vdla.api.models"], kept)  # writes byte code
        for name, command in COMMANDS.items():
            print(f"{name} …", file=sys.stderr, flush=True)
            first = seconds(command, kept)
            later = min(seconds(command, kept) for _ in range(runs))
            result[name] = {
                "first": first,
                "later": later,
                "nothing kept": seconds(command, nothing),
            }
    return result


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.runs)
    if arguments.json:
        print(json.dumps(result))
        return
    table = Table("processor seconds", "first", "later", "where nothing is kept")
    for name, each in result.items():
        table.add_row(name, *(f"{each[when]:.2f}" for when in ("first", "later", "nothing kept")))
    Console().print(table)


if __name__ == "__main__":
    main()
