"""Prints a digest of the laid-out graphs of some networks, to compare two commits.

    python tools/graph_digests.py [FILE ...] [--networks 25] [-c paper -c tiny]

For each config and network a line: the digest is over every node's operator, fields, operands,
types, constants and placement, in the graph's order, and neither over names nor over what integers
mean. A change of the compiler that is to change no graph prints the same lines as before. Networks
are the bundled ones, random ones, quantized, as the tests make them, and quantized ONNX files.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from vdla.compiler.build import Options, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.models import MODELS, model_paths
from vdla.compiler.placement import Placements
from vdla.isa.config import load_config

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ("paper", "paper-full", "ulx3s", "tiny")


def networks(count: int, folder: Path) -> Iterator[Path]:
    """ONNX files: the bundled ones, and ``count`` random quantized ones."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from random_graphs import float_model, quantized

    for name in MODELS:
        yield from model_paths(name).values()
    for seed in range(count):
        path = folder / f"random{seed}.onnx"
        onnx.save(quantized(float_model(9000 + seed, integer=True), seed), path)
        yield path


@dataclass
class Description:
    """A graph as text without names: tensors are numbers, in the order in which nodes name them."""

    graph: Graph
    placements: Placements
    numbers: dict[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """A line for the inputs, for each node, and for the outputs."""
        yield str([self.tensor(name) for name in self.graph.inputs])
        for node in self.graph.nodes:
            yield f"{self.node(node)} on {self.placements[node.name].device}"
        yield str([self.tensor(name) for name in self.graph.outputs])

    def node(self, node: Node) -> str:
        """An operator with its fields, operands and result, its parts within."""
        fields = {key: self.value(value) for key, value in node.attributes()}
        operands = [self.tensor(name) for name in node.inputs]
        return f"{node.op} {fields} {operands} {self.tensor(node.output)}"

    def value(self, value: object) -> str:
        """A field; parts of a node that is several are described in their turn."""
        if isinstance(value, tuple) and value and all(isinstance(each, Node) for each in value):
            return str([self.node(each) for each in value])
        return repr(value)

    def tensor(self, name: str) -> str:
        """A tensor's number; its type and value, too, where it is named first."""
        if name in self.numbers:
            return str(self.numbers[name])
        self.numbers[name] = number = len(self.numbers)
        value = self.graph.constants.get(name)
        constant = "" if value is None else hashlib.sha256(value.tobytes()).hexdigest()
        kind = self.graph.tensors.get(name)  # none of what passes between the parts of a node
        lies = f"{kind.dtype}{kind.shape}/{kind.block}" if kind else ""
        return f"{number}: {lies} {constant}"


def digest(path: Path, config: str) -> str:
    """Sixteen hex digits over a network's laid-out graph."""
    graph, placements = placed_graph(import_onnx(path), load_config(config), Options())
    text = "\n".join(Description(graph, placements).lines())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def print_lines(description: str, figures: Callable[[Path, str], str]) -> None:
    """Prints a line for each config and network that the command names: ``figures`` of both."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--networks", type=int, default=25)
    parser.add_argument("-c", "--config", action="append")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for path in (*networks(arguments.networks, Path(name)), *arguments.files):
            for config in arguments.config or CONFIGS:
                print(f"{config:10} {path.stem:20} {figures(path, config)}", flush=True)


if __name__ == "__main__":
    print_lines(__doc__, digest)
