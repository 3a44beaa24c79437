"""Plants faults in the sources, one at a time, and counts how many of them the tests notice.

    python benchmarks/mutants.py [--seed S] [--count N] [--first K] [--room ROOM] [--workers 2]
                                 [--limit 240] [--json]

A mutant is one small change of one expression, drawn from a seed: another comparison, another
operation, a number one off, a condition turned round, ``and`` for ``or``. Each is planted in a copy
of the tracked files, and the tests of the changed file run there, the nearest first, until one
fails. What no test notices survives and is printed with its place. Survivors that change nothing
anybody could see are listed with their reason in ``mutants.toml`` beside this file, and count
neither as killed nor as surviving; ``share`` is of the others. Rooms are drawn evenly, places in a
room by how many there are. The tests must pass as they are. ``--first K`` passes over the first K,
to go on where an earlier run of the same sources ended.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_suffix(".toml")
ROOMS = ("isa", "sim", "hw", "compiler", "runtime")
LIMIT = 240  # seconds that a stage may take; a mutant with which it takes longer is noticed

# Stages of tests by the longest path that a file's own begins with; {stem} is its name. A stage's
# files run in one process, in the environment that its first words set. Of the files named, the
# ones that don't exist are left out. Loops that numba needn't compile first save most of a minute.
INTERPRETED = "NUMBA_DISABLE_JIT=1"
HARDWARE = ("tests/hw/test_stop.py", "tests/lockstep/test_lockstep.py::test_tiny")
FORMAL = "tests/hw/formal/test_{stem}.py tests/hw/formal/test_{stem}s.py"
NETWORKS = ("tests/e2e/test_operators.py", "tests/compiler/test_build.py")
STAGES: dict[str, tuple[str, ...]] = {
    "isa": ("tests/isa/test_{stem}.py tests/isa/test_round_trips.py tests/isa/test_numbers.py "
            "tests/isa/test_configs.py tests/isa/test_registers.py tests/isa/test_svd.py "
            "tests/isa/test_link.py tests/vdla/test_commands.py::test_the_manual_is_current",
            "tests/isa/test_identity.py tests/sim/test_semantics.py",
            "tests/sim/test_faults.py tests/vdla/test_bad_input.py tests/runtime/board"),
    "sim": ("tests/sim/test_{stem}.py tests/sim/test_semantics.py", "tests/sim/test_timing.py",
            "tests/sim/test_faults.py tests/sim/test_checker.py",
            "tests/sim/test_random_programs.py tests/lockstep/test_coverage.py",
            "tests/lockstep/test_lockstep.py::test_tiny"),
    "sim/checker": (f"{INTERPRETED} tests/sim/test_checker.py", "tests/sim/test_checker.py",
                    "tests/sim/test_random_programs.py"),
    "sim/timing": (f"{INTERPRETED} tests/sim/test_timing.py", "tests/sim/test_timing.py",
                   "tests/lockstep/test_lockstep.py::test_tiny", "tests/sim/test_faults.py"),
    "sim/trace.py": ("tests/vdla/test_commands.py tests/runtime/test_rtl.py",),
    "hw": ("tests/hw/test_{stem}.py", FORMAL, *HARDWARE),
    "hw/load.py": (*HARDWARE, "tests/hw/formal/test_engines.py"),
    "hw/store.py": ("tests/hw/test_store.py", *HARDWARE, "tests/hw/formal/test_engines.py"),
    "hw/interfaces.py": ("tests/vdla/test_hardware.py", *HARDWARE),
    "hw/verilog.py": ("tests/vdla/test_hardware.py", "tests/runtime/test_rtl.py"),
    "hw/csr.py": ("tests/hw/test_csr.py", FORMAL, *HARDWARE, "tests/boards/test_lite.py"),
    "compiler/codegen": ("tests/compiler/codegen", *NETWORKS),
    "compiler/codegen/vdla": ("tests/compiler/codegen", "tests/compiler/operators "
                              "--deselect tests/compiler/operators/test_tiling.py", *NETWORKS),
    "compiler/frontend": ("tests/compiler/frontend", "tests/vdla/test_bad_input.py", *NETWORKS),
    "compiler/graph": ("tests/compiler/graph tests/compiler/frontend/test_import.py", *NETWORKS),
    "compiler/models": ("tests/compiler/models", "tests/vdla/test_commands.py"),
    "compiler/passes": ("tests/compiler/passes", "tests/compiler/codegen", *NETWORKS),
    "compiler/schedule": ("tests/compiler/schedule", "tests/compiler/host", *NETWORKS),
    "compiler/te": ("tests/compiler/te", "tests/compiler/schedule", "tests/compiler/host"),
    "compiler/tir": ("tests/compiler/tir", "tests/compiler/passes", "tests/compiler/schedule"),
    "compiler/host": ("tests/compiler/host", *NETWORKS),
    "compiler/operators": ("tests/compiler/operators", "tests/compiler/tune", *NETWORKS),
    "compiler/placement": ("tests/compiler/placement", *NETWORKS),
    "compiler/tune": ("tests/compiler/tune/test_{stem}.py", "tests/compiler/tune",
                      "tests/vdla/test_tune.py"),
    "compiler": NETWORKS[::-1],
    "runtime": ("tests/runtime/test_{stem}.py", "tests/runtime", "tests/vdla/test_commands.py"),
    "runtime/board": ("tests/runtime/board", "tests/boards/test_virtual.py"),
    "runtime/rtl": ("tests/runtime/test_rtl.py", "tests/lockstep/test_lockstep.py::test_tiny"),
    "runtime/devices": ("tests/runtime", "tests/boards/test_virtual.py"),
}  # fmt: skip

OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change: where, what stood there, what stands there now."""

    file: str
    line: int
    function: str
    before: str
    after: str
    start: int  # of the expression, in the file's bytes
    end: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is recognised by when lines have moved."""
        return self.file, self.function, self.before, self.after


def mutants(file: str) -> list[Mutant]:
    """Every mutant of a file, in order."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for function, node, change in _changes(ast.parse(source), ""):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before, after = ast.unparse(node), ast.unparse(change)
        found.append(Mutant(file, node.lineno, function, before, f"({after})", start, end))
    return found


def _changes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Expressions of a tree with what they become; not in messages, annotations and imports."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".strip(".")
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import):
                continue
            if isinstance(child, ast.AST):
                yield from _changes(child, function)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield function, node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        opposite = OPPOSITE[type(node.ops[0])]()
        yield function, node, ast.Compare(node.left, [opposite], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE and not _is_text(node):
        yield function, node, ast.BinOp(node.left, OPPOSITE[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield function, node, ast.BoolOp(OPPOSITE[type(node.op)](), node.values)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield function, node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield function, node, ast.Constant(node.value + 1)


def _is_text(node: ast.BinOp) -> bool:
    """Whether it joins or formats text or lists: such a mutant raises wherever it is run."""
    kinds = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp
    sides = (node.left, node.right)
    return any(
        isinstance(side, kinds) or (isinstance(side, ast.Constant) and type(side.value) is str)
        for side in sides
    )


def draw(seed: int, count: int, rooms: tuple[str, ...]) -> list[Mutant]:
    """Different mutants, evenly from the rooms."""
    rng, known = Random(seed), tracked()
    pools = {
        room: [m for file in known if file.startswith(f"{room}/") and file.endswith(".py")
               for m in mutants(file)]
        for room in rooms
    }  # fmt: skip
    chosen: dict[tuple[str, int, str], Mutant] = {}
    while len(chosen) < count:
        mutant = rng.choice(pools[rooms[len(chosen) % len(rooms)]])
        chosen[mutant.file, mutant.start, mutant.after] = mutant
    return list(chosen.values())


def tracked() -> list[str]:
    """The repository's files."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def stages(file: str, tree: Path) -> list[list[str]]:
    """What pytest is given, stage by stage, for a change in a file."""
    longest = max((key for key in STAGES if f"{file}/".startswith(f"{key}/")), key=len)
    found = []
    for stage in STAGES[longest]:
        words = [word.format(stem=Path(file).stem) for word in stage.split()]
        there = [w for w in words if not w.startswith("tests/") or
                 (tree / w.partition("::")[0]).exists()]  # fmt: skip
        if any(word.startswith("tests/") for word in there):
            found.append(there)
    return found


class Tree:
    """A copy of the tracked files, whose package ``vdla`` has its rooms in it and goes before the
    installed one."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.scratch, self.limit = folder, folder / "cache", limit
        for name in tracked():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        for room in (*ROOMS, "boards", "support"):
            (folder / "vdla" / room).symlink_to(folder / room)

    def try_one(self, mutant: Mutant) -> str | None:
        """Plants a mutant; the test or stage that noticed it, or None."""
        path = self.folder / mutant.file
        source = path.read_bytes()
        path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
        try:
            for stage in stages(mutant.file, self.folder):
                if noticed := self.run(stage, mutant.file.partition("/")[0]):
                    return noticed
            return None
        finally:
            path.write_bytes(source)
            shutil.rmtree(self.scratch, ignore_errors=True)

    def run(self, stage: list[str], room: str) -> str | None:
        """Runs tests against a mutant of ``room``; the first that failed, or what went wrong."""
        settings = [word for word in stage if "=" in word]
        stage = [word for word in stage if word not in settings]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                   "-p", "no:xdist", "-m", "not long", "--tb=no", *stage]  # fmt: skip
        extra = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        extra |= dict(word.split("=", 1) for word in settings)
        extra["CXXFLAGS"] = "-O1"  # a mutant's model is built for longer than it runs
        if room in ("isa", "sim", "hw"):  # what is compiled of a mutant is of no use to others
            extra["VDLA_CACHE"] = str(self.scratch)
        if room not in ("isa", "sim"):  # numba compiles neither
            extra["NUMBA_CACHE_DIR"] = str(self.folder / "numba")
        process = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **extra}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            text, _ = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return f"{stage[0]} took longer than {self.limit} s"
        if process.returncode == 0:
            return None
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0] if failed else f"{stage[0]} ended with {process.returncode}"


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Known mutants that change nothing, with their reasons."""
    listed = tomllib.loads(EQUIVALENT.read_text())["mutant"] if EQUIVALENT.exists() else []
    return {(m["file"], m["function"], m["before"], m["after"]): m["reason"] for m in listed}


def run(chosen: list[Mutant], workers: int, limit: int) -> Iterator[tuple[Mutant, str | None]]:
    """Tries mutants in several trees; what noticed each, in order."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(workers):
            trees.put(Tree(Path(folder) / str(number), limit))

        def one(mutant: Mutant) -> str | None:
            tree = trees.get()
            try:
                return tree.try_one(mutant)
            finally:
                trees.put(tree)

        yield from zip(chosen, pool.map(one, chosen), strict=True)


def main() -> None:
    """Prints survivors as they are found, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="K", help="pass over the first K")
    parser.add_argument("--room", choices=ROOMS, help="plant in this room alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds; more on a busy machine")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rooms = (arguments.room,) if arguments.room else ROOMS
    known, equivalent, killed = equivalents(), 0, 0
    survivors: list[Mutant] = []
    chosen = draw(arguments.seed, arguments.count, rooms)[arguments.first :]
    tried = [mutant for mutant in chosen if mutant.key not in known]
    equivalent = len(chosen) - len(tried)
    for mutant, noticed in run(tried, arguments.workers, arguments.limit):
        place = f"{mutant.file}:{mutant.line}: {mutant.before}  →  {mutant.after}"
        if noticed is None:
            survivors.append(mutant)
        else:
            killed += 1
        print(f"{noticed or 'SURVIVED'}\n    {place}", file=sys.stderr, flush=True)
    share = killed / max(len(tried), 1)
    if arguments.json:
        print(json.dumps({"seed": arguments.seed, "count": len(chosen), "killed": killed,
                          "equivalent": equivalent, "share": share,
                          "survivors": [asdict(m) for m in survivors]}))  # fmt: skip
        return
    for mutant in survivors:
        print(f"survived: {mutant.file}:{mutant.line}: {mutant.before}  →  {mutant.after}")
    print(f"{killed} of {len(tried)} killed, {100 * share:.1f} %; {equivalent} known as equivalent")


if __name__ == "__main__":
    main()
