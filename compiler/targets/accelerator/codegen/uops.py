"""Micro-ops get addresses: equal sequences are stored once and stay resident.

The micro-op buffer is treated as a ring: each operator's new sequences are loaded together in
front of it, over the oldest ones. Bases and steps are in the instructions, so the threads and
tiles of an operator, and often several operators, share their sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.codegen.op import Access, Op, UopRow
from vdla.isa.config import Config
from vdla.isa.instructions import Load, Mem, Uop
from vdla.support.numbers import ceil_div

UOPS = "%uops"  # the DRAM tensor that holds every sequence
Key = tuple[tuple[UopRow, ...], tuple[bool, ...]]
Use = tuple[tuple[UopRow, ...], tuple[bool, ...] | None]  # None: no reduction, marks are ignored


@dataclass
class UopPlanner:
    """Places the micro-ops of one stream, operator after operator.

    Attributes:
        config: the accelerator.
        image: the bytes of all sequences, which lie in DRAM as the tensor UOPS.
        resident: the sequences that are in the micro-op buffer, and the micro-op each begins at.
        next_word: the word of the buffer behind the newest sequence.
    """

    config: Config
    image: bytearray = field(default_factory=bytearray)
    resident: dict[Key, int] = field(default_factory=dict)
    next_word: int = 0

    def place(self, name: str, ops: Sequence[Op]) -> list[Op]:
        """The operator's ops with ``uop_begin`` set, behind the LOAD of what is new.

        Raises:
            AllocationError: the operator's sequences alone exceed the buffer.
        """
        wanted, loads = self.load(name, ops)
        return loads + [self._begin(op, wanted) for op in ops]

    def stream(self, name: str, ops: Sequence[Op]) -> list[Op]:
        """Places ops whose sequences the buffer needn't hold at once: these are then loaded in
        portions of at most half of it, each in front of the ops that need it.

        Raises:
            AllocationError: a single sequence exceeds the buffer.
        """
        result, portion, words = list[Op](), list[Op](), 0
        most = self.config.depth("uop")
        if sum(self._words(op.uops) for op in ops) > most:
            most //= 2
        for op in ops:
            if portion and words + self._words(op.uops) > most:
                result += self.place(name, portion)
                portion, words = [], 0
            portion.append(op)
            words += self._words(op.uops)
        return result + self.place(name, portion)

    def load(self, name: str, ops: Sequence[Op]) -> tuple[dict[Use, Key], list[Op]]:
        """The sequence that serves each use, and the LOAD of what isn't resident yet.

        Raises:
            AllocationError: the operator's sequences alone exceed the buffer.
        """
        wanted = _keys(ops, set(self.resident))
        new = [key for key in dict.fromkeys(wanted.values()) if key not in self.resident]
        loads = [self._load(name, new)] if new else []
        if any(key not in self.resident for key in wanted.values()):  # evicted by the new ones
            new = list(dict.fromkeys(wanted.values()))
            self.resident.clear()
            loads = [self._load(name, new)]
        return wanted, loads

    def _begin(self, op: Op, wanted: dict[Use, Key]) -> Op:
        if not op.uops:
            return op
        begin = self.resident[wanted[op.uops, op.first if _marked(op) else None]]
        per_word = self.config.uops_per_word
        words = Access("uop", begin // per_word, ((self._words(op.uops), 1),), False)
        instruction = op.instruction.copy()
        instruction.__dict__["uop_begin"] = begin
        accesses = (*op.accesses, words)
        return Op(instruction, accesses, op.name, op.tensor, op.uops, op.first)

    def _load(self, name: str, keys: Sequence[Key]) -> Op:
        words = sum(self._words(rows) for rows, _ in keys)
        depth = self.config.depth("uop")
        if words > depth:
            raise AllocationError(
                f"{name}: expected micro-ops within {depth} words (config {self.config.name}), "
                f"found {words}"
            )
        if self.next_word + words > depth:
            self.next_word = 0
        first, size = self.next_word, self.config.entry("uop")
        self._evict(first, first + words)
        address = len(self.image)
        for key in keys:
            self.resident[key] = self.next_word * self.config.uops_per_word
            self.image += self._encode(key)
            self.next_word += self._words(key[0])
        return Op(
            Load(
                memory=Mem.UOP,
                sram_base=first,
                dram_base=address,
                x_size=words,
                y_size=1,
                z_size=1,
            ),
            (
                Access("uop", first, ((words, 1),), True),
                Access(UOPS, address, ((words * size, 1),), False),
            ),
            "uops",
            tensor=UOPS,
        )

    def _evict(self, low: int, high: int) -> None:
        per_word = self.config.uops_per_word
        for key, begin in list(self.resident.items()):
            start = begin // per_word
            if start < high and low < start + self._words(key[0]):
                del self.resident[key]

    def _words(self, rows: Sequence[UopRow]) -> int:
        return ceil_div(len(rows), self.config.uops_per_word)

    def _encode(self, key: Key) -> bytes:
        rows, marks = key
        data = b"".join(
            Uop(first=mark, dst=dst, src=src, wgt=wgt).encode(self.config)
            for (dst, src, wgt), mark in zip(rows, marks, strict=True)
        )
        return data.ljust(self._words(rows) * self.config.entry("uop"), b"\0")


def _marked(op: Op) -> bool:
    """Whether the marks matter: some micro-op starts a reduction here."""
    return op.first is not None and any(op.first)


def _keys(ops: Sequence[Op], resident: set[Key]) -> dict[Use, Key]:
    """For each (sequence, marks or None) used, the stored sequence that serves it."""
    wanted: dict[Use, Key] = {}
    by_rows = {key[0]: key for key in resident}
    for op in ops:
        if op.uops and op.first is not None and any(op.first):
            wanted[op.uops, op.first] = (op.uops, op.first)
            by_rows[op.uops] = (op.uops, op.first)
    for op in ops:
        if op.uops and not _marked(op):
            plain = (op.uops, (False,) * len(op.uops))
            wanted[op.uops, None] = by_rows.setdefault(op.uops, plain)
    return wanted


def check_uops(name: str, ops: Sequence[Op], config: Config) -> None:
    """Checks that the micro-op buffer holds an operator's sequences.

    Args:
        name: the operator's, for the error.

    Raises:
        AllocationError: they exceed the buffer.
    """
    UopPlanner(config).load(name, ops)
