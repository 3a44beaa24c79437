"""Pipelined loops: a step's parts run beside those of the steps after it.

A step that stores on the way to its end has several parts: behind each STORE there is one. The next
part reads what was stored, so that COMPUTE would wait for STORE. In a loop noted as a ``pipeline``
the parts of other steps come between:

    step by step   a0 b0 c0 · a1 b1 c1 · a2 b2 c2 · …
    pipelined      a0 · a1 b0 · a2 b1 c0 · a3 b2 c1 · …

Noted as a pipeline ``by engine``, its steps have a part wherever another engine goes on: the sums
of a GEMM, what the ALU makes of them, the STORE. Each engine then has a step of its own at a time,
and waits for none that another one has just begun. LOADs go with what comes behind them.

Steps follow one another across the loops outside as well: what stands between two of them goes with
the last part of the one before, up to its last STORE, or with the first part of the one behind. So
the next tile begins while the one before ends. The buffers that a part leaves to the next have two
copies (``double_buffer``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.codegen.op import Op
from vdla.compiler.targets.accelerator.codegen.order import conflict
from vdla.compiler.tir.ir import For
from vdla.isa.instructions import Load, Store
from vdla.isa.ring import Engine, Ring

PIPELINE = "pipeline"  # a note on a loop
BY_ENGINE = "by engine"  # its value where parts also end where another engine goes on


class Mark(Enum):
    """Marks of a pipelined loop: where a step begins, where one of its parts ends,
    where it ends.
    """

    BEGIN = 0
    CUT = 1
    END = 2


def is_pipelined(loop: For) -> bool:
    """Whether a loop is noted as a pipeline."""
    return PIPELINE in dict(loop.annotations)


def cuts_by_engine(loop: For) -> bool:
    """Whether parts of a pipelined loop's steps also end where another engine goes on."""
    return dict(loop.annotations).get(PIPELINE) == BY_ENGINE


def by_engine(stream: Iterable[Op | Mark], ring: Ring) -> Iterator[Op | Mark]:
    """The instructions of one step, cut wherever another engine goes on."""
    loads: list[Op | Mark] = []
    last: Engine | None = None
    for each in stream:
        if not isinstance(each, Op) or isinstance(each.instruction, Load):
            loads.append(each)
            continue
        engine = ring.engine_of(each.instruction)
        if last is not None and engine != last:
            yield Mark.CUT
        yield from loads
        yield each
        loads, last = [], engine
    yield from loads


@dataclass
class _Step:
    """The instructions of a step, part by part."""

    parts: list[list[Op]] = field(default_factory=lambda: [[]])


def pipelined(stream: Iterable[Op | Mark]) -> Iterator[Op]:
    """Instructions in the order in which pipelines run them; ``stream`` is step by step.

    Raises:
        CodegenError: parts that change places need one another, since a buffer has one copy.
    """
    steps, rest = _steps(stream)
    _check(steps)
    depth = max((len(step.parts) for step in steps), default=1)
    for turn in range(len(steps) + depth - 1):
        for part in range(depth):
            if 0 <= turn - part < len(steps) and part < len(steps[turn - part].parts):
                yield from steps[turn - part].parts[part]
    yield from rest


def _steps(stream: Iterable[Op | Mark]) -> tuple[list[_Step], list[Op]]:
    """The steps, with what stands between them, and what stands behind the last."""
    steps: list[_Step] = []
    outside: list[Op] = []
    target = outside
    for each in stream:
        if isinstance(each, Op):
            target.append(each)
        elif each is Mark.BEGIN:
            after, before = _divided(outside) if steps else ([], outside)
            if steps:
                steps[-1].parts[-1] += after
            steps.append(_Step([[*before]]))
            target = steps[-1].parts[0]
        elif each is Mark.CUT:
            steps[-1].parts.append([])
            target = steps[-1].parts[-1]
        else:
            if not steps[-1].parts[-1]:
                steps[-1].parts.pop()
            outside = []
            target = outside
    return steps, outside


def _divided(ops: list[Op]) -> tuple[list[Op], list[Op]]:
    """Instructions that belong to the step before, and those that belong to the one behind."""
    stores = [i for i, op in enumerate(ops) if isinstance(op.instruction, Store)]
    end = stores[-1] + 1 if stores else 0
    return ops[:end], ops[end:]


def _check(steps: list[_Step]) -> None:
    """Raises where a part needs what runs before it only now."""
    depth = max((len(step.parts) for step in steps), default=1)
    for number, before in enumerate(steps):
        for apart, after in enumerate(steps[number + 1 : number + depth], 1):
            for late in range(apart, len(before.parts)):
                for early in after.parts[: late - apart + 1]:
                    _check_parts(before.parts[late], early)


def _check_parts(late: list[Op], early: list[Op]) -> None:
    for a in late:
        for b in early:
            if conflict(a, b):
                raise CodegenError(
                    f"{b.name}: expected buffers with a copy for each of two steps, since {a.name} "
                    "of a step before runs later; double_buffer what a step leaves to its end"
                )
