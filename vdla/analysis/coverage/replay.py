"""Hazards and values of a sound program, which runs once more, step by step.

Options have a ``Hook`` of it each: what their instructions read, write and multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations, product
from typing import ClassVar

import numpy as np

from vdla.analysis.case import Case, Outcome
from vdla.analysis.coverage.bursts import MOVES, kept_in, runs
from vdla.analysis.coverage.values import CORNERS, Lane, requantized, seen_in
from vdla.isa.config import Config
from vdla.isa.instructions import (
    Alu,
    AluOp,
    Gemm,
    Init,
    Instruction,
    Load,
    Mem,
    Store,
)
from vdla.isa.numbers import INT32_MAX, INT32_MIN
from vdla.isa.ring import Engine, ring_of
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream

Place = tuple[str, int]


def hazard_goals(config: Config) -> Iterator[str]:
    """Every pair of engines that may touch one entry, by the kinds of their touches."""
    roles = ring_of(config).roles
    kinds = {  # what the first of two engines does with a memory, and what the second
        "read after write": ("writes", "reads"),
        "write after read": ("reads", "writes"),
        "write after write": ("writes", "writes"),
    }
    for hazard, (first, second) in kinds.items():
        for one, two in permutations(roles, 2):
            for memory in sorted({*getattr(one, first)} & {*getattr(two, second)}):
                yield f"hazards: {hazard}: {memory} {one.engine.name} → {two.engine.name}"


class Hook:
    """Seam of a replay: an option's part in it. Subclasses are found by being defined, and each
    replay has one of each. All that a hook says is of configs that have its option.
    """

    KINDS: ClassVar[list[type[Hook]]] = []

    def __init_subclass__(cls) -> None:
        Hook.KINDS.append(cls)

    def __init__(self, config: Config, state: State) -> None:
        self.config, self.state = config, state
        self.seen: set[str] = set()  # goals

    def begin(self, nest: Gemm | Alu) -> None:
        """Notes that an instruction with micro-ops begins."""

    def reads(self, nest: Gemm | Alu, first: int, src: int) -> Iterable[Place]:
        """The places that a micro-op reads beside those of every other one."""
        return ()

    def lanes(self, gemm: Gemm, src: int, seen: np.ndarray) -> np.ndarray:
        """[output, lane] what each output of a GEMM multiplies, where that was ``seen``."""
        return seen

    def touched(self, each: Instruction) -> tuple[Iterable[Place], Iterable[Place]]:
        """The places that an instruction of the option's reads, and that it writes."""
        return (), ()


class Replay:
    """A sound program once more, micro-op by micro-op: its operands, and what it touches."""

    def __init__(self, case: Case, outcome: Outcome) -> None:
        self.stream, self.config, self.ring = case.stream, case.config, ring_of(case.config)
        self.state = State(case.config, case.dram.copy(), spare_uops=2)
        self.state.uop[-1, 0] = 1
        self.hooks = [kind(self.config, self.state) for kind in Hook.KINDS]
        self.seen: set[str] = set()
        self.writer: dict[Place, Engine] = {}
        self.readers: dict[Place, set[Engine]] = {}
        for index in np.lexsort((self.stream.rows[:, 0], outcome.finish)):
            self._one(self.stream.instructions[index], self.stream.rows[index])
        self.seen.update(*(hook.seen for hook in self.hooks))

    def _one(self, each: Instruction, row: np.ndarray) -> None:
        if isinstance(each, MOVES):
            if isinstance(each, Store) and each.written == "acc8":
                self._store(each)
            execute(self.state, row)
            self._move(each)
        elif isinstance(each, Gemm | Alu):
            self._nest(each)
        else:
            execute(self.state, row)
            for hook in self.hooks:
                reads, writes = map(set[Place], hook.touched(each))
                self._touch(self.ring.engine_of(each), reads, writes)

    def _touch(self, engine: Engine, reads: set[Place], writes: set[Place]) -> None:
        for place in reads:
            before = self.writer.get(place, engine)
            if before != engine:
                self._hazard("read after write", place, before, engine)
        for place in writes:
            for before in self.readers.pop(place, set()) - {engine}:
                self._hazard("write after read", place, before, engine)
            before = self.writer.get(place, engine)
            if before != engine:
                self._hazard("write after write", place, before, engine)
            self.writer[place] = engine
        for place in reads:
            self.readers.setdefault(place, set()).add(engine)

    def _hazard(self, kind: str, place: Place, before: Engine, engine: Engine) -> None:
        self.seen.add(f"hazards: {kind}: {place[0]} {before.name} → {engine.name}")

    def _move(self, each: Load | Store) -> None:
        moved = {beat + i for beat, length, _ in runs(each, self.config) for i in range(length)}
        beats = {("dram", beat) for beat in moved}
        if isinstance(each, Load):
            buffer = Mem(each.memory).buffer
            width = each.pad_x0 + each.x_size + each.pad_x1
            height = each.pad_y0 + each.y_size + each.pad_y1
            entries = range(each.sram_base, each.sram_base + each.z_size * height * width)
            self._touch(self.ring.engine_of(each), beats, {(buffer, entry) for entry in entries})
        else:
            if (kept := kept_in(each)) is not None:
                per_entry = self.config.entry(kept.buffer) // self.config.port_bytes
                beats = {(kept.buffer, beat // per_entry) for beat in moved}
            self._touch(self.ring.engine_of(each), {("acc", at) for at, _ in _stored(each)}, beats)

    def _store(self, each: Store) -> None:
        acc = self.state.acc
        for at, plane in _stored(each):
            for x, word in zip(acc[at], acc[each.scale_base + plane], strict=True):
                kinds = requantized(int(x), int(word), each)
                self.seen |= seen_in("STORE requantizes", kinds)

    def _nest(self, each: Gemm | Alu) -> None:
        reads: set[Place] = set()
        writes: set[Place] = set()
        for hook in self.hooks:
            hook.begin(each)
        per_word = self.config.uops_per_word
        for i, j, k in product(*map(range, each.extents())):

            def at(axis: str, i: int = i, j: int = j, k: int = k) -> int:
                steps = (int(getattr(each, f"{axis}_{n}")) for n in range(3))
                base = int(getattr(each, f"{axis}_base"))
                return base + sum(n * s for n, s in zip((i, j, k), steps, strict=True))

            for u in range(each.uop_begin, each.uop_begin + each.uop_count):
                first, dst, src, wgt = map(int, self.state.uop[u])
                reads.add(("uop", u // per_word))
                dst, src = at("dst") + dst, at("src") + src
                writes.add(("acc", dst))
                reads.update(*(hook.reads(each, first, src) for hook in self.hooks))
                if isinstance(each, Gemm):
                    wgt += at("wgt")
                    reads |= {("inp", src), ("wgt", wgt)}
                    bias = at("bias") if first and each.init == Init.BIAS else None
                    reads |= {("acc", dst if bias is None else bias)}
                    self._gemm(each, first, dst, src, wgt, bias)
                else:
                    reads.add(("acc", dst))
                    if not each.use_imm or AluOp(each.alu_op).y_from_acc:
                        reads.add(("acc", src))
                    self._alu(each, first, dst, src)
        self._touch(self.ring.engine_of(each), reads, writes)

    def _gemm(self, each: Gemm, first: int, dst: int, src: int, wgt: int, bias: int | None) -> None:
        x, w = self.state.inp[src].astype(np.int64), self.state.wgt[wgt].astype(np.int64)
        starts = first and each.init != Init.ACC
        start = self.state.acc[dst if bias is None else bias].astype(np.int64)
        if starts and bias is None:
            start = np.zeros_like(start)
        seen = np.tile(x, (self.config.block_out, 1))
        for hook in self.hooks:
            seen = hook.lanes(each, src, seen)
        total = start + (w * seen).sum(axis=1)
        wraps = (total < INT32_MIN) | (total > INT32_MAX)
        kinds = {
            "wraps": wraps.any(), "doesn't wrap": not wraps.all(),
            "−128 × −128": ((w == -128) & (x == -128)).any(),
            "starts from the bias": bias is not None, "starts from 0": starts and bias is None,
        }  # fmt: skip
        self.seen |= seen_in("GEMM", kinds)
        self.state.acc[dst] = total.astype(np.int64).astype(np.uint32).view(np.int32)

    def _alu(self, each: Alu, first: int, dst: int, src: int) -> None:
        op, acc = AluOp(each.alu_op), self.state.acc
        starts = bool(first and each.init)
        self.seen |= seen_in("ALU starts", {"from y": starts, "from x": not starts})
        if not starts and op in CORNERS:
            for lane, x in enumerate(map(int, acc[dst])):
                immediate = each.use_imm and not op.y_from_acc
                y = each.imm if immediate else int(acc[src][lane])
                kinds = CORNERS[op].observer(Lane(each, x, y, self.state))
                self.seen |= seen_in(f"ALU {op.name}", kinds)
        one = each.replace(
            uop_begin=self.config.uop_depth + first, uop_count=1, dst_base=dst, src_base=src,
            extent_0=1, extent_1=1, extent_2=1,
        )  # fmt: skip
        execute(self.state, Stream.of(self.config, [one]).rows[0])


def _stored(each: Store) -> Iterator[tuple[int, int]]:
    """ACC entries that a STORE reads, with their plane."""
    for z, y, x in product(range(each.z_size), range(each.y_size), range(each.x_size)):
        yield each.sram_base + z * each.z_pitch + y * each.y_pitch + x, z
