"""Interface of the compiler to a target, which runs operators of a graph.

A graph goes through its targets in order. Each of them

    prepares    changes the graph of a file to what it knows, before it becomes integers
    rewrites    changes the graph to what suits it, before anything is placed
    refusal     says of an operator why it can't or shouldn't run it, or nothing
    objection   says of a placed graph why it can't be computed, or nothing
    fusions     makes one operator of several that it was given
    lower       makes the code of an operator that it was given; where it can't, the next target
                gets the operator
    layouts     changes how tensors lie, once it is known where every operator runs
    finish      gives the code of every operator that it runs in the graph that is laid out
    part        makes its part of the module: steps of the run plan, tensors, programs

Preparations, rewrites and layouts are lists of named passes, with the kinds of nodes that each
adds. The last target refuses nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from vdla.compiler.dump import Dumper
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.views import View
from vdla.compiler.graph.passes import Rewrite
from vdla.compiler.graph.plan import MemoryPlan
from vdla.compiler.graph.spec import Pass
from vdla.compiler.graph.types import Array
from vdla.compiler.placement import Placement, Placements
from vdla.compiler.targets.errors import TargetError
from vdla.runtime.module import Module
from vdla.runtime.plan import Step

BY_USER = "the user placed it there"
Layout = Callable[[Graph, Placements], tuple[Graph, Placements]]
Report = Callable[[str, str], None]  # of a pass's name, and the program's text after it
P = TypeVar("P", covariant=True)


@dataclass(frozen=True)
class Code(Generic[P]):
    """Code that a target made of one node.

    ``program`` is as the target has it. ``args`` are the tensors that it gets, its result last, and
    ``constants`` those that it reads and nothing writes. ``work`` is the number of its operations,
    where the target counts them.
    """

    program: P
    args: tuple[str, ...]
    constants: Mapping[str, Array]
    work: int | None = None


@dataclass(frozen=True)
class Needs:
    """Tensors that a part of a module has in DRAM, beside the activations of the graph.

    ``constants`` are what it reads and nothing writes, by name. ``scratch`` are the bytes of
    tensors that only a node's own code knows, by the node's name and theirs. ``beside`` are nodes
    that run beside an earlier one, and which. ``views`` are activations that are some bytes of
    others.
    """

    constants: Mapping[str, Array]
    scratch: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)


class Part(ABC):
    """A target's part of a module, which is asked for its steps first, and for the rest in the
    order that stands here; ``codes`` are those of its nodes, by name, and ``views`` are activations
    that it has be some bytes of others."""

    codes: Mapping[str, Code[object]]
    views: Mapping[str, View] = MappingProxyType({})

    @abstractmethod
    def steps(self, row: Sequence[Node]) -> Sequence[Step]:
        """Steps of nodes of this target that follow one another in the graph."""

    def needs(self) -> Needs:
        """Tensors of the steps that were asked for; those of its codes, where it has no others."""
        codes = self.codes.values()
        return Needs({name: array for code in codes for name, array in code.constants.items()})

    def link(self, memory: MemoryPlan, start: int) -> int:
        """Puts what has addresses in it into DRAM, from byte ``start`` on, and gives its end."""
        return start

    @abstractmethod
    def complete(self, module: Module, dump: Dumper) -> None:
        """Gives a module the code that the steps name, and writes texts after passes."""


class Target(ABC):
    """A device that computes some of a graph's operators.

    ``DEVICE`` is its name in placements; ``LOWERS`` says that :meth:`lower` makes code.
    """

    DEVICE: ClassVar[str]
    LOWERS: ClassVar[bool] = False

    @property
    def prepares(self) -> Sequence[Pass[Rewrite]]:
        """Passes on the graph of a file, before it becomes integers."""
        return ()

    @property
    def rewrites(self) -> Sequence[Pass[Rewrite]]:
        """Passes before placement."""
        return ()

    @property
    def fusions(self) -> Sequence[Pass[Layout]]:
        """Passes after placement, before any code is made: operators that it runs as one."""
        return ()

    @property
    def layouts(self) -> Sequence[Pass[Layout]]:
        """Passes after placement, when the code is made."""
        return ()

    @abstractmethod
    def refusal(self, node: Node, graph: Graph) -> str | None:
        """Reason for which a node can't or shouldn't run here; None if it should."""

    @abstractmethod
    def placement(self, node: Node, refusals: Sequence[str]) -> Placement:
        """The placement of a node that runs here.

        Args:
            node: it isn't refused.
            refusals: the reasons of the targets before this one.
        """

    def lower(self, node: Node, graph: Graph, report: Report | None = None) -> Any:
        """The code of a node that runs here, before it is known how tensors lie.

        ``report`` gets the program's text after every pass. A target whose code depends on how
        tensors lie makes it in ``finish`` and lowers nothing, as ``LOWERS`` says.

        Raises:
            NoCodeError: there is none; the next target gets the node.
        """
        raise NotImplementedError

    def objection(self, graph: Graph) -> str | None:
        """Reason for which a placed graph can't be computed with this target; None if it can."""
        return None

    @abstractmethod
    def finish(
        self, graph: Graph, placements: Placements, lowered: Mapping[str, Any]
    ) -> Mapping[str, Code[object]]:
        """Code of each of its nodes in a laid-out graph, by name; a node that is no work has none.

        Args:
            graph: it is laid out.
            placements: where its nodes run.
            lowered: what ``lower`` gave, by node.
        """

    @abstractmethod
    def part(self, graph: Graph, placements: Placements, codes: Mapping[str, Code[Any]]) -> Part:
        """The target's part of a module, of the code that ``finish`` gave."""


def place(
    graph: Graph,
    targets: Sequence[Target],
    places: Mapping[str, str] = MappingProxyType({}),
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> Placements:
    """Node name to its placement: on the first target that doesn't refuse the node.

    ``places`` are the devices of nodes that the user places, or that ``reasons`` has a reason for;
    other graphs' nodes may be among them (:func:`check_places`).

    Raises:
        TargetError: no target is such a device, or it refuses the node.
    """
    return {
        node.name: _placed_by_name(
            node, graph, targets, places[node.name], reasons.get(node.name, BY_USER)
        )
        if node.name in places
        else place_node(node, graph, targets)
        for node in graph.nodes
    }


def check_places(names: Sequence[str], places: Mapping[str, str]) -> None:
    """Raises TargetError where a user's placement is of none of the named nodes."""
    for name, device in places.items():
        if name not in names:
            close = get_close_matches(name, names, 3, 0.4) or names[:3]
            raise TargetError(
                f"--place {name}={device}: expected a node's name, as {', '.join(close)}, "
                f"found {name}"
            )


def _placed_by_name(
    node: Node, graph: Graph, targets: Sequence[Target], device: str, why: str
) -> Placement:
    """The placement of a node on a device that is named."""
    target = next((target for target in targets if device == target.DEVICE), None)
    if target is None:
        devices = ", ".join(target.DEVICE for target in targets)
        raise TargetError(
            f"--place {node.name}={device}: expected one of {devices}, found {device}"
        )
    reason = target.refusal(node, graph)
    if reason is not None:
        raise TargetError(
            f"--place {node.name}={device}: expected a node that {device} runs, found {node.op}: "
            f"{reason}; place it on {targets[-1].DEVICE}, or leave it out"
        )
    return replace(target.placement(node, [why]), fixed=True)


def place_node(
    node: Node, graph: Graph, targets: Sequence[Target], refusals: Sequence[str] = ()
) -> Placement:
    """The placement of one node; ``refusals`` are of targets that were asked before."""
    reasons = list(refusals)
    for target in targets:
        reason = target.refusal(node, graph)
        if reason is None:
            return target.placement(node, reasons)
        reasons.append(reason)
    raise ValueError(f"{node.name}: expected a last target that refuses nothing, found {reasons}")
