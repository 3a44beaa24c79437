"""Parts of a module, of targets that know nothing of one another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from floats import Net

from vdla.compiler.assemble import Network, assemble, link
from vdla.compiler.dump import Dumper
from vdla.compiler.placement import Placement
from vdla.compiler.targets.target import Code, Part, Target
from vdla.isa.config import load_config
from vdla.runtime.plan import Outside

PAPER = load_config("paper")


@dataclass
class Rows(Part):
    """A step for each row of nodes, and 64 bytes for what is linked."""

    device: str
    codes: dict[str, Code[str]]
    linked: list[int] = field(default_factory=list)

    def steps(self, row):
        names = "+".join(self.codes[node.name].program for node in row)
        return [Outside(names, self.device, names, (row[0].inputs[0], row[-1].output))]

    def link(self, memory, start):
        self.linked.append(start)
        return start + 64

    def complete(self, module, dump):
        module.outside |= {name: code.program.encode() for name, code in self.codes.items()}


class Toy(Target):
    """A device that runs all that it is given."""

    def __init__(self, device):
        self.DEVICE = device

    def refusal(self, node, graph):
        return None

    def placement(self, node, refusals):
        return Placement(self.DEVICE, "")

    def finish(self, graph, placements, lowered):
        own = [node for node in graph.nodes if placements[node.name].device == self.DEVICE]
        return {n.name: Code(f"{n.name} on {self.DEVICE}", (*n.inputs, n.output), {}) for n in own}

    def part(self, graph, placements, codes):
        return Rows(self.DEVICE, dict(codes))


def network(devices, constants=()):
    """A chain of operators on these devices, of the targets a and b; ``constants`` are those that a
    node's code reads, by the node's number."""
    net, y = Net(4, 8), "x"
    for _ in devices:
        y = net.unary("tanh", y)
    graph = net.graph(y)
    pairs = list(zip(graph.nodes, devices, strict=True))
    placements = {node.name: Placement(device, "") for node, device in pairs}
    targets = [Toy("a"), Toy("b")]
    codes = {}
    for target in targets:
        codes |= target.finish(graph, placements, {})
    for number in constants:
        code = codes[graph.nodes[number].name]
        codes[graph.nodes[number].name] = Code(
            code.program, code.args, {f"k{number}": np.full(16, number, np.int32)}, number
        )
    return Network(graph, placements, targets, codes)


def test_nodes_of_a_target_in_a_row_are_steps_of_its_part():
    made = network("aabab")
    steps = made.steps(made.parts())
    assert [step.target for step in steps] == ["a", "b", "a", "b"]
    assert steps[0].code == "t0 on a+t1 on a"


def test_what_is_on_no_targets_device_is_the_last_ones():
    made = network("ab")
    made.placements["t0"] = Placement("onnxruntime", "")
    parts = {"a": None, "b": Rows("b", {"t0": Code("it", (), {}), "t1": Code("own", (), {})})}
    (step,) = made.steps(parts)
    assert (step.target, step.code) == ("b", "it+own")


def test_constants_of_the_last_target_lie_first():
    linked = link(network("abab", constants=(0, 1, 2)), PAPER)
    assert list(linked.constants) == ["k1", "k0", "k2"]
    assert linked.memory.constants["k1"] == 0
    assert linked.image[:4] == b"\1\0\0\0"


def test_parts_are_linked_one_behind_another():
    linked = link(network("ab"), PAPER)
    (first,), (second,) = (part.linked for part in linked.parts.values())
    assert first == linked.memory.total_bytes
    assert (second, linked.dram_bytes) == (first + 64, first + 128)


def test_every_target_completes_the_module():
    module = assemble(network("ab", constants=(1,)), PAPER, Dumper(None))
    assert module.outside == {"t0": b"t0 on a", "t1": b"t1 on b"}
    assert module.metadata["work"] == {"t1": 1}
    assert type(module).from_bytes(module.to_bytes()).outside == module.outside
