"""Operands and results at their corners: kinds of values that programs should bring about.

    @corners(AluOp.ADD, "wraps", "doesn't wrap")          of a lane of an operation, by its name
    def add(lane: Lane) -> Kinds: ...

A goal is ``"values: ALU ADD: wraps"``. Options name the kinds of their operations, and add goals.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Store, operations
from vdla.isa.numbers import INT32_MAX, INT32_MIN, MAX_SHIFT, unpack_scale
from vdla.sim.semantics import State
from vdla.support.seams import Seam

Kinds = Mapping[str, object]  # of values, and whether each occurs


@dataclass(frozen=True)
class Lane:
    """Operands of a lane, with the instruction, and the memories before it."""

    alu: Alu
    x: int
    y: int
    state: State

    def low(self, name: str) -> int:
        """The low bits that the operation takes of x, y or imm, as a signed number."""
        value = self.alu.imm if name == "imm" else int(getattr(self, name))
        bits = AluOp(self.alu.alu_op).bits.get(name, 32)
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value

    @property
    def is_cut(self) -> bool:
        """Whether x or y has more bits than the operation takes."""
        return self.low("x") != self.x or self.low("y") != self.y


Observer = Callable[[Lane], Kinds]


@dataclass(frozen=True)
class Corners:
    """Kinds of an operation's values; ``observer`` says which of them a lane's are. A config may
    lack some."""

    kinds: tuple[str, ...]
    observer: Observer
    lacking: Callable[[Config], Container[str]]


CORNERS: dict[AluOp, Corners] = {}
VALUES: Seam[Callable[[Config], Iterable[str]]] = Seam()  # goals of options: "GEMM's …: …"


def nothing(config: Config) -> Container[str]:
    """Kinds that a config lacks: none."""
    return ()


def corners(
    op: AluOp, *kinds: str, lacking: Callable[[Config], Container[str]] = nothing
) -> Callable[[Observer], Observer]:
    """Names kinds of values that lanes of an operation should have."""

    def add(observer: Observer) -> Observer:
        CORNERS[op] = Corners(kinds, observer, lacking)
        return observer

    return add


def value_goals(config: Config) -> Iterator[str]:
    """The corners of every operation's operands and results."""
    for op in operations(config):
        if known := CORNERS.get(op):
            lacking = known.lacking(config)
            yield from (f"values: ALU {op.name}: {k}" for k in known.kinds if k not in lacking)
    for what, kinds in OTHERS.items():
        yield from (f"values: {what}: {kind}" for kind in kinds)
    for goals in VALUES:
        yield from (f"values: {goal}" for goal in goals(config))


def seen_in(what: str, kinds: Kinds) -> set[str]:
    """The goals that values reach."""
    return {f"values: {what}: {kind}" for kind, is_so in kinds.items() if is_so}


# Requantization ---------------------------------------------------------------------------------

REQUANTIZED = (
    "a tie goes up", "a tie goes down", "a tie of a negative", "no tie", "a shift of 0",
    "the largest shift", "a mantissa of 0", "the largest mantissa", "the product saturates high",
    "the product saturates low", "limited low", "limited high", "within its limits",
)  # fmt: skip
OTHERS = {
    "STORE requantizes": REQUANTIZED,
    "GEMM": ("wraps", "doesn't wrap", "−128 × −128", "starts from the bias", "starts from 0"),
    "ALU starts": ("from y", "from x"),
}


def requantized(x: int, word: int, each: Store | Alu) -> Kinds:
    """The kinds of a requantization by a scale word, within an instruction's limits."""
    mantissa, shift = unpack_scale(word)
    product = x * mantissa
    rest, half = product & ((1 << shift) - 1), (1 << shift) >> 1
    quotient = product >> shift
    tie = shift > 0 and rest == half
    value = quotient + (rest > half or (tie and quotient & 1))
    limited = min(max(value, INT32_MIN), INT32_MAX) + each.zero
    seen = each.low <= limited <= each.high and tie  # what a tie came to isn't cut off again
    return {
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


# Operations -------------------------------------------------------------------------------------


def _wraps(exact: int) -> Kinds:
    wraps = not INT32_MIN <= exact <= INT32_MAX
    return {"wraps": wraps, "doesn't wrap": not wraps}


@corners(AluOp.ADD, "wraps", "doesn't wrap")
def add(lane: Lane) -> Kinds:
    """The kinds of a sum."""
    return _wraps(lane.x + lane.y)


@corners(AluOp.MIN, "takes x", "takes y")
def least(lane: Lane) -> Kinds:
    """The kinds of the less of two."""
    return {"takes x": lane.x < lane.y, "takes y": lane.y < lane.x}


@corners(AluOp.MAX, "takes x", "takes y")
def greatest(lane: Lane) -> Kinds:
    """The kinds of the greater of two."""
    return {"takes x": lane.x > lane.y, "takes y": lane.y > lane.x}


@corners(AluOp.SHR, "right", "left", "by 0", "right by 31", "left by 32")
def shift(lane: Lane) -> Kinds:
    """The kinds of a shift."""
    amount = lane.low("y")
    ends = {"right by 31": amount == 31, "left by 32": amount == -32}
    return {"right": amount > 0, "left": amount < 0, "by 0": amount == 0, **ends}


@corners(AluOp.MUL, "wraps", "doesn't wrap", "bits of y beyond its multiplier")
def multiply(lane: Lane) -> Kinds:
    """The kinds of a product."""
    beyond = {"bits of y beyond its multiplier": lane.is_cut}
    return {**_wraps(lane.x * lane.low("y")), **beyond}


@corners(AluOp.WADD, "wraps", "doesn't wrap", "bits of x or y beyond its multiplier")
def weighted_sum(lane: Lane) -> Kinds:
    """The kinds of a weighted sum."""
    exact = lane.low("x") * lane.alu.weight + lane.low("y") * lane.low("imm")
    return {**_wraps(exact), "bits of x or y beyond its multiplier": lane.is_cut}


@corners(AluOp.RQ, *REQUANTIZED)
def requantize(lane: Lane) -> Kinds:
    """The kinds of a requantization."""
    return requantized(lane.x, lane.y, lane.alu)
