"""Layout of a stream of instructions in DRAM, and the part of it that fetch holds."""

from __future__ import annotations

from vdla.isa.config import Config
from vdla.isa.fields import EncodingError
from vdla.isa.instructions import (
    OPCODE_BITS,
    Instruction,
    instruction_bytes,
    instruction_set,
    kind_of,
)

FETCH_INSTRUCTIONS = 16  # instructions that the fetch buffer holds at least


def instruction_beats(config: Config) -> int:
    """Beats of every instruction on the memory port."""
    return instruction_bytes(config) // config.port_bytes


def fetch_buffer_beats(config: Config) -> int:
    """Beats that the instruction fetch can have requested and not yet dispatched.

    Bursts end between instructions wherever a page or their own length cuts them. So up to one beat
    less than an instruction may lie in the buffer, and the next whole burst fits beside it: fetch
    never waits for beats that it can't request.
    """
    beats = instruction_beats(config)
    return max(FETCH_INSTRUCTIONS * beats, config.burst_beats + beats - 1)


def decode(data: bytes, config: Config, where: str = "") -> Instruction:
    """Decodes one instruction; ``where`` prefixes errors.

    Raises:
        EncodingError: an opcode that no instruction has, a wrong length, or stray bits.
    """
    if len(data) != instruction_bytes(config):
        raise EncodingError(f"{where}expected {instruction_bytes(config)} bytes, found {len(data)}")
    word = int.from_bytes(data, "little")
    opcode = word & ((1 << OPCODE_BITS) - 1)
    cls = kind_of(opcode, config)
    if cls is None:
        known = sorted(each.opcode for each in instruction_set(config))
        raise EncodingError(f"{where}expected an opcode in {known}, found {opcode}")
    if word >> cls.bits(config):
        raise EncodingError(f"{where}expected zeros above {cls.mnemonic}'s fields, found others")
    return cls.unpack(word, config)
