"""Descriptors: an instruction is a class whose attributes are its fields, lowest bit first.

    class Gemm(Instruction):
        opcode = 3
        dst_base = Index("acc", "first accumulator")

Encoder, decoder, assembler, manual, C header, simulator tables and RTL decoders all read these.
Widths derive from a config; a value that doesn't fit raises and names the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self, overload

from vdla.support.errors import UserError
from vdla.support.numbers import ceil_div

if TYPE_CHECKING:
    from vdla.isa.config import Config

Width = int | Callable[["Config"], int]
Values = Callable[["Config"], tuple[int, ...]]

DRAM_BITS = 32
OPCODE_BITS = 3
STRIDE_BITS = 20
SIDES = ("prev", "next", "across")  # of an engine, in the order of the token flags


def _none(config: Config) -> tuple[int, ...]:
    """No values."""
    return ()


class EncodingError(UserError):
    """A field value that its width can't hold, or bits that are no instruction."""


class Field:
    """One bit field of an instruction or micro-op. Reading it from an instance gives an int."""

    name: str

    def __init__(
        self,
        width: Width,
        doc: str,
        *,
        signed: bool = False,
        default: int = 0,
        names: tuple[str, ...] = (),
        legal: Values = _none,
        absent: Values = _none,
    ) -> None:
        self._width, self.doc, self.signed = width, doc, signed
        self.default, self.names = default, names
        self._legal = legal
        self._absent = absent  # values that exist only where the config has an option

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> int: ...
    def __get__(self, instance: object | None, owner: type) -> Self | int:
        return self if instance is None else instance.__dict__[self.name]

    def __set__(self, instance: object, value: int) -> None:
        instance.__dict__[self.name] = value

    def width(self, config: Config) -> int:
        """Bits this field takes in a config's encoding; 0 where the config has no such field."""
        return self._width if isinstance(self._width, int) else self._width(config)

    def legal(self, config: Config) -> tuple[int, ...]:
        """The values of an enumerated field that the config's machine knows; empty: all."""
        absent = self._absent(config)
        return tuple(v for v in self._legal(config) or range(len(self.names)) if v not in absent)

    def names_in(self, config: Config) -> tuple[str, ...]:
        """``names`` without those of options that the config doesn't have."""
        absent = self._absent(config)
        return tuple(name for value, name in enumerate(self.names) if value not in absent)

    def multiple(self, config: Config) -> int:
        """Number that the machine wants the field's value to be a multiple of."""
        return 1

    def holds(self, value: int, width: int) -> bool:
        """Whether ``width`` bits of this field can hold a value."""
        if self.signed:
            return -(1 << (width - 1)) <= value < 1 << (width - 1)
        return 0 <= value < 1 << width

    @property
    def is_flag(self) -> bool:
        """Whether the field is one bit in every config that has it."""
        return self._width == 1

    def bounds(self, config: Config) -> tuple[int, int]:
        """Lowest and highest value the field holds; 0 and 0 where the config has no such field."""
        width = self.width(config)
        if self.signed and width:
            return -(1 << (width - 1)), (1 << (width - 1)) - 1
        return 0, (1 << width) - 1


class OptionFlag(Field):
    """One bit that exists only where a config has an option; ``present`` says where."""

    def __init__(self, doc: str, *, present: Callable[[Config], bool]) -> None:
        super().__init__(1, doc)
        self._present = present

    def width(self, config: Config) -> int:
        """One bit, or none."""
        return super().width(config) if self._present(config) else 0


Layout = tuple[tuple[Field, int, int], ...]
Packing = tuple[tuple[str, int, int, int, int], ...]


@cache
def _layout(all_fields: tuple[Field, ...], config: Config) -> Layout:
    rows, bit = [], 0
    for f in all_fields:
        width = f.width(config)
        rows.append((f, bit, width))
        bit += width
    return tuple(rows)


@cache
def _bits(all_fields: tuple[Field, ...], config: Config) -> int:
    return sum(f.width(config) for f in all_fields)


@cache
def _packing(all_fields: tuple[Field, ...], config: Config) -> Packing:
    """Each field's name, lowest bit and mask, its lowest and highest value."""
    return tuple(
        (f.name, bit, (1 << width) - 1, *f.bounds(config))
        for f, bit, width in _layout(all_fields, config)
    )


@cache
def _bounds(all_fields: tuple[Field, ...], config: Config) -> Mapping[str, tuple[int, int]]:
    return {f.name: f.bounds(config) for f in all_fields}


class Record:
    """A value made of fields: the common part of instructions and micro-ops."""

    fields: ClassVar[tuple[Field, ...]] = ()
    defaults: ClassVar[dict[str, int]] = {}

    def __init_subclass__(cls) -> None:
        own = [f for f in vars(cls).values() if isinstance(f, Field)]
        cls.fields = (*(f for f in cls.fields if f.name not in vars(cls)), *own)
        cls.defaults = {f.name: f.default for f in cls.fields}

    @classmethod
    def insert(cls, name: str, added: Field, behind: str) -> None:
        """Adds a field behind another one."""
        setattr(cls, name, added)
        added.__set_name__(cls, name)
        at = [f.name for f in cls.fields].index(behind) + 1
        cls.fields = (*cls.fields[:at], added, *cls.fields[at:])
        cls.defaults = {f.name: f.default for f in cls.fields}

    def __init__(self, **values: int) -> None:
        known = self.__dict__
        known.update(self.defaults)
        for name, value in values.items():
            if name not in known:
                kind, expected = type(self).__name__.upper(), ", ".join(known)
                raise EncodingError(f"{kind}: expected fields {expected}, found {name}")
            known[name] = int(value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        shown = (f"{f.name}={self.__dict__[f.name]}" for f in self.fields)
        return f"{type(self).__name__}({', '.join(shown)})"

    def replace(self, **values: int) -> Self:
        """A copy with some fields changed."""
        copy = type(self)(**values)
        copy.__dict__.update(self.__dict__ | {name: copy.__dict__[name] for name in values})
        return copy

    def copy(self) -> Self:
        """A copy."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    @classmethod
    def layout(cls, config: Config) -> list[tuple[Field, int, int]]:
        """Each field that the config has, with its lowest bit and its width."""
        return [place for place in _layout(cls.fields, config) if place[2]]

    @classmethod
    def bounds(cls, config: Config) -> Mapping[str, tuple[int, int]]:
        """The lowest and highest value that each field holds."""
        return _bounds(cls.fields, config)

    @classmethod
    def bits(cls, config: Config) -> int:
        """Bits of the whole record."""
        return _bits(cls.fields, config)

    def pack(self, config: Config) -> int:
        """The record as one integer.

        Raises:
            EncodingError: a value its field can't hold; names the field and its range.
        """
        word, values = 0, self.__dict__
        for name, bit, mask, low, high in _packing(self.fields, config):
            value = values[name]
            if not low <= value <= high:
                raise EncodingError(
                    f"{type(self).__name__.upper()}.{name}: expected {low}..{high} "
                    f"({mask.bit_length()} bits in config {config.name}), found {value}"
                )
            word |= (value & mask) << bit
        return word

    @classmethod
    def unpack(cls, word: int, config: Config) -> Self:
        """The record in the low bits of an integer; the inverse of ``pack``."""
        record = cls()
        values = record.__dict__
        for name, bit, mask, _, high in _packing(cls.fields, config):
            value = (word >> bit) & mask
            values[name] = value if value <= high else value - mask - 1
        return record


# Instructions ------------------------------------------------------------------------------------


def count(*buffers: str) -> Width:
    """Bits that count up to and including the depth of the deepest of some buffers."""
    return lambda c: max(c.depth(b) for b in buffers).bit_length()


class Index(Field):
    """An entry of a buffer, or a number of entries less than it has."""

    def __init__(self, buffer: str, doc: str, *, default: int = 0) -> None:
        super().__init__(lambda c: c.index_bits(buffer), doc, default=default)
        self.buffer = buffer  # as ``Config.depth`` names it


class DramBase(Field):
    """The DRAM address of an instruction's first entry: a multiple of the memory port's bytes."""

    def __init__(self) -> None:
        super().__init__(
            DRAM_BITS,
            "byte address of the first entry: a multiple of port_bytes, or the fault ADDRESS",
        )

    def multiple(self, config: Config) -> int:
        """Bytes of a beat."""
        return config.port_bytes


def _has_across(config: Config) -> bool:
    """Whether an engine has another one across the ring."""
    return bool(config.fourth_engines)


class Instruction(Record):
    """The fields every instruction starts with."""

    opcode: ClassVar[int]
    mnemonic: ClassVar[str]
    option: ClassVar[str] = ""  # the parameter of the configs that have the instruction; "": all
    reads: ClassVar[tuple[str, ...]] = ()  # the memories that it reads; "dram" is one
    writes: ClassVar[tuple[str, ...]] = ()  # those that it writes

    op = Field(OPCODE_BITS, "opcode")
    pop_prev = Field(1, "wait for a token from the previous engine")
    pop_next = Field(1, "wait for a token from the next engine")
    pop_across = OptionFlag("wait for a token from the engine across the ring", present=_has_across)
    push_prev = Field(1, "give a token to the previous engine when finished")
    push_next = Field(1, "give a token to the next engine when finished")
    push_across = OptionFlag(
        "give a token to the engine across the ring when finished", present=_has_across
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "opcode"):
            cls.mnemonic = cls.__name__.upper()
            BY_OPCODE[cls.opcode] = cls

    def __init__(self, **values: int) -> None:
        super().__init__(**{**values, "op": self.opcode})

    def encode(self, config: Config) -> bytes:
        """The instruction as it lies in DRAM, little-endian."""
        return self.pack(config).to_bytes(instruction_bytes(config), "little")

    def is_legal(self, config: Config) -> bool:
        """Whether the config knows the instruction and every enumerated field's value; else it is
        a fault."""
        known = self.exists(config)
        return known and all(
            self.__dict__[f.name] in f.legal(config) for f in self.fields if f.names
        )

    @classmethod
    def exists(cls, config: Config) -> bool:
        """Whether the config's machine has the instruction."""
        return not cls.option or bool(getattr(config, cls.option))


BY_OPCODE: dict[int, type[Instruction]] = {}


@cache
def instruction_set(config: Config) -> tuple[type[Instruction], ...]:
    """The instructions that the config's machine has."""
    return tuple(cls for _, cls in sorted(BY_OPCODE.items()) if cls.exists(config))


def kind_of(opcode: int, config: Config) -> type[Instruction] | None:
    """The instruction of a config that has an opcode, if there is one."""
    cls = BY_OPCODE.get(opcode)
    return cls if cls is not None and cls.exists(config) else None


@cache
def instruction_bytes(config: Config) -> int:
    """Bytes of every instruction: the widest, rounded up to whole 64-bit words and beats."""
    bits = max(cls.bits(config) for cls in instruction_set(config))
    unit = max(8, config.port_bytes)
    return ceil_div(bits, 8 * unit) * unit
