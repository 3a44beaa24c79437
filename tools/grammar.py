"""The rules of operators in the grammar of ``compiler/graph/ir.py``, for ``tools/pages.py``.

A family takes the operators whose classes fit its rule and that no family before it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import BY_OP, IntegerNode, Node
from vdla.runtime.dtypes import STORED

PATH = "compiler/graph/ir.py"
ROOT = Path(__file__).parent.parent
BEGIN = """\
Operators, each in the first family that takes it, as their classes in ``ops`` say, and steps of
an operator's epilogue; ``python tools/pages.py`` writes these rules::

"""
END = "\nEvery node writes one tensor"
FLOATS = frozenset({"float16", "float32", "float64"})
WIDE = frozenset({"int8", "uint8", "int32"})
NAMES, COLUMNS = 10, 100  # the widths of names and of lines


class Family(NamedTuple):
    """Operators of one kind: a name, a meaning for people, and the rule that its classes fit."""

    name: str
    meaning: str
    fits: Callable[[type[Node]], bool]


def element_types(kind: type[Node]) -> frozenset[str]:
    """The element types of an operator's data and of its result."""
    return kind.READS | kind.WRITES


FAMILIES = (
    Family("Control", "choices, loops and calls, which hold graphs or name one",
           lambda kind: issubclass(kind, ops.Control)),
    Family("Conversion", "where integers begin or end: numbers, or how they lie in memory",
           lambda kind: bool(kind.CONVERTS)),
    Family("View", "the same bytes at other addresses",
           lambda kind: issubclass(kind, ops.ByAddresses)),
    Family("Integer", "from int8 to int8", lambda kind: issubclass(kind, IntegerNode)),
    Family("Wide", "among integers of 8 and of 32 bits", lambda kind: element_types(kind) <= WIDE),
    Family("Row", "several in a row as one function", lambda kind: issubclass(kind, ops.Fused)),
    Family("Foreign", "onnxruntime's, or brought by users",
           lambda kind: issubclass(kind, ops.Foreign)),
    Family("Stored", "from or to a type in which nothing is computed",
           lambda kind: bool(element_types(kind) & {*STORED})),
    Family("Float", "floats alone", lambda kind: element_types(kind) <= FLOATS),
    Family("General", "floats, and integers too", lambda kind: bool(kind.READS & FLOATS)),
)  # fmt: skip


def family_of(kind: type[Node]) -> Family:
    """The first family that takes an operator."""
    for family in FAMILIES:
        if family.fits(kind):
            return family
    raise SystemExit(f"{kind.__name__}: expected an operator that fits a family of {__file__}")


def graph_grammar() -> str:
    """The file of the graph with its operators in their families."""
    before, begin, rest = (ROOT / PATH).read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PATH}: expected rules between {BEGIN!r} and {END!r}")
    return before + begin + "\n".join(rules()) + "\n" + end + after


def rules() -> Iterator[str]:
    """The lines of all rules: the families, the operators of each, the steps of epilogues."""
    for sign, family in zip_longest([":="], FAMILIES, fillvalue="|"):
        head = "Node" if sign == ":=" else ""
        yield f"    {head:{NAMES}} {sign:>2} {family.name:{NAMES + 2}} {family.meaning}"
    kinds = [kind for kind in BY_OP.values() if kind.__module__.startswith(f"{ops.__name__}.")]
    for family in FAMILIES:
        yield from rule(family.name, [kind for kind in kinds if family_of(kind) is family])
    yield from rule("Step", ops.Step.__subclasses__())


def rule(name: str, kinds: Sequence[type]) -> Iterator[str]:
    """The lines of a rule: classes, in the order of their names."""
    names = " |_".join(sorted(kind.__name__ for kind in kinds))  # a line begins with its bar
    first, others = f"    {name:{NAMES}} := ", " " * (NAMES + 6)
    for line in wrap(names, COLUMNS, initial_indent=first, subsequent_indent=others):
        yield line.replace("|_", "| ")
