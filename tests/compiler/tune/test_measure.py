"""Workers: a crash or a hang costs one candidate and nothing else."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from vdla.compiler.targets.accelerator.operators.conv2d import ConvTile
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.compiler.tune import measure as module
from vdla.compiler.tune.choose import default_tile
from vdla.compiler.tune.measure import Measurer, Outcome, measure
from vdla.sim.checker import Finding
from vdla.sim.machine import simulate

MISBEHAVE = """
import os, signal, time
from vdla.compiler.tune.measure import Outcome

def misbehave(op, tile, config):
    if tile == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if tile == "exit":
        os._exit(3)
    if tile == "hang":
        time.sleep(600)
    if tile == "raise":
        raise KeyError("a fault of ours")
    return Outcome("ok", len(tile))

class Slow:
    # An operator that takes a worker seconds to receive.

    def __setstate__(self, state):
        time.sleep(2)

    def __getstate__(self):
        return {"some": "state"}
"""


@pytest.fixture
def misbehave(tmp_path, monkeypatch):
    """A measurement that goes wrong as it is told to; workers find it by its module."""
    (tmp_path / "misbehaving.py").write_text(MISBEHAVE)
    monkeypatch.syspath_prepend(tmp_path)
    import misbehaving

    yield misbehaving.misbehave
    monkeypatch.delitem(__import__("sys").modules, "misbehaving")


def test_every_candidate_gets_its_own_outcome(misbehave):
    tiles = ["a", "crash", "bb", "exit", "ccc", "raise", "dddd"]
    with Measurer({"op": None}, None, 2, 20.0, misbehave) as measurer:
        outcomes = dict(measurer.run("op", tiles))
        again = dict(measurer.run("op", ["after"]))
        processes = [worker.process for worker in measurer.workers]
        assert all(process.is_alive() for process in processes)
        pids = [process.pid for process in processes]
    assert again == {0: Outcome("ok", 5)}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    found = [outcomes[i] for i in range(len(tiles))]
    assert [o.cycles for o in found] == [1, None, 2, None, 3, None, 4]
    assert found[1] == Outcome("crash", note="the worker ended with exit code -11")
    assert found[3] == Outcome("crash", note="the worker ended with exit code 3")
    assert found[5] == Outcome("crash", note="KeyError: 'a fault of ours'")


def test_a_worker_that_hangs_is_replaced(misbehave):
    with Measurer({"op": None}, None, 1, 30.0, misbehave) as measurer:
        list(measurer.run("op", ["warm"]))
        measurer.timeout = 0.5
        found = dict(measurer.run("op", ["hang"]))
        measurer.timeout = 30.0
        found |= {1 + i: o for i, o in measurer.run("op", ["a"])}
    assert found == {0: Outcome("timeout", note="not done after 0.5 s"), 1: Outcome("ok", 1)}


def test_a_worker_that_starts_slowly_is_waited_for(misbehave):
    slow = __import__("misbehaving").Slow()
    with Measurer({"op": slow}, None, 1, 0.5, misbehave) as measurer:
        assert list(measurer.run("op", ["a"])) == [(0, Outcome("ok", 1))]


def test_a_worker_killed_while_idle_is_replaced(misbehave):
    with Measurer({"op": None}, None, 1, 30.0, misbehave) as measurer:
        list(measurer.run("op", ["warm"]))
        measurer.workers[0].process.kill()
        measurer.workers[0].process.join()
        found = [o.status for _, o in measurer.run("op", ["a", "bb"])]
    assert found == ["crash", "ok"]


class Parent:
    """The other end of a worker's pipe: sends what it has, then is gone."""

    def __init__(self, *sent):
        self.sent, self.heard = list(sent), []

    def recv(self):
        if not self.sent:
            raise EOFError
        return self.sent.pop(0)

    def send(self, said):
        self.heard.append(said)


@pytest.mark.parametrize("simulates", [False, True])
def test_a_worker_is_ready_when_its_simulator_is(simulates, monkeypatch):
    """It then answers one candidate after the other until nobody is there any more."""

    def count(op, tile, config):
        return Outcome("ok", len(tile))

    parent = Parent(("op", "a"), ("op", "bb"))
    monkeypatch.setattr(module, "_warm_up", lambda config: parent.send("warm"))
    if simulates:
        monkeypatch.setattr(module, "measure", count)
    before = signal.getsignal(signal.SIGINT)
    try:
        module._serve(parent, {"op": None}, None, count)
    finally:
        signal.signal(signal.SIGINT, before)
    said = [module.READY, Outcome("ok", 1), Outcome("ok", 2)]
    assert parent.heard == (["warm", *said] if simulates else said)


def test_measured_cycles_are_those_of_the_layer_alone(layer, tiny):
    tile = default_tile(layer.template, tiny, 2, None)
    built = layer_program(layer, tile, tiny)
    run = simulate(tiny, built.program.instructions, built.dram, built.program.base)
    assert measure(layer, tile, tiny) == Outcome("ok", run.cycles)
    with Measurer({"conv": layer}, tiny, 1) as measurer:
        assert list(measurer.run("conv", [tile])) == [(0, Outcome("ok", run.cycles))]


def test_layers_that_differ_in_numbers_alone_take_the_same_cycles(layer, tiny):
    tile = default_tile(layer.template, tiny, 2, None)
    other = replace(layer, template=replace(layer.template, in_zero=0, zero=9, low=0, high=77))
    assert measure(other, tile, tiny) == measure(layer, tile, tiny)


def test_what_cannot_be_lowered_is_illegal(layer, tiny):
    big = ConvTile(outputs=4, rows=12, cols=12, inputs=4, weights=4, vthreads=1)
    found = measure(layer, big, tiny)
    assert (found.status, found.cycles) == ("illegal", None)
    assert "expected" in found.note


def test_what_the_checker_refuses_is_not_run(layer, tiny, monkeypatch):
    tile = default_tile(layer.template, tiny, 2, None)
    found = [Finding("conflict", 7, "it says so")]
    monkeypatch.setattr(LayerProgram, "check", lambda self: found)
    monkeypatch.setattr(module, "simulate", lambda *args, **kw: 1 / 0)
    assert measure(layer, tile, tiny) == Outcome("illegal", note="conflict at 7: it says so")
