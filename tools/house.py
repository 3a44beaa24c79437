"""The house in figures: what decision 25 tables, of the sources as they stand.

    python tools/house.py [--json]

- files and lines of product code, the largest file and the median;
- functions with 8 parameters and more; those that numba compiles apart, since it takes no objects;
- lines of the longest class of ``hw/``;
- public names without a docstring;
- uses of ``Any``, and of names that stand for it, in the compiler, its search and ``vdla/``; an
  array of any type is none;
- rooms at the top, folders and files right under ``vdla``, and arrows, the pairs of which one
  imports the other; a package's face is no room;
- file names that occur twice in one room;
- files of the compiler whose code names a convolution;
- for each operator of the accelerator, and for each algorithm of the processor, how many files of
  the compiler name it in code;
- for each optional unit of the accelerator, the files that name it in code; operators and rewrites,
  which use it, are counted apart (house_options.py has the names);
- places that list two or more ALU operations by name, outside the ISA and in it;
- the way of one compilation (digits for tiny): ``stays`` counts the folders that ``build.py`` and
  ``assemble.py`` call into, one after the other; ``rooms`` are the different ones among them, and
  ``returns`` the stays in a folder that was left before.

Imports and lists of exports name nothing in code. ``make imports`` proves that there are no
circles. house.toml has the bounds of these figures, and why each is what it is.
"""

from __future__ import annotations

import ast
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from types import FrameType

from house_options import operation_lists, options
from house_sources import ROOMS, ROOT, nodes_of, product_files, relative, room_of, tree_of

COMPILED = ("compiled", "inline", "shared")  # by numba, which takes no objects
SEARCH = ("compiler/search/", *(f"compiler/targets/{part}search/" for part in (
    "", "accelerator/", "gpu/", "processor/")))  # fmt: skip
DRIVERS = ("compiler/build.py", "compiler/assemble.py")
CONVOLUTIONS = ("Conv2d", "QConv2d", "QConv2d+Add", "AnyConv2d", "ConvSizes", "ConvTile")
MANY = 8  # parameters
DOCUMENTED = ("D100", "D101", "D102", "D103", "D106")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    """Every function of a file, methods and inner ones too."""
    return (node for node in nodes_of(path) if isinstance(node, Function))


def parameters(function: Function) -> int:
    """Number of arguments that a caller may give; ``self`` and ``cls`` are no choice."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def is_compiled(function: Function) -> bool:
    """Whether numba compiles it."""
    return any(ast.unparse(d) in COMPILED for d in function.decorator_list)


def longest_class(files: list[Path], room: str) -> int:
    """Lines of a room's longest class."""
    nodes = chain.from_iterable(nodes_of(path) for path in files if room_of(path) == room)
    classes = (node for node in nodes if isinstance(node, ast.ClassDef))
    return max((n.end_lineno or 0) - n.lineno + 1 for n in classes)


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
    if not result.stdout.startswith("["):
        sys.exit("house: expected ruff, found none; install with: pip install ruff")
    return len(json.loads(result.stdout))


def twins(files: list[Path]) -> list[str]:
    """Files of one room with one name; ``__init__.py`` is no name."""
    places = defaultdict(list)
    for path in files:
        room, *_ = path.relative_to(ROOT).parts
        if path.name != "__init__.py":
            places[room, path.name].append(str(path.relative_to(ROOT)))
    return [" ".join(same) for same in places.values() if len(same) > 1]


# The top ---------------------------------------------------------------------------------------


def top(files: list[Path]) -> dict[str, int]:
    """Rooms right under ``vdla``, and the pairs of them of which one imports the other."""
    rooms = {path: top_room(path) for path in files}
    arrows = {
        (own, module.split(".")[1])
        for path, own in rooms.items()
        for module in imported(path)
        if own != "__init__"
    }
    known = {*rooms.values()} - {"__init__"}
    return {
        "rooms": len(known),
        "arrows": len([(a, b) for a, b in arrows if a != b and b in known]),
    }


def top_room(path: Path) -> str:
    """The folder or file right under ``vdla`` that a file is in or is."""
    first, *rest = path.relative_to(ROOT).with_suffix("").parts
    return rest[0] if first == "vdla" else first


def imported(path: Path) -> Iterator[str]:
    """Names that a file imports of ``vdla``, as ``vdla.isa.config.Config``."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
        else:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.startswith("vdla."))


# Any -------------------------------------------------------------------------------------------


def any_uses(files: list[Path]) -> dict[str, int]:
    """Number of times that the compiler, its search and ``vdla/`` say ``Any`` or a name that stands
    for it.
    """
    paths = {relative(path): path for path in files if room_of(path) in ("compiler", "vdla")}
    aliases = {name: own_aliases(tree_of(path)) for name, path in paths.items()}
    result = {"compiler": 0, "search": 0, "vdla": 0}
    for name, path in paths.items():
        known = {"Any"} | aliases[name] | imported_aliases(nodes_of(path), aliases)
        part = "search" if name.startswith(SEARCH) else name.split("/")[0]
        result[part] += sum(is_use(node, known) for node in open_parts(tree_of(path)))
    return result


def own_aliases(tree: ast.Module) -> set[str]:
    """The names that a file gives to ``Any``, or to a type that says it."""
    known = {"Any"}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if not isinstance(value, ast.Call) and any(is_use(n, known) for n in open_parts(value)):
                known.add(node.targets[0].id)
    return known - {"Any"}


def imported_aliases(nodes: Iterable[ast.AST], aliases: dict[str, set[str]]) -> set[str]:
    """The names by which a file imports other files' aliases."""
    result = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            path = node.module.removeprefix("vdla.").replace(".", "/")
            homes = (f"{path}.py", f"{path}/__init__.py", f"vdla/{path}.py")
            own = set().union(*(aliases.get(home, set()) for home in homes))
            result |= {name.asname or name.name for name in node.names if name.name in own}
    return result


def open_parts(node: ast.AST) -> Iterator[ast.AST]:
    """A tree's nodes but those inside ``NDArray[…]``."""
    yield node
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("NDArray"):
        return
    for child in ast.iter_child_nodes(node):
        yield from open_parts(child)


def is_use(node: ast.AST, known: set[str]) -> bool:
    """Whether a node reads one of the names."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known


# Who knows what --------------------------------------------------------------------------------


@cache
def code_names(path: Path) -> set[str]:
    """The names in a file's code: classes that it defines, and what it reads."""
    nodes = nodes_of(path)
    used = {n.id for n in nodes if isinstance(n, ast.Name)}
    used |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return used | {n.name for n in nodes if isinstance(n, ast.ClassDef)}


def knowing(files: list[Path], names: Sequence[str]) -> list[str]:
    """Files of the compiler whose code has one of the names."""
    inside = (path for path in files if room_of(path) == "compiler")
    return [relative(path) for path in inside if code_names(path).intersection(names)]


def files_per_operator(files: list[Path]) -> dict[str, int]:
    """For each operator of the accelerator and each algorithm of the processor, the files that name
    it: an operator by its int8 node, an algorithm by its template."""
    from vdla.compiler.targets.accelerator.operators.template import BY_NODE
    from vdla.compiler.targets.processor.operators import TEMPLATES

    names = [*(node.__name__ for node in BY_NODE), *(each.__name__ for each in TEMPLATES)]
    return {name: len(knowing(files, [name])) for name in sorted(names)}


# The way of a compilation ----------------------------------------------------------------------


def compiler_walk() -> dict[str, int]:
    """Stays, rooms and returns of one compilation."""
    from vdla import api

    folders: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_back is None:
            return
        caller, callee = (own_path(f.f_code.co_filename) for f in (frame.f_back, frame))
        if caller in DRIVERS and callee and callee not in DRIVERS:
            folder = callee.rpartition("/")[0]
            if not folders or folders[-1] != folder:
                folders.append(folder)

    sys.setprofile(note)
    try:
        api.compile("digits", "tiny")
    finally:
        sys.setprofile(None)
    rooms = len(set(folders))
    return {"stays": len(folders), "rooms": rooms, "returns": len(folders) - rooms}


@cache
def own_path(name: str) -> str:
    """A source's path from the root; nothing for others' sources."""
    path = Path(name).resolve()
    return relative(path) if path.is_relative_to(ROOT) and ".venv" not in path.parts else ""


# Together --------------------------------------------------------------------------------------


def measure() -> dict[str, object]:
    """Every figure, by its name."""
    files = product_files(".py")
    lines = {path: len(path.read_text().splitlines()) for path in files}
    many = [
        (f"{path.relative_to(ROOT)}:{f.name}", is_compiled(f))
        for path in files
        for f in functions(path)
        if parameters(f) >= MANY
    ]
    per_option, users = options()
    lists, lists_of_isa = operation_lists(files)
    return {
        "files": len(files),
        "lines": sum(lines.values()),
        "largest": max(lines.values()),
        "median": statistics.median(lines.values()),
        "many_parameters": [name for name, compiled in many if not compiled],
        "many_parameters_numba": [name for name, compiled in many if compiled],
        "longest_class_of_hw": longest_class(files, "hw"),
        "undocumented": undocumented(),
        "any": any_uses(files),
        "top": top(files),
        "twins": twins(files),
        "convolutions": knowing(files, CONVOLUTIONS),
        "files_per_operator": files_per_operator(files),
        "files_per_option": per_option,
        "users_per_option": users,
        "operation_lists": lists,
        "operation_lists_of_isa": lists_of_isa,
        "compile": compiler_walk(),
    }


def show(name: str, value: object, indent: str = "") -> None:
    """Prints a figure; a list's length and its items, a table's rows."""
    width = 24 - len(indent)
    if isinstance(value, dict):
        counts = [len(each) if isinstance(each, list) else each for each in value.values()]
        print(f"{name:24}{sum(counts) if name == 'any' else max(counts):>8}")
        for key, each in value.items():
            show(key, each, "    ")
    elif isinstance(value, list):
        print(f"{indent}{name:{width}}{len(value):>8}")
        print(*(f"{indent}    {each}\n" for each in value), sep="", end="")
    else:
        print(f"{indent}{name:{width}}{value:>8}")


def main() -> None:
    """Prints the figures."""
    result = measure()
    if "--json" in sys.argv:
        print(json.dumps(result))
        return
    for name, value in result.items():
        show(name, value)


if __name__ == "__main__":
    main()
