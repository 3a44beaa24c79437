"""Arithmetic of integers that the standard library lacks."""

from __future__ import annotations


def ceil_div(a: int, b: int) -> int:
    """``a / b`` rounded up: how many groups of ``b`` hold ``a`` things."""
    return -(-a // b)


def divisors(n: int, most: int | None = None) -> tuple[int, ...]:
    """The divisors of ``n``, ascending; none above ``most`` where that is given."""
    return tuple(d for d in range(1, min(n, most or n) + 1) if n % d == 0)
