"""LLVM vectors: what one step of a vectorized loop computes, in every lane at once.

An operation that meets a vector takes its other operands as vectors too: a value that is the same
in all lanes is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite import ir as ll

MOST_LANES = 64
COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}  # for llvmlite


def lanes_of(*values: ll.Value) -> int:
    """Number of lanes of the widest value; 0 where all are scalars."""
    return max((v.type.count for v in values if isinstance(v.type, ll.VectorType)), default=0)


def shaped(kind: ll.Type, *like: ll.Value) -> ll.Type:
    """The type with elements of ``kind`` and as many lanes as ``like`` have."""
    lanes = lanes_of(*like)
    return ll.VectorType(kind, lanes) if lanes else kind


def constant(kind: ll.Type, value: object) -> ll.Value:
    """A constant, the same in every lane where ``kind`` is a vector's type."""
    return Splat(kind, value) if isinstance(kind, ll.VectorType) else ll.Constant(kind, value)


class Splat(ll.Constant):  # type: ignore[misc]
    """A vector with one constant in every lane, in LLVM's short form; llvmlite lists the lanes."""

    def __init__(self, kind: ll.VectorType, value: object) -> None:
        self.type, self.constant = kind, (ll.Constant(kind.element, value),) * kind.count

    def _get_reference(self) -> str:
        return f"splat ({self.type.element} {self.constant[0].get_reference()})"


def element(value: ll.Value) -> ll.Type:
    """The type of a value's elements."""
    return value.type.element if isinstance(value.type, ll.VectorType) else value.type


def splat(b: ll.IRBuilder, value: ll.Value, lanes: int) -> ll.Value:
    """A scalar in every lane."""
    kind = ll.VectorType(value.type, lanes)
    if isinstance(value, ll.Constant):
        return Splat(kind, value.constant)
    nothing = _undefined(kind)
    first = b.insert_element(nothing, value, ll.IntType(32)(0))
    return b.shuffle_vector(first, nothing, _first_lane(lanes))


@cache
def _undefined(kind: ll.VectorType) -> ll.Constant:
    """A vector of nothing: one word of LLVM's text, where llvmlite lists every lane."""
    result = ll.Constant(kind, None)
    result.constant = ll.Undefined
    return result


@cache
def _first_lane(lanes: int) -> ll.Constant:
    """The mask of a shuffle that takes the first lane for all."""
    return Splat(ll.VectorType(ll.IntType(32), lanes), 0)


def together(b: ll.IRBuilder, *values: ll.Value) -> tuple[ll.Value, ...]:
    """The values with the same number of lanes."""
    lanes = lanes_of(*values)
    if not lanes:
        return values
    return tuple(v if lanes_of(v) else splat(b, v, lanes) for v in values)


def lane(b: ll.IRBuilder, value: ll.Value, index: int) -> ll.Value:
    """One lane of a value; a scalar is every lane's."""
    return b.extract_element(value, ll.IntType(32)(index)) if lanes_of(value) else value


def per_lane(b: ll.IRBuilder, lanes: int, make: Callable[[int], ll.Value]) -> ll.Value:
    """A vector put together of scalars, lane by lane."""
    result = None
    for i in range(lanes):
        value = make(i)
        if result is None:
            result = ll.Constant(ll.VectorType(value.type, lanes), ll.Undefined)
        result = b.insert_element(result, value, ll.IntType(32)(i))
    return result
