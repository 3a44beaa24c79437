"""Cycle counts worked out by hand from docs/timing.md, on config ``tiny``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scripts import load_script

from vdla.isa.asm import assemble
from vdla.isa.config import PAGE_BYTES, load_config
from vdla.isa.instructions import Finish, Gemm, Uop, instruction_bytes
from vdla.sim.machine import simulate
from vdla.sim.stream import Stream, memory_image
from vdla.sim.timing import Clock
from vdla.sim.timing.machine import _idle_cycles
from vdla.sim.timing.state import reset

LATENCY = 64
DISPATCH = LATENCY + 10  # 1 + latency: first beat; 8 to an instruction; at the head 2 cycles later
START = DISPATCH + 2  # a cycle in its queue
NONE = "LOAD x_size=0 y_size=0 z_size=0\n"


def run(text, *settings):
    config = load_config("tiny", settings)
    program = assemble(f".base 0x2000\n{text}\nFINISH", config)
    return simulate(config, program.instructions, memory_image(program, 1 << 14), program.base)


def times(text, *settings):
    result = run(text, *settings)
    return [(int(b), int(e)) for b, e in zip(result.start, result.finish, strict=True)][:-1]


def test_the_shortest_program():
    result = run("")
    assert result.start[0] == result.finish[0] == DISPATCH
    assert result.cycles == DISPATCH + 1
    assert result.causes["LOAD"] == dict.fromkeys(result.causes["LOAD"], 0) | {
        "drain": result.cycles
    }


def test_fetch_delivers_an_instruction_per_eight_beats():
    found = times("ALU\n" * 5)
    assert [start for start, _ in found] == [START + 8 * i for i in range(5)]
    halved = times("ALU\n" * 5, "memory.bytes_per_cycle=2")
    assert [start for start, _ in halved] == [START + 7 + 16 * i for i in range(5)]


def test_a_load_without_entries_takes_a_cycle():
    assert times(NONE) == [(START, START + 2)]


def test_padding_takes_a_cycle_per_entry():
    load = "LOAD x_size=0 y_size=2 z_size=1 pad_x0=3 pad_y1=1"
    assert times(load) == [(START, START + 1 + 9)]


@pytest.mark.parametrize(("memory", "beats"), [("INP", 1), ("WGT", 4), ("ACC", 4), ("ACC8", 1)])
def test_a_load_takes_latency_and_its_beats(memory, beats):
    """Request 2 cycles after the start, first beat 1 + latency later, buffered a cycle later."""
    load = f"LOAD memory={memory} x_size=3 y_size=1 z_size=1"
    assert times(load) == [(START, START + 2 + 1 + LATENCY + 3 * beats)]


def test_a_load_across_a_page():
    """Two bursts, so the second is requested a cycle later: no difference at the data's rate."""
    load = "LOAD dram_base=0xff8 x_size=4 y_size=1 z_size=1"
    assert times(load) == [(START, START + 3 + LATENCY + 4)]
    alone = times(load, "reads_in_flight=1")
    assert alone == [(START, START + 3 + LATENCY + 2 + LATENCY + 1 + 2)]


def test_gemm_passes_a_micro_op_per_cycle():
    assert times("GEMM uop_count=1") == [(START, START + 13)]
    assert times("GEMM uop_count=1 extent_0=40") == [(START, START + 52)]
    long = times("GEMM uop_count=1 extent_0=90 extent_1=40")
    assert long == [(START, START + 12 + 3600)]


def test_instructions_follow_without_a_bubble():
    """The second starts when the first issues its last micro-op."""
    found = times("GEMM uop_count=1 extent_0=40\nGEMM uop_count=1 extent_0=5 init=ZERO")
    assert found == [(START, START + 52), (START + 40, START + 57)]


def test_an_instruction_without_micro_ops_is_a_bubble():
    assert times("GEMM uop_count=0") == [(START, START + 13)]


@pytest.mark.parametrize(
    ("alu", "cycles"),
    [
        ("alu_op=ADD use_imm", 15),  # late: forwarded
        ("alu_op=MAX use_imm", 15),
        ("alu_op=SHR use_imm", 33),  # early: each waits for the one before to be written
        ("alu_op=RQ use_imm", 33),
        ("alu_op=ADD src_base=1", 15),
        ("alu_op=ADD src_base=0", 33),  # y is the entry just written
        ("alu_op=WADD src_base=1", 33),
        ("alu_op=MUL use_imm dst_0=1", 15),  # independent entries
    ],
)
def test_hazards(alu, cycles):
    assert times(f"ALU uop_count=1 extent_0=3 {alu}") == [(START, START + cycles)]


TABLES = "table_bytes=1024"


@pytest.mark.parametrize(
    ("alu", "cycles"),
    [
        ("src_base=1", 15),  # no x: nothing to wait for
        ("src_base=1 use_imm", 15),
        ("src_base=0", 33),  # y is the entry just written
    ],
)
def test_a_table_has_a_y_alone(alu, cycles):
    text = f"ALU uop_count=1 extent_0=3 alu_op=TABLE {alu}"
    assert times(text, TABLES) == [(START, START + cycles)]


@pytest.mark.parametrize(("port", "per_entry"), [(4, 2), (16, 8)])
def test_an_entry_of_tab_takes_a_cycle_per_result(port, per_entry):
    """Of data, whose beat is there a cycle after it moves, and of padding."""
    settings = (TABLES, f"port_bytes={port}", f"memory.bytes_per_cycle={port}", "block_in=16",
                "block_out=16", "inp_bytes=4096", "wgt_bytes=4096", "acc_bytes=4096")  # fmt: skip
    ((start, whole),) = times("LOAD memory=TAB x_size=3 y_size=1 z_size=1", *settings)
    assert whole == start + 2 + 1 + LATENCY + 3 * per_entry
    padding = "LOAD memory=TAB x_size=0 y_size=1 z_size=1 pad_x0=5"
    ((start, whole),) = times(padding, *settings)
    assert whole == start + 1 + 5 * per_entry


def test_a_write_to_tab_waits_for_a_read_of_it():
    """TABLE reads it six cycles after READ, one cycle for each micro-op."""
    table = "ALU uop_count=1 extent_0=100 alu_op=TABLE src_base=1\n"
    load = "LOAD memory=TAB sram_base=128 x_size=0 y_size=1 z_size=1 pad_x0=2"
    _, (begun, alone) = times(f"{table}LOAD memory=INP {load[16:]}", TABLES)
    assert alone == begun + 1 + 2
    (start, _), (_, held) = times(table + load, TABLES)
    assert held == start + 4 + 6 + 100 + 4 - 1
    _, (begun, free) = times(table.replace("TABLE", "ADD") + load, TABLES)
    assert free == begun + 1 + 4


UNITS = "reciprocal_units=1"  # for four lanes


@pytest.mark.parametrize(
    ("alu", "cycles"),
    [
        ("alu_op=RECIPROCAL src_base=1", 3 * (4 * 32 + 1) + 12),  # one behind the other
        ("alu_op=RSQRT src_base=1", 3 * (4 * 56 + 1) + 12),
        ("alu_op=RSQRT src_base=1 use_imm imm=3", 3 * (4 * 56 + 1) + 12),
        ("alu_op=RECIPROCAL src_base=0", 3 * (4 * 32 + 10) + 3),  # y is the entry just written
        ("alu_op=SCALE src_base=1", 33),  # early, as RQ
    ],
)
def test_units_keep_a_micro_op_in_read(alu, cycles):
    """A group of lanes takes 32 cycles or 56, and one passes a cycle after the last."""
    assert times(f"ALU uop_count=1 extent_0=3 {alu}", UNITS) == [(START, START + cycles)]


@pytest.mark.parametrize(("units", "groups"), [(1, 4), (2, 2), (4, 1)])
def test_units_take_the_lanes_in_groups(units, groups):
    text = "ALU uop_count=1 alu_op=RECIPROCAL src_base=1"
    setting = f"reciprocal_units={units}"
    assert times(text, setting) == [(START, START + 13 + groups * 32)]


@pytest.mark.parametrize(
    ("alu", "cycles"),
    [
        ("alu_op=MUL use_imm dst_0=1", lambda groups: 12 + 3 * groups),  # independent entries
        ("alu_op=SHR use_imm", lambda groups: 33 + 3 * (groups - 1)),  # y is the entry just written
        ("alu_op=WADD src_base=1", lambda groups: 33 + 3 * (groups - 1)),
        ("alu_op=ADD use_imm", lambda groups: 15),  # nothing is multiplied
        ("alu_op=TABLE src_base=1", lambda groups: 15),  # no x
    ],
)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_micro_op_that_multiplies_stays_in_read_for_its_groups(alu, cycles, groups):
    """It passes in the cycle in which the last group of its lanes is multiplied."""
    found = times(f"ALU uop_count=1 extent_0=3 {alu}", TABLES, f"alu_groups={groups}")
    assert found == [(START, START + cycles(groups))]


def test_a_micro_op_that_starts_from_y_multiplies_nothing():
    """It has no x; one that has takes four groups, and stays three cycles longer."""
    uops = "LOAD memory=UOP x_size=1 y_size=1 z_size=1 push_next\n"
    alu = "ALU pop_prev uop_count=1 alu_op=MUL use_imm init={}"
    config = load_config("tiny", ["alu_groups=4"])
    taken = []
    for init in (0, 1):
        program = assemble(f".base 0x2000\n{uops}{alu.format(init)}\nFINISH", config)
        dram = memory_image(program, 1 << 14)
        dram[:4] = np.frombuffer(Uop(first=1).encode(config), np.uint8)
        result = simulate(config, program.instructions, dram, program.base)
        taken.append(result.finish[1] - result.start[1])
    assert taken == [13 + 3, 13]


def test_a_store_holds_the_read_of_y_and_not_the_units():
    """A STORE of scales and 20 vectors reads for 21 cycles; y is read before, between or after."""
    store = "STORE memory=ACC8 x_size=20 y_size=1 z_size=1\n"
    wait = "ALU pop_next uop_count=1 alu_op={} src_base=1"
    alone = times(wait.format("RECIPROCAL").replace("pop_next ", ""), UNITS)[0]
    both = times(f"{store}{wait.format('RECIPROCAL').replace('pop_next ', '')}", UNITS)[1]
    held = both[1] - both[0] - (alone[1] - alone[0])
    assert 0 < held < 21


def test_an_early_read_gives_way_to_a_late_one():
    """Twelve GEMM micro-ops read late, 6 cycles after READ; a SHR can't read x in such a cycle."""
    gemm = "GEMM uop_count=1 extent_0=12 dst_0=1\n"
    found = times(f"{gemm}ALU uop_count=1 alu_op=SHR use_imm dst_base=60")
    assert found[1] == (START + 12, START + 12 + 13 + 6)


def test_a_store_reads_requantizes_and_waits_for_its_answer():
    """Start, scale, n reads, 9 stages, into the buffer, out, 1 + latency, seen."""
    narrow = "STORE memory=ACC8 x_size=3 y_size=1 z_size=1"
    assert times(narrow) == [(START, START + 1 + 3 + 9 + 1 + 1 + LATENCY + 1)]
    planes = "STORE memory=ACC8 x_size=1 y_size=1 z_size=3 z_pitch=1 z_stride=1"
    assert times(planes) == [(START, START + 2 * 3 + 9 + 1 + 1 + LATENCY + 1)]
    raw = "STORE memory=ACC x_size=2 y_size=1 z_size=1"
    assert times(raw) == [(START, START + 1 + 9 + 1 + 7 + 1 + LATENCY + 1)]


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_store_requantizes_a_beat_in_steps(steps):
    """A read every so many cycles, but for the one after scales; a beat is there with its last."""
    groups = f"store_groups={steps}"
    narrow = "STORE memory=ACC8 x_size=3 y_size=1 z_size=1"
    taken = 1 + 3 * steps + 9 + 1 + 1 + LATENCY + 1
    assert times(narrow, groups) == [(START, START + taken)]
    planes = "STORE memory=ACC8 x_size=1 y_size=1 z_size=3 z_pitch=1 z_stride=1"
    assert times(planes, groups) == [(START, START + 2 + taken)]  # scales of two planes more
    raw = "STORE memory=ACC x_size=2 y_size=1 z_size=1"
    assert times(raw, groups) == times(raw)
    assert times(TO_INP, FORWARDING, groups) == [(START, START + taken - LATENCY - 1)]


FORWARDING = "forwarding=1"
TO_INP = "STORE memory=INP x_size=3 y_size=1 z_size=1"


def test_a_store_to_inp_waits_for_no_answer():
    """As above, without the bus: it finishes a cycle after its last beat is in INP."""
    assert times(TO_INP, FORWARDING) == [(START, START + 1 + 3 + 9 + 1 + 1)]
    empty = "STORE memory=INP x_size=0 y_size=1 z_size=1"
    assert times(empty, FORWARDING) == times(empty.replace("INP", "ACC8"), FORWARDING)


@pytest.mark.parametrize(("memory", "waits"), [("INP", True), ("WGT", False)])
def test_load_writes_inp_before_store_does(memory, waits):
    """63 entries of padding, a cycle each; STORE's first beat waits for INP's alone."""
    load = f"LOAD memory={memory} x_size=0 y_size=1 z_size=1 pad_x0=63\n"
    (begun, loaded), (start, stored) = times(load + TO_INP, FORWARDING)
    assert (loaded, start) == (begun + 1 + 63, begun + 8)
    assert stored == (loaded + 3 + 1 if waits else start + 15)


def test_load_leaves_inp_to_store_in_all_but_an_entrys_last_beat():
    """Entries of two beats, which come without a gap: STORE's beats go between the entries."""
    load = "LOAD memory=INP x_size=60 y_size=1 z_size=1\n"
    store = "STORE memory=INP x_size=40 y_size=1 z_size=1"
    (_, loaded), (_, stored) = times(load + store, FORWARDING, "block_in=8", "memory.latency=0")
    assert stored < loaded


def test_load_leaves_inp_to_store_while_it_has_no_beat():
    load = "LOAD memory=INP x_size=40 y_size=1 z_size=1\n"
    assert times(load + TO_INP, FORWARDING) == [
        (START, START + 3 + LATENCY + 40),
        (START + 8, START + 8 + 15),
    ]


def test_stores_finish_in_order_wherever_they_go():
    """The second one is in INP long before the first one's answer comes, though no other burst
    could be opened till then."""
    store = "STORE memory=ACC8 dram_base=0x1000 x_size=3 y_size=1 z_size=1\n"
    (_, answered), second = times(store + TO_INP, FORWARDING, "writes_in_flight=1")
    assert answered > START + 15 + LATENCY
    assert second == (START + 8, answered + 1)


def test_tokens_take_a_cycle():
    found = times("LOAD push_next x_size=0 y_size=1 z_size=1 pad_x0=60\nGEMM pop_prev uop_count=1")
    (_, loaded), (start, _) = found
    assert start == loaded + 1


def test_finish_waits_for_every_engine():
    result = run("STORE memory=ACC x_size=1 y_size=1 z_size=1")
    assert result.start[-1] == result.finish[0] + 1
    assert result.cycles == result.start[-1] + 1


def test_reads_and_writes_alternate():
    """A long LOAD and a long STORE share the bus: each takes about as long as both together."""
    store = "STORE memory=ACC dram_base=0x1000 x_size=8 y_size=8 z_size=1 y_pitch=8 y_stride=8\n"
    load = "LOAD memory=WGT x_size=64 y_size=1 z_size=1\n"
    ((_, alone),) = times(load)
    both = times(load + store)
    assert both[0][1] > alone + 200
    assert abs(both[0][1] - both[1][1]) < 3 * LATENCY


def test_memory_contract_sweep():
    """More latency or less bandwidth never helps."""
    text = NONE + "LOAD memory=WGT push_next x_size=40 y_size=2 z_size=1 y_stride=41\n" * 3
    text += "GEMM pop_prev uop_count=1 extent_0=50\n" * 3
    text += "STORE memory=ACC8 dram_base=0x1000 x_size=40 y_size=1 z_size=1"
    by_latency = [run(text, f"memory.latency={n}").cycles for n in (0, 1, 7, 64, 65, 300)]
    assert by_latency == sorted(set(by_latency))
    by_rate = [run(text, f"memory.bytes_per_cycle={n}").cycles for n in (8, 4, 2, 1)]
    assert by_rate[0] == by_rate[1]  # the port is 4 bytes wide
    assert by_rate == sorted(by_rate)


def test_the_example_in_the_document_is_current(capsys):
    load_script("docs/timing_example.py").main(())
    printed = capsys.readouterr().out.splitlines()
    text = (Path(__file__).parents[2] / "docs" / "timing.md").read_text()
    quoted = text.partition("```text\n")[2].partition("```")[0].splitlines()
    assert len(quoted) > 20
    missing = [line for line in quoted if line not in ("…", *printed)]
    assert not missing, "run: python docs/timing_example.py"


def test_numerics_can_be_left_out():
    config = load_config("tiny")
    program = assemble("LOAD memory=ACC x_size=1 y_size=1 z_size=1 push_next\n"
                       "ALU pop_prev push_next\n"
                       "STORE memory=ACC pop_prev x_size=1 y_size=1 z_size=1 dram_base=64\n"
                       "FINISH", config)  # fmt: skip
    dram = np.arange(1 << 12).astype(np.uint8)
    copy = dram.copy()
    quick = simulate(config, program.instructions, copy, 2048, numerics=False)
    assert np.array_equal(copy, dram)
    full = simulate(config, program.instructions, copy, 2048)
    assert np.array_equal(copy[64:80], dram[:16])
    assert full.cycles == quick.cycles


@pytest.mark.parametrize("burst", [91, 92, 96, 97, 100, 128, 255, 256])
@pytest.mark.parametrize("beats_before", [0, 1, 5])
def test_fetch_never_starves(burst, beats_before):
    """Instructions of 6 beats, bursts that end within one, a stream across pages."""
    settings = ["inp_bytes=256", "acc_bytes=1024", "read_buffer_beats=256"]
    config = load_config("tiny", [*settings, f"burst_beats={burst}"])
    assert instruction_bytes(config) == 6 * config.port_bytes
    stream, base = [*[Gemm()] * 600, Finish()], PAGE_BYTES - beats_before * config.port_bytes
    result = simulate(config, stream, np.zeros(1 << 15, np.uint8), base)
    assert result.cycles >= 6 * len(stream)


@pytest.mark.parametrize(("stepped", "cycles"), [(False, LATENCY), (True, 1)])
def test_a_stepped_machine_passes_over_no_cycle(stepped, cycles):
    """In cycle 1 nothing moves until the first beat does, ``latency`` cycles later."""
    stream = Stream.of(load_config("tiny"), [Finish()])
    dram = np.zeros(4096, np.uint8)
    state = Clock(stream, dram, stepped=stepped, until=1).state
    assert _idle_cycles(state, reset(stream, dram)[1], 1) == cycles
