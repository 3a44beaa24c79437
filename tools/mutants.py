"""Plants faults in the sources, one at a time, and counts how many of them the tests notice.

    python tools/mutants.py [--seed S] [--count N] [--first K] [--under FOLDER] [--all]
                                 [--workers 2] [--limit 240] [--json]

A mutant is one small change of one expression, drawn from a seed: another comparison, another
operation, a number one off, a condition turned round, ``and`` for ``or``. Each is planted in a copy
of the tracked files, and tests run there until one fails. What no test notices survives and is
printed with its place.

Which tests: first all run once as they are, must pass, and are timed, and coverage.py notes which
lines each of them runs. A mutant is given the tests that run its lines, the quickest first. Loops
that run as machine code and models that Verilator builds run no lines of Python: ``STAGES`` names
tests for those. What was noted is kept in ``build/mutants`` for the next run of the same draw.

Mutants that change nothing anybody could see count neither as killed nor as surviving; ``share`` is
of the others. They are those of ``hw/`` from which the same Verilog comes, and those that
``mutants.toml`` beside this file lists with their reasons, as it does files that nothing is planted
in. Nothing is planted in assertions (``strict``) either, nor where it is said which registers a
reset sets beyond those it has to.

Rooms are drawn evenly, places in a room by how many there are; a seed draws the same places of
later sources, as far as they are there. ``--all`` tries all of them, in order; ``--first K`` passes
over the first K, to go on where an earlier run of the same sources ended.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, islice, zip_longest
from pathlib import Path

from covering import OPTIONS, Covering, digest

from vdla.farm.processes import ProcessPool
from vdla.farm.work import Job, JobPool, Setup

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "build" / "mutants"
SPARED = Path(__file__).with_suffix(".toml")
SAME = "the same Verilog"
VERILOG = """
import hashlib
from vdla.hw.verilog import verilog_of
from vdla.isa.config import load_config
names = ("tiny", "narrow", "paper-plus", "paper-ring", "paper-full")  # with options
configs = map(load_config, names)
print([hashlib.sha256(verilog_of(c).encode()).hexdigest() for c in configs])
"""
NO_SUCH_TEST = 4  # pytest's exit status
ROOMS = ("isa", "sim", "hw", "compiler", "runtime")
LIMIT = 240  # seconds of tests that run a mutant's lines, the quickest first
HANGS = 3  # a mutant with which tests take so many times as long, and a minute, is noticed

# Stages of tests by the longest path that a file's own begins with. A stage's tests run in one
# process, in the environment that its first words set. Loops that numba needn't compile first save
# most of a minute.
COVERING = "covering"  # the tests that run the mutant's lines
INTERPRETED = "NUMBA_DISABLE_JIT=1"
TINY = "tests/lockstep/test_lockstep.py::test_tiny"
STAGES: dict[str, tuple[str, ...]] = {
    "": (COVERING,),
    "sim/checker": (f"{INTERPRETED} tests/sim/test_checker.py", COVERING),
    "sim/alu.py": ("tests/sim/test_semantics.py tests/sim/test_bounds.py", COVERING),
    "sim/gemm.py": ("tests/sim/test_semantics.py tests/sim/test_bounds.py", COVERING),
    "sim/transfers.py": ("tests/sim/test_semantics.py tests/sim/test_bounds.py", COVERING),
    "sim/semantics.py": ("tests/sim/test_semantics.py tests/sim/test_bounds.py", COVERING),
    "sim/timing": (f"{INTERPRETED} tests/sim/test_timing.py", TINY, COVERING),
    "hw": (COVERING, TINY),
    "runtime/rtl": (COVERING, "tests/runtime/test_rtl.py", TINY),
}

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
    text: str  # the line
    lines: range  # of the statement it is in, or of its head

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key by which it is recognised when lines have moved."""
        return self.file, self.text, self.before, self.after

    def described(self) -> dict[str, str | int]:
        """For a reader of JSON."""
        return {"file": self.file, "line": self.line, "function": self.function,
                "before": self.before, "after": self.after}  # fmt: skip


def mutants(file: str) -> list[Mutant]:
    """Every mutant of a file, in order."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    result = []
    for function, lines, node, change in _changes(ast.parse(source), "", range(0)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before, after = ast.unparse(node), ast.unparse(change)
        text = source.splitlines()[node.lineno - 1].decode().strip()
        result.append(
            Mutant(file, node.lineno, function, before, f"({after})", start, end, text, lines)
        )
    return result


def _changes(
    node: ast.AST, function: str, lines: range
) -> Iterator[tuple[str, range, ast.expr, ast.expr]]:
    """Expressions of a tree with where they are and what they become; not in messages, annotations
    and imports."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".strip(".")
    if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
        lines = _lines(node)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import):
                continue
            if _promises_alone(node, child):
                continue
            if isinstance(child, ast.AST):
                yield from _changes(child, function, lines)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield function, lines, node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        opposite = OPPOSITE[type(node.ops[0])]()
        yield function, lines, node, ast.Compare(node.left, [opposite], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE and not _is_text(node):
        yield function, lines, node, ast.BinOp(node.left, OPPOSITE[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield function, lines, node, ast.BoolOp(OPPOSITE[type(node.op)](), node.values)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield function, lines, node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield function, lines, node, ast.Constant(node.value + 1)


def _promises_alone(node: ast.AST, child: object) -> bool:
    """Whether it says that two are of one length, or which registers a reset sets: a check less or
    a reset more changes nothing."""
    if isinstance(child, ast.keyword):
        return child.arg in ("reset_less", "strict")
    call = isinstance(node, ast.Call) and ast.unparse(node.func) == "valid_register"
    return call and isinstance(child, ast.Constant)


def _lines(node: ast.stmt | ast.ExceptHandler | ast.match_case) -> range:
    """Lines of a statement, or of what stands before its body."""
    first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else getattr(node, "end_lineno", first)
    return range(first, max(first, last) + 1)


def _is_text(node: ast.BinOp) -> bool:
    """Whether it joins or formats text or lists: such a mutant raises wherever it is run."""
    kinds = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp
    sides = (node.left, node.right)
    return any(
        isinstance(side, kinds) or (isinstance(side, ast.Constant) and type(side.value) is str)
        for side in sides
    )


def pools(folders: tuple[str, ...]) -> list[list[Mutant]]:
    """All mutants, by folder."""
    spared = {each["file"] for each in _listed("file")}
    known = [file for file in tracked() if file.endswith(".py") and file not in spared]
    return [
        [m for file in known if f"{file}/".startswith(f"{folder}/") for m in mutants(file)]
        for folder in folders
    ]


def draw(seed: int, count: int, every: list[list[Mutant]]) -> list[Mutant]:
    """Different mutants, evenly from the pools. Each stands where a digest of itself puts it, so a
    seed draws the same ones after sources have changed elsewhere."""

    def place(mutant: Mutant) -> bytes:
        return hashlib.sha256(repr((seed, mutant.key)).encode()).digest()

    ranked = [sorted(pool, key=place) for pool in every]
    dealt = chain.from_iterable(zip_longest(*ranked))
    return list(islice((mutant for mutant in dealt if mutant), count))


def tracked() -> list[str]:
    """The repository's files."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def stages(mutant: Mutant, covering: Covering, limit: int) -> Iterator[Stage]:
    """The tests that a mutant is given, one stage after the other."""
    for text in STAGES[_key(mutant)]:
        stage = _parsed(text)
        if stage.tests == [COVERING]:
            tests = covering.tests(mutant.file, mutant.lines)
            sums = accumulate(covering.seconds[test] for test in tests)
            tests = [test for test, total in zip(tests, sums, strict=True) if total < limit]
            stage = Stage(tests, stage.settings)
        if stage.tests:
            yield stage


def _key(mutant: Mutant) -> str:
    """Under which the stages of a mutant's tests are listed."""
    return max((key for key in STAGES if f"{mutant.file}/".startswith(key)), key=len)


def _parsed(text: str) -> Stage:
    """An entry of ``STAGES``."""
    words = text.split()
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    return Stage([word for word in words if "=" not in word], settings)


@dataclass(frozen=True)
class Stage:
    """Tests that run in one process, and what is set in its environment."""

    tests: list[str]
    settings: dict[str, str]


class Tree:
    """A copy of the tracked files, whose package ``vdla`` has its rooms in it and goes before the
    installed one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scratch = folder, folder / "cache"
        self.unchanged = ""  # what ``verilog`` says where nothing is planted
        for name in tracked():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        for git in (("init", "--quiet"), ("add", ".")):  # as some tests list tracked files
            subprocess.run(["git", *git], cwd=folder, check=True)
        for room in (*ROOMS, "boards", "farm", "support"):
            (folder / "vdla" / room).symlink_to(folder / room)
        compileall.compile_dir(folder, quiet=2)

    def try_one(self, mutant: Mutant, covering: Covering, limit: int) -> str | None:
        """Plants a mutant; the test or stage that noticed it, or None."""
        path = self.folder / mutant.file
        source, status = path.read_bytes(), path.stat()
        path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
        try:
            for stage in stages(mutant, covering, limit):
                usual = sum(covering.seconds.get(test, limit) for test in stage.tests)
                if noticed := self.run(stage, mutant.file, HANGS * usual + 60):
                    return noticed
            same = mutant.file.startswith("hw/") and self.verilog() == self.unchanged
            return SAME if same else None
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as its bytecode has it
            shutil.rmtree(self.scratch, ignore_errors=True)

    def verilog(self) -> str:
        """A digest of the core's Verilog for some configs."""
        done = subprocess.run(
            [sys.executable, "-c", VERILOG], cwd=self.folder, capture_output=True,
            env=self.environment("hw/"), text=True, check=False,
        )  # fmt: skip
        return done.stdout

    def run(self, stage: Stage, file: str, seconds: float) -> str | None:
        """Runs tests against a mutant of ``file``; the first that failed, or what went wrong."""
        code, text = self._pytest(
            stage.tests, {**self.environment(file), **stage.settings}, seconds
        )
        if code == NO_SUCH_TEST:  # tests have other names now
            files = sorted({test.partition("::")[0] for test in stage.tests})
            code, text = self._pytest(files, {**self.environment(file), **stage.settings}, seconds)
        if code == 0:
            return None
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0] if failed else text if code is None else f"pytest ended with {code}"

    def environment(self, file: str = "") -> dict[str, str]:
        """Environment that tests run in, with a mutant of ``file``."""
        result = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        result["CXXFLAGS"] = "-O1"  # a mutant's model is built for longer than it runs
        if file.startswith(("isa/", "sim/", "hw/")):  # nobody else can use what is compiled of it
            result["VDLA_CACHE"] = str(self.scratch)
        return result

    def _pytest(
        self, tests: list[str], environment: dict[str, str], seconds: float
    ) -> tuple[int | None, str]:
        command = [sys.executable, "-m", "pytest", "-x", *OPTIONS, "-p", "no:xdist", "-p",
                   "no:cov", "--tb=no", *tests]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None, f"{tests[0]} and others took longer than {seconds:.0f} s"
        return process.returncode, text


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Known mutants that change nothing, with their reasons."""
    result = _listed("mutant")
    return {(m["file"], m["line"], m["before"], m["after"]): m["reason"] for m in result}


def _listed(kind: str) -> list[dict[str, str]]:
    return list(tomllib.loads(SPARED.read_text())[kind])


class Trial:
    """Trial in which a process tries mutants: a tree of its own in ``folder``, and what was noted.

    ``unchanged`` is what ``Tree.verilog`` says of a tree where nothing is planted.
    """

    def __init__(self, folder: Path, covering: Covering, unchanged: str, limit: int) -> None:
        self.tree, self.covering, self.limit = Tree(folder / str(os.getpid())), covering, limit
        self.tree.unchanged = unchanged

    def run(self, mutant: Mutant) -> str | None:
        """Test or stage that noticed a mutant; None where none did."""
        return self.tree.try_one(mutant, self.covering, self.limit)


def run(
    chosen: list[Mutant], files: set[str], pool: JobPool, workers: int, limit: int
) -> Iterator[tuple[Mutant, str | None]]:
    """Tries mutants in a pool of so many processes; what noticed each, as they come. Lines of
    ``files`` are followed when all tests run as they are.

    Raises:
        RuntimeError: a process ended, or a test fails where nothing is planted.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tree = Tree(folder / "unchanged")
        sources = digest(ROOT, tracked())
        covering = Covering(tree.folder, files, NOTES / sources / digest(ROOT, sorted(files)))
        covering.note(tree.environment(), workers)
        _check_stages(chosen, tree, limit)
        unchanged = tree.verilog() if any(m.file.startswith("hw/") for m in chosen) else ""
        setup = Setup(Trial, (folder, covering, unchanged, limit))
        for number, answer in pool.run(Job(Trial.run, (mutant,), setup) for mutant in chosen):
            if not answer.ok:
                raise RuntimeError(f"{chosen[number]}: {answer.note}")
            yield chosen[number], answer.value


def _check_stages(chosen: list[Mutant], tree: Tree, limit: int) -> None:
    """Runs the tests that stages name, with nothing planted.

    Raises:
        RuntimeError: one of them fails; it would notice every mutant.
    """
    texts = {text for mutant in chosen for text in STAGES[_key(mutant)] if text != COVERING}
    for text in sorted(texts):
        if noticed := tree.run(_parsed(text), "", HANGS * limit + 60):
            raise RuntimeError(f"{text}: expected that all tests pass as they are, found {noticed}")


def _tell(mutant: Mutant, noticed: str | None, survivors: list[Mutant]) -> bool:
    """Prints what noticed a mutant, and keeps one that survives; whether a test killed it."""
    if noticed is None:
        survivors.append(mutant)
    place = f"{mutant.file}:{mutant.line}: {mutant.before}  →  {mutant.after}"
    print(f"{noticed or 'SURVIVED'}\n    {place}", file=sys.stderr, flush=True)
    return noticed not in (None, SAME)


def main() -> None:
    """Prints survivors as they are found, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="K", help="pass over the first K")
    parser.add_argument("--under", metavar="FOLDER", help="plant there alone, or in one file")
    parser.add_argument("--all", action="store_true", help="every mutant, in order")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of tests that run a line")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    every = pools((arguments.under,) if arguments.under else ROOMS)
    chosen = [m for pool in every for m in pool]
    if not arguments.all:
        chosen = draw(arguments.seed, arguments.count, every)
    files = {mutant.file for mutant in chosen}
    chosen = chosen[arguments.first :]
    known, killed = equivalents(), 0
    survivors: list[Mutant] = []
    tried = [mutant for mutant in chosen if mutant.key not in known]
    with ProcessPool(arguments.workers) as pool:
        for mutant, noticed in run(tried, files, pool, arguments.workers, arguments.limit):
            killed += _tell(mutant, noticed, survivors)
    survivors.sort(key=lambda mutant: (mutant.file, mutant.start))
    share = killed / max(killed + len(survivors), 1)
    equivalent = len(chosen) - killed - len(survivors)
    if arguments.json:
        print(json.dumps({"seed": arguments.seed, "count": len(chosen), "killed": killed,
                          "equivalent": equivalent, "share": share,
                          "survivors": [mutant.described() for mutant in survivors]}))  # fmt: skip
        return
    for mutant in survivors:
        print(f"survived: {mutant.file}:{mutant.line}: {mutant.before}  →  {mutant.after}")
    print(f"{killed} of {killed + len(survivors)} killed, {100 * share:.1f} %; "
          f"{equivalent} change nothing")  # fmt: skip


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"mutants: {error}")
