"""A user's operator among the accelerator's: its schedule is the user's, so there is one tile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, Binding, Template, Tile
from vdla.compiler.user import Type, UserOperator, registered
from vdla.isa.config import Config


@dataclass(frozen=True)
class UserTile(Tile):
    """The one point of its schedule space."""

    vthreads = 1  # no knob: the schedule binds what it likes
    schedule: str = "the user's"


@dataclass(frozen=True)
class Custom(Template[ops.Custom, UserTile]):
    """An operator on inputs of some types; ``attributes`` are JSON."""

    NAME = "custom"
    TILE = UserTile
    NOUN = "user's operator"
    NODES = (ops.Custom,)
    TUNED = False
    ASKS_DEPTHS = True

    operator: UserOperator
    types: tuple[Type, ...]
    attributes: str

    @classmethod
    def refusal(
        cls, node: ops.Custom, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Nothing says how the accelerator is to run an operator without a schedule."""
        has_schedule = registered(node.operator).schedule is not None
        return None if has_schedule else "a user's operator without a schedule"

    @classmethod
    def placed(cls, node: ops.Custom) -> str:
        """Whatever its types are."""
        return "a user's schedule"

    @classmethod
    def of(cls, node: ops.Custom, graph: Graph, config: Config) -> Custom:
        """Template of the operator that was registered under the node's name."""
        types = tuple((graph.tensors[n].shape, graph.tensors[n].dtype) for n in node.operands)
        return cls(registered(node.operator), types, node.settings)

    def bind(self, node: ops.Custom, graph: Graph, config: Config) -> Binding:
        """The operands by the names that the expression's placeholders have."""
        inputs, output = self.operator.tensors(self.types, json.loads(self.attributes))
        params = te.create_prim_func(inputs, output).params
        names = (*node.operands, node.output)
        tensors = {p.name: name for p, name in zip(params, names, strict=True)}
        return Binding(tensors, {}, 0, sum(graph.tensors[n].nbytes for n in names))

    def schedule(self, tile: UserTile, config: Config) -> Schedule:
        """The user's schedule for a config."""
        return self.operator.scheduled(self.types, json.loads(self.attributes), intrinsics(config))

    def tiles(
        self, config: Config, vthreads: int, only: UserTile | None = None
    ) -> Iterator[UserTile]:
        """One."""
        yield UserTile()

    def best(self, config: Config, vthreads: int) -> UserTile:
        """The one tile of a user's schedule; no cost is needed to choose it."""
        return UserTile()
