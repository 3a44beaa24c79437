"""The table: a module's header in numbers, for readers that have neither JSON nor memory to spare.

It is the first section of a module's file and has all that ``runtime/c`` runs a module by. Words
are 32 bits, little-endian; a number of 64 bits takes two, the low half first::

    length crc              bytes of the table, and the CRC-32 of those behind the first two words
    dram                    bytes of the DRAM image, 64 bits
    isa config              the identity of what programs are for; zeros without any
    count[10]               of each list below, in their order; of texts their bytes
    Tensor[]     offset bytes kind first name     sorted by name; offset and bytes of 64 bits; kind
                                                  is the number of its dtype and, from bit 8 on,
                                                  its rank; first is the first of its sizes
    size[]                                        along the axes of all tensors
    Input[]      tensor indices                   indices: the length of the axis that they are of
    Output[]     name kind tensor count sizes condition
    Step[]       kind name first args x[4]        first is the first of its args
    arg[]                                         tensors
    function[]                                    names of host functions, sorted
    Range[]      from to                          bytes of the image, 64 bits each
    Section[]    kind bytes crc                   of the file, behind the table; bytes of 64 bits
    texts                                         each ends with a zero; the first one is empty

Tensors, functions, texts and what else is referred to are named by their number, texts by their
place; ``NONE`` is no such. What ``x`` is depends on a step's kind::

    host     function                             vdla    section, first range, how many that the
    copy     way turn                                     host has written and how many it reads
    jump     to condition when                    next    to turn turns strict
    call     to
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vdla.runtime import plan
from vdla.runtime.contents import Contents
from vdla.runtime.dtypes import DTYPES
from vdla.runtime.errors import ModuleError
from vdla.runtime.plan import WAYS, Accelerate, Call, Copy, Host, Jump, Next, Step
from vdla.runtime.values import Absent, Each, Listed, Maybe, Rows, Value

NONE = 0xFFFF_FFFF
WORD = 4
ALIGN = 64  # bytes: table and constants begin at multiples, so that constants can stay in a file
HEAD_WORDS = 16
STEP_KINDS = tuple(plan.STEPS)
OUTPUT_KINDS = ("tensor", "rows", "each", "absent", "list")
CONSTANTS, HOST_CODE, PROGRAM = "constants", "host", "program:"  # names of sections, or their heads
SECTION_KINDS = (CONSTANTS, HOST_CODE, PROGRAM.removesuffix(":"), "other")
NAMED = (Next, Call, Accelerate)  # steps that errors of a run name

Sections = Sequence[tuple[str, bytes]]
Ranges = list[tuple[int, int]]


def table_of(module: Contents, sections: Sections) -> bytes:
    """The table of a module whose file has these sections behind it. Zeros at its end make its
    length a multiple of ``ALIGN``.

    Raises:
        ModuleError: a number is too large for a word.
    """
    return _Table(module, sections).to_bytes()


class _Table:
    """The lists of a table."""

    def __init__(self, module: Contents, sections: Sections) -> None:
        self.module, self.texts = module, {"": 0}
        self.end = 1  # of the texts
        self.tensors = {name: number for number, name in enumerate(sorted(module.tensors))}
        self.functions = sorted(module.host.functions) if module.host else []
        self.sections = {name: number for number, (name, _) in enumerate(sections)}
        self.args = list[int]()
        self.ranges: Ranges = []
        sizes = [size for name in self.tensors for size in module.tensors[name].shape]
        self.lists: list[list[int]] = [
            [word for row in self._tensors() for word in row],
            sizes,
            [word for row in self._inputs() for word in row],
            [word for name, v in self._results() for row in self._outputs(name, v) for word in row],
            [word for number, step in enumerate(module.steps) for word in self._step(number, step)],
            self.args,
            [self._text(name) for name in self.functions],
            [word for ends in self.ranges for end in ends for word in _halves(end)],
            [word for name, data in sections for word in _section(name, data)],
        ]
        self.counts = [
            len(module.tensors), len(sizes), len(module.inputs), len(self.lists[3]) // 6,
            len(module.steps), len(self.args), len(self.functions), len(self.ranges),
            len(sections), self.end,
        ]  # fmt: skip

    def to_bytes(self) -> bytes:
        """The table."""
        texts = b"".join(text.encode() + b"\0" for text in self.texts)
        words = sum(map(len, self.lists)) + HEAD_WORDS
        length = words * WORD + len(texts)
        length += -length % ALIGN
        identity = self.module.identity
        own = identity.words if identity.isa else (0, 0)
        head = [*_halves(self.module.dram_bytes), *own, *self.counts]
        try:
            rest = struct.pack(f"<{words - 2}I", *head, *(w for each in self.lists for w in each))
        except struct.error:
            raise ModuleError("module: expected numbers below 2**32, found a larger one") from None
        rest = (rest + texts).ljust(length - 2 * WORD, b"\0")
        return struct.pack("<2I", length, zlib.crc32(rest)) + rest

    def _text(self, text: str) -> int:
        """The place of a text."""
        text = text.replace("\0", "_")
        if text not in self.texts:
            self.texts[text] = self.end
            self.end += len(text.encode()) + 1
        return self.texts[text]

    def _tensor(self, name: str) -> int:
        return self.tensors.get(name, NONE)

    def _tensors(self) -> Iterator[Sequence[int]]:
        first, named = 0, {*self.module.inputs}
        for name in self.tensors:
            info = self.module.tensors[name]
            kind = DTYPES.index(info.dtype) | len(info.shape) << 8
            text = self._text(name) if name in named else 0
            yield *_halves(info.offset), *_halves(info.nbytes), kind, first, text
            first += len(info.shape)

    def _inputs(self) -> Iterator[Sequence[int]]:
        sizes: Mapping[str, int] = self.module.metadata.get("indices", {})
        for name in self.module.inputs:
            yield self._tensor(name), sizes.get(name, 0)

    def _results(self) -> Iterable[tuple[str, Value]]:
        return self.module.values.items() or ((name, name) for name in self.module.results)

    def _outputs(self, name: str, value: Value, condition: int = NONE) -> Iterator[Sequence[int]]:
        """The outputs of a result: of a list one for each of its values."""
        text = self._text(name)
        if isinstance(value, str):
            yield text, 0, self._tensor(value), NONE, NONE, condition
        elif isinstance(value, Rows):
            yield text, 1, self._tensor(value.tensor), self._tensor(value.count), NONE, condition
        elif isinstance(value, Each):
            count, sizes = self._tensor(value.count), self._tensor(value.sizes)
            yield text, 2, self._tensor(value.tensor), count, sizes, condition
        elif isinstance(value, Absent):
            yield text, 3, NONE, NONE, NONE, condition
        elif isinstance(value, Listed):
            if not value.values or condition != NONE:  # the list itself, before its values
                yield text, 4, NONE, NONE, NONE, condition
            for number, each in enumerate(value.values):
                yield from self._outputs(f"{name}[{number}]", each, condition)
        else:
            assert isinstance(value, Maybe)
            yield from self._outputs(name, value.value, self._tensor(value.condition))

    def _step(self, number: int, step: Step) -> Sequence[int]:
        """A step, whose args and ranges are added."""
        first, names = len(self.args), _args(step)
        self.args += map(self._tensor, names)
        own = (*self._own(number, step), 0, 0, 0, 0)[:4]
        refused = step.KIND not in RUN
        name = self._text(str(step)) if isinstance(step, NAMED) or refused else 0
        return STEP_KINDS.index(step.KIND), name, first, len(names), *own

    def _own(self, number: int, step: Step) -> Sequence[int]:
        """The words of a step beside its args."""
        if isinstance(step, Host):
            known = step.function in self.functions
            return (self.functions.index(step.function) if known else NONE,)
        if isinstance(step, Accelerate):
            section = self.sections.get(PROGRAM + step.program, NONE)
            first = len(self.ranges)
            given, wanted = shared_ranges(self.module, number)
            self.ranges += [*given, *wanted]
            return section, first, len(given), len(wanted)
        if isinstance(step, Copy):
            return WAYS.index(step.way) if step.way in WAYS else NONE, self._tensor(step.turn)
        if isinstance(step, Jump):
            return step.to, self._tensor(step.condition), step.when
        if isinstance(step, Next):
            return step.to, self._tensor(step.turn), min(step.turns, NONE), step.strict
        return (step.to,) if isinstance(step, Call) else ()


RUN = ("host", "vdla", "copy", "clear", "jump", "next", "call", "return")  # what runtime/c runs


@dataclass(frozen=True)
class Memory:
    """Memory that ``runtime/c`` asks for: bytes of the image in it, buffers of a function at most,
    and bytes that a call saves at most."""

    image: int
    buffers: int
    saved: int


def memory_of(module: Contents) -> Memory:
    """The memory of a module, as ``runtime/c/open.c`` lays it out. Beside an accelerator the image
    lies in the board's memory."""
    hosts = (step for step in module.steps if isinstance(step, Host))
    calls = (step for step in module.steps if isinstance(step, Call))
    saved = (WORD + sum(module.tensors[name].nbytes for name in step.saved) for step in calls)
    stay = len(module.constants) // ALIGN * ALIGN if _constants_stay(module) else 0
    image = 0 if module.accelerated else module.dram_bytes - stay
    return Memory(image, max((len(step.args) for step in hosts), default=0), max(saved, default=0))


def _constants_stay(module: Contents) -> bool:
    """Whether nothing is written within the constants, and no tensor lies half in them."""
    size = len(module.constants)
    written = {name for step in module.steps for name in plan.writes(step)} | {*module.inputs}
    within = {name: info for name, info in module.tensors.items() if info.offset < size}
    return not any(n in written or t.offset + t.nbytes > size for n, t in within.items())


def shared_ranges(module: Contents, number: int) -> tuple[Ranges, Ranges]:
    """The bytes that others may have written before an accelerator step, by its number, and those
    that they may read behind it."""
    steps = module.steps
    jumps = bool(plan.targets(steps))  # then any step may come before, and behind
    given = _touched(module, steps if jumps else steps[:number], module.inputs)
    return given, _touched(module, steps if jumps else steps[number + 1 :], module.outputs)


def _touched(module: Contents, steps: Sequence[Step], others: Sequence[str]) -> Ranges:
    """The bytes of the tensors that some host steps read or write, and of some others."""
    names = dict.fromkeys((*plan.host_tensors(steps), *others))
    tensors = [module.tensors[name] for name in names if name in module.tensors]
    first = len(module.constants)
    return sorted((t.offset, t.offset + t.nbytes) for t in tensors if t.offset >= first)


def _args(step: Step) -> Sequence[str]:
    """The tensors that a step's kind has as args."""
    if isinstance(step, Call):
        return step.saved
    args: tuple[str, ...] = getattr(step, "args", ())
    return args


def _section(name: str, data: bytes) -> Sequence[int]:
    kind = name.partition(":")[0]
    number = SECTION_KINDS.index(kind if kind in SECTION_KINDS else "other")
    return number, *_halves(len(data)), zlib.crc32(data)


def _halves(number: int) -> tuple[int, int]:
    """A number of 64 bits as two words."""
    return number & NONE, number >> 32
