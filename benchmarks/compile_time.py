"""Seconds to compile the bundled networks.

    python benchmarks/compile_time.py [-c CONFIG]

Each is compiled in a process of its own, which begins with nothing loaded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from vdla.compiler.models import model_path


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default="paper")
    config = parser.parse_args().config
    table = Table("model", "config", "seconds, whole process")
    for name in ("digits", "resnet18", "mobilenet"):
        model_path(name)  # built once, not part of compiling
        with tempfile.TemporaryDirectory() as folder:
            target = str(Path(folder) / "m.vdla")
            command = [sys.executable, "-m", "vdla", "compile", name, "-c", config]
            start = time.perf_counter()
            subprocess.run([*command, "-o", target, "--json"], check=True, capture_output=True)
            table.add_row(name, config, f"{time.perf_counter() - start:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
