"""The engines, a row each: the order of counters, of trace bits and of arrays.

Rows of engines that only some configs have are in ``isa/options``.
"""

from __future__ import annotations

from vdla.isa.rows import Row


class Engine(Row):
    """An engine: a unit with a queue of instructions of its own."""


Engine.add(0, "LOAD")
Engine.add(1, "COMPUTE")
Engine.add(2, "STORE")
