"""The simulator's named state: how its parts are laid out, and that each has one writer."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import numba
import numpy as np
import pytest

from vdla.isa.config import load_config
from vdla.isa.instructions import Finish
from vdla.sim import options
from vdla.sim.stream import Rows, Stream
from vdla.sim.timing import machine, state
from vdla.sim.timing.part import Part

FILES = sorted(Path(machine.__file__).parent.glob("*.py"))
OPTION_FILES = sorted(Path(options.__file__).parent.glob("*.py"))
PARTS, TABLES = state.Machine.__annotations__, state.Tables._fields
PIPELINE = state.Pipeline.__annotations__
KNOWN = {"m": PARTS, "t": TABLES, "p": PIPELINE}


# Who writes what --------------------------------------------------------------------------------


def violations(file, source):
    """What a file of the cycle loop writes and doesn't own: line and target."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or not is_compiled(function):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                parameter, name = root(node)
                known = name in KNOWN.get(parameter, ())
                owners = state.PIPELINE_OWNERS if parameter == "p" else state.OWNERS
                if not known or owners.get(name) != file:
                    found.append((node.lineno, ast.unparse(node)))
    return found


def is_compiled(function):
    names = {ast.unparse(each).partition("(")[0] for each in function.decorator_list}
    added = any(name.endswith((".add", ".on")) for name in names)
    return added or bool(names & {"compiled", "inline", "shared"})


def root(node):
    """``m`` and ``load`` of ``m.load.write.z`` or of ``m.load.some[slot]``."""
    name = ""
    while isinstance(node, ast.Attribute | ast.Subscript):
        name = node.attr if isinstance(node, ast.Attribute) else name
        node = node.value
    return getattr(node, "id", ""), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_unit_writes_its_own_part_only(path):
    assert violations(path.name, path.read_text()) == []


@pytest.mark.parametrize("path", OPTION_FILES, ids=lambda path: path.name)
def test_an_option_writes_what_it_adds_only(path):
    """What is a host's the option asks of a function there."""
    written = [text for _, text in violations(path.name, path.read_text())]
    machine_state = [text for text in written if text.startswith(("m.", "t.", "p."))]
    assert [text for text in machine_state if ".options." not in text] == []


@pytest.mark.parametrize(
    "line",
    [
        "m.store.level += 1",
        "m.store.bursts.target[0] = 1",
        "m.load.consumed, m.memory.bus_free = 1, 2",
        "m.settings.latency = 0",
        "t.finish[0] = now",
        "t.rows[0, 0] = 1",
        "mine = m.load.request; mine.left = 0",
        "arrived = m.memory.arrived; arrived[0] = 0",
        "m.unheard = 1",
        "p.nest.index = 0",
        "p.unheard = 0",
    ],
)
def test_a_write_of_anything_else_is_found(line):
    source = Path(machine.__file__).with_name("load.py").read_text()
    planted = f"{source}\n\n@inline\ndef _planted(m, t, now):\n    {line}\n"
    (found,) = violations("load.py", planted)
    assert found[0] == len(planted.splitlines())


def test_everything_that_is_owned_is_there_and_written():
    assert set(state.OWNERS) <= {*PARTS, *TABLES}
    for name, file in state.OWNERS.items():
        source = next(path for path in FILES if path.name == file).read_text()
        assert f"m.{name}." in source or f"t.{name}" in source
    assert set(state.PIPELINE_OWNERS) == set(PIPELINE) - {"options"}
    for name, file in state.PIPELINE_OWNERS.items():
        source = next(path for path in FILES if path.name == file).read_text()
        assert f"p.{name}" in source


# How parts are laid out -------------------------------------------------------------------------


class Inner(Part):
    row: int = -1
    flag: bool


class Outer(Part):
    count: int = 7
    inner: Inner
    some: Annotated[Rows, (2, 3)]


def change(outer):
    outer.count += outer.inner.row
    outer.inner.row = 5
    outer.inner.flag = not outer.inner.flag
    outer.some[1, 2] += 4


@pytest.mark.parametrize("run", [change, numba.njit(change)], ids=["Python", "numba"])
def test_fields_are_read_and_written_by_name(run):
    outer, untouched = Outer.reset(), Outer.reset()
    assert (outer.count, outer.inner.row, outer.inner.flag) == (7, -1, False)
    assert not outer.some.any()
    run(outer)
    run(outer)
    assert (outer.count, outer.inner.row, outer.inner.flag) == (11, 5, False)
    np.testing.assert_array_equal(outer.some, [[0, 0, 0], [0, 0, 8]])
    assert (untouched.count, untouched.inner.row, untouched.some.sum()) == (7, -1, 0)


def test_there_are_no_other_names():
    with pytest.raises(AttributeError):
        Outer.reset().total  # noqa: B018
    with pytest.raises(AttributeError):
        Outer.reset().total = 1


def test_names_of_numpys_own_are_refused():
    with pytest.raises(TypeError, match="Bad: numpy's records use size themselves"):

        class Bad(Part):
            size: int


def test_every_field_is_an_aligned_word_or_a_byte():
    """So no access of the compiled loop needs more than one load."""

    def check(layout, at=0):
        for kind, offset in (layout.fields[name][:2] for name in layout.names):
            if kind.names:
                check(kind, at + offset)
            else:
                assert kind.base in (np.int64, np.bool_)
                assert (at + offset) % kind.base.itemsize == 0

    check(state.Machine.layout())


# What numba knows when it compiles ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "counts", "on"),
    [
        ([], (3, 2, 6), set()),
        (["forwarding=1"], (3, 2, 6), set()),
        (["vector_engine=1", "table_bytes=512"], (4, 3, 12), {"own_alu"}),
    ],
)
def test_a_loop_is_compiled_for_what_the_config_has(settings, counts, on):
    """How long the tuples are and which options are None is in the type of the tables."""
    stream = Stream.of(load_config("tiny", settings), [Finish()])
    variant = state.reset(stream, np.zeros(4096, np.uint8))[1].variant
    engines, sides, queues, *options = variant._fields
    assert tuple(len(getattr(variant, name)) for name in (engines, sides, queues)) == counts
    assert {name for name in options if getattr(variant, name) is not None} == on
    assert str(numba.typeof(variant)).count("none") == len(options) - len(on)
