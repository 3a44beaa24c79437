"""Packages: how large they are, how long they take to make, and ResNet-18 from C beside Python.

    python benchmarks/packages.py [--model resnet18]

The runtime's bytes are those of its code and constants, without kernels. The model runs in one
process, by Python's executor and by the package of a wheel in turns; the ratio of their times is
the median of ROUNDS rounds. ``digits`` has its wheel imported in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from importlib import util
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.compiler.targets.processor.description.processor import PROCESSORS
from vdla.packaging.forms import FORMS
from vdla.packaging.objects import loaded_bytes, runtime_object
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module

ROUNDS, SECONDS = 15, 0.2
IMPORT = "import time; t = time.perf_counter(); import digits; print(time.perf_counter() - t)"


def unpacked(model: object, folder: Path, **options: str) -> ModuleType:
    """The package of a model's wheel."""
    made = vdla.package(model, form="wheel", out=folder, **options)
    zipfile.ZipFile(made.files[0]).extractall(folder)
    spec = util.spec_from_file_location(made.name, folder / made.name / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    package = util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


def seconds_each(run: Callable[[], object]) -> float:
    """Seconds of a call, of as many as take SECONDS."""
    begun, count = time.perf_counter(), 0
    while time.perf_counter() < begun + SECONDS:
        run()
        count += 1
    return (time.perf_counter() - begun) / count


def ratio(module: Module, package: ModuleType, threads: int) -> float:
    """Time of a module from C over that by Python's executor, with as many threads."""
    inputs = vdla.random_inputs(module)
    executor, network = Executor(module, threads=threads), package.Network(threads)
    wanted, outputs = executor.run(inputs).outputs, network.run(**inputs)
    assert all(np.array_equal(outputs[name], value) for name, value in wanted.items())
    ratios = []
    for number in range(ROUNDS):
        runs = [lambda: network.run(**inputs), lambda: executor.run(inputs)]
        first = number % 2  # each of the two goes first in every other round
        seconds = {first: seconds_each(runs[first])}
        seconds[1 - first] = seconds_each(runs[1 - first])
        ratios.append(seconds[0] / seconds[1])
    return median(ratios)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    model = parser.parse_args().model
    console = Console()
    table = Table("runtime for", "bytes", title="the runtime without kernels")
    for name, processor in PROCESSORS.items():
        size = loaded_bytes(runtime_object(processor))
        if size is not None:
            table.add_row(name, f"{size:,}")
    console.print(table)
    table = Table("form", "bytes", "seconds", title="digits, packaged by a process each")
    with TemporaryDirectory() as name:
        folder = Path(name)
        for form in FORMS:
            begun = time.perf_counter()
            command = ["-m", "vdla", "package", "digits", "--as", form, "--out", str(folder / form)]
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            seconds = time.perf_counter() - begun
            files = [path for path in folder.joinpath(form).rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in files if path.suffix not in (".h", ".mjs"))
            table.add_row(form, f"{size:,}", f"{seconds:.1f}")
        console.print(table)
        unpacked("digits", folder)
        runs = [
            subprocess.run(
                [sys.executable, "-c", IMPORT], cwd=folder, capture_output=True, text=True
            )
            for _ in range(ROUNDS)
        ]
        imported = median(float(run.stdout) for run in runs)
        console.print(f"import of the wheel of digits: {1000 * imported:.1f} ms")
        module = vdla.compile(model, device="cpu")
        package = unpacked(module, folder / "model")
        for threads in (1, 2):
            console.print(
                f"{model} from C ÷ by Python's executor, {threads} threads: "
                f"{ratio(module, package, threads):.3f}"
            )


if __name__ == "__main__":
    main()
