"""Events of a run: records per instruction, and a timeline for Perfetto.

The timeline is Chrome's trace format, which https://ui.perfetto.dev opens. A process is an engine,
a thread a lane of it: an engine may have several instructions in flight, and two that overlap are
drawn in two lanes. Arrows are tokens. One microsecond of the viewer is one cycle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from vdla.isa.asm import format_instruction
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash
from vdla.isa.instructions import Instruction, Load, Mem, Store
from vdla.isa.ring import Engine, Ring, TokenQueue, engines, ring_of
from vdla.sim.machine import Run
from vdla.support.files import write_bytes

Event = dict[str, Any]
Track = dict[str, int]  # pid and tid: an engine's process, and a lane of it

LAYERS = "layers"
TIME_UNIT = "ts and dur count clock cycles: what the viewer shows as 1 us is 1 cycle"


@dataclass(frozen=True)
class Record:
    """One instruction of a run.

    ``stall`` is what ended the ``stalled`` cycles before the start, in which its engine had nothing
    in flight: ``token`` when a token or a token slot came last (given by instruction
    ``waited_for``), ``fetch`` when the instruction itself did, ``drain`` for FINISH.
    """

    index: int
    engine: Engine
    start: int
    finish: int
    stall: str = ""
    stalled: int = 0
    waited_for: int | None = None


@dataclass(frozen=True)
class Token:
    """A token: instruction ``giver`` pushed it when it finished, ``taker`` popped it to start."""

    queue: TokenQueue
    giver: int
    taker: int


def tokens(ring: Ring, instructions: Sequence[Instruction]) -> list[Token]:
    """Every token that is pushed and popped; the n-th push of a queue meets its n-th pop."""
    return [token for queue in _queues(ring, instructions) for token in queue]


def records(run: Run) -> list[Record]:
    """The instructions of a run in program order, each with the stall before it."""
    ready, ring = _ready(run), ring_of(run.config)
    idle_from = dict.fromkeys(ring.engines, 0)
    times = zip(run.instructions, run.start.tolist(), run.finish.tolist(), strict=True)
    result = []
    for index, (each, start, finish) in enumerate(times):
        engine = ring.engine_of(each)
        stalled = max(start - idle_from[engine], 0)
        stall, waited_for = "", None
        if each.mnemonic == "FINISH":
            stall = "drain" if stalled else ""
        elif stalled:
            cycle, other = ready.get(index, (-1, None))
            stall, waited_for = ("token", other) if cycle == start else ("fetch", None)
        idle_from[engine] = finish + 1
        result.append(Record(index, engine, start, finish, stall, stalled, waited_for))
    return result


def trace_events(
    run: Run, layers: Sequence[str] = (), stages: Sequence[str] = ()
) -> dict[str, Any]:
    """The timeline as a JSON object; ``layers`` and ``stages`` have a name per instruction."""
    spans = [(a, b + 1) for a, b in zip(run.start.tolist(), run.finish.tolist(), strict=True)]
    tracks = _tracks(run, spans)
    slices = [_slice(run, record, tracks, layers, stages) for record in records(run)]
    passed = tokens(ring_of(run.config), run.instructions)
    arrows = chain.from_iterable(
        _arrow(token, number, spans, tracks) for number, token in enumerate(passed, 1)
    )
    timed = [*slices, *arrows, *_layer_slices(run, layers, spans)]
    timed.sort(key=lambda event: event["ts"])
    return {
        "traceEvents": [*_names(run, timed), *timed],
        "displayTimeUnit": "ms",
        "otherData": {
            "time_unit": TIME_UNIT,
            "config": run.config.name,
            "config_hash": run.config.hash,
            "isa_hash": isa_hash(run.config),
            "memory": run.config.memory.name,
            "engines": [engine.name for engine in engines(run.config)],
            "cycles": run.cycles,
        },
    }


def write_trace(
    run: Run, path: Path, *, layers: Sequence[str] = (), stages: Sequence[str] = ()
) -> None:
    """Writes the timeline to ``path``, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(trace_events(run, layers, stages), separators=(",", ":"))
    write_bytes(path, text.encode())


# Records --------------------------------------------------------------------------------------


def _queues(ring: Ring, instructions: Sequence[Instruction]) -> list[list[Token]]:
    """The tokens of each queue in the order in which they pass."""
    own: dict[Engine, list[tuple[int, Instruction]]] = {engine: [] for engine in ring.engines}
    for index, each in enumerate(instructions):
        if each.mnemonic != "FINISH":
            own[ring.engine_of(each)].append((index, each))
    result = []
    for queue in ring.token_queues:
        pushes, pops = attrgetter(queue.push), attrgetter(queue.pop)
        givers = [index for index, each in own[queue.giver] if pushes(each)]
        takers = [index for index, each in own[queue.taker] if pops(each)]
        result.append([Token(queue, g, t) for g, t in zip(givers, takers, strict=False)])
    return result


def _ready(run: Run) -> dict[int, tuple[int, int]]:
    """Per instruction the cycle its last token or slot was there in, and who gave it."""
    queues = _queues(ring_of(run.config), run.instructions)
    start, finish = run.start.tolist(), run.finish.tolist()
    given = [(t.taker, finish[t.giver] + 1, t.giver) for t in chain(*queues)]
    given += [(g, start[t] + 1, t) for g, t in _slots(run, queues)]
    ready: dict[int, tuple[int, int]] = {}
    for index, cycle, other in given:
        ready[index] = max(ready.get(index, (-1, -1)), (cycle, other))
    return ready


def _slots(run: Run, queues: Sequence[Sequence[Token]]) -> Iterator[tuple[int, int]]:
    """Pairs of an instruction that pushes and the one whose pop freed the slot it takes."""
    for queue in queues:
        for before, token in zip(queue, queue[run.config.token_queue :], strict=False):
            yield token.giver, before.taker


# Events ---------------------------------------------------------------------------------------


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each span, in order of their starts, the first lane that is free."""
    free_from: list[int] = []
    lanes = []
    for start, end in spans:
        lane = next((i for i, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[lane:] = [end, *free_from[lane + 1 :]]
        lanes.append(lane)
    return lanes


def _tracks(run: Run, spans: Sequence[tuple[int, int]]) -> list[Track]:
    """Place of each instruction's bar: process and lane."""
    ring, result = ring_of(run.config), [{"pid": 0, "tid": 0}] * len(spans)
    engine_of = [ring.engine_of(each) for each in run.instructions]
    for engine in ring.engines:
        mine = [index for index, each in enumerate(engine_of) if each == engine]
        for index, lane in zip(mine, _lanes([spans[i] for i in mine]), strict=True):
            result[index] = {"pid": _process(run.config, engine), "tid": lane + 1}
    return result


def _slice(
    run: Run, record: Record, tracks: Sequence[Track], layers: Sequence[str], stages: Sequence[str]
) -> Event:
    """The bar of one instruction."""
    index, each = record.index, run.instructions[record.index]
    details: dict[str, Any] = {"index": index, "assembly": format_instruction(each)}
    if layers:
        details["layer"] = layers[index]
    if stages:
        details["stage"] = stages[index]
    if record.stall:
        details |= {"stall": record.stall, "stalled": record.stalled}
    if record.waited_for is not None:
        details["waited_for"] = record.waited_for
    return {
        "name": _title(each),
        "cat": record.engine.name,
        "ph": "X",
        "ts": record.start,
        "dur": record.finish + 1 - record.start,
        **tracks[index],
        "args": details,
    }


def _title(instruction: Instruction) -> str:
    if isinstance(instruction, Load | Store):
        return f"{instruction.mnemonic} {Mem(instruction.memory).name}"
    return instruction.mnemonic


def _arrow(
    token: Token, number: int, spans: Sequence[tuple[int, int]], tracks: Sequence[Track]
) -> tuple[Event, Event]:
    """Both ends of one token's arrow, which ends at the bar around it, not at the next one."""
    common = {"name": "token", "cat": "token", "id": number}
    start, end = spans[token.giver][1] - 1, spans[token.taker][0]
    return (
        {**common, "ph": "s", "ts": start, **tracks[token.giver]},
        {**common, "ph": "f", "ts": end, **tracks[token.taker], "bp": "e"},
    )


def _process(config: Config, engine: Engine) -> int:
    """The number of an engine's process: its place in the ring, from 1."""
    return engines(config).index(engine) + 1


def _layer_process(config: Config) -> int:
    """The number of the process whose slices are layers."""
    return len(engines(config)) + 1


def _layer_slices(run: Run, layers: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[Event]:
    """A bar from a layer's first start to its last finish."""
    extents: dict[str, tuple[int, int]] = {}
    for layer, (start, end) in zip(layers, spans, strict=bool(layers)):
        if layer:
            first, last = extents.get(layer, (start, end))
            extents[layer] = min(first, start), max(last, end)
    ordered = sorted(extents.items(), key=lambda item: item[1])
    return [
        {
            "name": layer,
            "cat": LAYERS,
            "ph": "X",
            "ts": start,
            "dur": end - start,
            "pid": _layer_process(run.config),
            "tid": lane + 1,
        }
        for (layer, (start, end)), lane in zip(
            ordered, _lanes([span for _, span in ordered]), strict=True
        )
    ]


def _names(run: Run, events: Sequence[Event]) -> Iterator[Event]:
    """Names and order of the processes and threads that events lie on."""
    titles = {_process(run.config, engine): engine.name for engine in engines(run.config)}
    titles[_layer_process(run.config)] = LAYERS
    tracks = sorted({(event["pid"], event["tid"]) for event in events})
    for pid in sorted({pid for pid, _ in tracks}):
        yield _meta("process_name", pid, 0, name=titles[pid])
        yield _meta("process_sort_index", pid, 0, sort_index=pid)
    for pid, tid in tracks:
        title = titles[pid] if tid == 1 else f"{titles[pid]} +{tid - 1}"
        yield _meta("thread_name", pid, tid, name=title)
        yield _meta("thread_sort_index", pid, tid, sort_index=tid)


def _meta(kind: str, pid: int, tid: int, **args: Any) -> Event:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": args}
