"""One node of an ONNX file: its operands and attributes, checked as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from vdla.compiler.frontend.draft import Draft
from vdla.compiler.frontend.errors import ModelError, UnsupportedError
from vdla.compiler.graph.types import Array

MICROSOFT = "com.microsoft"  # the domain of onnxruntime's own operators


class OnnxNode:
    """One ONNX node as the converters see it."""

    def __init__(self, draft: Draft, proto: onnx.NodeProto, name: str, where: str) -> None:
        self.draft, self.proto, self.name, self.where = draft, proto, name, where
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                reference = f"{attribute.name} = @{attribute.ref_attr_name}"
                raise self.error("attributes of a function in a function alone", reference)
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    @property
    def output(self) -> str:
        """The name of the node's one output.

        Raises:
            UnsupportedError: a second output of the node is read.
        """
        extra = [o for o in self.proto.output[1:] if o in self.draft.read]
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
        """The name of an operand, as by :meth:`operand`; None where the node leaves it out."""
        if index >= len(self.proto.input) or not self.proto.input[index]:
            return None
        name = str(self.proto.input[index])
        name = self.draft.alias.get(name, name)
        if name in self.draft.open:
            raise self.error("operands of static shape", f"{name}, whose size depends on data")
        if name not in self.draft.tensors:
            raise self.error("operands defined before their use", name)
        return name

    def wanted(self, index: int) -> bool:
        """Whether the output in place ``index`` is read, or the model's."""
        return index < len(self.proto.output) and self.proto.output[index] in self.draft.read

    def operands(self) -> tuple[str, ...]:
        """The names of all operands."""
        return tuple(self.operand(i) for i in range(len(self.proto.input)))

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return self.draft.tensors[self.operand(index)].shape

    def dtype(self, index: int) -> str:
        """The element type of an operand."""
        return self.draft.tensors[self.operand(index)].dtype

    def real_dtype(self, index: int = 0) -> str:
        """The element type of an operand of floats.

        Raises:
            UnsupportedError: it is another.
        """
        dtype = self.dtype(index)
        if not dtype.startswith("float"):
            raise self.unsupported("float data", dtype)
        return dtype

    def common_dtype(self, first: int = 0) -> str:
        """The one element type of all operands from ``first`` on.

        Raises:
            ModelError: there are several.
        """
        result = {self.draft.tensors[name].dtype for name in self.operands()[first:]}
        if len(result) != 1:
            raise self.error("operands of one type", ", ".join(sorted(result)) or "none")
        return result.pop()

    def axis(self, value: int, rank: int) -> int:
        """An axis that may count from the end.

        Raises:
            ModelError: there is no such axis.
        """
        if not -rank <= value < rank:
            raise self.error(f"an axis from {-rank} to {rank - 1}", value)
        return value % rank

    def axes(self, index: int, rank: int) -> tuple[int, ...] | None:
        """The axes that operand ``index`` or the attribute ``axes`` names, ascending; None where
        neither does."""
        if self.optional(index) is not None:
            result = [int(a) for a in self.constant(index, "axes").reshape(-1)]
        elif "axes" in self.attributes:
            result = list(self.integers("axes", ()))
        else:
            return None
        return tuple(sorted({self.axis(a, rank) for a in result}))

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

    def error(self, expected: str, actual: object) -> ModelError:
        """The error that names this node."""
        return ModelError(self.where, expected, actual)

    def unsupported(self, expected: str, actual: object) -> UnsupportedError:
        """The error of a form that vdla doesn't have; onnxruntime then gets the node."""
        return UnsupportedError(self.where, expected, actual)
