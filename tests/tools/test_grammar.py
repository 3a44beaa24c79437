"""The grammar of graphs has every operator once; an operator of no family is refused."""

from __future__ import annotations

import re

import pytest
from scripts import load_script

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import BY_OP, Node


@pytest.fixture(scope="module")
def grammar():
    return load_script("tools/grammar.py")


@pytest.fixture(scope="module")
def rules(grammar):
    """The names on the right of each rule by the name on its left."""
    joined = "\n".join(line.rstrip() for line in grammar.rules())
    found = re.findall(r"^    (\w+) +:= (.*(?:\n +\| .*)*)", joined, re.MULTILINE)
    return {name: re.findall(r"\w+", right) for name, right in found}


def test_every_operator_is_there_once(grammar, rules):
    operators = [name for family in grammar.FAMILIES for name in rules[family.name]]
    package = f"{ops.__name__}."
    assert sorted(operators) == sorted(
        name for name, kind in BY_OP.items() if kind.__module__.startswith(package)
    )


def test_every_family_has_operators(grammar, rules):
    assert list(rules) == ["Node", *(family.name for family in grammar.FAMILIES), "Step"]
    assert all(rules.values())


def test_lines_fit(grammar):
    assert max(len(line) for line in grammar.rules()) <= grammar.COLUMNS


def test_an_operator_of_no_family_is_refused(grammar):
    class Nothing(Node, operator=False):
        READS = WRITES = frozenset({"int64"})

    with pytest.raises(SystemExit, match="Nothing: expected an operator that fits a family of "):
        grammar.family_of(Nothing)
