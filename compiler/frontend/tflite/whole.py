"""State that all graphs of a model share while it is translated: names, variables, subgraphs."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx

from vdla.compiler.frontend.tflite.contents import Contents, Tensor
from vdla.compiler.frontend.tflite.layout import Layout
from vdla.compiler.graph.types import Array


@dataclass
class Names:
    """The names of an ONNX model, none of which is given twice."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, hint: str) -> str:
        """A name that nothing has: the hint, or the hint with a number."""
        name, number = hint, 1
        while name in self.taken:
            number += 1
            name = f"{hint}_{number}"
        self.taken.add(name)
        return name


@dataclass
class Variable:
    """A resource variable: an input of the ONNX model, and an output where the model assigns it.

    Attributes:
        tensor: a tensor that is read from it or assigned to it, for its type and shape.
        layout: the order of axes in which it is an input and an output.
        input: the name of the ONNX input.
        initial: what the file assigns to it once; None stands for zeros.
        current: the ONNX name of its value at this place of the model.
        output: the name of the ONNX output; empty where the model assigns nothing.
    """

    tensor: Tensor
    layout: Layout
    input: str
    initial: Array | None
    current: str
    output: str = ""


@dataclass
class Whole:
    """A model under translation.

    Attributes:
        contents: the file.
        names: those of all graphs.
        initial: what the file assigns to its variables once, by their names.
        variables: those that operators have read or assigned so far, by their names.
        kinds: types and shapes of ONNX values, where the file leaves sizes open.
        active: numbers of the subgraphs that are being translated, outermost first.
    """

    contents: Contents
    names: Names = field(default_factory=Names)
    initial: dict[str, Array] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    kinds: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)
    active: list[int] = field(default_factory=list)
