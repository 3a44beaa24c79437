"""Assembler and disassembler: one instruction a line, only the fields that differ from default.

    .base 0x1000                        ; where the stream lies in DRAM
    .data 0x0 00ff10                    ; bytes in DRAM
    .uop 0x40 first=1 dst=0 src=2       ; one micro-op in DRAM
    LOAD memory=INP dram_base=0x40 x_size=4 y_size=1 z_size=1 push_next
    GEMM pop_prev uop_count=1 init=ZERO push_next
    FINISH

``;`` starts a comment. Fields take integers (any Python base) or, where a field has names, a name;
a one-bit field stands alone for 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from vdla.isa.config import Config
from vdla.isa.fields import EncodingError, Field, Record
from vdla.isa.identity import isa_hash
from vdla.isa.instructions import INSTRUCTIONS, Instruction, Uop
from vdla.isa.program import Program
from vdla.support.errors import UserError

MNEMONICS = {cls.mnemonic: cls for cls in INSTRUCTIONS}
_LINE_BYTES = 32


class AsmError(UserError):
    """A line that is not assembly; names file, line, what was expected and found."""


def disassemble(program: Program) -> str:
    """The program as text that ``assemble`` reads back to an equal program."""
    lines = [
        f"; config {program.config.name} {program.config.hash}, ISA {isa_hash(program.config)}"
    ]
    if program.base:
        lines.append(f".base {program.base:#x}")
    for address, raw in sorted(program.data.items()):
        lines += (
            f".data {address + at:#x} {raw[at : at + _LINE_BYTES].hex()}"
            for at in range(0, len(raw), _LINE_BYTES)
        )
    lines += (format_instruction(i) for i in program.instructions)
    return "\n".join(lines) + "\n"


def format_instruction(instruction: Instruction) -> str:
    """One instruction as a line of assembly."""
    words, values = [instruction.mnemonic], instruction.__dict__
    for name, default, f in _named(instruction.fields):
        if (value := values[name]) != default:  # most fields hold their defaults
            words.append(_format_field(f, value))
    return " ".join(words)


def assemble(text: str, config: Config, where: str = "<text>") -> Program:
    """Reads assembly.

    Raises:
        AsmError: an unknown mnemonic, directive, field or name, or a value that doesn't fit.
    """
    instructions: list[Instruction] = []
    data: dict[int, bytes] = {}
    base = 0
    for number, words in _lines(text):
        at = f"{where}:{number}"
        try:
            if words[0] == ".base":
                base = _integer(words[1:], at)
            elif words[0] == ".data":
                _append(data, _integer(words[1:2], at), _bytes(words[2:], at))
            elif words[0] == ".uop":
                uop = Uop(**_values(Uop, words[2:], config, at))
                _append(data, _integer(words[1:2], at), uop.encode(config))
            else:
                instructions.append(_instruction(words, config, at))
        except EncodingError as error:
            raise AsmError(f"{at}: {error}") from None
    return Program(config, instructions, base, data)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.partition(";")[0].split():
            yield number, words


def _instruction(words: list[str], config: Config, at: str) -> Instruction:
    cls = MNEMONICS.get(words[0].upper())
    if cls is None:
        raise AsmError(f"{at}: expected one of {', '.join(MNEMONICS)}, found {words[0]}")
    instruction = cls(**_values(cls, words[1:], config, at))
    instruction.pack(config)
    return instruction


def _values(cls: type[Record], words: list[str], config: Config, at: str) -> dict[str, int]:
    known = {f.name: f for f, _, _ in cls.layout(config)}
    values = {}
    for word in words:
        name, equals, text = word.partition("=")
        if name not in known:
            raise AsmError(f"{at}: expected a field of {cls.__name__.upper()}, found {name}")
        values[name] = _value(known[name], text, at) if equals else 1
    return values


def _value(f: Field, text: str, at: str) -> int:
    if text in f.names:
        return f.names.index(text)
    try:
        return int(text, 0)
    except ValueError:
        names = f" or one of {', '.join(f.names)}" if f.names else ""
        raise AsmError(f"{at}: expected {f.name} to be an integer{names}, found {text}") from None


def _integer(words: list[str], at: str) -> int:
    try:
        (word,) = words
        return int(word, 0)
    except ValueError:
        raise AsmError(f"{at}: expected one address, found {' '.join(words) or 'none'}") from None


def _bytes(words: list[str], at: str) -> bytes:
    try:
        return bytes.fromhex("".join(words))
    except ValueError:
        raise AsmError(f"{at}: expected bytes in hex, found {' '.join(words)}") from None


def _append(data: dict[int, bytes], address: int, raw: bytes) -> None:
    """Adds bytes, joining them to the segment they continue."""
    for start, before in data.items():
        if start + len(before) == address:
            data[start] = before + raw
            return
    data[address] = raw


@cache
def _named(fields: tuple[Field, ...]) -> tuple[tuple[str, int, Field], ...]:
    """The fields that a line of assembly may have, with their names and defaults."""
    return tuple((f.name, f.default, f) for f in fields if f.name != "op")


@lru_cache(4096)
def _format_field(f: Field, value: int) -> str:
    if 0 <= value < len(f.names):
        return f"{f.name}={f.names[value]}"
    if value == 1 and f.is_flag:
        return f.name
    return f"{f.name}={value:#x}" if f.name.endswith("dram_base") else f"{f.name}={value}"
