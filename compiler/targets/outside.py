"""Targets that live in packages of their own, found by their names.

A package names its target under the entry points ``vdla.targets``, and what runs the target's code
under ``vdla.runtimes``:

    [project.entry-points."vdla.targets"]
    mine = "my_package.target:Mine"         # a TemplateTarget, or another Target with a part
    [project.entry-points."vdla.runtimes"]
    mine = "my_package.runtime:load"        # see vdla.runtime.outside

Both have the name of the target's ``DEVICE``. ``vdla run MODEL --target mine`` then compiles for it
what its templates take, and for this processor the rest. ``examples/dot8`` is such a package.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar

from vdla.compiler.dump import Dumper
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import Placement, Placements
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.errors import NoCodeError, TargetError
from vdla.compiler.targets.functions import constants_read
from vdla.compiler.targets.target import Code, Part, Report, Target
from vdla.compiler.targets.template import AnyScheduled, first_template, scheduled
from vdla.compiler.tir.ir import BoundsError, PrimFunc
from vdla.compiler.tir.printer import show
from vdla.runtime.module import Module
from vdla.runtime.plan import Outside

GROUP = "vdla.targets"


@dataclass(frozen=True)
class OutsidePart(Part):
    """Codes of another package's target, by the nodes' names, which its runtime takes as they
    are."""

    device: str
    codes: Mapping[str, Code[bytes]]

    def steps(self, row: Sequence[Node]) -> list[Outside]:
        """A step for each node."""
        return [Outside(n.name, self.device, n.name, self.codes[n.name].args) for n in row]

    def complete(self, module: Module, dump: Dumper) -> None:
        """Gives a module the codes."""
        module.outside = {name: code.program for name, code in self.codes.items()}


class TemplateTarget(Target):
    """A target that runs what its templates take, one function of loop IR for each node.

    Its templates get the target itself as the machine. The nodes that it gets have their images as
    N, C, H, W. ``TEMPLATES`` are its templates, the preferred ones first.
    """

    LOWERS: ClassVar[bool] = True
    TEMPLATES: ClassVar[tuple[type[AnyScheduled], ...]]

    @abstractmethod
    def encode(self, func: PrimFunc) -> bytes:
        """A scheduled function as its runtime takes it.

        Raises:
            NoCodeError: the target has no code for it; the processor gets the node.
        """

    def refusal(self, node: Node, graph: Graph) -> str | None:
        """Reason for which none of its templates takes a node."""
        template, reasons = first_template(self.TEMPLATES, node, graph, self)
        if template is not None:
            return None
        return "; ".join(reasons) or f"{self.DEVICE} has no template for {node.op}"

    def placement(self, node: Node, refusals: Sequence[str]) -> Placement:
        """On the target."""
        return Placement(self.DEVICE, f"{self.DEVICE} has a template for {node.op}")

    def lower(self, node: Node, graph: Graph, report: Report | None = None) -> Code[bytes]:
        """The code of a node, by the first template that takes it."""
        template, _ = first_template(self.TEMPLATES, node, graph, self)
        assert template is not None
        try:
            made = scheduled(node, graph, template, self)
            if report is not None:
                report("loops", show(made.func))
            return Code(self.encode(made.func), made.args, made.constants)
        except (ScheduleError, BoundsError) as error:
            raise NoCodeError(str(error)) from error

    def finish(
        self, graph: Graph, placements: Placements, lowered: Mapping[str, Code[bytes]]
    ) -> dict[str, Code[bytes]]:
        """The code of its nodes, with the constants of the graph that it reads."""
        own = (node.name for node in graph.nodes if placements[node.name].device == self.DEVICE)
        return {
            name: replace(code, constants=constants_read(code.args, code.constants, graph))
            for name in own
            if (code := lowered.get(name))
        }

    def part(
        self, graph: Graph, placements: Placements, codes: Mapping[str, Code[bytes]]
    ) -> OutsidePart:
        """Codes that its runtime takes as they are."""
        return OutsidePart(self.DEVICE, codes)


def outside_targets() -> dict[str, EntryPoint]:
    """Targets of installed packages, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load_target(entry: EntryPoint) -> Target:
    """The target that an installed package brings, of ``outside_targets``.

    Raises:
        TargetError: its package can't be loaded, or brings something else.
    """
    name = entry.name
    try:
        target = entry.load()()
    except Exception as error:
        actual = f"{type(error).__name__}: {error}"
        raise TargetError(
            f"target {name}: expected {entry.value} to load, found {actual}"
        ) from error
    if not isinstance(target, Target) or name != target.DEVICE:
        actual = f"{type(target).__name__} for {getattr(target, 'DEVICE', 'no device')}"
        raise TargetError(f"target {name}: expected {entry.value} to be a Target, found {actual}")
    return target
