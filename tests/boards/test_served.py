"""Modules that a process runs for others: on boards and on this machine, kept between two runs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest
from desk import desk

from vdla import api
from vdla.api.modules import random_inputs
from vdla.boards import reached, served
from vdla.boards.board import BoardError
from vdla.boards.meter import BoardMeter
from vdla.boards.served import Delivery, Failure, Missing, Order, carry_out, digest_of, run_all
from vdla.compiler.build import place_models
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.farm.work import ResourceLost, lease
from vdla.isa.config import load_config
from vdla.names.models import model_files
from vdla.runtime.board.transport import LinkError
from vdla.runtime.errors import DeviceError, InputError, ModuleError
from vdla.sim.machine import SimulationError

TINY = load_config("tiny")
BOARD = "board:ulx3s"


@pytest.fixture(scope="module")
def module():
    return api.compile("digits", TINY)


@pytest.fixture(scope="module")
def local(module):
    """Inputs, and what the simulator makes of them here."""
    inputs = random_inputs(module)
    return inputs, api.run(module, inputs)


@pytest.fixture(autouse=True)
def fresh():
    """A process that has run nothing yet, and has leased nothing."""
    yield
    served._modules.clear()
    served._ready_now.clear()
    lease({})


@pytest.fixture
def board():
    """A board that this process has leased."""
    with desk(TINY, None) as (board,):
        lease({BOARD: board.port})
        yield board
        reached.forget("ulx3s", board.port)


def order(module, device, **more):
    more = {"needs": (BOARD,), "board": "ulx3s"} | more if device == "board" else more
    return Order(digest_of(module.to_bytes()), device, TINY, **more)


def work(inputs):
    return lambda ready: run_all(ready, [inputs])


def carried_out(module, inputs, device, data=None, **more):
    data = module.to_bytes() if data is None else data
    return carry_out(order(module, device, **more), data, work(inputs))


def test_a_simulators_run_travels_with_all_that_was_counted(module, local):
    inputs, here = local
    reply = pickle.loads(pickle.dumps(carried_out(module, inputs, "sim")))
    assert isinstance(reply, Delivery)
    (result,) = reply.value
    assert result.outputs["logits"].tobytes() == here.outputs["logits"].tobytes()
    assert [step.name for step in result.steps] == [step.name for step in here.steps]
    ours, theirs = (
        next(step.device for step in each.steps if step.device) for each in (here, result)
    )
    assert (ours.cycles, ours.trace.causes) == (theirs.cycles, theirs.trace.causes)
    assert ours.counts() == theirs.counts()


def test_a_board_is_loaded_once_for_many_runs(module, local, board):
    inputs, here = local
    for number in range(1, 4):
        reply = carried_out(module, inputs, "board", b"" if number > 1 else None)
        assert reply.worker.endswith(f", {BOARD}={board.port}")
        assert board.runs == number
        assert reply.value[0].outputs["logits"].tobytes() == here.outputs["logits"].tobytes()
        causes = [step.device.extra["causes"] for step in reply.value[0].steps if step.device]
        assert all(causes)
    assert len(served._ready_now) == 1
    ready = served._ready_now[0][1]
    carried_out(module, inputs, "board", b"")
    assert served._ready_now[0][1] is ready


def test_a_board_that_a_search_has_used_is_loaded_again(module, local, board):
    inputs, here = local
    (placed,) = place_models(model_files("digits"), TINY, None).values()
    operator = dict(placed.layers)["conv1"]
    carried_out(module, inputs, "board")
    tile = default_tile(operator.template, TINY, 2, None)
    assert BoardMeter(operator, TINY, "ulx3s").measure(tile).status == "ok"
    reply = carried_out(module, inputs, "board", b"")
    assert reply.value[0].outputs["logits"].tobytes() == here.outputs["logits"].tobytes()


def test_a_module_that_was_not_sent_is_asked_for(module, local):
    assert carried_out(module, local[0], "sim", b"") == Missing()
    carried_out(module, local[0], "sim")
    for number in range(1, served.MODULES + 1):
        other = replace(module, dram_bytes=module.dram_bytes + 4096 * number)
        assert isinstance(carried_out(other, local[0], "sim"), Delivery)
    assert carried_out(module, local[0], "sim", b"") == Missing()
    assert len(served._modules) == served.MODULES


def test_bytes_of_another_module(module, local):
    reply = carry_out(order(module, "sim"), b"VDLAMOD\n", work(local[0]))
    expected = f"module: expected the bytes of {digest_of(module.to_bytes())[:12]}, found others"
    assert reply == Failure(ModuleError, expected)


def test_another_order_of_the_same_module(module, local):
    inputs, here = local
    slow = replace(TINY, memory=replace(TINY.memory, latency=200))
    carried_out(module, inputs, "sim")
    reply = carry_out(replace(order(module, "sim"), config=slow), b"", work(inputs))
    assert reply.value[0].cycles > here.cycles


@pytest.mark.parametrize(
    ("error", "kind"),
    [(InputError("x"), InputError), (LinkError("x"), DeviceError), (BoardError("x"), BoardError),
     (SimulationError("x"), served.CheckError)],
)  # fmt: skip
def test_errors_travel_as_what_everybody_knows(module, error, kind):
    def fail(ready):
        raise error

    reply = pickle.loads(pickle.dumps(carry_out(order(module, "sim"), module.to_bytes(), fail)))
    assert reply == Failure(kind, "x")
    with pytest.raises(kind, match=r"^x$"):
        raise reply.error()


def test_a_module_that_the_device_cannot_run(module, local):
    reply = carried_out(module, local[0], "cpu")
    assert reply == Failure(
        DeviceError,
        "device cpu: expected a module with host steps only, found 1 for the accelerator",
    )


def test_a_board_of_another_config(module, local, board):
    other = load_config("vta")
    reply = carry_out(replace(order(module, "board"), config=other), module.to_bytes(), len)
    assert reply.kind is DeviceError
    assert reply.text.startswith(f"board ulx3s at {board.port}: expected a bitstream for config ")


def test_a_board_that_is_not_there_is_lost(module):
    lease({BOARD: "/dev/no"})
    with pytest.raises(
        ResourceLost, match=r"^port /dev/no: expected a serial port, found: No such"
    ):
        carried_out(module, {}, "board")


def test_a_board_that_is_unplugged_costs_one_run(module, local):
    with desk(TINY, 1) as (board,):
        lease({BOARD: board.port})
        assert isinstance(carried_out(module, local[0], "board"), Delivery)
        reply = carried_out(module, local[0], "board", b"")
        assert reply.kind is DeviceError
        assert reply.text.startswith(f"board ulx3s at {board.port}: expected an answer")
        with pytest.raises(ResourceLost):
            carried_out(module, local[0], "board", b"")
        assert served._ready_now == []


def test_a_boards_processor_needs_no_compiler_and_no_simulator():
    code = (
        "import sys\n"
        "for name in ('llvmlite', 'numba', 'onnx', 'onnxruntime'):\n"
        "    sys.modules[name] = None\n"
        "import vdla.boards.served, vdla.farm.serve\n"
        "assert not any(n.startswith(('vdla.compiler', 'vdla.sim')) for n in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
