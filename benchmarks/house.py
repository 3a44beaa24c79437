"""The house in figures: what decision 25 tables, of the sources as they stand.

    python benchmarks/house.py [--json]

files and lines of product code, the largest file, functions with 8 parameters and more (those that
numba compiles apart: it takes no objects), file names that occur twice in one room, ``Any`` in the
code of operators, public names without a docstring, files of the compiler whose code names a
convolution (a list of exports is none). ``make imports`` proves that there are no circles.
"""

from __future__ import annotations

import ast
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMPILED = ("jit", "jit_lean", "inline", "shared")  # by numba, which takes no objects
ROOMS = ("support", "isa", "sim", "hw", "compiler", "runtime", "boards", "vdla")
OPERATORS = (
    "compiler/graph/ops",
    "compiler/targets/accelerator/operators",
    "compiler/targets/processor/operators",
    "compiler/targets/processor/functions.py",
    "compiler/targets/processor/in_place.py",
    "compiler/targets/processor/steps.py",
    "compiler/graph/express.py",
)
CONVOLUTIONS = ("Conv2d", "QConv2d", "QConv2dAdd", "AnyConv2d", "ConvSizes", "ConvTile")
MANY = 8  # parameters
DOCUMENTED = ("D100", "D101", "D102", "D103", "D106")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def product_files() -> list[Path]:
    """The files of every room, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{room}/*.py" for room in ROOMS)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def functions(path: Path) -> Iterator[Function]:
    """Every function of a file, methods and inner ones too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


def parameters(function: Function) -> int:
    """How many a caller may give; ``self`` and ``cls`` are no choice."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def is_compiled(function: Function) -> bool:
    """Whether numba compiles it."""
    return any(ast.unparse(d) in COMPILED for d in function.decorator_list)


def undocumented() -> int:
    """Public names without a docstring; what overrides a documented one needs none."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--select",
        ",".join(DOCUMENTED),
    ]
    result = subprocess.run(
        [*command, "--output-format", "json", *ROOMS], cwd=ROOT, capture_output=True, text=True
    )
    return len(json.loads(result.stdout))


def twins(files: list[Path]) -> list[str]:
    """Files of one room with one name; ``__init__.py`` is no name."""
    places = defaultdict(list)
    for path in files:
        room, *_ = path.relative_to(ROOT).parts
        if path.name != "__init__.py":
            places[room, path.name].append(str(path.relative_to(ROOT)))
    return [" ".join(same) for same in places.values() if len(same) > 1]


def loose(files: list[Path]) -> int:
    """How often operators say ``Any``; an import is no use."""
    inside = [p for p in files if str(p.relative_to(ROOT)).startswith(OPERATORS)]
    names = (n for p in inside for n in ast.walk(ast.parse(p.read_text())))
    return sum(isinstance(n, ast.Name) and n.id == "Any" for n in names)


def knowing_convolutions(files: list[Path]) -> list[str]:
    """Files of the compiler that name a convolution, in code and not in an import alone."""
    result = []
    for path in files:
        name = str(path.relative_to(ROOT))
        nodes = ast.walk(ast.parse(path.read_text()))
        used = {n.id if isinstance(n, ast.Name) else n.attr for n in nodes
                if isinstance(n, ast.Name | ast.Attribute)}  # fmt: skip
        if name.startswith("compiler/") and used.intersection(CONVOLUTIONS):
            result.append(name)
    return result


def measure() -> dict[str, object]:
    """Every figure, by its name."""
    files = product_files()
    lines = {path: len(path.read_text().splitlines()) for path in files}
    many = [
        (f"{path.relative_to(ROOT)}:{f.name}", is_compiled(f))
        for path in files
        for f in functions(path)
        if parameters(f) >= MANY
    ]
    return {
        "files": len(files),
        "lines": sum(lines.values()),
        "largest": max(lines.values()),
        "median": statistics.median(lines.values()),
        "many_parameters": [name for name, compiled in many if not compiled],
        "many_parameters_numba": [name for name, compiled in many if compiled],
        "undocumented": undocumented(),
        "any_in_operators": loose(files),
        "twins": twins(files),
        "convolutions": knowing_convolutions(files),
    }


def main() -> None:
    """Prints the figures, a line each; of lists their length and what they hold."""
    result = measure()
    if "--json" in sys.argv:
        print(json.dumps(result))
        return
    for name, value in result.items():
        if isinstance(value, list):
            print(f"{name:24}{len(value):>8}", *value, sep="\n    " if value else "")
        else:
            print(f"{name:24}{value:>8}")


if __name__ == "__main__":
    main()
