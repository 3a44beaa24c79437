"""The program's text after every pass, as numbered files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.parser import write_values
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.types import Array
from vdla.support.names import path_part


class Dumper:
    """Writes texts as numbered files into a folder, or nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.counts: dict[str, int] = {}
        self.values: dict[str, Array] = {}

    def within(self, name: str) -> Dumper:
        """Who writes the texts of a region or a function into a folder of its own."""
        return Dumper(self.folder and self.folder / path_part(name))

    def graph(self, name: str, graph: Graph) -> None:
        """The graph after a pass, and beside it the arrays that weren't there before it."""
        if self.folder is None:
            return
        path = self.write("graph", name, format_graph(graph))
        result = beside(graph)
        new = {n: a for n, a in result.items() if not _same_array(a, self.values.get(n))}
        self.values.update(new)
        write_values(path.with_suffix(".npz"), new)

    def layer(self, layer: str) -> Callable[[str, str], None] | None:
        """Function to which ``lower`` gives the name and the text of an operator's passes; None
        without a folder.
        """
        if self.folder is None:
            return None

        def write(name: str, text: str) -> None:
            self.write(layer, name, text)

        return write

    def write(self, group: str, name: str, text: str) -> Path:
        """``group/NN_name.txt``, in place of what an earlier dump left under the number."""
        if self.folder is None:
            return Path()
        part = path_part(group)
        self.counts[part] = number = self.counts.get(part, 0) + 1
        folder = self.folder / part
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{number:02}_*"):
            old.unlink()
        path = folder / f"{number:02}_{name}.txt"
        path.write_text(text, encoding="utf-8")
        return path


def _same_array(a: Array, b: Array | None) -> bool:
    """Whether two arrays hold the same bits; -0.0 isn't 0.0, and a NaN is itself."""
    if a is b:
        return True
    return b is not None and (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
