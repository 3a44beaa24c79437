"""A run as a timeline: one record per instruction, and the Chrome/Perfetto JSON of them.

One track per engine. LOAD and STORE are pipelined, so their instructions overlap and lie on as many
lanes as that takes. An arrow runs from the instruction that gives a token to the one that pops it.
Timestamps are cycles: what the viewer calls a microsecond is one cycle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vdla.isa.asm import format_instruction
from vdla.isa.instructions import Engine, Finish, Instruction, Load, Mem, Store
from vdla.sim.machine import Run

LANES = 100  # thread ids set aside for each engine


@dataclass(frozen=True)
class Record:
    """One instruction's stay on its engine: cycles [start, finish]."""

    index: int
    engine: Engine
    name: str
    start: int
    finish: int
    text: str
    layer: str = ""
    stage: str = ""


def records(
    run: Run, layers: Sequence[str] = (), stages: Sequence[str] = ()
) -> list[Record]:
    """A record per instruction but FINISH, in program order.

    ``layers`` and ``stages`` name what each instruction belongs to, where that is known.
    """
    return [
        Record(
            index=i,
            engine=each.engine,
            name=instruction_name(each),
            start=int(run.begun[i]),
            finish=int(run.ended[i]),
            text=format_instruction(each),
            layer=layers[i] if layers else "",
            stage=stages[i] if stages else "",
        )
        for i, each in enumerate(run.instructions)
        if not isinstance(each, Finish)
    ]


def instruction_name(instruction: Instruction) -> str:
    """The mnemonic, with the memory for LOAD and STORE."""
    if isinstance(instruction, Load | Store):
        return f"{instruction.mnemonic} {Mem(instruction.memory).name}"
    return instruction.mnemonic


def tokens(run: Run) -> list[tuple[int, int]]:
    """Every token as (index of the giver, index of the taker), queue by queue.

    Queues keep order: the n-th token given is the n-th taken.
    """
    pairs = []
    for source in Engine:
        for sink, push, pop in (
            (source.next, "push_next", "pop_prev"),
            (source.prev, "push_prev", "pop_next"),
        ):
            given = _flagged(run, source, push)
            taken = _flagged(run, sink, pop)
            pairs += list(zip(given, taken, strict=False))
    return pairs


def breakdown(run: Run) -> dict[str, dict[str, float]]:
    """Per engine the share of its cycles per cause; each engine's shares add up to 1."""
    return {
        engine: {cause: cycles / run.cycles for cause, cycles in causes.items()}
        for engine, causes in run.causes.items()
    }


def chrome_trace(
    run: Run, layers: Sequence[str] = (), stages: Sequence[str] = ()
) -> dict[str, Any]:
    """The run as Chrome's trace event format, which Perfetto opens."""
    placed = records(run, layers, stages)
    lanes = _lanes(placed)
    events = [*_names(lanes), *(_slice(r, lanes[r.index]) for r in placed)]
    events += _arrows(run, lanes)
    return {
        "traceEvents": sorted(events, key=lambda e: (e.get("ts", -1), e["ph"] != "X")),
        "displayTimeUnit": "ns",
        "metadata": {
            "time unit": "1 us of the viewer is 1 cycle",
            "config": run.config.name,
            "memory": run.config.memory.name,
            "cycles": run.cycles,
            "causes": run.causes,
        },
    }


def write_trace(
    run: Run, path: Path, layers: Sequence[str] = (), stages: Sequence[str] = ()
) -> None:
    """Writes ``chrome_trace`` as JSON, whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(chrome_trace(run, layers, stages)))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _flagged(run: Run, engine: Engine, flag: str) -> list[int]:
    return [
        i
        for i, each in enumerate(run.instructions)
        if each.engine == engine and getattr(each, flag)
    ]


def _lanes(placed: Sequence[Record]) -> dict[int, int]:
    """Instruction to thread id: the first lane of its engine that is free."""
    free: dict[Engine, list[int]] = {engine: [] for engine in Engine}
    lanes = {}
    for record in placed:
        ends = free[record.engine]
        lane = next((k for k, end in enumerate(ends) if end < record.start), len(ends))
        ends[lane:] = [record.finish, *ends[lane + 1 :]]
        lanes[record.index] = LANES * (record.engine + 1) + lane
    return lanes


def _names(lanes: dict[int, int]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "VDLA"}}
    for lane in sorted(set(lanes.values())):
        engine, k = Engine(lane // LANES - 1), lane % LANES
        name = engine.name if k == 0 else f"{engine.name} (overlapping {k})"
        yield {"ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "pid": 1, "tid": lane, "name": "thread_sort_index",
               "args": {"sort_index": lane}}


def _slice(record: Record, lane: int) -> dict[str, Any]:
    args: dict[str, Any] = {"index": record.index, "asm": record.text}
    if record.layer:
        args["layer"] = record.layer
    if record.stage:
        args["stage"] = record.stage
    return {
        "ph": "X",
        "pid": 1,
        "tid": lane,
        "ts": record.start,
        "dur": record.finish - record.start + 1,
        "name": record.name,
        "cat": record.engine.name,
        "args": args,
    }


def _arrows(run: Run, lanes: dict[int, int]) -> Iterator[dict[str, Any]]:
    """A flow per token, from the giver's last cycle to the taker's first."""
    for number, (giver, taker) in enumerate(tokens(run)):
        shared = {"pid": 1, "name": "token", "cat": "token", "id": number}
        yield {"ph": "s", "tid": lanes[giver], "ts": int(run.ended[giver]), **shared}
        yield {"ph": "f", "bp": "e", "tid": lanes[taker], "ts": int(run.begun[taker]), **shared}
