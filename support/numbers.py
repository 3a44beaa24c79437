"""Arithmetic of integers that the standard library lacks."""

from __future__ import annotations


def ceil_div(a: int, b: int) -> int:
    """``a / b`` rounded up: how many groups of ``b`` hold ``a`` things."""
    return -(-a // b)
