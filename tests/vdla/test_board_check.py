"""A board's first check: each planted fault is found by its step, and named in the report."""

from __future__ import annotations

import getpass
import json
import platform
import re
import subprocess
import sys

import numpy as np
import pytest
from faulty_board import MEMORY_BYTES, Dying, Misplacing, SimulatedLine, StuckData, Unplugged
from schemas import check

from vdla.analysis.case import Case, Ending
from vdla.analysis.first_check import board_programs
from vdla.analysis.first_check.session import Session
from vdla.analysis.first_check.steps import FAILED, run_steps
from vdla.analysis.machines import simulate
from vdla.boards import find_board
from vdla.boards.virtual import VirtualAxiBoard
from vdla.isa.config import config_names, load_config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Finish
from vdla.isa.program import Program
from vdla.isa.registers import IDENTITY
from vdla.names.configs import resolve_on
from vdla.runtime.board.serial import SerialTransport
from vdla.runtime.rtl.build import scratchpads

CONFIG = resolve_on("ulx3s", "tiny")
WHERE = "board ulx3s at ttyUSB0"
PORT = "/dev/ttyUSB0"


@pytest.fixture
def checked(vdla, tmp_path, monkeypatch):
    """Checks a board at the end of a line; gives what the command left, and the report."""
    monkeypatch.chdir(tmp_path)

    def run(line, *options, port=PORT):
        transport = SerialTransport(line, f"board ulx3s at {PORT}", MEMORY_BYTES)
        monkeypatch.setattr("vdla.commands.board_check.connect", lambda *_, **__: transport)
        words = ("--board", "ulx3s", "-c", "tiny", "--programs", 2, *options)
        words += ("--port", port) if port else ()
        done = vdla("board", "check", *words)
        (path,) = tmp_path.iterdir()
        text = path.read_text()
        check("board-check", text)
        return done, json.loads(text)

    return run


def failed_step(done, report, name):
    """The step that failed, after which none was run; the command ends with its text."""
    assert done.code == 1
    verdicts = {step["name"]: step for step in report["steps"]}
    names = list(verdicts)
    at = names.index(name)
    assert [verdicts[each]["verdict"] for each in names] == (
        ["passed"] * at + ["failed"] + ["not run"] * (len(names) - at - 1)
    )
    assert not report["passed"]
    step = verdicts[name]
    line = done.err.strip().splitlines()[-1]
    shown = step["text"].replace("ttyUSB0", PORT)
    assert line == f"vdla: {name}: {shown}; board-check-ulx3s.json is the report"
    assert f"{name}: failed" in done.out
    return step


def test_a_sound_board(checked):
    done, report = checked(SimulatedLine(CONFIG))
    assert (done.code, done.err) == (0, "")
    names = [line.split(" in ")[0] for line in done.out.splitlines()]
    assert names == [
        "identity: passed", "memory: passed", "programs: passed", "network: passed",
        "wrote board-check-ulx3s.json",
    ]  # fmt: skip
    assert report["passed"]
    assert report["exact_cycles"]
    assert (report["board"], report["config"], report["reached_by"]) == ("ulx3s", "tiny", "ttyUSB0")
    assert report["config_hash"] == CONFIG.hash
    figures = {step["name"]: step["figures"] for step in report["steps"]}
    assert figures["memory"]["memory_bytes"] == 32 << 20
    assert len(figures["programs"]["programs"]) == 2
    for each in (*figures["programs"]["programs"], figures["network"]):
        assert each["cycles"]["expected"] == each["cycles"]["found"] > 0


def test_the_report_says_nothing_of_who_and_where(checked, tmp_path):
    _, report = checked(SimulatedLine(CONFIG))
    del report["host"]["release"]
    text = json.dumps(report)
    for private in ("/", platform.node(), str(tmp_path)):
        assert private not in text
    assert getpass.getuser() not in text


def test_json_is_the_report_alone(checked):
    done, report = checked(SimulatedLine(CONFIG), "--json")
    assert done.json == report
    assert done.err.startswith("identity: passed")


def test_lines_that_lose_bytes_are_counted(checked):
    line, answers = SimulatedLine(CONFIG), []

    def spoil(data):
        answers.append(data)
        return data[:-1] if len(answers) == 40 else data

    line.spoil = spoil
    done, report = checked(line)
    assert done.code == 0
    assert report["sent_again"] == 1
    assert [step["sent_again"] for step in report["steps"]] == [0, 1, 0, 0]
    assert "memory: passed" in done.out
    assert ", 1 requests sent again" in done.out


# Faults ------------------------------------------------------------------------------------------


def test_a_bitstream_of_another_config(checked):
    paper = load_config("paper")
    step = failed_step(*checked(SimulatedLine(paper)), "identity")
    assert step["text"] == (
        f"{WHERE}: expected a bitstream for config {CONFIG.hash} (tiny), found one for "
        f"{paper.hash}; name the board's config, or load a bitstream of this one; "
        "the board's is paper: vdla board check --board ulx3s -c paper"
    )
    assert step["figures"]["expected"]["config"] == CONFIG.hash
    assert step["figures"]["found"]["config"] == paper.hash


def test_a_bitstream_of_a_config_that_is_not_bundled(checked):
    line = SimulatedLine(CONFIG)
    line.set("CONFIG_HASH", 0x12345678)
    step = failed_step(*checked(line), "identity")
    assert step["text"].endswith(
        "found one for 12345678; name the board's config, or load a bitstream of this one; "
        "vdla synth --board ulx3s with this config makes it"
    )


def test_a_bitstream_of_another_instruction_set(checked):
    line = SimulatedLine(CONFIG)
    line.set("ISA_HASH", 0x12345678)
    step = failed_step(*checked(line), "identity")
    assert step["text"] == (
        f"{WHERE}: built for another instruction set: expected ISA {Identity.of(CONFIG).isa}, "
        "found 12345678; load a bitstream of this release; "
        "vdla synth --board ulx3s with this config makes it"
    )


def test_no_core_at_all(checked):
    line = SimulatedLine(CONFIG)
    line.set("ID", 0xFFFFFFFF)
    step = failed_step(*checked(line), "identity")
    assert step["text"] == (
        f"{WHERE}: expected a VDLA core, ID {IDENTITY:#x}, found 0xffffffff; "
        "load a bitstream that vdla synth wrote"
    )
    assert step["figures"]["found"]["id"] == "0xffffffff"


def test_a_stuck_data_line(checked):
    step = failed_step(*checked(StuckData(CONFIG, 5)), "memory")
    assert step["text"] == (
        f"{WHERE}: walking ones: expected 0x00000020 at byte 0x14 of memory, found 0x00000000: "
        "other bits 5; 1,360 of 2,560 words differ, which points at data line DQ5"
    )
    assert step["figures"]["suspects"] == ["data line DQ5"]
    assert step["figures"]["bits"] == [5]


BANKS = CONFIG.memory.banks


@pytest.mark.parametrize(("place", "suspects"), [
    pytest.param(lambda a: a & ~(1 << 17), ["address bit 17 (pin A5, of a row)"], id="stuck at 0"),
    pytest.param(lambda a: a | 1 << 17, ["address bit 17 (pin A5, of a row)"], id="stuck at 1"),
    pytest.param(lambda a: a & ~(1 << 24), ["address bit 24 (pin A12, of a row)"], id="highest"),
    pytest.param(lambda a: a & ~(1 << 7), ["address bit 7 (pin A6, of a column)"], id="a column's"),
    pytest.param(
        lambda a: a & ~(1 << 7 | 1 << 18),
        ["address bit 7 (pin A6, of a column)", "address bit 18 (pin A6, of a row)"],
        id="a pin of row and column",
    ),
    pytest.param(
        lambda a: a & ~(BANKS.row_bytes), ["address bit 10 (pin BA0)"], id="a bank's line"
    ),
    pytest.param(
        lambda a: a & ~(3 * BANKS.row_bytes)
        if a // BANKS.row_bytes % BANKS.count == 3 else a,
        ["address bit 10 (pin BA0)", "address bit 11 (pin BA1)"],
        id="bank 3 is bank 0",
    ),
])  # fmt: skip
def test_addresses_that_meet(checked, place, suspects):
    step = failed_step(*checked(Misplacing(CONFIG, place)), "memory")
    assert step["figures"]["pattern"] == "address in word"
    assert step["figures"]["suspects"] == suspects
    assert step["text"].endswith(f"which points at {' and '.join(suspects)}")


def test_a_stuck_address_line_in_words(checked):
    step = failed_step(*checked(Misplacing(CONFIG, lambda a: a & ~(1 << 17))), "memory")
    assert step["text"] == (
        f"{WHERE}: address in word: expected 0x00000000 at byte 0x0 of memory, found 0x00020000: "
        "other bits 17; 32 of 2,560 words differ, which points at address bit 17 (pin A5, of a row)"
    )


def test_memory_that_forgets(checked):
    """Words that are right at once and wrong later point at no line."""
    line = SimulatedLine(CONFIG)
    serve, served = line._act, []

    def act(op, address, count, words):
        served.append(op)
        if len(served) == 500:  # between the writes and the reads of addresses
            line.memory[:] = np.random.default_rng(1).integers(0, 256, MEMORY_BYTES, np.uint8)
        return serve(op, address, count, words)

    line._act = act
    step = failed_step(*checked(line), "memory")
    assert step["text"].endswith("words differ, which points at no single line")


def test_counters_off_by_one(checked):
    def count(causes):
        return {name: cycles + (name == "LOAD_BUSY") for name, cycles in causes.items()}

    step = failed_step(*checked(SimulatedLine(CONFIG, count=count)), "programs")
    assert step["text"] == (
        f"{WHERE}: the program that zeroes scratchpads: "
        "expected 770 in counter LOAD_BUSY, found 771"
    )


def test_cycles_off_by_one(checked):
    line = SimulatedLine(CONFIG)
    run = line._run

    def late():
        run()
        line.set("CYCLES_LOW", line.get("CYCLES_LOW") + 1)

    line._run = late
    step = failed_step(*checked(line), "programs")
    assert step["text"] == (
        f"{WHERE}: the program that zeroes scratchpads: expected 816 cycles, found 817"
    )


def test_a_byte_that_flips_behind_a_program(checked):
    def end(dram):
        if dram.size > 1 << 14:  # not behind the one that zeroes the scratchpads
            dram[5000] ^= 1

    step = failed_step(*checked(SimulatedLine(CONFIG, end=end)), "programs")
    difference = "expected byte 0x1388 of DRAM to be 0xb3, found 0xb2; 1 of 24,576 bytes differ"
    assert step["text"] == f"{WHERE}: program 1: {difference}"
    assert step["figures"] == {"programs": [], "program": "program 1", "difference": difference}


def test_a_network_that_differs(checked):
    ran = []

    def end(dram):
        ran.append(dram)
        if len(ran) > 4:  # programs, each behind one that zeroes the scratchpads
            dram[:] = 0

    step = failed_step(*checked(SimulatedLine(CONFIG, end=end)), "network")
    assert step["text"] == (
        f"{WHERE}: digits: expected the simulator's 10 elements of logits, found 10 others"
    )
    assert step["figures"]["different"] == 10


def test_a_line_that_goes_silent(checked):
    step = failed_step(*checked(Dying(CONFIG, 100)), "memory")
    assert step["text"] == (
        f"{WHERE}: expected an answer within 0.5 s, tried 6 times, found nothing"
    )
    assert step["sent_again"] == 5


def test_a_port_that_goes_away(checked):
    """The report is written though the port can't even be closed."""
    step = failed_step(*checked(Unplugged(CONFIG, 980)), "programs")
    assert step["text"] == f"{WHERE}: expected an answer, found [Errno 5] Input/output error"


# Wrong input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "line"), [
    (("--board", "ulx4s", "--virtual"), "board: expected one of ulx3s, colorlight-i9"),
    (("--board", "ulx3s", "--port", "/dev/nosuch"),
     "port /dev/nosuch: expected a serial port, found: No such file or directory"),
    (("--board", "ulx3s", "--port", PORT, "--virtual"),
     "--port: expected no --virtual, found both"),
    (("--board", "ulx3s"),
     "board ulx3s: expected --port, or a port of that name, found /dev/ttyS0 (a modem)"),
    (("--board", "tang-nano-20k", "-c", "paper", "--virtual"),
     "config paper on tang-nano-20k: memory EM638325-7: expected a clock of at most 142.8 MHz, "
     "found 200"),
    (("--board", "ulx3s", "-c", "nosuch", "--virtual"), "config nosuch: expected a .toml file"),
    (("--board", "ulx3s", "--virtual", "--out", "no/r.json"),
     "no/r.json: expected the folder no to exist, found none"),
    (("--board", "pynq-z2"), "uio: expected a device called vdla, found no UIO device"),
])  # fmt: skip
def test_wrong_input_is_one_line_and_no_report(words, line, vdla, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vdla.boards.connect.ports", lambda: {"/dev/ttyS0": "a modem"})
    done = vdla("board", "check", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.removeprefix("vdla: ").startswith(line)
    assert len(done.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_processor_without_the_simulators_packages(tmp_path):
    """As 32-bit ARM, for which PyPI has no llvmlite."""
    script = (
        "import sys; sys.modules['llvmlite'] = None; "
        "sys.argv = ['vdla', 'board', 'check', '--board', 'pynq-z2']; "
        "from vdla.commands.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert re.fullmatch(
        "vdla: vdla board check: expected the package llvmlite.*, found none; install with: .*\n",
        done.stderr,
    )


def test_the_port_that_says_it_is_the_board_is_named(checked, monkeypatch):
    monkeypatch.setattr("vdla.boards.connect.ports", lambda: {PORT: "FER-RADIONA ULX3S FPGA"})
    _, report = checked(SimulatedLine(CONFIG), "--out", "other.json", port=None)
    assert report["reached_by"] == "ttyUSB0"


# The RTL -----------------------------------------------------------------------------------------


def axi_session(programs):
    board, config = find_board("pynq-z2"), resolve_on("pynq-z2", "tiny")
    transport = VirtualAxiBoard("virtual board pynq-z2", config, board.memory_bytes)
    return Session(board, config, transport, True, programs)


def test_scratchpads_are_zeroed_on_a_core_that_keeps_them(monkeypatch):
    """Programs that read what others left would differ, and are the reason."""
    session = axi_session(6)
    verdicts = run_steps(session, lambda _: None)
    assert [each.verdict for each in verdicts] == ["passed"] * 4
    idle = Case.of(Program(session.config, [Finish()]), 4096)
    monkeypatch.setattr(board_programs, "clearing_case", lambda _: idle)
    *_, programs, network = run_steps(axi_session(6), lambda _: None)
    assert (programs.verdict, network.verdict) == ("failed", "not run")


def test_no_entry_of_a_scratchpad_is_left():
    session = axi_session(1)
    bench = session.transport.bench
    pads = [bench.scratchpad(name) for name in scratchpads(session.config)]
    for pad in pads:
        pad[:] = 0xA5
    board_programs.run_case(session, board_programs.clearing_case(session.config))
    assert [int(np.count_nonzero(pad)) for pad in pads] == [0] * len(pads)


@pytest.mark.parametrize("name", config_names())
def test_every_config_has_programs_that_tell_something(name):
    config = load_config(name)
    clearing = board_programs.clearing_case(config)
    assert simulate(clearing, config.memory).ending == Ending.FINISH
    sound = list(board_programs.sound_cases(config, 3))
    assert all(len(case.stream.instructions) >= 12 for _, case, _ in sound)


@pytest.mark.parametrize(("memory", "count", "verdict"), [
    (0, 1, "passed"), (1, 0, "failed"),
])  # fmt: skip
def test_cycles_of_a_memory_without_a_model_are_reported_alone(memory, count, verdict):
    """As on a real Zynq board: bytes are compared."""
    board, config = find_board("pynq-z2"), resolve_on("pynq-z2", "tiny")

    def end(dram):
        dram[5000 % dram.size] ^= memory

    line = SimulatedLine(
        config, lambda causes: {name: n + count for name, n in causes.items()}, end
    )
    transport = SerialTransport(line, "board pynq-z2", MEMORY_BYTES)
    session = Session(board, config, transport, exact=False, programs=1)
    assert run_steps(session, lambda _: None)[2].verdict == verdict


@pytest.mark.long
def test_a_whole_virtual_board(vdla, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = vdla("board", "check", "--board", "ulx3s", "-c", "tiny", "--virtual", "--programs", 1)
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "board-check-ulx3s.json").read_text())
    assert report["passed"]
    assert FAILED not in [step["verdict"] for step in report["steps"]]
