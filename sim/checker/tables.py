"""Tables of one program, which the compiled pass works on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.isa.instructions import (
    Load,
    Mem,
    Store,
    instruction_bytes,
)
from vdla.isa.ring import Engine
from vdla.sim.checker.footprint import (
    dram_ends,
    load_footprint,
    rows_of,
    store_footprint,
)
from vdla.sim.stream import Bytes, Rows, Stream, uop_layout

LIMIT = 200  # raw findings that are kept

Numbers = NDArray[np.int32]
Mask = NDArray[np.bool_]

BUFFERS = tuple(dict.fromkeys(each.buffer for each in Mem))
INP, WGT, ACC, UOP = range(4)  # memories, as the tables number them
DRAM = len(BUFFERS)
MEMORIES = (*(each.upper() for each in BUFFERS), "DRAM")
CONFLICT, INDEX_RANGE, UOP_RANGE, COMPUTED, STREAM = range(5)  # kinds of raw findings
READ, WRITE = 0, 1


class Tables(NamedTuple):
    """Tables that the compiled pass works on. Instructions of an engine are numbered from 1."""

    rows: Rows
    sound: Mask
    dram: Bytes
    uop_raw: Bytes
    uop_layout: Rows
    uops: Rows
    depth: Rows  # [memory] entries; for DRAM the bytes of a port word
    offset: Rows  # [memory] where its entries lie in ``read`` and ``written``
    beats: Rows  # [Mem] port words of an entry
    stream_words: Rows  # first and last + 1 port word that fetch reads
    read: Rows  # [engine, entry] its last instruction that read the entry
    written: Rows
    dram_read: Numbers  # [port word] the last LOAD that read it
    dram_written: Numbers
    clock: Rows  # [engine] instructions that finished before the current one starts
    findings: (
        Rows  # kind, instruction, other engine, its number, memory, entry, accesses; last: count
    )


def make_tables(stream: Stream, dram: Bytes, sound: Mask) -> Tables:
    """The tables of a program that hasn't run; arguments as in ``execute``."""
    config = stream.config
    depths = [config.depth(each) for each in BUFFERS]
    words = _dram_end(stream, sound) // config.port_bytes + 1
    size = instruction_bytes(config) * len(stream.instructions)
    ends = np.array([stream.base, stream.base + size], np.int64) // config.port_bytes
    return Tables(
        rows=stream.rows,
        sound=sound,
        dram=np.require(dram, requirements=("C", "A", "W")),  # a copy of one that is read-only
        uop_raw=np.zeros((config.depth("uop"), config.entry("uop")), np.uint8),
        uop_layout=uop_layout(config),
        uops=np.zeros((config.uop_depth, 4), np.int64),
        depth=np.array([*depths, config.port_bytes], np.int64),
        offset=np.cumsum([0, *depths]),
        beats=np.array([config.entry(each.name.lower()) // config.port_bytes for each in Mem]),
        stream_words=ends,
        read=np.zeros((len(Engine), sum(depths)), np.int64),
        written=np.zeros((len(Engine), sum(depths)), np.int64),
        dram_read=np.zeros(words, np.int32),
        dram_written=np.zeros(words, np.int32),
        clock=np.zeros(len(Engine), np.int64),
        findings=np.zeros((LIMIT + 1, 8), np.int64),
    )


def _dram_end(stream: Stream, sound: Mask) -> int:
    """The first byte after everything that sound LOADs and STOREs reach."""
    end = 0
    for cls in (Load, Store):
        at, rows = rows_of(stream, cls)
        rows = rows[sound[at]]
        span = load_footprint(rows)[-1] if cls is Load else store_footprint(rows)[-1]
        end = max(end, int(dram_ends(stream, rows, span).max(initial=0)))
    return end
