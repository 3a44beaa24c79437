"""Vectors of float16 where LLVM can't compare and convert them.

LLVM 22.1 aborts, or doesn't end, where it selects instructions of WebAssembly for a comparison of
vectors of float16, and makes a conversion of four or more to float64 a call with an operand of a
wrong type, which no engine accepts. Its passes make these of operations on float32 that was float16
before, so they are rewritten behind the passes: through float32, which is exact.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm

COMPARISON = re.compile(
    r"^  (%[\w.]+|%\"[^\"]+\") = fcmp ([a-z ]+) (<\d+ x )half> (.+)$", re.MULTILINE
)
CONVERSION = re.compile(
    r"^  (%[\w.]+|%\"[^\"]+\") = fpext (<\d+ x )half> (.+) to <\d+ x double>$", re.MULTILINE
)


def without_half_vectors(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """A module whose vectors of float16 are compared and made float64 by way of float32."""
    text = str(module)
    rewritten = CONVERSION.sub(_in_steps, COMPARISON.sub(_as_floats, text))
    return module if rewritten == text else llvm.parse_assembly(rewritten)


def _as_floats(match: re.Match[str]) -> str:
    """Two conversions and a comparison, for one comparison."""
    result, condition, lanes, operands = match.groups()
    name = result.strip('%"')
    wide = [f'%"{name}.float{n}"' for n in range(2)]
    conversions = [
        f"  {to} = fpext {lanes}half> {operand} to {lanes}float>"
        for to, operand in zip(wide, _pair(operands), strict=True)
    ]
    compared = f"  {result} = fcmp {condition} {lanes}float> {', '.join(wide)}"
    return "\n".join([*conversions, compared])


def _in_steps(match: re.Match[str]) -> str:
    """Two conversions for one."""
    result, lanes, operand = match.groups()
    name = result.strip('%"')
    wide = f'%"{name}.float"'
    return (
        f"  {wide} = fpext {lanes}half> {operand} to {lanes}float>\n"
        f"  {result} = fpext {lanes}float> {wide} to {lanes}double>"
    )


def _pair(operands: str) -> tuple[str, str]:
    """The two operands of a text, of which a constant one has commas in brackets."""
    depth = 0
    for at, letter in enumerate(operands):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            return operands[:at], operands[at + 1 :].strip()
    raise ValueError(f"fcmp: expected two operands, found {operands!r}")
