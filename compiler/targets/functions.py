"""Functions of all targets: names, digests, codes, and schedules that were tuned."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count

from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.spec import unfused
from vdla.compiler.graph.types import Array
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.target import Code
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.printer import show

Functions = Mapping[str, NodeFunction]  # by the nodes' names
FunctionCodes = Mapping[str, Code[PrimFunc]]
Traces = Callable[[str], Sequence[Step] | None]  # the tuned schedule by a function's digest


def untuned(digest: str) -> None:
    """No tuned schedule for any function."""


def symbol_of(prefix: str, node: Node) -> str:
    """A node's name as C and linkers take it, behind a prefix."""
    return prefix + re.sub(r"\W", "_", node.name, flags=re.ASCII)


def digest_of(func: PrimFunc) -> str:
    """Sixteen hex digits of a function's text less its name: equal ones can be scheduled alike."""
    text = show(replace(func, name=""))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replayed(
    schedule: Schedule,
    trace: Sequence[Step] | None,
    intrinsics: Mapping[str, TensorIntrin] | None = None,
) -> bool:
    """Schedules as a trace says.

    Returns:
        False where there is no trace, or one whose primitives aren't today's; the schedule is then
        of no use any more.
    """
    if trace is None:
        return False
    try:
        schedule.replay(list(trace), intrinsics or {})
    except ScheduleError:
        return False
    return True


# Codes of functions ------------------------------------------------------------------------------


def codes_of(functions: Functions, graph: Graph) -> dict[str, Code[PrimFunc]]:
    """Functions of a graph's nodes as their codes."""
    nodes = {node.name: node for node in graph.nodes}
    return {
        name: Code(
            made.func,
            made.args,
            constants_read(made.args, made.constants, graph),
            _work_of(nodes[name], graph),
        )
        for name, made in functions.items()
    }


def told_apart(codes: FunctionCodes) -> dict[str, Code[PrimFunc]]:
    """The codes, with a name of its own for each function: graphs that are compiled by themselves
    may have given one to two."""
    named: dict[int, PrimFunc] = {}
    taken: set[str] = set()
    for func in (code.program for code in codes.values()):
        if id(func) not in named:
            tried = chain((func.name,), (f"{func.name}_{n}" for n in count(len(named))))
            name = next(name for name in tried if name not in taken)
            taken.add(name)
            named[id(func)] = func if name == func.name else replace(func, name=name)
    return {node: replace(code, program=named[id(code.program)]) for node, code in codes.items()}


def constants_read(args: Sequence[str], own: Mapping[str, Array], graph: Graph) -> dict[str, Array]:
    """Constants among the tensors that a code gets: its own, and those of the graph."""
    known = (name for name in args if name in own or name in graph.constants)
    return {name: own[name] if name in own else graph.constants[name] for name in known}


def _work_of(node: Node, graph: Graph) -> int:
    """Number of operations that a node takes."""
    return sum(
        part.work([graph.tensors[n].shape for n in part.inputs], graph.tensors[part.output].shape)
        for part in unfused([node])
    )
