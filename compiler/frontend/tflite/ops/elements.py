"""Operators that compute each element by itself, of one operand or of two that broadcast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vdla.compiler.frontend.tflite.operator import View, converts

# One operand -------------------------------------------------------------------------------------

UNARY = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "LOG": "Log",
    "LOGICAL_NOT": "Not",
    "LOGISTIC": "Sigmoid",
    "NEG": "Neg",
    "RELU": "Relu",
    "ROUND": "Round",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
}


@converts(*UNARY)
def _unary(view: View) -> None:
    layout = view.layout()
    view.put(view.emit(UNARY[view.operator.name], [view.real(0, layout)]), layout)


BOUNDS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


@converts(*BOUNDS)
def _bounded(view: View) -> None:
    layout = view.layout()
    view.put(view.clip(view.real(0, layout), *BOUNDS[view.operator.name]), layout)


@converts("LEAKY_RELU")
def _leaky(view: View) -> None:
    layout = view.layout()
    slope = view.decimal("Alpha")
    view.put(view.emit("LeakyRelu", [view.real(0, layout)], alpha=slope), layout)


@converts("ELU")
def _elu(view: View) -> None:
    layout = view.layout()
    view.put(view.emit("Elu", [view.real(0, layout)], alpha=1.0), layout)


@converts("HARD_SWISH")
def _hard_swish(view: View) -> None:
    layout = view.layout()
    view.put(view.emit("HardSwish", [view.real(0, layout)]), layout)


@converts("GELU")
def _gelu(view: View) -> None:
    layout = view.layout()
    kind = "tanh" if view.flag("Approximate") else "none"
    view.put(view.emit("Gelu", [view.real(0, layout)], approximate=kind), layout)


@converts("RSQRT")
def _rsqrt(view: View) -> None:
    layout = view.layout()
    root = view.emit("Sqrt", [view.real(0, layout)])
    view.put(view.emit("Reciprocal", [root]), layout)


@converts("SQUARE")
def _square(view: View) -> None:
    layout = view.layout()
    data = view.real(0, layout)
    view.put(view.emit("Mul", [data, data]), layout)


@converts("ZEROS_LIKE")
def _zeros(view: View) -> None:
    zero = np.zeros((), view.tensor(0).dtype)
    shape = view.emit("Shape", [view.stored(0)])
    zeros = view.emit("Expand", [view.draft.constant(zero, f"{view.name}.zero"), shape])
    view.draft.put_stored(view.result(), zeros)


# Two operands ------------------------------------------------------------------------------------

BINARY = {
    "ADD": "Add",
    "DIV": "Div",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "MUL": "Mul",
    "POW": "Pow",
    "SUB": "Sub",
}


def both(view: View, make: Callable[[str, str], str]) -> None:
    """Makes the result of an operator's two operands, which broadcast."""
    layout = view.layout()
    view.finish(make(view.spread(0, layout), view.spread(1, layout)), layout)


@converts(*BINARY)
def _binary(view: View) -> None:
    both(view, lambda a, b: view.emit(BINARY[view.operator.name], [a, b]))


@converts("PRELU")
def _prelu(view: View) -> None:
    """The slopes broadcast to the data."""
    both(view, lambda data, slope: view.emit("PRelu", [data, slope]))


@converts("SQUARED_DIFFERENCE")
def _squared_difference(view: View) -> None:
    def made(a: str, b: str) -> str:
        difference = view.emit("Sub", [a, b])
        return view.emit("Mul", [difference, difference])

    both(view, made)


@converts("FLOOR_DIV")
def _floor_div(view: View) -> None:
    """Integers less what remains divide exactly; ONNX rounds their quotients towards 0."""
    if view.tensor(0).dtype.startswith("float"):
        both(view, lambda a, b: view.emit("Floor", [view.emit("Div", [a, b])]))
        return

    def made(a: str, b: str) -> str:
        rest = view.emit("Mod", [a, b])
        return view.emit("Div", [view.emit("Sub", [a, rest]), b])

    both(view, made)


@converts("FLOOR_MOD")
def _floor_mod(view: View) -> None:
    """The rest has the divisor's sign; ONNX's rest of floats has the dividend's."""
    if not view.tensor(0).dtype.startswith("float"):
        both(view, lambda a, b: view.emit("Mod", [a, b]))
        return

    def made(a: str, b: str) -> str:
        rest, zero = view.emit("Mod", [a, b], fmod=1), view.float_of(0.0)
        signs = [view.emit("Less", [each, zero]) for each in (rest, b)]
        other = view.emit("Xor", signs)
        some = view.emit("Not", [view.emit("Equal", [rest, zero])])
        moved = view.emit("Add", [rest, b])
        return view.emit("Where", [view.emit("And", [other, some]), moved, rest])

    both(view, made)


@converts("ADD_N")
def _add_all(view: View) -> None:
    layout = view.layout()
    view.put(view.emit("Sum", [view.spread(i, layout) for i in range(view.count)]), layout)
