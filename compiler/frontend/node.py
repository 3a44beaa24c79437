"""One node of an ONNX file: its operands and attributes, checked as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from vdla.compiler.frontend.draft import Draft
from vdla.compiler.frontend.errors import ModelError, UnsupportedError
from vdla.compiler.graph.ir import Array


class OnnxNode:
    """One ONNX node as the converters see it."""

    def __init__(self, draft: Draft, proto: Any, name: str, where: str) -> None:
        self.draft, self.proto, self.name, self.where = draft, proto, name, where
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    @property
    def output(self) -> str:
        """The name of the node's one output.

        Raises:
            UnsupportedError: the graph gives a second output of the node a name, to use it.
        """
        extra = [o for o in self.proto.output[1:] if o]
        if extra:
            raise self.unsupported("one output", f"a second one, {extra[0]}")
        return str(self.proto.output[0])

    def operand(self, index: int) -> str:
        """The name of the tensor in place ``index``."""
        name = self.optional(index)
        if name is None:
            raise self.error(f"an operand in place {index}", "none")
        return name

    def optional(self, index: int) -> str | None:
        """As :meth:`operand`, None where it is left out."""
        if index >= len(self.proto.input) or not self.proto.input[index]:
            return None
        name = str(self.proto.input[index])
        name = self.draft.alias.get(name, name)
        if name not in self.draft.tensors:
            raise self.error("operands defined before their use", name)
        return name

    def operands(self) -> tuple[str, ...]:
        """The names of all operands."""
        return tuple(self.operand(i) for i in range(len(self.proto.input)))

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return self.draft.tensors[self.operand(index)].shape

    def constant(self, index: int, what: str) -> Array:
        """The value of an operand that has to be known now."""
        name = self.operand(index)
        value = self.draft.known(name)
        if value is None:
            raise self.unsupported(f"a constant {what}", f"{name}, known only at run time")
        return value

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def real(self, name: str, default: float) -> float:
        """A float attribute."""
        return float(self.attributes.get(name, default))

    def integers(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """An attribute of integers."""
        return tuple(int(v) for v in self.attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def error(self, expected: str, found: object) -> ModelError:
        """The error that names this node."""
        return ModelError(self.where, expected, found)

    def unsupported(self, expected: str, found: object) -> UnsupportedError:
        """The error of a form that vdla doesn't have; onnxruntime then gets the node."""
        return UnsupportedError(self.where, expected, found)
