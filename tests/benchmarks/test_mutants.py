"""Mutation testing: what is planted is a real change, in the tree that the tests then see."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def planted():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "benchmarks" / "mutants.py")
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


def test_a_draw_is_even_and_the_same_again(planted):
    chosen = planted.draw(7, 25, planted.ROOMS)
    assert chosen == planted.draw(7, 25, planted.ROOMS) != planted.draw(8, 25, planted.ROOMS)
    assert len({(m.file, m.start, m.after) for m in chosen}) == 25
    assert Counter(m.file.partition("/")[0] for m in chosen) == dict.fromkeys(planted.ROOMS, 5)


def test_every_source_has_tests(planted):
    for file in planted.tracked():
        room = file.partition("/")[0]
        if room in planted.ROOMS and file.endswith(".py") and planted.mutants(file):
            found = planted.stages(file, ROOT)
            assert found, file
            named = [word for stage in found for word in stage if word.startswith("tests/")]
            assert all((ROOT / word.partition("::")[0]).exists() for word in named)


def test_a_planted_fault_is_noticed(planted, tmp_path):
    """And what isn't changed passes, with the tree's own sources."""
    tree = planted.Tree(tmp_path, 240)
    tests = ["tests/isa/test_numbers.py"]
    assert tree.run(tests, "isa") is None
    path = tmp_path / "isa" / "numbers.py"
    path.write_text(path.read_text().replace("quotient & 1", "not quotient & 1"))
    assert "tests/isa/test_numbers.py" in tree.run(tests, "isa")


def test_known_equivalents_are_still_there(planted):
    """A change of the line they are about makes them unknown again."""
    for key, reason in planted.equivalents().items():
        assert reason
        assert key in {mutant.key for mutant in planted.mutants(key[0])}, key
