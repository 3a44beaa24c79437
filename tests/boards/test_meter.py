"""Tiles measured on boards: their counters' cycles, and what becomes of boards that fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from desk import desk

from vdla.boards import find_board, meter, reached
from vdla.boards.board import BoardError
from vdla.boards.meter import BoardMeter, board_ports, check_boards
from vdla.compiler.build import place_models
from vdla.compiler.search.measurer import RefusalError
from vdla.compiler.targets.accelerator.lower import UOPS
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.simulation import Cycles, Simulation
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.farm.work import ResourceLost, lease
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import Fault
from vdla.names.models import model_files
from vdla.runtime.board.driver import BoardFault, RunLimitError
from vdla.runtime.board.transport import LinkError
from vdla.runtime.errors import DeviceError
from vdla.sim.checker import Finding

TINY = load_config("tiny")
ULX3S, PYNQ = find_board("ulx3s"), find_board("pynq-z1")


@pytest.fixture(scope="module")
def layer():
    """The first convolution of ``digits``, and its default tile."""
    (placed,) = place_models(model_files("digits"), TINY, None).values()
    operator = dict(placed.layers)["conv1"]
    return operator, default_tile(operator.template, TINY, 2, None)


@pytest.fixture
def board():
    """A board that this process has leased."""
    with desk(TINY, None) as (board,):
        lease({"board:ulx3s": board.port})
        yield board
        reached.forget("ulx3s", board.port)
    lease({})


def test_a_board_counts_the_simulators_cycles_where_its_memory_is_the_simulators(layer, board):
    operator, tile = layer
    measured = BoardMeter(operator, TINY, "ulx3s")
    expected = Simulation(operator, TINY).measure(tile)
    assert measured.measure(tile) == expected
    assert measured.measure(tile) == expected
    assert (board.runs, expected.status) == (2, "ok")
    assert measured.needs == ("board:ulx3s",)


def test_micro_ops_and_instructions_are_sent_and_no_tensors(layer, board):
    operator, tile = layer
    before = board.line.memory.copy()
    BoardMeter(operator, TINY, "ulx3s").measure(tile)
    built = layer_program(operator, tile, TINY)
    changed = board.line.memory != before
    result = operator.node.output
    changed[built.addresses[result] : built.ends[result]] = False
    assert np.flatnonzero(changed).min() >= built.addresses[UOPS]


def test_a_board_behind_memory_ports_counts_the_simulators_cycles(layer):
    operator, tile = layer
    lease({"board:pynq-z1": "virtual"})
    measured = BoardMeter(operator, TINY, "pynq-z1").measure(tile)
    assert measured == Simulation(operator, TINY).measure(tile)


def test_what_the_checker_refuses_never_meets_a_board(layer, board, monkeypatch):
    operator, tile = layer
    findings = [Finding("conflict", 7, "it says so")]
    monkeypatch.setattr(LayerProgram, "check", lambda self: findings)
    measured = BoardMeter(operator, TINY, "ulx3s").measure(tile)
    assert measured == Cycles("illegal", "conflict at 7: it says so")
    assert board.runs == 0


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BoardFault(Fault.BUS, 0x40, "board"),
         Cycles("crash", "board: fault BUS at the instruction at byte 0x40 of DRAM")),
        (RunLimitError("it still runs"), Cycles("timeout", "it still runs")),
        (LinkError("it is silent"), Cycles("crash", "it is silent")),
        (DeviceError("its memory is too small"), Cycles("illegal", "its memory is too small")),
    ],
)  # fmt: skip
def test_what_goes_wrong_on_a_board_costs_a_candidate(layer, board, monkeypatch, error, outcome):
    operator, tile = layer
    measured = BoardMeter(operator, TINY, "ulx3s")

    def fail(device, built):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(meter, "_cycles", fail)
        assert measured.measure(tile) == outcome
    assert measured.measure(tile).status == "ok"


def test_a_board_that_is_unplugged_costs_a_candidate_and_is_then_lost(layer):
    operator, tile = layer
    measured = BoardMeter(operator, TINY, "ulx3s")
    with desk(TINY, 1) as (board,):
        lease({"board:ulx3s": board.port})
        assert measured.measure(tile).status == "ok"
        cut = measured.measure(tile)
        assert cut.status == "crash"
        assert cut.note.startswith(f"board ulx3s at {board.port}: expected an answer")
        with pytest.raises(ResourceLost) as lost:
            measured.measure(tile)
    assert str(lost.value).startswith(f"port {board.port}: expected a serial port, found: ")


def test_a_board_of_another_config_is_refused():
    other = load_config("vta")
    text = (
        f"expected a bitstream for config {other.hash} (vta), found one for {TINY.hash}; "
        "name the board's config, or load a bitstream of this one"
    )
    with desk(TINY, None) as (board,):
        where = f"board ulx3s at {board.port}"
        with pytest.raises(DeviceError) as refused:
            check_boards(ULX3S, other, [board.port])
        assert str(refused.value) == f"{where}: {text}"
        with pytest.raises(RefusalError) as refused:
            meter._device("ulx3s", other, board.port)
        assert str(refused.value) == f"{where}: {text}"
        check_boards(ULX3S, TINY, [board.port])
        check_boards(ULX3S, TINY, [board.port])  # so the port was let go


def test_a_bitstream_that_is_loaded_between_two_searches(layer, board):
    operator, tile = layer
    wide = replace(TINY, token_queue=32)
    assert BoardMeter(operator, TINY, "ulx3s").measure(tile).status == "ok"
    board.line.set("CONFIG_HASH", Identity.of(wide).words[1])
    with pytest.raises(RefusalError, match="fault PROGRAM_CONFIG before the first instruction"):
        BoardMeter(operator, TINY, "ulx3s").measure(tile)
    meter._device("ulx3s", wide, board.port)
    board.line.set("CONFIG_HASH", Identity.of(TINY).words[1])
    assert BoardMeter(operator, TINY, "ulx3s").measure(tile).status == "ok"


# Where boards are ---------------------------------------------------------------------------------


def test_ports_of_boards(monkeypatch):
    found = {"/dev/ttyUSB0": "FER-RADIONA-EE ULX3S FPGA", "/dev/ttyS0": "a modem",
             "/dev/ttyUSB1": "FER-RADIONA-EE ULX3S FPGA"}  # fmt: skip
    monkeypatch.setattr("vdla.boards.connect.ports", lambda: found)
    assert board_ports(ULX3S, []) == ["/dev/ttyUSB0", "/dev/ttyUSB1"]
    assert board_ports(ULX3S, ["/dev/a", "/dev/b"]) == ["/dev/a", "/dev/b"]
    assert board_ports(ULX3S, [], virtual=3) == ["virtual"] * 3
    assert board_ports(PYNQ, []) == [""]
    assert board_ports(PYNQ, ["vdla.bit"]) == ["vdla.bit"]
    monkeypatch.setattr("vdla.boards.connect.ports", lambda: {})
    with pytest.raises(BoardError) as refused:
        board_ports(ULX3S, [])
    assert str(refused.value) == (
        "board ulx3s: expected --port, or a port of that name, found no serial port"
    )


@pytest.mark.parametrize(
    ("board", "ports", "virtual", "text"),
    [
        (ULX3S, ["/dev/a"], 2, "--virtual: expected no port, found --port /dev/a"),
        (ULX3S, ["/dev/a", "/dev/a"], 0, "--port: expected each port once, found /dev/a,/dev/a"),
        (PYNQ, ["a.bit", "b.bit"], 0,
         "--port: expected one bitstream, for the board pynq-z1 that this runs on, found "
         "a.bit,b.bit; boards beside it measure as workers of a farm"),
    ],
)  # fmt: skip
def test_ports_that_do_not_go_with_a_board(board, ports, virtual, text):
    with pytest.raises(BoardError) as refused:
        board_ports(board, ports, virtual)
    assert str(refused.value) == text
