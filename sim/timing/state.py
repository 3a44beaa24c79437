"""The state of the machine, by name: one part per unit, and who writes it.

A function of the cycle loop gets the whole machine as ``m``, and as ``t`` the tables, whose length
depends on the program or on a buffer. Where it works for two pipelines, it gets the one of them as
``p``. It reads what it likes: ``m.load.consumed``, ``m.engines.started[engine]``,
``t.rows[row, column]``. It writes what belongs to its file alone: the parts and the tables that
``OWNERS`` and ``PIPELINE_OWNERS`` give it. What it wants of another unit it asks of a function
there: ``accept_read`` in ``memory.py``, ``start`` in ``engines.py``, ``stop`` in ``fault.py``.

The order in which the units step within a cycle makes most writes visible in the next cycle only.
Where no order can, fields come in pairs: everybody reads the plain name, and ``…_next`` collects
what becomes visible in the next cycle.

A *row* is the index of an instruction in the program, a *ring* an array of slots between a ``head``
and a ``tail`` that count on for ever; a slot is such a number modulo ``RING``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.encoding import fetch_buffer_beats, instruction_beats
from vdla.isa.instructions import SIDES, Alu, AluOp, Gemm, Mem, stored_memories
from vdla.isa.options.lanes import store_groups
from vdla.isa.ring import Engine, numbered, ring_of
from vdla.sim.stream import Bytes, Rows, Stream, token_queues, uop_layout
from vdla.sim.timing.constants import CAUSES, WRITE_BACK, WRITE_BUFFER_VECTORS
from vdla.sim.timing.memory_state import NEVER, NONE, RING, Controller, Dram, Memory, Ring
from vdla.sim.timing.part import Part

__all__ = ["NEVER", "NONE", "RING", "Machine", "Pipeline", "Tables", "reset"]

_MEMORIES = tuple(memory.name.lower() for memory in Mem)

ENGINES = len(Engine)  # numbers of engines; a config may lack some
QUEUES = ENGINES * len(SIDES)  # as many token queues as there may be
PerEngine = Annotated[Rows, (ENGINES,)]
PerQueue = Annotated[Rows, (QUEUES,)]  # as ``Ring.token_queues`` numbers them
PerSide = Annotated[Rows, (ENGINES, len(SIDES))]
PerMemory = Annotated[Rows, (len(Mem),)]  # as ``Mem`` numbers them
PerOperation = Annotated[Rows, (len(AluOp),)]


class Added(Part):
    """Fields that options add, whose names the host doesn't know."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class OptionSettings(Added):
    """Settings of options."""


class OptionPorts(Added):
    """Reads and writes that an option's part of a pipeline has under way."""


class OptionUnits(Added):
    """The state of units that options add."""


class Settings(Part):
    """Settings constant in a run: the config in beats and cycles, and what was asked for."""

    # The port and the memory behind it.
    port_bytes: int
    latency: int
    beat_cycles: int  # from one beat on the bus to the next
    burst_beats: int
    dram: Dram  # if the memory has banks
    dram_pages: int
    error_from: int  # beats at addresses from here
    error_to: int  # up to here bear errors

    # Limits and depths.
    reads_in_flight: int
    read_buffer_beats: int
    writes_in_flight: int
    command_queue: int
    fetch_buffer_beats: int
    instruction_beats: int
    entry_beats: PerMemory
    entry_steps: PerMemory  # cycles in which LOAD writes an entry from DRAM
    entry_results: PerMemory  # that it writes one a cycle; 0: it writes beats, as they come
    entries: PerMemory
    uops: int  # that the UOP buffer holds
    serial_cycles: PerOperation  # in which READ holds, while it is computed
    store_groups: int  # of lanes, that make a requantized beat
    inp_bytes: int
    pops: PerSide  # the token queue that an engine pops at a side
    pushes: PerSide  # the one that it pushes to

    # Options.
    options: OptionSettings  # in front of a bool: numpy forgets that records are aligned
    stores_on_chip: bool  # a STORE may name more memories than ACC and ACC8
    serial: bool  # READ holds for some operations

    # The run.
    instructions: int
    stepped: bool  # pass over no cycle
    until: int = NEVER  # the cycle to stop in


class FirstFault(Part):
    """The first fault of this cycle."""

    cause: int  # 0: none
    row: int  # of the instruction it belongs to


class Fetch(Part):
    """Fetch: what is still to request, and how far it came."""

    address: int
    left: int  # beats still to request
    requested: int  # beats
    dispatched: int  # instructions
    shown: int  # instructions whose beats had all arrived a cycle ago


class Engines(Part):
    """Counts that all engines have: instructions counted, cycles by cause."""

    issued: PerEngine  # to its queue
    issued_next: PerEngine
    shown: PerEngine  # of these, those that have left the queue's memory: they may start
    started: PerEngine
    finished: PerEngine
    cause: PerEngine  # of this cycle
    causes: Annotated[Rows, (ENGINES, len(CAUSES))]  # cycles so far


class Tokens(Part):
    """The token queues: ``Settings`` has which of them an engine pops and pushes to."""

    available: PerQueue
    available_next: PerQueue
    free: PerQueue  # slots neither filled nor reserved
    free_next: PerQueue
    moved: int  # 1: something is popped or pushed in this cycle


class Runs(Part):
    """LOAD's runs: the instruction that offers them, and the one that is offered."""

    row: int = NONE
    z: int
    y: int
    x: int


class Request(Part):
    """LOAD's run that is being requested: its instruction, if any, and the beats left of it."""

    row: int = NONE
    address: int
    left: int


class Write(Part):
    """LOAD's write side: the place in the oldest unfinished instruction's tile."""

    z: int
    y: int
    x: int
    step: int  # beats taken, or results written, of the entry there
    entry: int  # entries written


class Load(Part):
    """LOAD: both sides, and the beats between them."""

    runs: Runs
    request: Request
    requested: int  # beats
    consumed: int  # beats
    write: Write


class Nest(Part):
    """A loop nest: where it stands in the instruction that issues."""

    row: int = NONE
    i0: int
    i1: int
    i2: int
    u: int  # micro-op of the iteration
    index: int  # micro-ops issued
    checked: bool  # whether any micro-op might go beyond a buffer, so that each needs a look


class Stage(Part):
    """A micro-op in a stage of a front end."""

    row: int = NONE
    dst: int
    src: int
    first: bool
    last: bool
    null: bool  # a bubble: the instruction has no micro-ops
    beyond: bool  # something it reads or writes lies beyond its buffer
    chained: bool  # it accumulates into what the micro-op a cycle before it writes; from LOOK on


class Leaving(Part):
    """Instructions whose last micro-op is past READ: a ring."""

    head: int
    tail: int
    at: Ring  # the cycle of that micro-op's write


class Pipeline(Part):
    """An engine of micro-ops: its loop nest, the stages in front, and the ports of ACC as the back
    end uses them."""

    nest: Nest
    f1: Stage
    f2: Stage
    look: Stage  # of GEMM alone
    read: Stage
    last_dst: int = NONE  # of the micro-op that was read last
    last_read_at: int = -WRITE_BACK - 1
    late_reads: int  # bit n: a late read of ACC n cycles from now
    writes: int  # bit n: a write of ACC n cycles from now
    serial_until: int  # the cycle from which READ has what units compute; 0: they haven't begun
    leaving: Leaving
    options: OptionPorts


class Bulk(Part):
    """The middle of a GEMM that is passed over."""

    index: int  # of the micro-op in READ when it began
    since: int  # the cycle in which it began
    until: int  # the cycle in which it ends; 0: nothing is passed over


class Reader(Part):
    """STORE's reader: the instruction, the vector it is at."""

    row: int = NONE
    scale_due: bool  # the scales of the plane come first
    z: int
    y: int
    x: int
    next_read: int  # the cycle of the next read, at the earliest


class Requantizer(Part):
    """Vectors on their way into the write buffer: a ring of those to come, and one that enters."""

    head: int
    tail: int
    at: Ring  # the cycle of a vector's first beat, at the earliest
    steps: Ring
    per_beat: Ring  # steps of each of its beats
    left: int  # steps of the one that enters, whose slot is:
    slot: int


class Bursts(Part):
    """STORE's burst side: the place in the oldest instruction that has something to send."""

    z: int
    y: int
    x: int
    address: int  # of the next beat
    run_left: int  # beats of the run; 0: the next one is to be worked out
    left: int  # beats of the burst; 0: the next beat opens one
    bad: bool  # whether a beat of the burst bore an error
    opened: int  # bursts, in all
    sent: int  # instructions sent to their last beat
    target: Ring  # per instruction, how many answers it finishes with


class Store(Part):
    """STORE: reader, requantizer, write buffer, burst side."""

    reader: Reader
    requantizer: Requantizer
    credit: int  # beats that the reader may still read
    level: int  # beats in the write buffer
    bursts: Bursts


class Machine(Part):
    """The state of every unit.

    It is one record, and not one per unit, because the compiler then knows every field's distance
    from every other: the loop was a twentieth slower with an argument per unit.
    """

    settings: Settings
    memory: Memory
    controller: Controller
    fetch: Fetch
    engines: Engines
    tokens: Tokens
    load: Load
    compute: Pipeline
    bulk: Bulk
    alu: Pipeline  # of ALU, where it has an engine of its own
    store: Store
    options: OptionUnits
    fault: FirstFault


class Variant(NamedTuple):
    """Part of the config that numba knows when it compiles the cycle loop.

    Its type says it: how long a tuple is, and whether a field is None. So a config in which GEMM
    and ALU share an engine has a loop of its own, without the parts of a second one and with the
    fewest turns. Options that cost a cycle next to nothing are ``Settings``: each None doubles the
    loops that ship.
    """

    engines: tuple[int, ...]  # the numbers from 0 to the last engine's
    sides: tuple[int, ...]  # those of an engine
    queues: tuple[int, ...]  # the token queues
    own_alu: bool | None  # ALU has an engine of its own
    banks: bool | None  # the memory has banks


class Tables(NamedTuple):
    """Tables that are as long as the program or a buffer."""

    rows: Rows  # [instruction, field]
    order: Rows  # [engine, n] the row of its n-th instruction
    engine_of: Rows  # [opcode]
    dram: Bytes
    uop_layout: Rows
    uop_raw: Bytes  # the UOP buffer
    uops: Rows  # [micro-op] its first, dst, src, wgt
    most: Rows  # the greatest of each of these in any micro-op so far
    visible: Rows  # [ACC entry] the cycle from which an early read sees it
    start: Rows  # [row] the cycle of its start, -1: never
    finish: Rows  # [row] the cycle of its finish
    variant: Variant


# Whose functions write a part or a table while the machine runs; what isn't here stays as it is.
# What options add is written by the option's file.
OWNERS = {
    "memory": "memory.py",
    "controller": "banks.py",
    "fetch": "fetch.py",
    "engines": "engines.py",
    "start": "engines.py",
    "finish": "engines.py",
    "tokens": "tokens.py",
    "load": "load.py",
    "uop_raw": "nest.py",
    "uops": "nest.py",
    "most": "nest.py",
    "bulk": "compute.py",
    "visible": "pipeline.py",
    "store": "store.py",
    "fault": "fault.py",
}
# The same of the parts of a Pipeline, which functions get as ``p``: COMPUTE's or ALU's.
PIPELINE_OWNERS = {
    name: "nest.py" if name == "nest" else "pipeline.py"
    for name in Pipeline.__annotations__ if name != "options"
}  # fmt: skip

SetUp = Callable[[Settings, Config], None]
SET_UPS: list[SetUp] = []  # of options: each fills its own settings


def sets_up(function: SetUp) -> SetUp:
    """Has an option's settings filled by a function, whenever the machine is reset."""
    SET_UPS.append(function)
    return function


def reset(stream: Stream, dram: Bytes) -> tuple[Machine, Tables]:
    """The machine after reset, in front of a program."""
    config, n = stream.config, len(stream.instructions)
    m = Machine.reset()
    _set_up(m.settings, stream, dram)
    m.fetch.address = stream.base
    m.fetch.left = n * m.settings.instruction_beats
    m.controller.next_due = m.settings.dram.refresh_interval
    m.tokens.free[:] = m.tokens.free_next[:] = config.token_queue
    m.store.credit = WRITE_BUFFER_VECTORS * m.settings.entry_beats[Mem.ACC]
    return m, Tables(
        rows=stream.rows,
        order=stream.order,
        engine_of=stream.engine_of,
        dram=np.require(dram, requirements=("C", "A", "W")),  # a copy of one that is read-only
        uop_layout=uop_layout(config),
        uop_raw=np.zeros((config.depth("uop"), config.entry("uop")), np.uint8),
        uops=np.zeros((config.uop_depth, 4), np.int64),
        most=np.zeros(4, np.int64),
        visible=np.zeros(config.depth("acc"), np.int64),
        start=np.full(n, -1, np.int64),
        finish=np.full(n, -1, np.int64),
        variant=_variant(config),
    )


def _variant(config: Config) -> Variant:
    ring = ring_of(config)
    return Variant(
        engines=tuple(range(numbered(config)[-1] + 1)),
        sides=tuple(range(len(ring.sides))),
        queues=tuple(range(len(ring.token_queues))),
        own_alu=True if ring.executor[Alu] != ring.executor[Gemm] else None,
        banks=True if config.memory.banks else None,
    )


def _set_up(settings: Settings, stream: Stream, dram: Bytes) -> None:
    config, port = stream.config, stream.config.port_bytes
    settings.port_bytes = port
    settings.latency = config.memory.latency
    settings.beat_cycles = -(-port // config.memory.bytes_per_cycle)
    if banks := config.memory.banks:
        for name in Dram.__annotations__:
            setattr(settings.dram, name, getattr(banks, name))
    settings.burst_beats = config.burst_beats
    settings.dram_pages = -(-dram.size // PAGE_BYTES)
    settings.reads_in_flight = config.reads_in_flight
    settings.read_buffer_beats = config.read_buffer_beats
    settings.writes_in_flight = config.writes_in_flight
    settings.command_queue = config.command_queue
    settings.instruction_beats = instruction_beats(config)
    settings.fetch_buffer_beats = fetch_buffer_beats(config)
    settings.entry_beats[:] = [config.entry(name) // port for name in _MEMORIES]
    settings.entry_results[:] = [memory.results(config) for memory in Mem]
    settings.entry_steps[:] = np.maximum(settings.entry_beats, settings.entry_results)
    settings.inp_bytes = config.depth("inp") * config.inp_entry
    settings.entries[:] = [config.depth(name) for name in _MEMORIES]
    settings.uops = config.uop_depth
    settings.store_groups = store_groups(config)
    settings.stores_on_chip = len(stored_memories(config)) > len((Mem.ACC, Mem.ACC8))
    for set_up in SET_UPS:
        set_up(settings, config)
    settings.serial = bool(settings.serial_cycles.any())
    settings.pops[:] = token_queues(config, "pop")
    settings.pushes[:] = token_queues(config, "push")
    settings.instructions = len(stream.instructions)
