"""Every program that a test compiles is printed, read back and compared, node by node."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace

import pytest

from vdla.compiler import build
from vdla.compiler.graph import passes
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops import Call
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.targets.accelerator import lower, target
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.tir.ir import Buffer, Evaluate, Seq, Var, seq
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import walk

seen: set[str] = set()


def difference(a, b, same=None, path="func"):
    """Where two trees differ, or None: names aside, what one variable or buffer is, the other is.

    This looks at the nodes' fields, not at their text, so that what the printer drops is found.
    """
    same = {} if same is None else same
    if isinstance(a, Var | Buffer):
        if a not in same:
            if b in same.values():
                return f"{path}: {b.name} is two things"
            same[a] = b
            if isinstance(a, Var):
                return None if a.type == b.type else f"{path}: {a.type}, {b.type}"
            kept = ("shape", "dtype", "scope", "copies", "value_range")
            found = [k for k in kept if getattr(a, k) != getattr(b, k)]
            return f"{path}: {a.name}: {', '.join(found)}" if found else None
        return None if same[a] is b else f"{path}: {a.name} is {same[a].name}, found {b.name}"
    if isinstance(a, TensorIntrin):
        return None if a is b else f"{path}: {a.name}, {b.name}"
    if isinstance(a, Seq):
        a = seq(a)  # in a text, sequences are flat
    if type(a) is not type(b):
        return f"{path}: {a!r}, {b!r}"
    if is_dataclass(a):
        pairs = [(f.name, getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]
        return differences(pairs, same, f"{path}.{type(a).__name__}")
    if isinstance(a, tuple | dict):
        if len(a) != len(b):
            return f"{path}: {len(a)} parts, {len(b)}"
        both = (
            zip(a, b, strict=True)
            if isinstance(a, tuple)
            else zip(a.items(), b.items(), strict=True)
        )
        return differences(((n, x, y) for n, (x, y) in enumerate(both)), same, path)
    return None if repr(a) == repr(b) else f"{path}: {a!r}, {b!r}"


def differences(pairs, same, path):
    found = (difference(x, y, same, f"{path}.{name}") for name, x, y in pairs)
    return next((f for f in found if f), None)


def reads_back(func):
    """The function read back from its text, which is the same function."""
    text = show(func)
    calls = {s.call.intrin for s in walk(func.body) if isinstance(s, Evaluate)}
    again = parse(text, calls, bounds=False)  # which is the program's, not the text's
    assert difference(func, again) is None, text
    assert show(again) == text
    return again


def graph_reads_back(graph, text=None):
    """The graph read back from its text and the values beside it, which is the same graph."""
    text = text or format_graph(graph)
    again = parse_graph(text, beside(graph))
    assert format_graph(again) == text
    check_same(again, graph)
    return again


def check_same(again, graph):
    """Asserts that two graphs are the same but for the order of their tensors."""
    assert list(map(repr, map(bare, again.nodes))) == list(map(repr, map(bare, graph.nodes)))
    assert (again.arguments, again.values) == (graph.arguments, graph.values)
    for one, other in zip(again.nodes, graph.nodes, strict=True):
        for pair in zip(one.regions, other.regions, strict=True):
            check_same(*pair)
    assert (again.name, again.inputs, again.outputs) == (graph.name, graph.inputs, graph.outputs)
    assert {n: repr(t) for n, t in again.tensors.items()} == {
        n: repr(graph.tensors[n]) for n in again.tensors
    }
    assert again.constants.keys() == graph.constants.keys()
    assert all(a is graph.constants[n] for n, a in again.constants.items())
    names = {n.name for n in graph.nodes}
    assert again.reasons == {n: r for n, r in graph.reasons.items() if n in names}


def bare(node):
    """A node without its regions."""
    regions = {f.name: None for f in fields(node) if isinstance(getattr(node, f.name), Graph)}
    return replace(node, **regions) if regions else node


def is_whole(graph):
    """Whether a graph may be the outermost one: it has all functions that it calls, and no output
    twice."""
    calls = (call.function for part in graph.whole() for call in part.of(Call))
    return graph.functions.keys() >= {*calls} and len({*graph.outputs}) == len(graph.outputs)


@contextmanager
def every_program_reads_back():
    """Inside, the programs of the accelerator and of the host, and graphs, after every pass."""
    patch = pytest.MonkeyPatch()

    def shown(func):
        text = show(func)
        if text not in seen:
            seen.add(text)
            reads_back(func)
        return text

    emit = llvm.emit_function

    def emitted(module, func, size):
        shown(func)
        return emit(module, func, size)

    def checked(run):
        def checking(graph, *args, **others):
            made = run(graph, *args, **others)
            result = made[0] if isinstance(made, tuple) else made
            text = format_graph(result)
            if text not in seen and is_whole(result):  # many passes change nothing
                seen.add(text)
                graph_reads_back(result, text)
            return made

        return checking

    patch.setattr(lower, "show", shown)
    patch.setattr(llvm, "emit_function", emitted)
    for home, name in ((passes, "verify"), (build, "verify"), (target, "layout"),
                       (target, "fuse_conversions")):  # fmt: skip
        patch.setattr(home, name, checked(getattr(home, name)))
    yield
    patch.undo()
