"""From a schedule to instructions, as a list of named passes.

    expression → schedule → loops → (those of options) → virtual threads → in place → instructions

``Linker`` then joins kernels into one stream: micro-ops placed, instructions reordered, tokens
derived, addresses filled in, and the stream proved to end in the config's queues.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.codegen.allocate import allocate
from vdla.compiler.targets.accelerator.codegen.beside import (
    acc_entries,
    has_gemm,
    moved_in_acc,
    places_beside,
)
from vdla.compiler.targets.accelerator.codegen.bound import check_threads
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel, generate
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.order import reorder
from vdla.compiler.targets.accelerator.codegen.tokens import insert_tokens
from vdla.compiler.targets.accelerator.codegen.touches import Touches
from vdla.compiler.targets.accelerator.codegen.uops import UOPS, UopPlanner, check_uops
from vdla.compiler.targets.accelerator.description.engines import alu_beside_gemm
from vdla.compiler.targets.accelerator.description.fit import check_intrinsics
from vdla.compiler.targets.accelerator.description.memory import SCRATCHPADS
from vdla.compiler.targets.accelerator.passes.added import added_passes
from vdla.compiler.targets.accelerator.passes.fused import split_fused
from vdla.compiler.targets.accelerator.passes.inplace import unify_inplace
from vdla.compiler.targets.accelerator.passes.vthread import inject_virtual_threads
from vdla.compiler.tir.in_bounds import check_all_bounds
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.spec import FLAT, LoopSpec
from vdla.compiler.tir.verify import verify
from vdla.isa.config import Config
from vdla.isa.instructions import Finish, Instruction
from vdla.isa.ring import Engine
from vdla.sim.checker.progress import prove_progress

Dump = Callable[[str, str], None]

THREADED = FLAT.after("virtual_threads", loops=frozenset(("vthread",)))
LoopPass = tuple[LoopSpec, Callable[[PrimFunc], PrimFunc]]
PASSES: tuple[LoopPass, ...] = (
    (THREADED, inject_virtual_threads),
    (THREADED.after("in_place"), unify_inplace),
)


def lower_schedule(schedule: Schedule, config: Config, dump: Dump | None = None) -> Kernel:
    """The instructions of a scheduled expression, in program order.

    ``dump`` is called with each pass's name and the program's text after it.

    Raises:
        AllocationError: its buffers, or its micro-ops, exceed what the config has.
        CodegenError: a stage isn't tensorized, or no instruction expresses an access.
        IntrinsicError: an intrinsic is another config's.
    """
    if dump is not None:
        describe(schedule, dump)
    return lower_function(schedule.mod, config, dump)


def describe(schedule: Schedule, dump: Dump) -> None:
    """Dumps the texts that stand before the loops: the expression and the primitives
    applied to it.
    """
    dump("expression", show(schedule.built.func))
    dump("schedule", "\n".join(str(step) for step in schedule.trace) + "\n")


def lower_function(func: PrimFunc, config: Config, dump: Dump | None = None) -> Kernel:
    """The instructions of a tensorized function, with blocks or without, in program order.

    What a pass has already done it leaves as it is: the text after any of them may come back.
    ``dump`` and what is raised are as in :func:`lower_schedule`.
    """
    return to_instructions(to_loops(func, config, dump), config, dump)


def to_loops(func: PrimFunc, config: Config, dump: Dump | None = None) -> PrimFunc:
    """A tensorized function after all passes over loops; of the buffers' depths none depends.

    Raises:
        CodegenError: it becomes more instructions than a program holds.
        IntrinsicError: an intrinsic is another config's.
    """
    func = check_all_bounds(verify(split_fused(flatten_blocks(func)), spec=FLAT))
    check_intrinsics(func, config)
    _dump(dump, "loops", lambda: show(func))
    check_threads(func, config)
    added = ((FLAT.after(each.name), each.run) for each in added_passes(config))
    for spec, run in (*added, *PASSES):
        func = verify(run(func), spec=spec)
        _dump(dump, spec.name, lambda: show(func))
    return func


def to_instructions(func: PrimFunc, config: Config, dump: Dump | None = None) -> Kernel:
    """The instructions of loops that ``to_loops`` gave, in program order.

    Raises:
        AllocationError: its buffers, or its micro-ops, exceed what the config has.
        CodegenError: a stage isn't tensorized, or no instruction expresses an access.
        IntrinsicError: an intrinsic is another config's.
    """
    check_intrinsics(func, config)
    bases = allocate(func, config)
    _dump(dump, "allocate", lambda: "".join(
        f"{b.scope:9} {base:6} {b.name} {list(b.shape)}\n" for b, base in bases.items()
    ) or "\n")  # fmt: skip
    kernel = generate(func, bases, config)
    check_uops(func.name, kernel.ops, config)
    _dump(dump, "instructions", lambda: "\n".join(
        f"{op.name}: {op.instruction}" for op in kernel.ops
    ) + "\n")  # fmt: skip
    return kernel


def _dump(dump: Dump | None, name: str, text: Callable[[], str]) -> None:
    """Shows a text where somebody reads it: a search lowers thousands of functions."""
    if dump is not None:
        dump(name, text())


@dataclass(frozen=True)
class Linked:
    """A stream with the operator and the stage that each instruction belongs to.

    ``end`` is one past the last byte of DRAM that an instruction touches. It may lie behind all
    tensors: a tile of an image's pixels may end behind the image.
    """

    instructions: list[Instruction]
    layers: list[str]
    stages: list[str]
    end: int


_Placed = tuple[str, Op]  # an instruction with its layer


@dataclass(frozen=True)
class _Part:
    """A kernel's instructions in line; ``beside``: they run beside those of the part before."""

    layer: str
    ops: list[Op]
    beside: bool


class Linker:
    """Joins kernels: first ``add`` each, then lay out DRAM with ``uops``, then ``link``."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.planner = UopPlanner(config)
        self.parts: list[_Part] = []

    def add(self, layer: str, kernel: Kernel, tensors: Mapping[str, str]) -> None:
        """Appends a kernel's instructions; ``tensors`` are its parameters' names in DRAM.

        With a vector engine, a kernel without GEMMs runs beside the one before it where that has
        some and ACC has room for both.
        """
        place = self.planner.stream if kernel.streams else self.planner.place
        ops = reorder(place(layer, kernel.ops))
        entries = self._room(ops)
        if entries:
            ops = moved_in_acc(ops, entries)
        self.parts.append(_Part(layer, [_renamed(op, tensors) for op in ops], bool(entries)))

    def _room(self, ops: list[Op]) -> int:
        """First entry in ACC where a kernel has room beside the one before it; 0: it runs behind
        that one.
        """
        if not alu_beside_gemm(self.config) or not self.parts or has_gemm(ops):
            return 0
        before = self.parts[-1]
        entries = acc_entries(before.ops)
        fits = entries + acc_entries(ops) <= self.config.depth("acc")
        return entries if fits and has_gemm(before.ops) and not before.beside else 0

    @property
    def beside(self) -> dict[str, str]:
        """Layers that run beside another, and which: what that reads must outlive it."""
        pairs = itertools.pairwise(self.parts)
        return {after.layer: before.layer for before, after in pairs if after.beside}

    @property
    def uops(self) -> bytes:
        """The micro-ops that the stream loads, to lie at the address given for ``UOPS``."""
        return bytes(self.planner.image)

    def _end(self, addresses: Mapping[str, int]) -> int:
        """One past the last byte of DRAM that an instruction touches."""
        ends: dict[str, int] = {}
        for access in (a for part in self.parts for op in part.ops for a in op.accesses):
            if access.space not in SCRATCHPADS:
                ends[access.space] = max(ends.get(access.space, 0), access.end)
        return max((addresses[space] + end for space, end in ends.items()), default=0)

    def link(
        self, addresses: Mapping[str, int], dram_bytes: int, *, alone: Collection[Engine] = ()
    ) -> Linked:
        """The finished stream; engines in ``alone`` work while no other one does.

        Raises:
            QueueError: the config's queues are too small for it to end.
        """
        end = self._end(addresses)
        dram_bytes = max(dram_bytes, end)
        placed = self._in_line(addresses, dram_bytes)
        layers, ops = [layer for layer, _ in placed], [op for _, op in placed]
        instructions = insert_tokens(ops, addresses, dram_bytes, self.config, alone)
        stream = [*instructions, Finish()]
        prove_progress(self.config, stream)
        return Linked(stream, [*layers, ""], [*(op.name for op in ops), "finish"], end)

    def _in_line(self, addresses: Mapping[str, int], dram_bytes: int) -> list[_Placed]:
        """All instructions in order, with the layers that they belong to."""
        line: list[_Placed] = []
        for number, part in enumerate(self.parts):
            mine = [(part.layer, op) for op in part.ops]
            if not part.beside:
                line += mine
                continue
            first = self.parts[number - 1].ops
            touched = Touches(addresses, dram_bytes, self.config)
            start = len(line) - len(first)
            places = places_beside(first, part.ops, touched)
            line[start:] = _merged(line[start:], mine, places)
        return line


def _merged(
    first: Sequence[_Placed], second: Sequence[_Placed], places: Sequence[int]
) -> list[_Placed]:
    """Two lines as one; before each element of ``second`` come so many of ``first``."""
    result: list[_Placed] = []
    done = 0
    for each, place in zip(second, places, strict=True):
        result += [*first[done:place], each]
        done = place
    return [*result, *first[done:]]


def _renamed(op: Op, names: Mapping[str, str]) -> Op:
    if not op.tensor:
        return op
    accesses = tuple(
        Access(names.get(space, space), start, dims, write)
        for space, start, dims, write in op.accesses
    )
    instruction, _, name, tensor, uops, first = op
    return Op(instruction, accesses, name, names.get(tensor, tensor), uops, first)


__all__ = [
    "PASSES", "UOPS", "Dump", "Linked", "Linker", "describe", "lower_function",
    "lower_schedule",
]  # fmt: skip
