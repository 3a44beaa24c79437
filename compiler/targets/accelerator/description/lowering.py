"""Instructions that a call of an intrinsic becomes.

An intrinsic's behaviour names its operands and parameters; an instruction has fields. ``Emit``
connects the two: each role that an instruction's operands play (what is written, the weights, the
scales …) has the name of the behaviour's operand that plays it.

    LOAD    dst, src                 STORE   acc, out, scale
    GEMM    acc, inp, wgt, bias      ALU     dst, x, y, imm   (x is what lies at dst; imm: an
                                             operand whose one entry the immediate names)
            second   (a window's second row: ``pitch`` entries behind inp)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vdla.compiler import te
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir.intrin import Laws, Param, TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Instruction

Range = tuple[int, int]


@dataclass(frozen=True)
class Parameter:
    """A field's value as a sum of the behaviour's parameters, times ``sign``."""

    names: tuple[str, ...]
    sign: int = 1

    @property
    def key(self) -> str:
        """Name in ``Laws.ranges`` of the parameter, or of the sum of several: ``"a + b"``."""
        return " + ".join(self.names)


@dataclass(frozen=True)
class Emit:
    """One instruction: its class, the fields that are fixed, and where the others come from."""

    instruction: type[Instruction]
    fields: Mapping[str, int] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def field_range(self, name: str, config: Config) -> Range:
        """The least and greatest value of a field with which the instruction computes exactly.

        That is what its bits hold; of an ALU's operands, what its multiplier takes of them.
        """
        low, high = next(f for f in self.instruction.fields if f.name == name).bounds(config)
        if self.instruction is Alu:
            operand = "y" if name == "imm" and self.fields.get("use_imm") else name
            bits = AluOp(self.fields["alu_op"]).bits.get(operand)
            if bits is not None:
                low, high = max(low, signed(bits)[0]), min(high, signed(bits)[1])
        return low, high


@dataclass(frozen=True)
class Lowering:
    """The instructions of a call, in order, and which operand the first one overwrites.

    ``inplace`` names the operand that the result replaces where nothing else needs it; elsewhere it
    is copied first. Empty: the result is written without reading its place.
    ``inside`` names the parameter that says where a padded load reads its tensor. ``fills`` is how
    many micro-ops at the beginning of a row only fill a window. ``config`` is the name of the
    config that the intrinsic was declared for, for messages.
    """

    emits: tuple[Emit, ...]
    inplace: str = ""
    inside: str = ""
    fills: int = 0
    config: str = ""

    def parameter_ranges(self, config: Config) -> dict[str, Range]:
        """The values of each parameter, or sum of some, that every field it goes to takes."""
        ranges: dict[str, Range] = {}
        for emit in self.emits:
            for name, parameter in emit.parameters.items():
                ends = [end * parameter.sign for end in emit.field_range(name, config)]
                low, high = ranges.get(parameter.key, (min(ends), max(ends)))
                ranges[parameter.key] = max(low, min(ends)), min(high, max(ends))
        return ranges


def signed(bits: int) -> Range:
    """The values that ``bits`` hold in two's complement."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def lowering_of(intrin: TensorIntrin) -> Lowering:
    """The lowering that the target declared for an intrinsic.

    Raises:
        TypeError: the intrinsic isn't one of the accelerator's.
    """
    if not isinstance(intrin.lowering, Lowering):
        raise TypeError(f"{intrin.name}: expected an intrinsic of the accelerator, found another")
    return intrin.lowering


def declare(
    name: str,
    output: Tensor,
    params: tuple[Param, ...],
    scopes: Mapping[Tensor, str],
    lowering: Lowering,
    config: Config,
    laws: Laws | None = None,
) -> TensorIntrin:
    """An intrinsic whose parameters' ranges are those of the fields they go to."""
    own = laws or Laws()
    known = replace(own, ranges={**lowering.parameter_ranges(config), **own.ranges})
    cost = len(lowering.emits)
    named = replace(lowering, config=config.name)
    return te.decl_intrin(name, output, params, scopes, known, named, cost)
