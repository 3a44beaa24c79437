"""Operators that users bring: an expression, and a schedule where the accelerator is to run it.

A node of an ONNX file whose ``domain::OpType`` is registered becomes one operator of the network.
With a schedule it is compiled like any layer and joins the instruction stream; without one, or
where the schedule doesn't fit the config, the processor runs its expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.te import Tensor
from vdla.support.errors import UserError

Expression = Callable[..., Tensor]
Scheduler = Callable[[Schedule, Tensor, Sequence[Tensor], object], None]  # with its intrinsics
Type = tuple[tuple[int, ...], str]  # shape and dtype

REGISTERED: dict[str, UserOperator] = {}


class OperatorError(UserError):
    """An operator of a user's that isn't there, has no name of its own, or makes no tensor."""


@dataclass(frozen=True, eq=False)
class UserOperator:
    """``expression(*inputs, **attributes)`` gives the result; ``schedule`` places it.

    ``schedule(s, output, inputs, ins)`` tensorizes every stage of the schedule ``s`` with the
    intrinsics ``ins`` of the config.
    """

    name: str
    expression: Expression
    schedule: Scheduler | None = None

    def __str__(self) -> str:
        return self.name

    def tensors(
        self, types: Sequence[Type], attributes: Mapping[str, object]
    ) -> tuple[list[Tensor], Tensor]:
        """The expression's placeholders, called in0, in1 …, and its result.

        Raises:
            OperatorError: it returns no tensor that it computes.
        """
        inputs = [te.placeholder(s, d, f"in{i}") for i, (s, d) in enumerate(types)]
        result = self.expression(*inputs, **attributes)
        if not isinstance(result, Tensor) or result.op is None:
            values = result.name if isinstance(result, Tensor) else repr(result)
            raise OperatorError(
                f"{self.name}: expected its expression to return one tensor that it computes, "
                f"found {values}"
            )
        return inputs, result

    def scheduled(
        self, types: Sequence[Type], attributes: Mapping[str, object], intrinsics: object
    ) -> Schedule:
        """The user's schedule, tensorized with the intrinsics of a target."""
        assert self.schedule is not None
        inputs, output = self.tensors(types, attributes)
        s = Schedule(te.build(inputs, [output], "user"))
        self.schedule(s, output, inputs, intrinsics)
        return s


def register_operator(
    name: str, expression: Expression, schedule: Scheduler | None = None
) -> UserOperator:
    """Gives ONNX nodes of ``domain::OpType`` a meaning, here and for every later compilation.

    Args:
        name: ``domain::OpType``; the domain isn't ONNX's own.
        expression: from input tensors and ONNX attributes (as keywords) to the output tensor.
        schedule: for the accelerator; without one the processor runs the expression.

    Raises:
        OperatorError: the name isn't of that form, or its domain is ONNX's.
    """
    domain, separator, kind = name.partition("::") if isinstance(name, str) else ("", "", "")
    if not (separator and domain and kind) or domain in ("ai.onnx", "onnx"):
        raise OperatorError(
            f"register_operator: expected domain::OpType with a domain of your own, found {name!r}"
        )
    for what, function in (("an expression", expression), ("a schedule", schedule)):
        if function is not None and not callable(function):
            raise OperatorError(
                f"register_operator {name}: expected {what} as a function, found {function!r}"
            )
    REGISTERED[name] = UserOperator(name, expression, schedule)
    return REGISTERED[name]


def registered(name: str) -> UserOperator:
    """The operator of a name.

    Raises:
        OperatorError: none is registered under it.
    """
    if name not in REGISTERED:
        known = ", ".join(REGISTERED) or "none"
        raise OperatorError(f"operator {name}: expected a registered one ({known}), found no such")
    return REGISTERED[name]
