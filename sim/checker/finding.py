"""Findings of the checker in a program, and the names of its instructions."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.isa.asm import format_instruction
from vdla.sim.stream import Stream


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a program.

    ``kind`` is ``finish`` (no FINISH at the end, or more), ``field`` (a value no instruction may
    hold), ``align``, ``range`` (an address or index outside its memory), ``tensor`` (a transfer
    that leaves its tensor in DRAM), ``uop`` (micro-ops that the program itself computes),
    ``conflict``, ``deadlock`` or ``leftover`` (a token nobody pops).
    """

    kind: str
    index: int
    text: str


def name_of(stream: Stream, index: int) -> str:
    """Name of an instruction in a finding."""
    return f"{stream.instructions[index].mnemonic} {index}"


def line_of(stream: Stream, index: int) -> str:
    """An instruction as it would be written."""
    return f"{index} is `{format_instruction(stream.instructions[index])}`"
