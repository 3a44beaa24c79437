"""Boards as yosys and nextpnr left them, in lockstep with the simulator; and planted faults."""

from __future__ import annotations

import json

import pytest

from vdla.analysis.case import Ending
from vdla.analysis.cases import random_case
from vdla.analysis.netlists import Netlists, difference, lockstep_netlist
from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.flows import find_netlist, folder_of
from vdla.boards.flows.nextpnr import MAPPED
from vdla.boards.netlists.bench import read_circuit
from vdla.boards.netlists.circuit import simplified
from vdla.boards.netlists.faults import MULTIPLIER, NET, PLACE, SEEN, TABLE, plant
from vdla.isa.config import load_config

TINY = load_config("tiny")
ULX3S = find_board("ulx3s")
KINDS = [NET, MULTIPLIER] * 16


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """Folder where `vdla synth` would have left the ULX3S's netlist of config tiny."""
    return tmp_path_factory.mktemp("netlists")


@pytest.fixture(scope="session")
def netlist(out):
    """Yosys's netlist of it."""
    folder = folder_of(ULX3S, TINY, out)
    return find_netlist(ULX3S, TINY, MAPPED, folder, lambda what, done, total: None)


@pytest.mark.long
def test_the_command_compares_a_netlist_with_the_simulator(vdla, out, netlist):
    done = vdla("lockstep", "--board", "ulx3s", "-c", "tiny", "--netlist", "synth", "--out", out,
                "--programs", 30, "--json")  # fmt: skip
    assert (done.code, done.json["netlist"], done.json["programs"]) == (0, "synth", 30)
    assert (done.json["mismatches"], done.json["max_cycle_error"]) == (0, 0)
    assert done.json["ended"] < 30  # some end in a fault, or stand still
    assert done.json["faulted"] > 0


@pytest.mark.long
def test_the_netlist_that_is_there_is_taken(netlist, out):
    before = netlist.stat().st_mtime_ns
    again = find_netlist(ULX3S, TINY, MAPPED, netlist.parent, lambda what, done, total: None)
    assert (again, again.stat().st_mtime_ns) == (netlist, before)


@pytest.mark.long
def test_planted_faults_are_found_in_their_copies_alone(netlist):
    circuit = simplified(read_circuit(netlist, ULX3S, TINY))
    faults = plant(circuit, [*KINDS, TABLE], seed=3)
    machines = Netlists(circuit, "ulx3s", TINY)
    for copy in range(len(faults) - 1):  # the last is planted nowhere
        machines.bench.fix(PLACE.format(copy), 1 << copy)
    found, reached = set(), set()
    cases = [random_case(TINY, number).without_errors() for number in range(80)]
    cases = [case for case in cases if case.purpose == Ending.FINISH and not case.mistake]
    cases.sort(key=lambda case: len(case.stream.instructions))
    for case in cases[-3:]:
        (simulated, _), *_ = machines.run([case])
        outcomes = machines.run_netlist([case] * len(faults), [simulated] * len(faults))
        for copy, outcome in enumerate(outcomes):
            if (
                machines.bench.copies.get(machines.bench.circuit.outputs[SEEN.format(copy)]) >> copy
                & 1
            ):
                reached.add(copy)
            if difference(case, simulated, outcome):
                found.add(copy)
    assert len(faults) - 1 not in found
    assert len(found) >= len(faults) // 4
    assert found <= reached


@pytest.mark.parametrize(("change", "message"), [
    (("EHXPLLL", "CLKOP_DIV", "00001010"), "expected CLKOP of 100 MHz, 0 ns late, found 60 MHz"),
    (("EHXPLLL", "CLKOS_CPHASE", "00000111"), "expected CLKOS of 100 MHz, 5 ns late, found 100"),
    (("MULT18X18D", "REG_PIPELINE_CLK", "CLK0"), "expected REG_PIPELINE_CLK NONE, found CLK0"),
    (("DP16KD", "DATA_WIDTH_B", "00010010"), "expected a block RAM whose ports have the same"),
])  # fmt: skip
@pytest.mark.long
def test_a_cell_that_is_set_otherwise_is_refused(netlist, tmp_path, change, message):
    kind, parameter, value = change
    changed = json.loads(netlist.read_text())
    cells = changed["modules"]["vdla"]["cells"].values()
    next(c for c in cells if c["type"] == kind)["parameters"][parameter] = value
    (tmp_path / MAPPED).write_text(json.dumps(changed))
    with pytest.raises(BoardError, match=message):
        read_circuit(tmp_path / MAPPED, ULX3S, TINY)


@pytest.mark.parametrize(("pin", "message"), [
    ("CLKI", "expected clk25_0__io at the PLL's input, found another net"),
    ("CLKOS", "expected one of the PLL's clocks for registers at CLK, found another net"),
])  # fmt: skip
@pytest.mark.long
def test_a_clock_from_elsewhere_is_refused(netlist, tmp_path, pin, message):
    changed = json.loads(netlist.read_text())
    module = changed["modules"]["vdla"]
    pll = next(c for c in module["cells"].values() if c["type"] == "EHXPLLL")
    pll["connections"][pin] = module["ports"]["uart_0__rx__io"]["bits"]
    (tmp_path / MAPPED).write_text(json.dumps(changed))
    with pytest.raises(BoardError, match=message):
        read_circuit(tmp_path / MAPPED, ULX3S, TINY)


@pytest.mark.long
def test_an_unknown_cell_is_named(netlist, tmp_path):
    changed = json.loads(netlist.read_text())
    next(iter(changed["modules"]["vdla"]["cells"].values()))["type"] = "SERDES"
    (tmp_path / MAPPED).write_text(json.dumps(changed))
    with pytest.raises(BoardError, match=r"expected one of the kinds CCU2C, .*, found SERDES"):
        read_circuit(tmp_path / MAPPED, ULX3S, TINY)


@pytest.mark.parametrize(("text", "message"), [
    (None, "expected a netlist, found No such file or directory"),
    ("{", "expected a netlist as JSON, found"),
    ("{}", "expected a netlist as JSON, found KeyError"),
])  # fmt: skip
def test_a_file_that_is_no_netlist_is_refused(tmp_path, text, message):
    path = tmp_path / MAPPED
    if text is not None:
        path.write_text(text)
    with pytest.raises(BoardError, match=message):
        read_circuit(path, ULX3S, TINY)


@pytest.mark.parametrize(("options", "message"), [
    (("--netlist", "placed", "--board", "ulx3s"),
     "--netlist: expected synth or routed, found placed"),
    (("--netlist", "synth"), "--netlist: expected --board, found none"),
    (("--netlist", "synth", "--board", "ulx3s", "--workers", "2"),
     "--workers: expected no --netlist, found both"),
    (("--netlist", "synth", "--board", "ulx3s", "--model", "digits"),
     "--netlist: expected no --model, found both"),
    (("--out", "here"), "--out: expected --netlist, found none"),
    (("--netlist", "synth", "--board", "pynq-z1"),
     "--netlist: expected a board whose bitstream nextpnr makes, found pynq-z1"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(vdla, options, message):
    done = vdla("lockstep", *options)
    assert done.code == 2
    assert message in done.err.replace("\n", " ")


@pytest.mark.long
@pytest.mark.parametrize("board", ["ulx3s", "tang-nano-20k"])
@pytest.mark.parametrize("name", ["synth", "routed"])
def test_a_board_s_own_netlists_are_equal(vdla, board, name):
    done = vdla("lockstep", "--board", board, "--netlist", name, "--programs", 256, "--json")
    assert (done.code, done.json["mismatches"]) == (0, 0)


@pytest.mark.long
def test_a_routed_netlist_of_two_clocks_is_equal(out):
    config = load_config("ulx3s-wide")
    folder = folder_of(ULX3S, config, out)
    path = find_netlist(ULX3S, config, MAPPED, folder, lambda what, done, total: None)
    machines = Netlists(read_circuit(path, ULX3S, config), "ulx3s", config)
    *_, tally = lockstep_netlist(machines, 64, 0)
    assert (tally.mismatches, tally.programs) == (0, 64)
