"""serial.c against boards in Python at pseudo-terminals, over lines that lose and damage bytes."""

import os
import subprocess

import numpy as np
import pytest
from c_boards import Between, program, shown
from fake_board import Trouble

from vdla.boards import find_board
from vdla.boards.connect import PATIENT, connect
from vdla.isa.config import load_config
from vdla.isa.registers import register
from vdla.isa.ring import numbered
from vdla.runtime.board import link
from vdla.runtime.board.driver import Driver
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
OTHER = load_config("paper")
SOON = 60_000  # microseconds: a board in Python answers in fewer
REPLY = link.REPLY_SYNC


def writes(line):
    names = {register(n).offset: n for n in ("CONTROL", "PROGRAM_BASE", "INTERRUPT_STATUS")}
    return [(names[at], value) for at, value in line.done if at in names]


def reach(ways, port):
    reached = ways.serial(port.path)
    assert reached.is_open, reached.error
    reached.board.answer_us = SOON
    return reached


def refused(ways, port, digits, folder):
    """What network and board say where the board isn't the module's."""
    reached = reach(ways, port)
    with pytest.raises(RuntimeError) as caught:
        reached.open(digits.module, folder)
    reached.close()
    return str(caught.value), reached.error


def test_a_network_runs_again_and_again(ways, port, digits, tmp_path):
    place = port()
    reached = reach(ways, place)
    net = reached.open(digits.module, tmp_path)
    for _ in range(2):
        (logits,) = net.run(**digits.inputs).values()
        assert np.array_equal(logits, digits.run.outputs["logits"])
        assert net.counters(0) == (digits.run.cycles, [])
    assert reached.board.sent_again == 0
    (base,) = {value for name, value in writes(place.line) if name == "PROGRAM_BASE"}
    one = [("PROGRAM_BASE", base), ("INTERRUPT_STATUS", 3), ("CONTROL", 1)]
    assert writes(place.line) == [*one, ("CONTROL", 2), *one]
    reached.close()


@pytest.mark.parametrize("kind", ["lose", "flip", "double"])
def test_bytes_that_are_lost_flipped_or_doubled(kind, ways, port, digits, tmp_path):
    """Whatever happens on the line, outputs are right, and each write is done once."""
    place = port(spoil=Trouble(0.0004, 3, (kind,)))
    reached = reach(ways, place)
    net = reached.open(digits.module, tmp_path)
    (logits,) = net.run(**digits.inputs).values()
    assert np.array_equal(logits, digits.run.outputs["logits"])
    assert reached.board.sent_again > 0
    assert [name for name, _ in writes(place.line)] == [
        "PROGRAM_BASE", "INTERRUPT_STATUS", "CONTROL",
    ]  # fmt: skip
    reached.close()


def test_a_reply_that_is_lost_starts_nothing_twice(ways, port, digits, tmp_path):
    place = port()
    lost, control = [], register("CONTROL").offset

    def lose(data):
        if data[0] == REPLY and place.line.done[-1:] == [(control, 1)] and len(lost) < 2:
            lost.append(data)
            return b""
        return data

    reached = reach(ways, place)
    net = reached.open(digits.module, tmp_path)
    place.line.spoil = lose
    net.run(**digits.inputs)
    assert (len(lost), reached.board.sent_again) == (2, 2)
    assert writes(place.line).count(("CONTROL", 1)) == 1
    reached.close()


def test_answers_to_other_requests_are_passed_over(ways, port, digits, tmp_path):
    place = port()

    def before(data):
        late = link.reply((data[1] + 3) % 256, link.Status.BAD_ADDRESS, 1)
        return late + data if data[0] == REPLY else data

    place.line.spoil = before
    reached = reach(ways, place)
    (logits,) = reached.open(digits.module, tmp_path).run(**digits.inputs).values()
    assert np.array_equal(logits, digits.run.outputs["logits"])
    reached.close()


def cut(data):
    return data[:3] if data[0] == REPLY else data


def noise(data):
    return bytes(9000) if data[0] == REPLY else data


def wrong(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(("spoil", "found"), [
    (lambda data: b"", "nothing"),
    (cut, "2 bytes of 3"),
    (noise, "bytes that are no reply: is it another device, or baud rate?"),
    (lambda data: wrong(data) if data[0] == REPLY else data, "damaged replies"),
    (lambda data: data if data[0] == REPLY else wrong(data), "that requests arrive damaged"),
])  # fmt: skip
def test_a_board_that_never_answers_well(spoil, found, ways, port, digits, tmp_path):
    place = port(spoil=spoil)
    assert refused(ways, place, digits, tmp_path) == (
        "board: expected an answer, found none",
        f"board at {place.path}: expected an answer within 0.06 s, tried 6 times, found {found}",
    )


def test_another_bitstream(ways, port, digits, tmp_path):
    expected = f"board: expected a bitstream for config {TINY.hash}, found {OTHER.hash}"
    assert refused(ways, port(OTHER), digits, tmp_path) == (expected, "")


@pytest.mark.parametrize(("name", "value", "words"), [
    ("ID", 7, "board: expected a core, ID 56444c41, found 00000007"),
    ("VERSION", 0x90001, "board: expected register map 00000002, found 00000009"),
    ("ISA_HASH", 7, "board: expected a bitstream of instruction set {isa}, found 00000007"),
])  # fmt: skip
def test_another_core(name, value, words, ways, port, digits, tmp_path):
    place = port()
    isa = place.line.get("ISA_HASH")
    place.line.set(name, value)
    error = words.format(isa=f"{isa:08x}")
    assert refused(ways, place, digits, tmp_path) == (error, "")


def test_a_board_with_less_memory_than_was_said(ways, port, digits, tmp_path):
    place = port(memory=4096)
    assert refused(ways, place, digits, tmp_path)[1] == (
        f"board at {place.path}: expected to do WRITE_MEMORY of 256 words at 0x1000, "
        "found BAD_ADDRESS"
    )


def test_a_module_that_is_too_large(ways, port, digits, tmp_path):
    place = port()
    reached = ways.serial(place.path, 8192)
    with pytest.raises(RuntimeError, match="expected memory for the module's image, found"):
        reached.open(digits.module, tmp_path)
    size = reached.error.rpartition(" ")[2]
    assert reached.error == (
        f"board at {place.path}: expected a module of at most 8192 bytes of DRAM, "
        f"found one of {size}"
    )
    reached.close()


def test_what_is_no_port(ways, tmp_path):
    for path, found in (
        ("/dev/no-such-port", "No such file or directory"),
        ("/dev/null", "Inappropriate ioctl for device"),
    ):
        reached = ways.serial(path)
        assert not reached.is_open
        assert reached.error == f"port {path}: expected a serial port, found: {found}"


def test_a_port_is_opened_for_one_alone(ways, port):
    place = port()
    first, second = ways.serial(place.path), ways.serial(place.path)
    assert (first.is_open, second.is_open) == (True, False)
    assert second.error == (
        f"port {place.path}: expected a serial port, found: one that another program has"
    )
    first.close()
    third = ways.serial(place.path)
    assert third.is_open
    third.close()


def test_a_port_whose_board_is_gone(ways, port, digits, tmp_path):
    """As when an adapter is unplugged."""
    ours, theirs = os.openpty()
    reached = ways.serial(os.ttyname(theirs))
    os.close(theirs)
    os.close(ours)
    with pytest.raises(RuntimeError, match="expected an answer, found none"):
        reached.open(digits.module, tmp_path)
    assert reached.error.endswith(": expected an answer, found Input/output error")
    reached.close()


# The whole ULX3S ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def virtual():
    """A transport to the RTL of a ULX3S; its line isn't open for Python while C has it."""
    made = connect(find_board("ulx3s"), TINY, virtual=True)
    yield made
    assert made.owner.close() is None  # it still ran: no rule of the SDRAM was broken


@pytest.mark.long
def test_outputs_cycles_and_counters_are_those_of_pythons_driver(virtual, digits, tmp_path):
    virtual.answer = PATIENT
    device = BoardDevice(TINY, virtual, Driver(virtual, limit=PATIENT))
    result = Executor(digits.module, device).run(digits.inputs)
    causes = device.driver.counters(numbered(TINY)).causes
    virtual.line.close()
    command = [program(digits.module, tmp_path), "--seconds", PATIENT, "serial", virtual.owner.port]
    (tmp_path / "in").write_bytes(digits.inputs["image"].tobytes())
    done = subprocess.run(
        [*map(str, command), tmp_path / "in", tmp_path / "out"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (tmp_path / "out").read_bytes() == result.outputs["logits"].tobytes()
    assert shown(done.stdout) == (result.cycles, causes)


@pytest.mark.long
def test_the_rtl_over_a_line_with_trouble(virtual, ways, digits, tmp_path):
    """Flipped, lost and doubled bytes, both ways, cost time and nothing else."""
    if virtual.line.is_open:
        virtual.line.close()
    between = Between(virtual.owner.port, Trouble(0.0003, 1))
    reached = ways.serial(between.path)
    reached.board.answer_us = 5_000_000  # the board's RTL takes a second for a millisecond
    reached.board.way.run_us = 60_000_000
    net = reached.open(digits.module, tmp_path)
    (logits,) = net.run(**digits.inputs).values()
    assert np.array_equal(logits, digits.run.outputs["logits"])
    assert reached.board.sent_again > 0
    reached.close()
    between.close()
