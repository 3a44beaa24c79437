"""Operands and results at their corners, and hazards: a sound program once more, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product

import numpy as np

from vdla.analysis.case import Case, Outcome
from vdla.analysis.coverage.bursts import MOVES, runs
from vdla.isa.config import Config
from vdla.isa.instructions import (
    MUL_BITS,
    WEIGHT_BITS,
    Alu,
    AluOp,
    Gemm,
    Init,
    Instruction,
    Load,
    Mem,
    Store,
    operations,
)
from vdla.isa.numbers import INT32_MAX, INT32_MIN, MAX_SHIFT, unpack_scale
from vdla.isa.options.tables import TABLE_BITS, TABLE_RESULTS, tables
from vdla.isa.options.window import pitch, sees_window, window_rows, window_taps
from vdla.isa.ring import Engine, ring_of
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream

Place = tuple[str, int]

REQUANTIZED = (
    "a tie goes up", "a tie goes down", "a tie of a negative", "no tie", "a shift of 0",
    "the largest shift", "a mantissa of 0", "the largest mantissa", "the product saturates high",
    "the product saturates low", "limited low", "limited high", "within its limits",
)  # fmt: skip
INVERTED = (
    "of no positive number", "of 1", "of an even power of two", "of an odd power of two",
    "of the greatest number", "of another number",
)  # fmt: skip
VALUES = {
    "ALU ADD": ("wraps", "doesn't wrap"),
    "ALU MIN": ("takes x", "takes y"),
    "ALU MAX": ("takes x", "takes y"),
    "ALU SHR": ("right", "left", "by 0", "right by 31", "left by 32"),
    "ALU MUL": ("wraps", "doesn't wrap", "bits of y beyond its multiplier"),
    "ALU WADD": ("wraps", "doesn't wrap", "bits of x or y beyond its multiplier"),
    "ALU RQ": REQUANTIZED,
    "ALU TABLE": (
        "bits of y beyond its index",
        "the first result",
        "the last result",
        "a negative result",
        "a positive result",
        "a table but the first",
        "bits of imm beyond the number",
    ),
    "ALU SCALE": tuple(kind for kind in REQUANTIZED if "limit" not in kind),
    "ALU RECIPROCAL": INVERTED,
    "ALU RSQRT": INVERTED,
    "STORE requantizes": REQUANTIZED,
    "GEMM": ("wraps", "doesn't wrap", "−128 × −128", "starts from the bias", "starts from 0"),
    "GEMM's window": ("lacks older vectors", "is full", "an older vector counts"),
    "GEMM's second row": ("is the first", "is another", "an older vector counts"),
    "ALU starts": ("from y", "from x"),
}


def value_goals(config: Config) -> Iterator[str]:
    """The corners of every operation's operands and results."""
    absent = {f"ALU {op.name}" for op in set(AluOp) - set(operations(config))}
    if not window_taps(config):
        absent.add("GEMM's window")
    if window_rows(config) == 1:
        absent.add("GEMM's second row")
    if tables(config) == 1:
        absent.add("ALU TABLE: a table but the first")
    for what, kinds in VALUES.items():
        if what not in absent:
            goals = (f"{what}: {kind}" for kind in kinds)
            yield from (f"values: {goal}" for goal in goals if goal not in absent)


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


class Replay:
    """A sound program once more, micro-op by micro-op: its operands, and what it touches."""

    def __init__(self, case: Case, outcome: Outcome) -> None:
        self.stream, self.config, self.ring = case.stream, case.config, ring_of(case.config)
        self.state = State(case.config, case.dram.copy(), spare_uops=2)
        self.state.uop[-1, 0] = 1
        self.seen: set[str] = set()
        self.writer: dict[Place, Engine] = {}
        self.readers: dict[Place, set[Engine]] = {}
        for index in np.lexsort((self.stream.rows[:, 0], outcome.finish)):
            self._one(self.stream.instructions[index], self.stream.rows[index])

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
            if each.stays_on_chip:
                per_entry = self.config.inp_entry // self.config.port_bytes
                beats = {("inp", beat // per_entry) for beat in moved}
            self._touch(self.ring.engine_of(each), {("acc", at) for at, _ in _stored(each)}, beats)

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
        self._values(name, {kind: kinds[kind] for kind in VALUES[name]})

    def _values(self, name: str, kinds: Mapping[str, object]) -> None:
        self.seen |= {f"values: {name}: {kind}" for kind, is_so in kinds.items() if is_so}

    def _nest(self, each: Gemm | Alu) -> None:
        reads: set[Place] = set()
        writes: set[Place] = set()
        # The window's vectors, of this GEMM's micro-ops as far as it is: those of each row.
        self.vectors: list[list[np.ndarray]] = [[] for _ in range(window_rows(self.config))]
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
                    if sees_window(each):
                        reads.add(("inp", src + pitch(each)))
                    bias = at("bias") if first and each.init == Init.BIAS else None
                    reads |= {("acc", dst if bias is None else bias)}
                    self._gemm(each, first, dst, src, wgt, bias)
                else:
                    reads.add(("acc", dst))
                    if not each.use_imm or AluOp(each.alu_op).y_from_acc:
                        reads.add(("acc", src))
                    if each.alu_op == AluOp.TABLE and not (first and each.init):
                        reads |= self._table(each)
                    self._alu(each, first, dst, src)
        self._touch(self.ring.engine_of(each), reads, writes)

    def _table(self, each: Alu) -> set[Place]:
        """The entries of TAB that a TABLE may read: those of its table."""
        words = self.config.depth("tab") // tables(self.config)
        first = each.imm % (1 << TABLE_BITS) * words
        return {("tab", entry) for entry in range(first, first + words)}

    def _gemm(self, each: Gemm, first: int, dst: int, src: int, wgt: int, bias: int | None) -> None:
        x, w = self.state.inp[src].astype(np.int64), self.state.wgt[wgt].astype(np.int64)
        starts = first and each.init != Init.ACC
        start = self.state.acc[dst if bias is None else bias].astype(np.int64)
        if starts and bias is None:
            start = np.zeros_like(start)
        total = start + (w * self._seen_lanes(each, src)).sum(axis=1)
        wraps = (total < INT32_MIN) | (total > INT32_MAX)
        kinds = {
            "wraps": wraps.any(), "doesn't wrap": not wraps.all(),
            "−128 × −128": ((w == -128) & (x == -128)).any(),
            "starts from the bias": bias is not None, "starts from 0": starts and bias is None,
        }  # fmt: skip
        self._values("GEMM", kinds)
        self.state.acc[dst] = total.astype(np.int64).astype(np.uint32).view(np.int32)

    def _seen_lanes(self, each: Gemm, src: int) -> np.ndarray:
        """Lanes that each output sees: the vector at ``src``, or a part of it and the window."""
        outputs, lanes, taps = self.config.block_out, self.config.block_in, window_taps(self.config)
        seen = np.tile(self.state.inp[src].astype(np.int64), (outputs, 1))
        if not sees_window(each):
            return seen
        for row, vectors in enumerate(self.vectors):
            vectors.append(self.state.inp[src + row * pitch(each)].astype(np.int64))
            window = [*vectors[: -taps - 1 : -1], *[np.zeros(lanes, np.int64)] * taps]
            for o, i in np.ndindex(outputs, 2 * taps):
                seen[o, 2 * taps * row + i] = window[i // 2][(o // 2 * 2 + i % 2) % lanes]
        self._window_values(each, seen)
        return seen

    def _window_values(self, each: Gemm, seen: np.ndarray) -> None:
        taps, steps = window_taps(self.config), len(self.vectors[0])
        kinds = {
            "lacks older vectors": steps < taps,
            "is full": steps >= taps,
            "an older vector counts": seen[:, 2 : 2 * taps].any(),
        }
        self._values("GEMM's window", kinds)
        if window_rows(self.config) > 1:
            older = seen[:, 2 * taps + 2 : 4 * taps].any()
            kinds = {"is the first": pitch(each) == 0, "is another": pitch(each) > 0,
                     "an older vector counts": older}  # fmt: skip
            self._values("GEMM's second row", kinds)

    def _alu(self, each: Alu, first: int, dst: int, src: int) -> None:
        op, acc = AluOp(each.alu_op), self.state.acc
        starts = bool(first and each.init)
        self._values("ALU starts", {"from y": starts, "from x": not starts})
        if not starts:
            for lane, x in enumerate(map(int, acc[dst])):
                immediate = each.use_imm and not op.y_from_acc
                y = each.imm if immediate else int(acc[src][lane])
                self._operation(each, op, x, y)
        one = each.replace(
            uop_begin=self.config.uop_depth + first, uop_count=1, dst_base=dst, src_base=src,
            extent_0=1, extent_1=1, extent_2=1,
        )  # fmt: skip
        execute(self.state, Stream.of(self.config, [one]).rows[0])

    def _operation(self, each: Alu, op: AluOp, x: int, y: int) -> None:
        name = f"ALU {op.name}"
        if op == AluOp.RQ:
            self._requantized(name, x, y, each)
            return
        if op == AluOp.SCALE:
            whole = each.replace(zero=0, low=INT32_MIN, high=INT32_MAX)
            self._requantized(name, x, y, whole)
            return
        if op == AluOp.TABLE:
            self._looked_up(name, y, each.imm)
            return
        if op.serial:
            self._inverted(name, y)
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

    def _inverted(self, name: str, y: int) -> None:
        power = y.bit_length() - 1 if y > 1 and y & (y - 1) == 0 else -1
        kinds = {
            "of no positive number": y <= 0, "of 1": y == 1,
            "of an even power of two": power >= 0 and power % 2 == 0,
            "of an odd power of two": power >= 0 and power % 2 == 1,
            "of the greatest number": y == INT32_MAX,
            "of another number": 1 < y < INT32_MAX and power < 0,
        }  # fmt: skip
        self._values(name, kinds)

    def _looked_up(self, name: str, y: int, imm: int) -> None:
        number, at = imm % (1 << TABLE_BITS), y % TABLE_RESULTS
        result = int(self.state.options["tab"].reshape(-1)[number * TABLE_RESULTS + at])
        kinds = {
            "bits of y beyond its index": y != at, "the first result": at == 0,
            "the last result": at == TABLE_RESULTS - 1, "a negative result": result < 0,
            "a positive result": result > 0, "a table but the first": number > 0,
            "bits of imm beyond the number": imm != number,
        }  # fmt: skip
        self._values(name, kinds)


def _stored(each: Store) -> Iterator[tuple[int, int]]:
    """ACC entries that a STORE reads, with their plane."""
    for z, y, x in product(range(each.z_size), range(each.y_size), range(each.x_size)):
        yield each.sram_base + z * each.z_pitch + y * each.y_pitch + x, z


def _low(value: int, bits: int) -> int:
    """The low bits of a value, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
