"""Number of times that each block of a function runs, out of LLVM's text alone.

The loops of compiled functions run constant numbers of steps, and what their conditions compare are
sums and products of the loops' variables. Both are evaluated with numpy for all steps at once, a
loop's variable along an axis of its own:

    %i = phi i64 [ 0, %entry ], [ %j, %loop ]      0, 1, … 7 along the loop's axis
    %j = add i64 %i, 1                             1, 2, … 8
    %e = icmp eq i64 %j, 8                         true in the last step: the loop runs 8 steps

A condition that depends on data holds every second time; a loop whose end does, runs
``UNKNOWN_STEPS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.processor.timing.instructions import NAME, Function, Instruction

Value = NDArray[Any]

UNKNOWN_STEPS = 8
FIRST_GUESS, MOST_STEPS = 64, 1 << 20
MOST_ELEMENTS = 1 << 21  # of a value that is evaluated
INTEGERS: dict[str, Callable[[Value, Value], Value]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "ashr": np.right_shift,
    "lshr": np.right_shift,
}  # fmt: skip
DIVISIONS: dict[str, Callable[[Value, Value], Value]] = {
    "udiv": np.floor_divide, "sdiv": np.floor_divide, "urem": np.mod, "srem": np.mod,
}  # fmt: skip
BOUNDS: dict[str, Callable[[Value, Value], Value]] = {
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Value, Value], Value]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@dataclass(eq=False)
class Loop:
    """A loop: the block that it begins with, all of its blocks, and the loop around it.

    ``steps`` is the mean number of steps, ``axis`` the axis of its variables, from the last.
    """

    header: str
    blocks: set[str]
    parent: Loop | None = None
    steps: float = 1.0
    axis: int = 1

    @property
    def around(self) -> Iterator[Loop]:
        """This loop and those around it, outwards."""
        yield self
        if self.parent is not None:
            yield from self.parent.around


class Counts:
    """Number of times that the blocks of a function run when it is called once.

    ``tasks`` is how many values its last parameter has, if it is a loop's step that threads share.
    """

    def __init__(self, function: Function, tasks: int = 1) -> None:
        self.function, self.tasks = function, tasks
        self.made = {
            each.name: (label, each)
            for label, block in function.blocks.items()
            for each in block.instructions
            if each.name
        }
        self.order, backwards = _order(function)
        self.loops = _loops(function, backwards)
        self.backwards = set(backwards)
        self._lengths: dict[str, int] = {}
        for loop in self.loops:
            self._count(loop)

    @cached_property
    def runs(self) -> dict[str, float]:
        """Runs of each block, by its label."""
        result = dict.fromkeys(self.function.blocks, 0.0)
        result[self.order[0]] = 1.0
        headers = {loop.header: loop for loop in self.loops}
        for label in self.order:
            if label in headers:
                result[label] *= headers[label].steps
            for target, share in self._shares(label):
                if (label, target) not in self.backwards:
                    result[target] += share * result[label]
        return result

    def loop_of(self, label: str) -> Loop | None:
        """The innermost loop of a block."""
        return next((loop for loop in reversed(self.loops) if label in loop.blocks), None)

    # --- how loops end and conditions go ---------------------------------------------------------

    def _count(self, loop: Loop) -> None:
        """Finds how many steps a loop runs; those around it are known."""
        loop.axis = len(list(loop.around))
        guess = FIRST_GUESS
        while guess <= MOST_STEPS:
            self._lengths[loop.header] = guess
            counts = [
                c for label in self._exits(loop) if (c := self._steps(loop, label)) is not None
            ]
            if not counts:
                break
            steps = counts[0]
            for other in counts[1:]:
                steps = np.minimum(steps, other)
            if (steps <= guess).all():
                loop.steps = float(steps.mean())
                self._lengths[loop.header] = max(1, int(steps.max()))
                return
            guess *= FIRST_GUESS
        loop.steps = UNKNOWN_STEPS
        self._lengths[loop.header] = UNKNOWN_STEPS

    def _exits(self, loop: Loop) -> list[str]:
        """Blocks of a loop that may leave it, and that are in no loop within."""
        blocks = self.function.blocks
        return [
            label
            for label in self.order
            if label in loop.blocks
            and self.loop_of(label) is loop
            and any(target not in loop.blocks for target in blocks[label].targets)
        ]

    def _steps(self, loop: Loop, label: str) -> Value | None:
        """Steps until a block leaves a loop, for all steps of those around it; more than the
        guess where it doesn't within it."""
        block = self.function.blocks[label]
        last, targets = block.instructions[-1], block.targets
        if last.operation != "br" or len(targets) != 2:
            return None
        value = self._value(last.operands[0]) if last.operands else None
        if value is None:
            return None
        leaves = np.asarray(value, bool)
        if targets[0] in loop.blocks:
            leaves = ~leaves
        length = self._lengths[loop.header]
        leaves = np.atleast_1d(leaves)
        if leaves.ndim < loop.axis or leaves.shape[-loop.axis] == 1:
            return np.where(leaves, 1, length + 1)
        first = leaves.argmax(axis=-loop.axis) + 1
        return np.where(leaves.any(axis=-loop.axis), first, length + 1)

    def _shares(self, label: str) -> list[tuple[str, float]]:
        """The blocks that may follow one, and how often each does."""
        block = self.function.blocks[label]
        last, targets = block.instructions[-1], block.targets
        if len(targets) < 2:
            return [(target, 1.0) for target in targets]
        if last.operation == "switch":
            return self._cases(last, targets)
        loop = self.loop_of(label)
        outside = [loop is not None and target not in loop.blocks for target in targets]
        if loop is not None and any(outside):
            end = 1.0 if all(outside) else 1 / max(1.0, loop.steps)
            shares = [end if out else 1 - end for out in outside]
            return list(zip(targets, shares, strict=True))
        value = self._value(last.operands[0]) if last.operands else None
        share = 0.5 if value is None else float(np.mean(value))
        return [(targets[0], share), (targets[1], 1 - share)]

    def _cases(self, last: Instruction, targets: tuple[str, ...]) -> list[tuple[str, float]]:
        """The targets of a switch, the default first, and how often each is taken."""
        cases = [int(n) for n in re.findall(r"i\d+ (-?\d+), label", last.text)]
        value = self._value(last.operands[0])
        if value is None:
            return [(target, 1 / len(targets)) for target in targets]
        shares = [float(np.mean(value == case)) for case in cases]
        return list(zip(targets, [max(0.0, 1 - sum(shares)), *shares], strict=True))

    # --- what is computed of loops' variables ----------------------------------------------------

    def _value(self, name: str) -> Value | None:
        """A number or a condition in all steps of the loops that it depends on; None where it
        depends on data."""
        try:
            return self._evaluated(name, {})
        except RecursionError:
            return None

    def _evaluated(self, name: str, known: dict[str, Value | None]) -> Value | None:
        if not name.startswith("%"):
            return _constant(name)
        if name not in known:
            known[name] = None
            result = self._computed(name, known)
            if result is not None and result.size > MOST_ELEMENTS:
                result = None
            known[name] = result
        return known[name]

    def _computed(self, name: str, known: dict[str, Value | None]) -> Value | None:
        if name not in self.made:
            own = name == self.function.params[-1] if self.function.params else False
            return self._along(np.arange(self.tasks), self._outermost) if own else None
        label, each = self.made[name]
        if each.operation == "phi":
            return self._variable(label, each, known)
        terms = [self._evaluated(word, known) for word in _terms(each)]
        if not terms or any(term is None for term in terms):
            return None
        return _result(each, [term for term in terms if term is not None])

    @property
    def _outermost(self) -> int:
        """The axis of tasks: behind those of all loops."""
        return 1 + max((len(list(loop.around)) for loop in self.loops), default=0)

    @staticmethod
    def _along(values: Value, axis: int) -> Value:
        """A row of values along an axis, counted from the last."""
        return values.reshape((-1,) + (1,) * (axis - 1))

    def _variable(
        self, label: str, phi: Instruction, known: dict[str, Value | None]
    ) -> Value | None:
        """A loop's variable in all of its steps, if it grows by a constant or takes one."""
        pairs = re.findall(rf"\[ (\S+), %({NAME[1:]}) \]", phi.text)
        loop = next((loop for loop in self.loops if loop.header == label), None)
        if loop is None:
            return self._evaluated(pairs[0][0], known) if len(pairs) == 1 else None
        starts = {value for value, source in pairs if source.strip('"') not in loop.blocks}
        nexts = {value for value, source in pairs if source.strip('"') in loop.blocks}
        if len(starts) != 1 or len(nexts) != 1 or loop.header not in self._lengths:
            return None
        (start,), (after,) = starts, nexts
        first = self._evaluated(start, known)
        if first is None:
            return None
        steps = self._along(np.arange(self._lengths[loop.header]), loop.axis)
        if not after.startswith("%"):
            second = _constant(after)
            return None if second is None else np.where(steps == 0, first, second)
        _, each = self.made.get(after, (label, phi))
        words = _terms(each)
        if each.operation not in ("add", "sub") or phi.name not in words:
            return None
        step = _constant(next((word for word in words if word != phi.name), ""))
        if step is None:
            return None
        return np.asarray(first + steps * (step if each.operation == "add" else -step))


def _constant(word: str) -> Value | None:
    """A constant of LLVM's text."""
    words = {"true": 1, "false": 0, "null": 0}
    if word in words:
        return np.asarray(words[word])
    return np.asarray(int(word)) if re.fullmatch(r"-?\d{1,18}", word) else None


def _terms(each: Instruction) -> list[str]:
    """Operands that an instruction computes with, constants too."""
    if each.operation == "call":
        inner = each.text[each.text.find("(") + 1 : each.text.rfind(")")]
        return re.findall(rf"(?:^|, )\w+ (?:noundef )?({NAME}|-?\d+|true|false)", inner)
    text = each.text.partition(" to ")[0]
    head = re.match(r"(?:[a-z]+ )?[a-z]\w*\d* ", text)
    return re.findall(rf"{NAME}|-?\b\d+\b|\btrue\b|\bfalse\b", text[head.end() if head else 0 :])


def _result(each: Instruction, terms: list[Value]) -> Value | None:
    """Value of an integer instruction; None where it isn't known."""
    operation = each.operation
    if operation in INTEGERS and len(terms) == 2:
        return np.asarray(INTEGERS[operation](*(term.astype(np.int64) for term in terms)))
    if operation in DIVISIONS and len(terms) == 2 and (terms[1] != 0).all():
        return np.asarray(DIVISIONS[operation](*terms))
    if operation in ("zext", "sext", "trunc", "freeze") and len(terms) == 1:
        return terms[0].astype(np.int64)
    if operation == "icmp" and len(terms) == 2:
        kind = each.text.split()[0]
        if kind.startswith("u"):
            terms = [term.astype(np.int64).astype(np.uint64) for term in terms]
        return np.asarray(COMPARISONS[kind[-2:]](*terms))
    if operation == "select" and len(terms) == 3:
        return np.where(terms[0].astype(bool), terms[1], terms[2])
    bound = re.search(r"@llvm\.[us](min|max)\.i", each.text) if operation == "call" else None
    return np.asarray(BOUNDS[bound[1]](*terms)) if bound and len(terms) == 2 else None


# --- the graph of blocks -------------------------------------------------------------------------


def _order(function: Function) -> tuple[list[str], list[tuple[str, str]]]:
    """Blocks so that each comes before those that follow it, and the edges that lead backwards."""
    first = next(iter(function.blocks))
    done: list[str] = []
    state = {first: 1}
    backwards = []
    stack = [(first, iter(function.blocks[first].targets))]
    while stack:
        label, targets = stack[-1]
        for target in targets:
            if state.get(target) == 1:
                backwards.append((label, target))
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(function.blocks[target].targets)))
                break
        else:
            state[label] = 2
            done.append(label)
            stack.pop()
    return done[::-1], backwards


def _loops(function: Function, backwards: list[tuple[str, str]]) -> list[Loop]:
    """The loops of a function, each before those within it."""
    sources: dict[str, set[str]] = {label: set() for label in function.blocks}
    for label, block in function.blocks.items():
        for target in block.targets:
            sources[target].add(label)
    blocks: dict[str, set[str]] = {}
    for end, header in backwards:
        own = blocks.setdefault(header, {header})
        waiting = [end]
        while waiting:
            label = waiting.pop()
            if label not in own:
                own.add(label)
                waiting.extend(sources[label])
    loops = [Loop(header, own) for header, own in blocks.items()]
    loops.sort(key=lambda loop: -len(loop.blocks))
    for n, loop in enumerate(loops):
        around = [other for other in loops[:n] if loop.header in other.blocks]
        loop.parent = around[-1] if around else None
    return loops
