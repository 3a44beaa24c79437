"""Operators that hold graphs: a choice, loops, and calls of named functions.

    If     condition captured*                     one of two regions
    While  condition carried* captured*            a region, as long as its condition holds
    Scan   carried* scanned* captured*             a region, once for each slice of what is scanned
    Call   operand*                                a function of the graph, by its name

A region reads its inputs and its own constants alone; what it needs of the graph around it is
``captured``. Shapes and element types are the same in each turn of a loop, and in both regions of
a choice.

    region of If       captured*                       -> result*
    body of While      turn carried* captured*         -> condition carried* stacked*
    body of Scan       turn carried* slice* captured*  -> carried* stacked*

``turn`` is an int64 that counts from 0. What is ``stacked`` in turn t is element t of a result; of
``scanned``, a turn gets element t, along the first axis. The condition of a While is one bool,
asked before each turn. A While has ``turns`` at most: one that goes on then is stopped with an
error. Elements of its stacked results behind the last turn are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import Shape, TensorType

TURN = TensorType((), "int64")


@dataclass(frozen=True, kw_only=True)
class Control(Node, operator=False):
    """An operator on ``operands`` with results ``output`` and ``others``."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("operands",)
    NOT_ACCELERATED: ClassVar[str] = "control flow, which the host decides"

    operands: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output, *self.others)

    def result_types(self, operands: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types that it writes when it reads tensors of these types; quantizations are those of
        the caller's choice.

        Raises:
            GraphError: they don't fit its regions.
        """
        raise NotImplementedError

    def check(self, what: str, wanted: TensorType, actual: TensorType) -> None:
        """Raises GraphError where two types differ in shape or in their elements."""
        if not alike(wanted, actual):
            raise self.error(f"{what} of {typed(wanted)}", typed(actual))

    def check_condition(self, what: str, kinds: Sequence[TensorType]) -> None:
        """Raises GraphError where the first of some tensors isn't one bool."""
        if not kinds:
            raise self.error(f"{what} of one bool", "none")
        kind = kinds[0]
        if kind.dtype != "bool" or kind.elements != 1:
            raise self.error(f"{what} of one bool", typed(kind))

    def check_inputs(self, region: Graph, operands: Sequence[TensorType]) -> None:
        """Raises GraphError where a region doesn't take operands of these types."""
        if len(region.inputs) != len(operands):
            actual = f"{len(region.inputs)} of {region.name}"
            raise self.error(f"a region of {len(operands)} inputs", actual)
        for name, kind in zip(region.inputs, operands, strict=True):
            self.check(f"an operand for {name} of {region.name}", region.tensors[name], kind)


@dataclass(frozen=True, kw_only=True)
class If(Control):
    """One of two regions, as its first operand says; both take all the other operands."""

    then: Graph
    otherwise: Graph

    @property
    def regions(self) -> tuple[Graph, ...]:
        return self.then, self.otherwise

    def result_types(self, operands: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types of what both regions give."""
        self.check_condition("a condition", operands)
        for region in self.regions:
            self.check_inputs(region, operands[1:])
        first, second = (results_of(region) for region in self.regions)
        if len(first) != len(second):
            raise self.error("regions of as many results", f"{len(first)} and {len(second)}")
        for kind, other, name in zip(first, second, self.otherwise.outputs, strict=True):
            self.check(f"a result {name} of {self.otherwise.name}", kind, other)
        return first


@dataclass(frozen=True, kw_only=True)
class Loop(Control, operator=False):
    """A region that runs ``turns`` times, or at most so often; ``carried`` is the number of
    tensors that each turn gets from the one before."""

    body: Graph
    carried: int
    turns: int

    @property
    def regions(self) -> tuple[Graph, ...]:
        return (self.body,)

    def stacked(self, results: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types of the results that are stacked from slices of these types."""
        return [TensorType((self.turns, *each.shape), each.dtype, each.quant) for each in results]

    def check_carried(self, carried: Sequence[TensorType], after: Sequence[TensorType]) -> None:
        """Raises GraphError where there is no turn, or where one gives the next one fewer tensors
        or those of other types."""
        if self.turns < 1:
            raise self.error("at least 1 turn", self.turns)
        count = min(len(carried), len(after))
        if count < self.carried:
            raise self.error(f"{self.carried} carried operands and results", count)
        for number, (kind, new) in enumerate(zip(carried, after, strict=False)):
            self.check(f"what turn after turn gets as {self.body.inputs[1 + number]}", kind, new)


@dataclass(frozen=True, kw_only=True)
class While(Loop):
    """A region that runs as long as a condition holds, ``turns`` times at most."""

    def result_types(self, operands: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types of what is carried, and of what is stacked."""
        self.check_condition("a condition", operands)
        others = operands[1:]
        self.check_inputs(self.body, [TURN, *others])
        results = results_of(self.body)
        self.check_condition("a condition behind each turn", results)
        results = results[1:]
        carried = others[: self.carried]
        self.check_carried(carried, results)
        return [*carried, *self.stacked(results[self.carried :])]


@dataclass(frozen=True, kw_only=True)
class Scan(Loop):
    """A region that runs ``turns`` times; a turn gets a slice of each of ``scanned`` operands."""

    scanned: int = 0

    def result_types(self, operands: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types of what is carried, and of what is stacked."""
        carried = operands[: self.carried]
        scanned = operands[self.carried : self.carried + self.scanned]
        captured = operands[self.carried + self.scanned :]
        if len(scanned) < self.scanned:
            raise self.error(f"{self.scanned} scanned operands", len(scanned))
        for kind in scanned:
            if kind.shape[:1] != (self.turns,):
                raise self.error(f"{self.turns} elements along the first axis", typed(kind))
        slices = [TensorType(kind.shape[1:], kind.dtype) for kind in scanned]
        self.check_inputs(self.body, [TURN, *carried, *slices, *captured])
        results = results_of(self.body)
        self.check_carried(carried, results)
        return [*carried, *self.stacked(results[self.carried :])]


@dataclass(frozen=True, kw_only=True)
class Call(Control):
    """A function of the graph around it, which may call itself; ``shapes`` and ``dtypes`` are those
    of its results."""

    function: str
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]

    def result_types(self, operands: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types that it names; whether the function has them, the graph's rules say."""
        if len(self.shapes) != len(self.dtypes):
            raise self.error(f"{len(self.shapes)} dtypes", len(self.dtypes))
        return [TensorType(*each) for each in zip(self.shapes, self.dtypes, strict=True)]


def results_of(region: Graph) -> list[TensorType]:
    """The types of a region's results."""
    return [region.tensors[name] for name in region.outputs]


def alike(kind: TensorType, other: TensorType) -> bool:
    """Whether two tensors have the same elements."""
    return (kind.shape, kind.dtype) == (other.shape, other.dtype)


def typed(kind: TensorType) -> str:
    """A type for people."""
    return f"{kind.dtype}{list(kind.shape)}"
