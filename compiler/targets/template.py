"""Templates, by which targets compute nodes: what those of all targets have in common.

A **template** is one way to compute some kinds of nodes on a target. It says of a node why it can't
or shouldn't, or is made for it. Two kinds of targets use it:

    the accelerator     adds tiles, their cost, and a schedule of each (``accelerator/operators``)
    all others          write an expression and schedule it: :class:`ScheduledTemplate`

The target's description (a config, a processor, a class of one's own) is the ``machine``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from vdla.compiler.graph.express import FunctionRecipe, NodeFunction
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.functions import symbol_of
from vdla.compiler.te import Tensor
from vdla.compiler.tir.in_bounds import with_promises

N = TypeVar("N", bound=Node)
M = TypeVar("M")


class Template(ABC, Generic[N, M]):
    """A way to compute the nodes of ``NODES`` on the machine that an ``M`` describes."""

    NODES: ClassVar[tuple[type[Node], ...]]

    @classmethod
    def refusal(cls, node: N, graph: Graph, machine: M) -> str | None:
        """Reason for which a node of ``NODES`` can't or shouldn't be computed so; None if it
        should.
        """
        return None


class ScheduledTemplate(Template[N, M]):
    """An expression and its schedule: a frozen dataclass of the expression's tensors.

    It holds these tensors, so its schedule finds them by themselves.
    """

    result: Tensor  # what the node writes

    @classmethod
    @abstractmethod
    def of(cls, node: N, recipe: Recipe, machine: M) -> Self:
        """The expression of a node that it doesn't refuse, written with ``recipe``."""

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """Tensors that move elements and that its schedule places: they aren't computed inline."""
        return ()

    @abstractmethod
    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Schedules a function that computes the node and, from it, ``result``."""


AnyScheduled = ScheduledTemplate[Any, Any]


@dataclass(frozen=True)
class Expression:
    """A node's function before it is scheduled, and the template of it or of one of its parts."""

    recipe: FunctionRecipe
    result: Tensor
    template: AnyScheduled | None

    def unscheduled(self, symbol: str, *, checked: bool = True) -> Schedule:
        """A schedule with no primitive applied but those that put element-wise parts in line;
        ``checked`` as of ``Schedule``."""
        placed = self.template.placed if self.template else ()
        return self.recipe.schedule(self.result, symbol, placed, checked=checked)


def express(
    node: Node, graph: Graph, templates: Sequence[type[AnyScheduled]], machine: object
) -> Expression:
    """The expression of a node of a laid-out graph, by the first template that takes it, or one of
    the nodes that were fused; its own where none does."""
    made: list[AnyScheduled] = []

    def expressed(part: Node, recipe: Recipe) -> Tensor:
        template, _ = first_template(templates, part, graph, machine)
        if template is None:
            return part.express(recipe)
        made.append(template.of(part, recipe, machine))
        return made[-1].result

    recipe = FunctionRecipe(node, graph, expressed)
    result = expressed(node, recipe)
    return Expression(recipe, result, made[0] if made else None)


S = TypeVar("S", bound=AnyScheduled)


def templates_for(templates: Sequence[type[S]], node: Node) -> Iterator[type[S]]:
    """Templates for nodes of a node's kind, the preferred ones first."""
    return (template for template in templates if type(node) in template.NODES)


def first_template(
    templates: Sequence[type[S]], node: Node, graph: Graph, machine: object
) -> tuple[type[S] | None, list[str]]:
    """The first template that doesn't refuse a node, and why those before it, or all, do."""
    reasons: list[str] = []
    for template in templates_for(templates, node):
        reason = template.refusal(node, graph, machine)
        if reason is None:
            return template, reasons
        reasons.append(reason)
    return None, reasons


def scheduled(
    node: Node, graph: Graph, template: type[AnyScheduled], machine: object
) -> NodeFunction:
    """A node's function as a template expresses and schedules it, with its arguments.

    Raises:
        ScheduleError: a primitive doesn't apply.
        BoundsError: an access can't be proved to stay inside its tensor.
    """
    recipe = FunctionRecipe(node, graph)
    made = template.of(node, recipe, machine)
    schedule = recipe.schedule(made.result, symbol_of("node_", node), made.placed)
    made.schedule(schedule, made.result)
    return recipe.function(with_promises(schedule.mod))
