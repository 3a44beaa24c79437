"""Whether the intrinsics that a function calls are those of the config it is compiled for."""

from __future__ import annotations

from vdla.compiler.targets.accelerator.description.lowering import Lowering
from vdla.compiler.targets.accelerator.description.memory import BUFFER_OF_SCOPE, entry_shape
from vdla.compiler.tir.ir import Evaluate, PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.visitor import walk
from vdla.isa.config import Config
from vdla.support.errors import UserError


class IntrinsicError(UserError):
    """A function calls an intrinsic of another config."""


def check_intrinsics(func: PrimFunc, config: Config) -> None:
    """Raises IntrinsicError where a call moves or computes other vectors than the config has.

    Of a config, its block sizes and the widths of instruction fields make the intrinsics; those of
    configs that differ in buffers, port, queues or memory alone are the same.
    """
    called = (s.call.intrin for s in walk(func.body) if isinstance(s, Evaluate))
    for intrin in dict.fromkeys(called):
        if isinstance(intrin.lowering, Lowering):
            _check(func.name, intrin, intrin.lowering, config)


def _check(name: str, intrin: TensorIntrin, lowering: Lowering, config: Config) -> None:
    of = f"{intrin.name} of config {lowering.config}" if lowering.config else intrin.name
    remedy = f"tensorize with the intrinsics of {config.name}, as vdla.intrinsics gives them"
    for operand in intrin.operands:
        scope = intrin.scopes.get(operand.name, "global")
        if scope not in BUFFER_OF_SCOPE:
            continue
        shape = entry_shape(scope, config)
        if operand.shape[-len(shape) :] != shape:  # it may be several
            raise IntrinsicError(
                f"{name}: expected intrinsics of config {config.name}, where an entry of {scope} "
                f"is {list(shape)}, found {of} with {list(operand.shape)}; {remedy}"
            )
    held = lowering.parameter_ranges(config)
    for key, (low, high) in held.items():
        least, most = intrin.laws.ranges.get(key, (low, high))
        if least < low or most > high:
            raise IntrinsicError(
                f"{name}: expected intrinsics of config {config.name}, where {key} is from {low} "
                f"to {high}, found {of} with {least} to {most}; {remedy}"
            )
