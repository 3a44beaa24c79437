"""Functions of one text of LLVM that their callers contain: what is computed in many places is
written once, and is no call in the machine code."""

from __future__ import annotations

from llvmlite import ir as ll


def inlined_function(module: ll.Module, name: str, kind: ll.FunctionType) -> ll.Function:
    """A function without a body, which has none but callers in its module."""
    result = ll.Function(module, kind, name)
    result.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind"):
        result.attributes.add(attribute)
    return result
