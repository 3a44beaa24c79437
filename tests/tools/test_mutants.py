"""Mutation testing: what is planted is a real change, in the tree that the tests then see."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest
from coverage import CoverageData

from vdla.farm.processes import ProcessPool

ROOT = Path(__file__).parents[2]


SMALL = ("isa", "sim", "runtime")


@pytest.fixture(scope="module")
def planted():
    sys.path.insert(0, str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", ["isa/numbers.py", "sim/timing/load.py", "hw/alu.py"])
def test_every_mutant_is_another_program(planted, file):
    source = (ROOT / file).read_bytes()
    before = ast.dump(ast.parse(source))
    found = planted.mutants(file)
    assert len(found) > 20
    for mutant in found:
        changed = source[: mutant.start] + mutant.after.encode() + source[mutant.end :]
        assert ast.dump(ast.parse(changed)) != before, mutant
        line = source.splitlines()[mutant.line - 1].decode()
        assert source[mutant.start : mutant.end].decode().splitlines()[0] in line


@pytest.fixture(scope="module")
def pools(planted):
    """The mutants of three small rooms."""
    return planted.pools(SMALL)


def test_a_draw_is_even_and_the_same_again(planted, pools):
    chosen = planted.draw(7, 24, pools)
    assert chosen == planted.draw(7, 24, pools) != planted.draw(8, 24, pools)
    assert len({(m.file, m.start, m.after) for m in chosen}) == 24
    assert Counter(m.file.partition("/")[0] for m in chosen) == dict.fromkeys(SMALL, 8)


def test_a_draw_stays_where_sources_change_elsewhere(planted, pools):
    chosen = planted.draw(7, 100, pools)
    gone = chosen[0].file
    later = planted.draw(7, 100, [[m for m in pool if m.file != gone] for pool in pools])
    kept = [mutant for mutant in chosen if mutant.file != gone]
    assert len(kept) > 90
    assert set(later) >= set(kept)


def test_a_mutants_lines_are_those_of_its_statement(planted):
    source = (ROOT / "isa" / "numbers.py").read_text().splitlines()
    for mutant in planted.mutants("isa/numbers.py"):
        assert mutant.line in mutant.lines
        text = "\n".join(source[line - 1] for line in mutant.lines)
        assert mutant.before.split()[0].strip("([") in text


class Noted:
    """Three tests that run every line."""

    seconds: ClassVar = {"a": 1.0, "b": 2.0, "c": 3.0}

    def tests(self, file, lines):
        return ["a", "b", "c"]


@pytest.mark.parametrize(("limit", "expected"), [(10, ["a", "b", "c"]), (4, ["a", "b"]), (1, [])])
def test_the_quickest_tests_run_up_to_the_limit(planted, limit, expected):
    mutant = planted.mutants("isa/numbers.py")[0]
    found = [stage.tests for stage in planted.stages(mutant, Noted(), limit)]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("file", ["sim/timing/load.py", "hw/alu.py", "runtime/rtl/build.py"])
def test_what_runs_no_line_of_python_has_tests_of_its_own(planted, file):
    found = [*planted.stages(planted.mutants(file)[0], Noted(), 10)]
    assert len(found) > 1
    named = [test for stage in found for test in stage.tests if test.startswith("tests/")]
    assert named
    assert all((ROOT / test.partition("::")[0]).exists() for test in named)


@pytest.mark.long
def test_a_planted_fault_is_noticed(planted, tmp_path):
    """And what isn't changed passes, with the tree's own sources."""
    tree = planted.Tree(tmp_path)
    stage = planted.Stage(["tests/isa/test_numbers.py"], {})
    assert tree.run(stage, "isa/numbers.py", 240) is None
    path = tmp_path / "isa" / "numbers.py"
    path.write_text(path.read_text().replace("quotient & 1", "not quotient & 1"))
    assert "tests/isa/test_numbers.py" in tree.run(stage, "isa/numbers.py", 240)


@pytest.mark.long
def test_processes_share_the_mutants(planted, tmp_path, monkeypatch):
    """Each plants in a tree of its own, and is told what was noted before."""
    monkeypatch.setattr(planted, "NOTES", tmp_path)
    file = "isa/numbers.py"
    sources, followed = (planted.digest(ROOT, files) for files in (planted.tracked(), [file]))
    notes = tmp_path / sources / followed / "tests" / "isa"
    notes.mkdir(parents=True)
    test = "tests/isa/test_numbers.py"
    monkeypatch.setattr("covering._parts", lambda tree: {"tests/isa": [test]})
    (notes / "seconds.json").write_text(json.dumps({test: 1.0}))
    lines = CoverageData(str(notes / "lines"))
    lines.set_context(f"{test}|run")
    lines.add_lines({file: range(1, 200)})
    lines.write()
    chosen = planted.mutants(file)[:6]
    with ProcessPool(2) as pool:
        results = dict(planted.run(chosen, {file}, pool, 2, 240))
    assert set(results) == set(chosen)
    assert any(noticed and test in noticed for noticed in results.values())


def test_tests_that_run_a_line(planted, tmp_path):
    """The quickest first; what a fixture ran counts for all tests of its file."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "thing.py").write_text(
        "AT_IMPORT = 1\n\ndef quick():\n    return 1\n\ndef slow():\n    return 2\n"
    )
    (tmp_path / "tests" / "test_thing.py").write_text(
        "import time, pytest, thing\n"
        "@pytest.fixture(scope='module')\ndef two(): return thing.slow()\n"
        "def test_a(two): assert (time.sleep(0.1), two)[1] == 2\n"
        "def test_b(two): assert two == thing.quick() + 1\n"
        "def test_c(): assert (time.sleep(0.05), thing.quick())[1] == 1\n"
        "import importlib\n"
        "def test_d(): assert (time.sleep(0.3), importlib.reload(thing))[1] is thing\n"
    )
    covering = planted.Covering(tmp_path, ["thing.py"], tmp_path / "notes")
    covering.note({**os.environ, "PYTHONPATH": str(tmp_path)}, 1)
    a, b, c, d = (f"tests/test_thing.py::test_{name}" for name in "abcd")
    assert covering.tests("thing.py", range(4, 5)) == [b, c]
    assert covering.tests("thing.py", range(7, 8)) == [b, c, a, d]
    assert covering.tests("thing.py", range(1, 2)) == [b, c, a, d]  # not d alone, which reloads it
    assert covering.tests("thing.py", range(2, 3)) == []
    log = tmp_path / "notes" / "tests" / "log"
    log.unlink()
    covering.note({}, 1)  # it is known already
    assert not log.exists()
    next_tree = tmp_path / "another"
    next_tree.mkdir()
    shutil.copy(tmp_path / "thing.py", next_tree)
    elsewhere = planted.Covering(next_tree, ["thing.py"], tmp_path / "notes")
    assert elsewhere.tests("thing.py", range(7, 8)) == [b, c, a, d]


@pytest.mark.long
def test_tests_that_fail_as_they_are(planted, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_it(): assert False\n")
    covering = planted.Covering(tmp_path, ["thing.py"], tmp_path / "notes")
    with pytest.raises(RuntimeError, match=r"expected that all tests pass.*test_it.py::test_it"):
        covering.note(dict(os.environ), 1)


def test_files_that_are_spared_are_there(planted):
    spared = {each["file"] for each in planted._listed("file")}
    assert spared <= set(planted.tracked())
    assert spared.isdisjoint(mutant.file for pool in planted.pools(("sim",)) for mutant in pool)


def test_known_equivalents_are_still_there(planted):
    """A change of the line they are about makes them unknown again."""
    for key, reason in planted.equivalents().items():
        assert reason
        assert key in {mutant.key for mutant in planted.mutants(key[0])}, key
