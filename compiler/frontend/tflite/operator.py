"""An operator as converters see it: its operands as ONNX values, its options, its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from vdla.compiler.frontend.errors import ModelError, UnsupportedError
from vdla.compiler.frontend.tflite.contents import Operator, Tensor
from vdla.compiler.frontend.tflite.drafting import Draft, Form, is_image, is_real
from vdla.compiler.frontend.tflite.layout import RANK, TO_FIRST, Layout
from vdla.compiler.frontend.tflite.schema import word
from vdla.compiler.graph.types import Array

FILE, FIRST, FLAT = Layout.FILE, Layout.FIRST, Layout.FLAT


@dataclass(frozen=True)
class View:
    """One operator of a subgraph, and the draft that its ONNX nodes go to."""

    draft: Draft
    operator: Operator

    @property
    def where(self) -> str:
        """The operator's place, for errors."""
        makes = ", ".join(self.draft.tensors[i].name for i in self.operator.outputs)
        name = f"operator {self.operator.index} ({self.operator.name})"
        return f"{self.draft.where}: {name}" + (f" that makes {makes}" if makes else "")

    def error(self, expected: str, actual: object) -> ModelError:
        """An error that names the operator."""
        return ModelError(self.where, expected, actual)

    def unsupported(self, expected: str, actual: object) -> UnsupportedError:
        """An error for a form that isn't translated."""
        return UnsupportedError(self.where, expected, actual)

    # Operands -----------------------------------------------------------------------------------

    def has(self, index: int) -> bool:
        """Whether an operand is given."""
        return index < len(self.operator.inputs) and self.operator.inputs[index] >= 0

    @property
    def count(self) -> int:
        """Number of operands."""
        return len(self.operator.inputs)

    def tensor(self, index: int) -> Tensor:
        """An operand.

        Raises:
            ModelError: it isn't given.
        """
        if not self.has(index):
            raise self.error(f"an operand {index}", f"{self.count} operands")
        return self.draft.tensors[self.operator.inputs[index]]

    def shape(self, index: int) -> tuple[int, ...]:
        """An operand's sizes."""
        return self.tensor(index).shape

    def rank(self, index: int) -> int:
        """Number of an operand's axes."""
        return len(self.shape(index))

    def real(self, index: int, layout: Layout = FILE) -> str:
        """An operand as real numbers, or as its elements where these aren't quantized."""
        return self.draft.get(self.tensor(index), Form.REAL, layout)

    def stored(self, index: int, layout: Layout = FILE) -> str:
        """An operand's elements, as the file has them."""
        return self.draft.get(self.tensor(index), Form.STORED, layout)

    def moved(self, index: int, op_type: str, *others: str, **attributes: object) -> str:
        """The real numbers of an operand whose elements an ONNX node has put elsewhere.

        The integers are moved, not the real numbers: onnxruntime 1.32 puts QuantizeLinear with a
        wrong element type behind what moves real numbers to an operator of floats.
        """
        tensor = self.tensor(index)
        result = self.emit(op_type, [self.stored(index), *others], **attributes)
        if not is_real(tensor):
            return result
        return self.emit("DequantizeLinear", [result, *self.draft.parameters(tensor)])

    def known(self, index: int) -> Array | None:
        """The elements of an operand that is known now; None of others."""
        return self.draft.value_of(self.tensor(index))

    def constant(self, index: int, meaning: str) -> Array:
        """The elements of an operand that has to be known now.

        Raises:
            UnsupportedError: it isn't.
        """
        array = self.known(index)
        if array is None:
            raise self.unsupported(f"{meaning} that the file says", "one that is computed")
        return array

    def numbers(self, index: int, meaning: str) -> list[int]:
        """A known operand's elements as integers; see :meth:`constant`."""
        return [int(each) for each in self.constant(index, meaning).reshape(-1)]

    # Options ------------------------------------------------------------------------------------

    def integer(self, name: str, default: int = 0) -> int:
        """An option that is a number, or of an enumeration."""
        value = self.operator.options.get(name, default)
        return value if isinstance(value, int) else default

    def decimal(self, name: str, default: float = 0.0) -> float:
        """An option that is a real number."""
        value = self.operator.options.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def integers(self, name: str) -> tuple[int, ...]:
        """An option that is a vector."""
        value = self.operator.options.get(name)
        return value if isinstance(value, tuple) else ()

    def flag(self, name: str) -> bool:
        """An option that is yes or no."""
        return bool(self.operator.options.get(name, False))

    def axis(self, axis: int, rank: int) -> int:
        """An axis that counts from the front.

        Raises:
            ModelError: there is none.
        """
        if not -rank <= axis < rank:
            raise self.error(f"an axis of {rank}", axis)
        return axis % rank

    # Results ------------------------------------------------------------------------------------

    def result(self, index: int = 0) -> Tensor:
        """The tensor of a result.

        Raises:
            ModelError: there is none.
        """
        if index >= len(self.operator.outputs):
            raise self.error(f"a result {index}", f"{len(self.operator.outputs)} results")
        return self.draft.tensors[self.operator.outputs[index]]

    @property
    def name(self) -> str:
        """The ONNX name of the first result, for what is made on the way to it."""
        return self.draft.own[self.result().index]

    def emit(self, op_type: str, inputs: Sequence[str], **attributes: object) -> str:
        """Adds an ONNX node and returns the name of its result."""
        output = self.draft.names.fresh(f"{self.name}.{op_type.lower()}")
        return self.draft.emit(op_type, inputs, output, **attributes)

    def integers_of(self, values: Sequence[int]) -> str:
        """The name of a constant of int64 numbers."""
        return self.draft.integers(values, f"{self.name}.numbers")

    def float_of(self, value: float) -> str:
        """The name of a constant of one float32 number without axes."""
        return self.draft.constant(np.array(value, np.float32), f"{self.name}.number")

    def number_of(self, value: float, index: int) -> str:
        """The name of a constant of one number without axes, of an operand's type."""
        tensor = self.tensor(index)
        dtype = "float32" if is_real(tensor) else tensor.dtype
        return self.draft.constant(np.array(value, dtype), f"{self.name}.number")

    def put(self, name: str, layout: Layout = FILE, index: int = 0) -> None:
        """Makes an ONNX value a result: rounded to the result's steps where it has some."""
        self.draft.put(self.result(index), name, layout)

    def finish(self, name: str, layout: Layout = FILE) -> None:
        """Makes an ONNX value the result behind the activation that the options name."""
        self.put(self.activated(name), layout)

    def activated(self, name: str) -> str:
        """An ONNX value behind the activation that the options name.

        Raises:
            UnsupportedError: it is one that isn't translated.
        """
        number = self.operator.options.get("FusedActivationFunction", 0)
        kind = word("ActivationFunctionType", number)
        if kind in ("NONE", ""):
            return name
        if (activation := ACTIVATIONS.get(kind)) is None:
            known = ", ".join(sorted(ACTIVATIONS))
            raise self.unsupported(f"an activation of {known}", kind)
        return activation(self, name)

    def clip(self, name: str, low: float, high: float) -> str:
        """An ONNX value of floats within bounds."""
        return self.emit("Clip", [name, self.float_of(low), self.float_of(high)])

    # Layout -------------------------------------------------------------------------------------

    def layout(self, *indices: int) -> Layout:
        """The order of axes for an operator that does the same in either.

        Channels first where all results are images, and an operand is held so or a result is better
        held so.

        Args:
            indices: the operands that are in this order; all of them if none are given.
        """
        outputs = [self.draft.tensors[i] for i in self.operator.outputs]
        chosen = indices or range(self.count)
        inputs = [self.tensor(i) for i in chosen if self.has(i)]
        if not outputs or not all(map(is_image, outputs)) or not any(map(is_image, inputs)):
            return FILE
        wanted = any(each.index in self.draft.images for each in outputs)
        held = any(not self.draft.in_file_order(each) for each in inputs)
        return FIRST if wanted or held else FILE

    def spread(self, index: int, layout: Layout) -> str:
        """An operand as real numbers, for an operator that broadcasts with axes in some order.

        One of fewer axes gets axes of one element in front, since the order changes which is last.
        """
        tensor = self.tensor(index)
        if layout is FILE or is_image(tensor) or tensor.elements == 1:
            return self.real(index, layout if is_image(tensor) else FILE)
        shape = (*(1,) * (RANK - len(tensor.shape)), *tensor.shape)
        array = self.known(index)
        if array is not None:
            axis = layout.axis(tensor.axis - len(tensor.shape), len(shape))
            channels = axis if tensor.scale.size > 1 else None
            return self.draft.rearranged(tensor, layout.array(array.reshape(shape)), channels)
        image = self.emit("Reshape", [self.real(index), self.integers_of(shape)])
        return self.emit("Transpose", [image], perm=TO_FIRST)


def _tanh(view: View, name: str) -> str:
    return view.emit("Tanh", [name])


def _relu(view: View, name: str) -> str:
    return view.emit("Relu", [name])


def _within(low: float, high: float) -> Callable[[View, str], str]:
    return lambda view, name: view.clip(name, low, high)


ACTIVATIONS: dict[str, Callable[[View, str], str]] = {
    "RELU": _relu,
    "RELU6": _within(0.0, 6.0),
    "RELU_N1_TO_1": _within(-1.0, 1.0),
    "TANH": _tanh,
}

Converter = Callable[[View], None]
F = TypeVar("F", bound=Converter)
CONVERTERS: dict[str, Converter] = {}  # by the schema's names, and the names of custom operators


def converts(*names: str) -> Callable[[F], F]:
    """Registers a converter of operators."""

    def register(function: F) -> F:
        for name in names:
            CONVERTERS[name] = function
        return function

    return register
