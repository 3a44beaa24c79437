"""ONNX's Loop: as a Scan, a While, its turns one behind another, or nothing.

A Loop whose number of turns is known and whose condition always holds is a Scan, any other one a
While: its condition includes that the number of turns isn't reached. Where the shapes of what turn
after turn gets change, turns of a known number stand one behind another.

Rows that a While stacks are as many as it has turns: the result is open, the first elements of a
tensor of as many as it may have. So is a list to which each turn appends a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.frontend.bodies import part_of
from vdla.compiler.frontend.errors import LoopError
from vdla.compiler.frontend.external import open_rows
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.regions import (
    Region,
    call_results,
    captured_by,
    common_fields,
    emit,
    maker_in,
    stack_rows,
)
from vdla.compiler.frontend.sequences import Growing, define, value_of
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.control import TURN, alike, typed
from vdla.compiler.graph.types import TensorType
from vdla.runtime.values import Each, Listed, Value

MOST_UNROLLED = 4096  # nodes of turns that stand one behind another
SLICE_BY_TENSORS = 10  # the first opset with a Slice whose ends are tensors


def add_loop(view: OnnxNode) -> None:
    """Adds a Loop: a Scan, a While, its turns one behind another, or nothing."""
    loop = _Loop(view)
    lists = any(not isinstance(state, str) for state in loop.states) or any(
        not isinstance(value_of(view.draft, name), str) for name in loop.part.free()
    )
    if loop.turns == 0 or (loop.begins is not None and not loop.begins.all()):
        loop.add_nothing()
    elif (lists and loop.unrolled) or not loop.add():
        loop.add_turns()


class _Loop:
    """A Loop of a file.

    ``states`` are what its first turn gets, ``turns`` is their number and ``begins`` its condition,
    where they are known.
    """

    def __init__(self, view: OnnxNode) -> None:
        self.view, self.draft = view, view.draft
        self.body, count = view.attributes["body"], len(view.proto.input)
        self.part = part_of(self.body, f"{view.name}.body")
        self.states = [value_of(view.draft, view.proto.input[n]) for n in range(2, count)]
        self.trips, self.condition = view.optional(0), view.optional(1)
        known = None if self.trips is None else self.draft.known(self.trips)
        self.turns = None if known is None else max(int(known.reshape(())), 0)
        begins = np.array(True) if self.condition is None else self.draft.known(self.condition)
        self.begins = begins

    @property
    def unrolled(self) -> bool:
        """Whether its turns may stand one behind another."""
        known = self.turns is not None and self.begins is not None
        return known and (self.turns or 0) * len(self.body.node) <= MOST_UNROLLED

    def add(self) -> bool:
        """Adds it as a node; False where shapes differ from turn to turn."""
        draft, tensors = self.draft, [state for state in self.states if isinstance(state, str)]
        turn = self.turn(tensors)
        if turn is None:
            return False
        region = turn.region
        if any(
            isinstance(new, str) and not alike(draft.tensors[old], region.draft.tensors[new])
            for old, new in zip(tensors, turn.carried, strict=True)
        ):
            return False
        holds = region.draft.known(turn.go)
        always = holds is not None and bool(holds.all())
        if always and self.trips is None:
            expected = "a number of turns, or a condition that ends it"
            raise LoopError(self.view.where, expected, "neither")
        if always and self.begins is not None and self.turns is not None:
            self.add_scan(turn, tensors)
        else:
            self.add_while(turn, tensors)
        return True

    def turn(self, tensors: Sequence[str]) -> _Turn | None:
        """A turn that gets ``tensors`` among its states; None where one has no elements."""
        draft, captured = self.draft, captured_by(self.draft, [self.part])
        region = Region(self.view, self.part, captured)
        number, again, *formals = self.part.inputs
        if any(0 in draft.tensors[name].shape for name in tensors):
            return None
        region.count(number)
        region.fix(again, True)
        for formal, state in zip(formals, self.states, strict=True):
            if isinstance(state, str):
                region.give(formal.name, draft.tensors[state])
            else:
                region.draft.values[formal.name] = Growing()
        go, *results = region.read()
        region.check([go, *(value for value in results if isinstance(value, str))])
        return _Turn(region, str(go), results, self.states)

    def add_scan(self, turn: _Turn, tensors: Sequence[str]) -> None:
        """Adds it as a node with a number of turns."""
        assert self.turns is not None
        names = self.names(turn)
        fields = common_fields(self.view, names, [*tensors, *turn.region.captured])
        body = turn.region.graph([*turn.carried, *turn.rows])
        emit(self.view, ops.Scan(**fields, body=body, carried=len(tensors), turns=self.turns))
        stacked = names[len(tensors) :]
        count = ""
        if turn.growing:
            count = self.draft.add_constant(f"{self.view.name}.count", np.array([self.turns]))
        self.name_lists(turn, stacked, count)

    def add_while(self, turn: _Turn, tensors: Sequence[str]) -> None:
        """Adds it as a node with a condition, which includes the number of turns."""
        draft, region = self.draft, turn.region
        outer, make = maker_in(draft, self.view.name), maker_in(region.draft, self.part.name)
        if turn.rows and draft.opset < SLICE_BY_TENSORS:
            raise self.view.unsupported(f"opset {SLICE_BY_TENSORS} or a later one", draft.opset)
        behind = make.binary("add", region.inputs[0], make.constant(1, "int64"))
        first, go = outer.constant(True, "bool"), make.reshape(turn.go, ())
        if self.condition is not None:
            first = outer.reshape(self.condition, ())
        turns, operands, gives = draft.turns, list(tensors), list(turn.carried)
        if turn.rows:
            region.give(f"{self.part.name}.count", TensorType((1,), "int64"))
            operands.append(outer.constant([0], "int64"))
            gives.append(make.reshape(behind, (1,)))
        count = len(operands)
        if self.turns is not None:
            turns, limit = self.turns, make.constant(self.turns, "int64")
            go = make.binary("and", go, make.binary("lt", behind, limit))
        elif self.trips is not None:
            trips = outer.reshape(self.trips, ())
            some = outer.binary("gt", trips, outer.constant(0, "int64"))
            first = outer.binary("and", first, some)
            operands.append(trips)
            limit = region.give(f"{self.part.name}.trips", TURN)
            go = make.binary("and", go, make.binary("lt", behind, limit))
        names = self.names(turn)
        number = f"{self.view.name}.count"
        stacked = [f"{name}.rows" for name in names[len(tensors) :]]
        ends = [*names[: len(tensors)], *([number] if turn.rows else []), *stacked]
        fields = common_fields(self.view, ends, [first, *operands, *region.captured])
        body = region.graph([go, *gives, *turn.rows])
        emit(self.view, ops.While(**fields, body=body, carried=count, turns=turns))
        self.name_lists(turn, stacked, number)
        self.name_rows(stacked, number)

    def names(self, turn: _Turn) -> list[str]:
        """Names for the tensors that are carried, then for rows."""
        given = dict(enumerate(map(str, self.view.proto.output)))
        plain = [n for n, state in enumerate(self.states) if isinstance(state, str)]
        places = [*plain, *range(len(self.states), len(self.states) + turn.plain)]
        rest = len(turn.rows) - turn.plain
        names = [given.get(n) or self.draft.fresh(f"{self.view.name}.result{n}") for n in places]
        return [*names, *(self.draft.fresh(f"{self.view.name}.list{n}") for n in range(rest))]

    def name_rows(self, stacked: Sequence[str], count: str) -> None:
        """Has the file's names stand for rows, as many as a tensor says."""
        names = self.view.proto.output[len(self.states) :]
        for name, rows in zip(names, stacked, strict=False):
            if name:
                open_rows(self.view, str(name), rows, count)

    def name_lists(self, turn: _Turn, stacked: Sequence[str], count: str) -> None:
        """Has the file's names stand for lists that grew turn after turn."""
        rows = iter(stacked[turn.plain :])
        for place, after in turn.growing.items():
            state = self.states[place]
            assert isinstance(state, Listed)
            more = (Each(next(rows), count, next(rows) if after else ""),)
            define(self.draft, str(self.view.proto.output[place]), Listed((*state.values, *more)))
        for place in turn.kept:
            define(self.draft, str(self.view.proto.output[place]), self.states[place])

    def add_nothing(self) -> None:
        """Adds what it gives where its condition doesn't hold at first: states, and no rows."""
        names = list(map(str, self.view.proto.output))
        rows = [(n, name) for n, name in enumerate(names[len(self.states) :]) if name]
        if any(name in self.draft.read for _, name in rows):
            turn = self.turn([state for state in self.states if isinstance(state, str)])
            if turn is None:
                expected = "a loop of some turns, whose results are stacked"
                raise self.view.unsupported(expected, "none")
            for n, name in rows:
                kind = turn.region.draft.tensors[turn.rows[n]]
                self.draft.add_constant(name, np.zeros((0, *kind.shape), kind.dtype))
        call_results(self.view, self.states, names)

    def add_turns(self) -> None:
        """Adds its turns one behind another: shapes differ, or lists that it reads.

        Raises:
            UnsupportedError: only a run knows their number, or they are too many.
        """
        draft, states, rows = self.draft, self.states, list[list[Value]]()
        if not self.unrolled:
            actual = ", ".join(typed(draft.tensors[s]) for s in states if isinstance(s, str))
            raise self.view.unsupported("states of one type in each turn", actual or "a list")
        for turn in range(self.turns or 0):
            part = part_of(self.body, f"{self.view.name}.turn{turn}")
            number, again, *formals = part.inputs
            for value, array in ((number, np.array(turn, np.int64)), (again, np.array(True))):
                shape = (1,) * len(value.type.tensor_type.shape.dim)
                draft.add_constant(value.name, array.reshape(shape))
            for formal, state in zip(formals, states, strict=True):
                define(draft, formal.name, state)
            draft.read |= {*part.outputs}
            draft.read_nodes(part.nodes)
            go, *results = (value_of(draft, name) for name in part.outputs)
            holds = draft.known(str(go))
            if holds is None:
                raise self.view.unsupported("a condition that is known in each turn", go)
            states, slices = results[: len(states)], results[len(states) :]
            rows.append(slices)
            if not holds.all():
                break
        make = maker_in(draft, self.view.name)
        stacks = [stack_rows(make, list(map(str, column))) for column in zip(*rows, strict=True)]
        call_results(self.view, [*states, *stacks], self.view.proto.output)


class _Turn:
    """Results of a turn of a Loop.

    ``carried`` are tensors for the next turn, ``rows`` are stacked: ``plain`` many of the file's,
    then what lists grow by. ``growing`` are the places of states that are such lists, and whether
    the size of what is appended is a tensor of its own; ``kept`` are lists that stay as they are.
    """

    def __init__(
        self, region: Region, go: str, results: Sequence[Value], states: Sequence[Value]
    ) -> None:
        self.region, self.go = region, go
        pairs = list(zip(states, results, strict=False))
        self.carried = [str(new) for old, new in pairs if isinstance(old, str)]
        self.rows = [str(row) for row in results[len(states) :]]
        self.plain, self.growing, self.kept = len(self.rows), dict[int, bool](), list[int]()
        for place, (old, new) in enumerate(pairs):
            if isinstance(old, str):
                continue
            if not isinstance(new, Growing) or not isinstance(old, Listed):
                raise region.view.unsupported("a list that grows at its end", new)
            if new.name:
                self._append(place, new.name)
            else:
                self.kept.append(place)

    def _append(self, place: int, name: str) -> None:
        """Adds the rows that one more element of a list is."""
        draft = self.region.draft
        tensor, count = draft.prefixes.get(name, (draft.alias.get(name, name), ""))
        if tensor not in draft.tensors:
            raise self.region.view.unsupported("elements of known largest size", name)
        self.growing[place] = bool(count)
        self.rows.append(tensor)
        if count:
            make, shape = maker_in(draft, self.region.part.name), draft.tensors[tensor].shape
            rest = [make.constant(list(shape[1:]), "int64")] if len(shape) > 1 else []
            self.rows.append(make.concat([count, *rest], 0))
