"""Functional coverage of lockstep: what the programs so far have made the machines do.

A **goal** is a name like ``"STORE requantizes: a tie goes up"``. ``goals`` lists all of them for a
config, derived from ``isa/`` where they can be; ``Coverage`` ticks off those that a case reached on
the simulator. Groups, the part before the colon, are

* fields: each value or kind of value of every field of an instruction that started;
* values: operands and results at their corners, in instructions of sound programs;
* hazards: two instructions of different engines at one entry, by kind, memory and direction;
* tokens: levels of each token queue, and who waited for it;
* causes: what each engine's cycles went to; instructions in flight;
* endings: every fault at every place, and the deadlock;
* bursts: their length, and what ended them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vdla.cases import MOST_TOKENS, Case, Outcome, endings
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.fields import Field
from vdla.isa.instructions import (
    INSTRUCTIONS,
    MUL_BITS,
    WEIGHT_BITS,
    Alu,
    AluOp,
    Engine,
    Finish,
    Gemm,
    Init,
    Instruction,
    Load,
    Mem,
    Store,
)
from vdla.isa.numbers import INT32_MAX, INT32_MIN, MAX_SHIFT, unpack_scale
from vdla.isa.registers import Cause
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream, column

LOADS = STORES = 8  # in flight at once: docs/timing.md, sections 4 and 6
BASES = ("sram_base", "scale_base", "uop_begin", "dst_base", "src_base", "wgt_base", "bias_base")
COUNTS = ("x_size", "y_size", "z_size", "extent_0", "extent_1", "extent_2", "uop_count")
IMPOSSIBLE = {(Engine.COMPUTE, Cause.MEMORY), (Engine.STORE, Cause.BANK)}
MOVES = (Load, Store)
Place = tuple[str, int]

HAZARDS = {
    "read after write": (
        "inp LOAD → COMPUTE", "wgt LOAD → COMPUTE", "uop LOAD → COMPUTE", "acc LOAD → COMPUTE",
        "acc LOAD → STORE", "acc COMPUTE → STORE", "dram STORE → LOAD",
    ),
    "write after read": (
        "inp COMPUTE → LOAD", "wgt COMPUTE → LOAD", "uop COMPUTE → LOAD", "acc COMPUTE → LOAD",
        "acc STORE → LOAD", "acc STORE → COMPUTE", "dram LOAD → STORE",
    ),
    "write after write": ("acc LOAD → COMPUTE", "acc COMPUTE → LOAD"),
}  # fmt: skip
REQUANTIZED = (
    "a tie goes up", "a tie goes down", "a tie of a negative", "no tie", "a shift of 0",
    "the largest shift", "a mantissa of 0", "the largest mantissa", "the product saturates high",
    "the product saturates low", "limited low", "limited high", "within its limits",
)  # fmt: skip
VALUES = {
    "ALU ADD": ("wraps", "doesn't wrap"),
    "ALU MIN": ("takes x", "takes y"),
    "ALU MAX": ("takes x", "takes y"),
    "ALU SHR": ("right", "left", "by 0", "right by 31", "left by 32"),
    "ALU MUL": ("wraps", "doesn't wrap", "bits of y beyond its multiplier"),
    "ALU WADD": ("wraps", "doesn't wrap", "bits of x or y beyond its multiplier"),
    "ALU RQ": REQUANTIZED,
    "STORE requantizes": REQUANTIZED,
    "GEMM": ("wraps", "doesn't wrap", "−128 × −128", "starts from the bias", "starts from 0"),
    "ALU starts": ("from y", "from x"),
}
BURSTS = ("of one beat", "of some beats", "as long as it may be")
CUTS = ("ends with its run", "ends at a page", "ends at its longest")


class Coverage:
    """The goals of a config, and those reached."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.goals = frozenset(goals(config))
        self.reached: set[str] = set()
        self._endings = endings(config)
        self._replayed: Case | None = None

    @property
    def missing(self) -> list[str]:
        """Goals that nothing has reached yet."""
        return sorted(self.goals - self.reached)

    def by_group(self) -> dict[str, tuple[int, int]]:
        """Per group, the goals reached and all of them."""
        groups = sorted({goal.partition(":")[0] for goal in self.goals})
        return {
            group: (_of(group, self.reached & self.goals), _of(group, self.goals))
            for group in groups
        }

    def add(self, case: Case, outcome: Outcome) -> None:
        """Ticks off what a case has reached on the simulator."""
        stream = case.stream
        sound = not case.spoilt and outcome.cycles >= 0 and not outcome.fault
        seen = {*_causes(outcome), *self._ending(case, outcome), *_fields(stream, outcome)}
        seen |= {*_tokens(stream, outcome), *_in_flight(stream, outcome)}
        if sound and case is not self._replayed:  # behind any memory it does the same
            self._replayed = case
            seen |= {*_bursts(stream), *_Replay(case, outcome).seen}
        self.reached |= seen & self.goals

    def _ending(self, case: Case, outcome: Outcome) -> Iterator[str]:
        known = self._endings.get(case.goal)
        if known and outcome.fault == known.fault:
            yield f"endings: {known.fault.name}: {case.goal}"
        if outcome.cycles < 0:
            yield "endings: deadlock"
        elif not outcome.fault:
            yield "endings: FINISH"


def goals(config: Config) -> Iterator[str]:
    """Everything that programs for a config should reach."""
    for cls in INSTRUCTIONS:
        if cls is not Finish:
            for f in cls.fields[1:]:
                yield from (f"fields: {cls.mnemonic} {f.name} {kind}" for kind in _kinds(f))
    for what, kinds in VALUES.items():
        yield from (f"values: {what}: {kind}" for kind in kinds)
    for hazard, places in HAZARDS.items():
        yield from (f"hazards: {hazard}: {place}" for place in places)
    for giver in Engine:
        for taker in (giver.next, giver.prev):
            levels = ["one", "waits for a token"]
            if config.token_queue <= MOST_TOKENS:
                levels += ["full", "waits for a slot"]
            yield from (f"tokens: {giver.name} → {taker.name}: {level}" for level in levels)
    for engine, cause in product(Engine, Cause):
        if (engine, cause) not in IMPOSSIBLE:
            yield f"causes: {engine.name} {cause.name}"
    yield from (f"causes: {LOADS} LOADs in flight", f"causes: {STORES} STOREs in flight")
    for goal, ending in endings(config).items():
        yield f"endings: {ending.fault.name}: {goal}"
    yield from ("endings: deadlock", "endings: FINISH")
    for cls in MOVES:
        longest = [BURSTS[2], CUTS[2]] if config.burst_beats > 2 else []
        for kind in (*BURSTS[:2], *CUTS[:2], *longest, "of a row", "of an entry"):
            yield f"bursts: {cls.mnemonic} {kind}"


# Fields ------------------------------------------------------------------------------------------


def _kinds(f: Field) -> tuple[str, ...]:
    """The kinds of values of a field; ``_kind`` says which one a value is of."""
    if f.legal:
        return tuple(f.names[value] for value in f.legal)
    if f.is_flag:
        return "clear", "set"
    if f.signed:
        return "lowest", "negative", "zero", "positive", "highest"
    if f.name == "dram_base":
        return "at a page", "within a page", "at a page's last beat"
    if f.name in COUNTS:
        return "zero", "one", "more"
    if f.name in BASES:
        return "first", "within", "last"
    return "zero", "one", "more", "highest"


def _kind(f: Field, each: Instruction, config: Config) -> str:
    value = int(getattr(each, f.name))
    low, high = f.bounds(config)
    if f.legal:
        return f.names[value] if value in f.legal else "illegal"
    if f.is_flag:
        return ("clear", "set")[value]
    if f.signed:
        ends = {low: "lowest", high: "highest", 0: "zero"}
        return ends.get(value, "positive" if value > 0 else "negative")
    if f.name == "dram_base":
        return {0: "at a page", PAGE_BYTES - config.port_bytes: "at a page's last beat"}.get(
            value % PAGE_BYTES, "within a page"
        )
    if f.name in COUNTS:
        return ("zero", "one", "more")[min(value, 2)]
    if f.name in BASES:
        return {0: "first", _last(f, each, config): "last"}.get(value, "within")
    return {0: "zero", 1: "one", high: "highest"}.get(value, "more")


def _last(f: Field, each: Instruction, config: Config) -> int:
    """The last index that a base can name."""
    if f.name == "uop_begin":
        return config.uop_depth - 1
    if f.name == "sram_base" and isinstance(each, Load) and each.memory in tuple(Mem):
        return config.depth(Mem(each.memory).buffer) - 1
    gemm = {"src_base": "inp", "wgt_base": "wgt"} if isinstance(each, Gemm) else {}
    return config.depth(gemm.get(f.name, "acc")) - 1


def _fields(stream: Stream, outcome: Outcome) -> Iterator[str]:
    for index, each in enumerate(stream.instructions):
        if outcome.begun[index] >= 0 and type(each) in INSTRUCTIONS:
            for f in each.fields[1:]:
                yield f"fields: {each.mnemonic} {f.name} {_kind(f, each, stream.config)}"


# Cycles ------------------------------------------------------------------------------------------


def _causes(outcome: Outcome) -> Iterator[str]:
    for engine, cause in product(Engine, Cause):
        if outcome.causes[f"{engine.name}_{cause.name}"]:
            yield f"causes: {engine.name} {cause.name}"


def _in_flight(stream: Stream, outcome: Outcome) -> Iterator[str]:
    for engine, most in ((Engine.LOAD, LOADS), (Engine.STORE, STORES)):
        rows = stream.engine(engine)
        begun = outcome.begun[rows][outcome.begun[rows] >= 0]
        ended = np.sort(outcome.ended[rows][outcome.ended[rows] >= 0])
        level = np.arange(1, len(begun) + 1) - np.searchsorted(ended, begun)
        if np.any(level >= most):
            yield f"causes: {most} {engine.name}s in flight"


def _tokens(stream: Stream, outcome: Outcome) -> Iterator[str]:
    """A slot is taken when the giver starts, and free again when the taker has started."""
    size = stream.config.token_queue
    for giver in Engine:
        for taker in (giver.next, giver.prev):
            forward = giver.next == taker
            push, pop = ("push_next", "pop_prev") if forward else ("push_prev", "pop_next")
            given = _flagged(stream, giver, push)
            taken = _flagged(stream, taker, pop)
            begun, ended = outcome.begun[given], outcome.ended[given]
            popped = outcome.begun[taken]
            name = f"tokens: {giver.name} → {taker.name}"
            if np.any(ended >= 0):
                yield f"{name}: one"
            both = min(len(given), len(taken))
            if np.any((popped[:both] >= 0) & (popped[:both] == ended[:both] + 1)):
                yield f"{name}: waits for a token"
            starts, pops = begun[begun >= 0], np.sort(popped[popped >= 0])
            level = np.arange(1, len(starts) + 1) - np.searchsorted(pops, starts)
            if np.any(level >= size):
                yield f"{name}: full"
            later = min(len(begun) - size, len(popped))
            if later > 0 and np.any(
                (popped[:later] >= 0) & (begun[size : size + later] == popped[:later] + 1)
            ):
                yield f"{name}: waits for a slot"


def _of(group: str, goals: Iterable[str]) -> int:
    return sum(goal.startswith(f"{group}:") for goal in goals)


def _flagged(stream: Stream, engine: Engine, flag: str) -> NDArray[np.int64]:
    rows = stream.engine(engine)
    found: NDArray[np.int64] = rows[stream.rows[rows, column(Load, flag)] != 0]
    return found  # every class has its flags in the same columns


# Bursts ------------------------------------------------------------------------------------------


def _bursts(stream: Stream) -> Iterator[str]:
    config = stream.config
    page, most = PAGE_BYTES // config.port_bytes, config.burst_beats
    for each in stream.instructions:
        if not isinstance(each, MOVES):
            continue
        name = f"bursts: {each.mnemonic}"
        for beat, left, dense in _runs(each, config):
            yield f"{name} of {'a row' if dense else 'an entry'}"
            while left:
                length = min(left, most, page - beat % page)
                kind = 0 if length == 1 else 2 if length == most else 1
                yield f"{name} {BURSTS[kind]}"
                beat, left = beat + length, left - length
                if not left:
                    yield f"{name} {CUTS[0]}"
                elif beat % page == 0:
                    yield f"{name} {CUTS[1]}"
                elif length == most:
                    yield f"{name} {CUTS[2]}"


def _runs(each: Load | Store, config: Config) -> Iterator[tuple[int, int, bool]]:
    """First beat, beats, and whether it is a row, of each run."""
    entry = config.entry(Mem(each.memory).name.lower()) // config.port_bytes
    dense = each.x_stride == 1
    runs = range(min(each.x_size, 1) if dense else each.x_size)
    for z, y, x in product(range(each.z_size), range(each.y_size), runs):
        offset = z * each.z_stride + y * each.y_stride + x * each.x_stride
        beat = each.dram_base // config.port_bytes + offset * entry
        yield beat, entry * (each.x_size if dense else 1), dense


# Values and hazards ------------------------------------------------------------------------------


class _Replay:
    """A sound program once more, micro-op by micro-op: its operands, and what it touches."""

    def __init__(self, case: Case, outcome: Outcome) -> None:
        self.stream, self.config = case.stream, case.config
        self.state = State(case.config, case.dram.copy())
        self.seen: set[str] = set()
        self.writer: dict[Place, Engine] = {}
        self.readers: dict[Place, set[Engine]] = {}
        for index in np.lexsort((self.stream.rows[:, 0], outcome.ended)):
            self._one(self.stream.instructions[index], self.stream.rows[index])

    def _one(self, each: Instruction, row: np.ndarray) -> None:
        if isinstance(each, MOVES):
            if isinstance(each, Store) and each.memory == Mem.ACC8:
                self._store(each)
            execute(self.state, row)
            self._move(each)
        elif isinstance(each, Gemm | Alu):
            self._nest(each)

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
        beats = {
            ("dram", beat + i)
            for beat, length, _ in _runs(each, self.config)
            for i in range(length)
        }
        if isinstance(each, Load):
            buffer = Mem(each.memory).buffer
            width = each.pad_x0 + each.x_size + each.pad_x1
            height = each.pad_y0 + each.y_size + each.pad_y1
            entries = range(each.sram_base, each.sram_base + each.z_size * height * width)
            self._touch(Engine.LOAD, beats, {(buffer, entry) for entry in entries})
        else:
            self._touch(Engine.STORE, {("acc", at) for at, _ in _stored(each)}, beats)

    def _store(self, each: Store) -> None:
        acc = self.state.acc
        for at, plane in _stored(each):
            for x, word in zip(acc[at], acc[each.scale_base + plane], strict=True):
                self._requantized("STORE requantizes", int(x), int(word), each)

    def _requantized(self, name: str, x: int, word: int, each: Store | Alu) -> None:
        mantissa, shift = unpack_scale(word)
        product = x * mantissa
        rest, half = product & ((1 << shift) - 1), (1 << shift) >> 1
        quotient = product >> shift
        tie = shift > 0 and rest == half
        value = quotient + (rest > half or (tie and quotient & 1))
        limited = min(max(value, INT32_MIN), INT32_MAX) + each.zero
        seen = each.low <= limited <= each.high and tie  # what a tie came to isn't cut off again
        kinds = {
            "a tie goes up": seen and quotient & 1,
            "a tie goes down": seen and not quotient & 1,
            "a tie of a negative": seen and product < 0,
            "no tie": not tie,
            "a shift of 0": shift == 0,
            "the largest shift": shift == MAX_SHIFT,
            "a mantissa of 0": mantissa == 0,
            "the largest mantissa": mantissa == (1 << 24) - 1,
            "the product saturates high": value > INT32_MAX,
            "the product saturates low": value < INT32_MIN,
            "limited low": limited < each.low,
            "limited high": limited > each.high,
            "within its limits": each.low <= limited <= each.high,
        }
        self._values(name, kinds)

    def _values(self, name: str, kinds: Mapping[str, object]) -> None:
        self.seen |= {f"values: {name}: {kind}" for kind, is_so in kinds.items() if is_so}

    def _nest(self, each: Gemm | Alu) -> None:
        reads: set[Place] = set()
        writes: set[Place] = set()
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
                if isinstance(each, Gemm):
                    wgt += at("wgt")
                    reads |= {("inp", src), ("wgt", wgt)}
                    bias = at("bias") if first and each.init == Init.BIAS else None
                    reads |= {("acc", dst if bias is None else bias)}
                    self._gemm(each, first, dst, src, wgt, bias)
                else:
                    reads.add(("acc", dst))
                    if not each.use_imm or each.alu_op == AluOp.WADD:
                        reads.add(("acc", src))
                    self._alu(each, first, dst, src)
        self._touch(Engine.COMPUTE, reads, writes)

    def _gemm(self, each: Gemm, first: int, dst: int, src: int, wgt: int, bias: int | None) -> None:
        x, w = self.state.inp[src].astype(np.int64), self.state.wgt[wgt].astype(np.int64)
        starts = first and each.init != Init.ACC
        start = self.state.acc[dst if bias is None else bias].astype(np.int64)
        if starts and bias is None:
            start = np.zeros_like(start)
        total = start + w @ x
        wraps = (total < INT32_MIN) | (total > INT32_MAX)
        kinds = {
            "wraps": wraps.any(), "doesn't wrap": not wraps.all(),
            "−128 × −128": ((w == -128) & (x == -128)).any(),
            "starts from the bias": bias is not None, "starts from 0": starts and bias is None,
        }  # fmt: skip
        self._values("GEMM", kinds)
        self.state.acc[dst] = total.astype(np.int64).astype(np.uint32).view(np.int32)

    def _alu(self, each: Alu, first: int, dst: int, src: int) -> None:
        op, acc = AluOp(each.alu_op), self.state.acc
        starts = bool(first and each.init)
        self._values("ALU starts", {"from y": starts, "from x": not starts})
        if not starts:
            for lane, x in enumerate(map(int, acc[dst])):
                immediate = each.use_imm and op != AluOp.WADD
                y = each.imm if immediate else int(acc[src][lane])
                self._operation(each, op, x, y)
        one = each.replace(
            uop_begin=self._spare(first), uop_count=1, extent_0=1, extent_1=1, extent_2=1,
            dst_base=dst, src_base=src,
        )  # fmt: skip
        execute(self.state, Stream.of(self.config, [one]).rows[0])

    def _spare(self, first: int) -> int:
        """A micro-op of its own, behind those of the buffer, with indices of zero."""
        uop = self.state.uop
        if len(uop) == self.config.uop_depth:
            self.state.uop = np.vstack((uop, np.array([[0, 0, 0, 0], [1, 0, 0, 0]], np.int64)))
        return self.config.uop_depth + first

    def _operation(self, each: Alu, op: AluOp, x: int, y: int) -> None:
        name = f"ALU {op.name}"
        if op == AluOp.RQ:
            self._requantized(name, x, y, each)
            return
        amount = _low(y, 6)
        exact = {
            AluOp.ADD: x + y,
            AluOp.MUL: x * _low(y, MUL_BITS),
            AluOp.WADD: _low(x, 18) * each.weight + _low(y, 18) * _low(each.imm, WEIGHT_BITS),
        }.get(op, 0)
        wraps = not INT32_MIN <= exact <= INT32_MAX
        beyond = {AluOp.MUL: _low(y, MUL_BITS) != y,
                  AluOp.WADD: _low(x, 18) != x or _low(y, 18) != y}  # fmt: skip
        kinds: Mapping[str, object] = {
            "wraps": wraps, "doesn't wrap": not wraps,
            "takes x": (x < y) == (op == AluOp.MIN) and x != y,
            "takes y": (y < x) == (op == AluOp.MIN) and x != y,
            "right": amount > 0, "left": amount < 0, "by 0": amount == 0,
            "right by 31": amount == 31, "left by 32": amount == -32,
            "bits of y beyond its multiplier": beyond.get(op),
            "bits of x or y beyond its multiplier": beyond.get(op),
        }  # fmt: skip
        self._values(name, {kind: kinds[kind] for kind in VALUES.get(name, ())})


def _stored(each: Store) -> Iterator[tuple[int, int]]:
    """ACC entries that a STORE reads, with their plane."""
    for z, y, x in product(range(each.z_size), range(each.y_size), range(each.x_size)):
        yield each.sram_base + z * each.z_pitch + y * each.y_pitch + x, z


def _low(value: int, bits: int) -> int:
    """The low bits of a value, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
