"""Faults: each row of the table of docs/timing.md, section 9, with its cycle worked out by hand.

On config ``tiny``: beats of 4 bytes, 8 to an instruction, 64 cycles to the first; INP has 256
entries of a beat, WGT 128 of 4, ACC 128 of 4 (ACC8: 1), UOP 256 of one.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from vdla.isa.asm import assemble
from vdla.isa.config import PAGE_BYTES, config_names, load_config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Alu, Finish, Gemm, Load, Store, Uop, instruction_bytes
from vdla.isa.registers import Fault
from vdla.isa.ring import engines
from vdla.sim.machine import FaultError, simulate
from vdla.sim.random_programs import DRAM_BYTES, random_program
from vdla.sim.stream import Stream, memory_image
from vdla.sim.timing import Clock

TINY = load_config("tiny")
OWN = Identity.of(TINY)
ROWS = ("block_in=8", "inp_bytes=2048", "window_taps=2", "window_rows=2")
LATENCY = 64
FIRST = LATENCY + 1  # the stream's first beat moves
COMPLETE = FIRST + 9  # the first instruction is complete at the head
START = COMPLETE + 2  # and starts; the next one 8 cycles later
BASE = 0x2000
DRAM = 0x4000
ONE = "x_size=1 y_size=1 z_size=1"
NONE = "LOAD x_size=0 y_size=0 z_size=0\n"  # takes one cycle


def image(text="", *settings):
    config = load_config("tiny", settings)
    program = assemble(f".base {BASE:#x}\n{text}\nFINISH", config)
    return Stream.of(config, program.instructions, BASE), memory_image(program, DRAM)


def run(text="", *settings, dram=None, **options):
    """The clock at its end, the skipping one and the stepped one alike."""
    stream, memory = image(text, *settings)
    memory = memory if dram is None else dram
    return both(stream, memory, **options)


def both(stream, dram, **options):
    quick, stepped = (Clock(stream, dram, stepped=s, **options) for s in (False, True))
    assert (quick.fault, quick.cycles) == (stepped.fault, stepped.cycles)
    for name in ("start", "finish", "causes"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(stepped, name))
    if quick.fault:
        assert quick.fault_row == stepped.fault_row
        check_that_nothing_of_its_cycle_counts(quick, stream.config)
    return quick


def check_that_nothing_of_its_cycle_counts(clock, config):
    last = clock.cycles - 1
    assert (clock.causes.sum(axis=1)[list(engines(config))] == last).all()
    for events in (clock.start, clock.finish):
        assert not len(events) or events.max() < last


def expect(clock, fault, cycle, row):
    assert (clock.fault, clock.cycles - 1, clock.fault_row) == (fault, cycle, row)


def raw_stream(words):
    """A stream whose instructions may be any bits."""
    size = instruction_bytes(TINY)
    raw = b"".join(
        w.to_bytes(size, "little") if isinstance(w, int) else w.encode(TINY) for w in words
    )
    dram = np.zeros(DRAM, np.uint8)
    dram[BASE : BASE + len(raw)] = np.frombuffer(raw, np.uint8)
    return Stream.of_bytes(TINY, raw, BASE), dram


def wrong_field(instruction, name, value):
    word = instruction.pack(TINY)
    for field, bit, width in type(instruction).layout(TINY):
        if field.name == name:
            return word & ~(((1 << width) - 1) << bit) | value << bit
    raise KeyError(name)


# PROGRAM_ISA, PROGRAM_CONFIG, ILLEGAL in cycle 0 --------------------------------------------------


def test_a_program_for_another_config():
    clock = run("GEMM", identity=Identity(OWN.isa, "12345678"))
    expect(clock, Fault.PROGRAM_CONFIG, 0, 0)
    assert not clock.causes.any()
    assert run("GEMM", identity=OWN).fault == Fault.NONE


def test_a_program_for_another_instruction_set():
    for config in (OWN.config, "12345678"):
        expect(run("GEMM", identity=Identity("12345678", config)), Fault.PROGRAM_ISA, 0, 0)


def test_a_program_without_instructions():
    stream, dram = Stream.of(TINY, [], BASE), np.zeros(DRAM, np.uint8)
    expect(both(stream, dram), Fault.ILLEGAL, 0, 0)
    other = Identity(OWN.isa, "12345678")
    expect(both(stream, dram, identity=other), Fault.PROGRAM_CONFIG, 0, 0)


# ILLEGAL at the head ------------------------------------------------------------------------------

STORE = Store(memory=2)
ILLEGAL = {
    "opcode 5": 5,
    "opcode 7 and all else": (1 << 256) - 1,
    "LOAD memory": wrong_field(Load(), "memory", 5),
    **{f"STORE {m}": wrong_field(STORE, "memory", m) for m in (0, 1, 4, 6)},
    "GEMM init": wrong_field(Gemm(), "init", 3),
    "ALU alu_op": wrong_field(Alu(), "alu_op", 7),
    "FINISH before the end": Finish(),
}


@pytest.mark.parametrize("name", ILLEGAL)
@pytest.mark.parametrize("at", [0, 3])
def test_what_the_isa_does_not_know(name, at):
    """Found in the cycle in which it would be dispatched."""
    words = [*[Gemm(uop_count=0)] * at, ILLEGAL[name], Gemm(), Finish()]
    clock = both(*raw_stream(words))
    expect(clock, Fault.ILLEGAL, COMPLETE + 8 * at, at)
    assert (clock.start[:at] == START + 8 * np.arange(at)).all()
    assert (clock.start[at:] == -1).all()


def test_an_end_without_finish():
    expect(both(*raw_stream([Gemm(), Gemm()])), Fault.ILLEGAL, COMPLETE + 8, 1)


def test_a_bad_head_does_not_wait_for_room():
    """Two LOADs fill the queue; a third is at the head; what is behind it isn't looked at."""
    words = [Load(pop_next=1)] * 3 + [wrong_field(Load(), "memory", 7), Finish()]
    config = load_config("tiny", ["command_queue=2"])
    stream, dram = raw_stream(words)
    stream = Stream.of_bytes(config, dram[BASE : BASE + 160].tobytes(), BASE)
    assert Clock(stream, dram).cycles == -1  # the third waits for room, for ever
    words = [Load(pop_next=1)] * 2 + [wrong_field(Load(), "memory", 7), Finish()]
    stream, dram = raw_stream(words)
    stream = Stream.of_bytes(config, dram[BASE : BASE + 128].tobytes(), BASE)
    expect(both(stream, dram), Fault.ILLEGAL, COMPLETE + 16, 2)


# ADDRESS: fetch -----------------------------------------------------------------------------------


def test_a_stream_outside_dram():
    stream, dram = image("GEMM")
    expect(both(stream, dram[:BASE]), Fault.ADDRESS, 0, 0)
    aside = Stream.of(TINY, stream.instructions, BASE + 2)
    expect(both(aside, dram), Fault.ADDRESS, 0, 0)


def test_a_stream_that_leaves_dram():
    """DRAM ends with the stream's page; the 9th burst of 16 beats would be the first outside.

    8 bursts fill the buffer of 16 instructions, so that it is asked for when two have left it.
    """
    text = "GEMM uop_count=0\n" * 30
    stream, dram = image(text)
    stream = Stream.of(TINY, stream.instructions, BASE - 16 * 32)
    expect(both(stream, dram[:BASE]), Fault.ADDRESS, COMPLETE + 8 + 1, 2)


# ADDRESS: between two beats -----------------------------------------------------------------------


@pytest.mark.parametrize("at", ["1", "0x42", "0xfff", "0xffffffff"])
@pytest.mark.parametrize("what", ["LOAD", "LOAD memory=UOP", "STORE memory=2", "STORE memory=ACC8"])
@pytest.mark.parametrize("shape", [ONE, "x_size=0 y_size=1 z_size=1"])
def test_an_address_between_two_beats(what, at, shape):
    """Found at the head of fetch, at once, even where nothing would be moved."""
    clock = run(f"{NONE}{what} dram_base={at} {shape}")
    expect(clock, Fault.ADDRESS, COMPLETE + 8, 1)
    assert clock.start[1] == -1


def test_an_address_between_two_beats_goes_before_what_is_illegal():
    odd = wrong_field(Load(dram_base=2), "memory", 7)
    expect(both(*raw_stream([odd, Finish()])), Fault.ADDRESS, COMPLETE, 0)
    expect(both(*raw_stream([Gemm(), Load(dram_base=2)])), Fault.ADDRESS, COMPLETE + 8, 1)


# ADDRESS: LOAD ------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["0x4000", "0xfffffffc"])
def test_a_load_from_outside_dram(at):
    """Sent two cycles after the start."""
    clock = run(f"{NONE}LOAD dram_base={at} {ONE}")
    expect(clock, Fault.ADDRESS, START + 8 + 2, 1)
    assert clock.start[1] == START + 8


def test_a_load_that_leaves_dram():
    """The first burst ends with the page; the second is sent in the next cycle."""
    expect(run("LOAD dram_base=0x3ff8 x_size=3 y_size=1 z_size=1"), Fault.ADDRESS, START + 3, 0)
    fits = "LOAD dram_base=0x3ff8 x_size=2 y_size=1 z_size=1"
    assert run(fits).fault == Fault.NONE


def test_addresses_never_wrap():
    """2**20 - 1 entries of 16 bytes from row to row: the 4 GiB are left, not entered anew."""
    load = "LOAD memory=ACC dram_base=0x3ff0 x_size=1 z_size=1 y_stride=0xfffff y_size=2"
    expect(run(load), Fault.ADDRESS, START + 3, 0)
    tall = "LOAD memory=ACC dram_base=0 x_size=1 y_size=1 z_stride=0xfffff z_size=2"
    expect(run(tall), Fault.ADDRESS, START + 3, 0)


def test_dram_ends_with_the_page_of_its_last_byte():
    dram = np.zeros(BASE + 1, np.uint8)
    stream, memory = image(f"LOAD dram_base={BASE + 0xFFC:#x} {ONE}")
    dram[:BASE] = memory[:BASE]
    whole = Stream.of(TINY, stream.instructions, 0)
    assert both(whole, dram).fault == Fault.NONE
    expect(both(whole, dram[:BASE]), Fault.ADDRESS, START + 2, 0)


def test_a_burst_without_room_is_no_fault_yet():
    """One read in flight: the second burst, outside, is found when the first has come."""
    load = "LOAD dram_base=0x3ffc x_size=2 y_size=1 z_size=1"
    moves = START + 2 + 1 + LATENCY
    expect(run(load, "reads_in_flight=1"), Fault.ADDRESS, moves + 1, 0)


# ADDRESS: LOAD's write side -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "base", "beats"),
    [("INP", 254, 1), ("WGT", 126, 4), ("ACC", 126, 4), ("ACC8", 126, 1)],
)
def test_a_load_beyond_its_buffer(memory, base, beats):
    """The third entry is complete with its last beat; a beat moves a cycle before it is taken."""
    load = f"LOAD memory={memory} sram_base={base} x_size=3 y_size=1 z_size=1"
    first = START + 2 + 1 + LATENCY + 1
    expect(run(load), Fault.ADDRESS, first + 3 * beats - 1, 0)


def test_padding_beyond_the_buffer():
    """An entry a cycle, from the second cycle after the start on."""
    load = "LOAD sram_base=250 x_size=0 y_size=1 z_size=1 pad_x0=10"
    expect(run(load), Fault.ADDRESS, START + 2 + 6, 0)


def test_a_base_beyond_the_buffer():
    expect(run(f"LOAD memory=WGT sram_base=200 {ONE}"), Fault.ADDRESS, START + 7 + LATENCY, 0)


# ADDRESS: COMPUTE ---------------------------------------------------------------------------------

READ = START + 4


@pytest.mark.parametrize(
    "text",
    [
        "GEMM uop_count=1 extent_0=5 dst_base=125 dst_0=1",
        "GEMM uop_count=1 extent_0=5 src_base=253 src_0=1",
        "GEMM uop_count=1 extent_0=5 wgt_base=125 wgt_0=1",
        "GEMM uop_begin=253 uop_count=5",
        "ALU uop_count=1 alu_op=ADD extent_0=5 dst_base=125 dst_0=1 use_imm",
        "ALU uop_count=1 alu_op=ADD extent_0=5 src_base=125 src_0=1",
        "ALU uop_count=1 alu_op=WADD extent_0=5 src_base=125 src_0=1 dst_0=1 use_imm",
    ],
)
def test_a_micro_op_beyond_a_buffer(text):
    """The fourth: READ holds it three cycles after the first."""
    clock = run(f"{NONE}{text}")
    expect(clock, Fault.ADDRESS, READ + 8 + 3, 1)


def test_a_bias_beyond_acc():
    """Only where a micro-op starts from it. The UOP buffer gets one marked ``first`` at 1."""
    uops = b"".join(Uop(first=f).encode(TINY) for f in (0, 1))
    text = "LOAD memory=UOP x_size=2 y_size=1 z_size=1 push_next\nGEMM pop_prev uop_begin={} "
    text += "uop_count=1 extent_0=5 bias_base=125 bias_0=1 init={}"
    for begin, init, fault in ((1, "BIAS", True), (0, "BIAS", False), (1, "ZERO", False)):
        stream, dram = image(text.format(begin, init))
        dram[: len(uops)] = np.frombuffer(uops, np.uint8)
        clock = both(stream, dram)
        if fault:
            expect(clock, Fault.ADDRESS, clock.start[1] + 4 + 3, 1)
        else:
            assert clock.fault == Fault.NONE


def test_a_second_row_beyond_inp():
    """INP has 256 entries of two beats: only with the flag is its pitch behind src read."""
    text = "GEMM uop_count=1 extent_0=5 src_base=20 src_0=1 pitch="
    expect(run(f"{NONE}{text}233 window", *ROWS), Fault.ADDRESS, READ + 8 + 3, 1)
    expect(run(f"{NONE}{text}236 window", *ROWS), Fault.ADDRESS, READ + 8, 1)
    for harmless in ("231 window", "0 window", "255"):
        assert run(f"{NONE}{text}{harmless}", *ROWS).fault == Fault.NONE


def test_a_second_row_beyond_inp_is_found_in_a_long_gemm():
    """The skipping clock must not pass over it: 80 micro-ops, the last beyond."""
    text = "GEMM uop_count=1 extent_0=80 src_0=1 window pitch={}"
    expect(run(text.format(177), *ROWS), Fault.ADDRESS, READ + 79, 0)
    assert run(text.format(176), *ROWS).fault == Fault.NONE


def test_a_table_beyond_the_last():
    """In READ, as any operand; only the low 8 bits of the immediate count."""
    text, tables = "ALU uop_count=1 alu_op=TABLE imm=", "table_bytes=1024"
    for imm in (0, 1, 256, -255):
        assert run(f"{text}{imm}", tables).fault == Fault.NONE
    for imm in (2, 255, -1):
        expect(run(f"{text}{imm}", tables), Fault.ADDRESS, READ, 0)
    expect(run(f"ALU use_imm {text[4:]}0 src_base=128", tables), Fault.ADDRESS, READ, 0)


def test_a_micro_op_that_starts_from_y_reads_no_table():
    uops = Uop(first=1).encode(TINY)
    text = "LOAD memory=UOP x_size=1 y_size=1 z_size=1 push_next\n"
    text += "ALU pop_prev uop_count=1 alu_op=TABLE imm=2 init={}"
    for init, fault in ((1, Fault.NONE), (0, Fault.ADDRESS)):
        stream, dram = image(text.format(init), "table_bytes=1024")
        dram[: len(uops)] = np.frombuffer(uops, np.uint8)
        assert both(stream, dram).fault == fault


def test_a_nest_without_iterations_reads_no_table():
    for empty in ("uop_count=0", *(f"uop_count=1 extent_{loop}=0" for loop in range(3))):
        stream, dram = image(f"ALU alu_op=TABLE imm=2 {empty}", "table_bytes=1024")
        assert both(stream, dram).fault == Fault.NONE
        simulate(stream.config, stream.instructions, dram, BASE)  # its effects, too


def test_a_load_beyond_tab():
    """Two results per entry: the 257th entry of two tables is the second one loaded."""
    load = "LOAD memory=TAB sram_base=255 x_size=2 y_size=1 z_size=1"
    expect(run(load, "table_bytes=1024"), Fault.ADDRESS, START + 2 + 1 + LATENCY + 4, 0)


def test_without_tables_what_needs_them_is_illegal():
    for text in ("LOAD memory=TAB", "ALU alu_op=TABLE"):
        expect(run(text), Fault.ILLEGAL, COMPLETE, 0)
        assert run(text, "table_bytes=512").fault == Fault.NONE


def test_what_is_not_read_can_not_be_beyond():
    assert run("ALU uop_count=1 alu_op=MUL use_imm src_base=255").fault == Fault.NONE
    assert run("GEMM uop_count=1 bias_base=127 bias_0=127 extent_0=9").fault == Fault.NONE
    assert run("GEMM uop_count=0 extent_0=9 dst_base=127 dst_0=127").fault == Fault.NONE


def test_a_micro_op_that_is_held_is_looked_at_at_once():
    """Each SHR waits 10 cycles for the one before; the third is in READ when that passes."""
    alu = "ALU uop_count=1 alu_op=SHR extent_0=3 src_base=0 src_0=64"
    expect(run(alu), Fault.ADDRESS, READ + 10 + 1, 0)
    alu = "ALU uop_count=1 alu_op=SHR extent_0=2 dst_base=1 src_base=1 src_0=127"
    expect(run(alu), Fault.ADDRESS, READ + 1, 0)


def test_a_long_gemm_that_leaves_acc_at_its_end():
    """The skipping clock must not pass over it: 40 times 100 micro-ops, the last beyond."""
    gemm = "GEMM uop_count=1 extent_0=40 extent_1=100 dst_base=88 dst_0=1 wgt_base=28 wgt_1=1"
    assert run(gemm).fault == Fault.NONE
    further = gemm.replace("dst_base=88", "dst_base=89")
    expect(run(further), Fault.ADDRESS, READ + 39 * 100, 0)
    expect(run(gemm.replace("wgt_base=28", "wgt_base=29")), Fault.ADDRESS, READ + 99, 0)


def test_micro_ops_that_were_loaded_count_too():
    """dst 100 lies in the micro-op; with a step of 20 the third is beyond."""
    stream, dram = image(
        "LOAD memory=UOP x_size=1 y_size=1 z_size=1 push_next\n"
        "GEMM pop_prev uop_count=1 extent_0=3 dst_0=20"
    )
    dram[:4] = np.frombuffer(Uop(dst=100).encode(TINY), np.uint8)
    clock = both(stream, dram)
    expect(clock, Fault.ADDRESS, clock.start[1] + 4 + 2, 1)


def test_the_last_micro_op_of_several_words_leaves_acc():
    """A word of an 8-byte port is two micro-ops: of three words, the sixth goes beyond."""
    settings = ["port_bytes=8", "block_in=8", "block_out=8"]
    config = load_config("tiny", settings)
    assert config.uops_per_word == 2
    base = config.depth("acc") - 28
    text = "LOAD memory=UOP x_size=3 y_size=1 z_size=1 push_next\n"
    stream, dram = image(text + f"GEMM pop_prev uop_count=6 dst_base={base}", *settings)
    uops = b"".join(Uop(dst=dst).encode(config) for dst in (0, 1, 2, 3, 4, 28))
    dram[: len(uops)] = np.frombuffer(uops, np.uint8)
    assert both(stream, dram).fault == Fault.ADDRESS


# ADDRESS: STORE -----------------------------------------------------------------------------------


def test_a_store_beyond_acc():
    """First read a cycle after the start; int32 vectors are 4 beats, int8 ones 1 beat apart."""
    wide = "STORE memory=ACC sram_base=126 x_size=3 y_size=1 z_size=1"
    expect(run(wide), Fault.ADDRESS, START + 1 + 2 * 4, 0)
    rows = "STORE memory=ACC sram_base=100 x_size=1 y_size=3 y_pitch=14 z_size=1"
    expect(run(rows), Fault.ADDRESS, START + 1 + 2 * 4, 0)
    planes = "STORE memory=ACC sram_base=100 x_size=1 y_size=1 z_size=3 z_pitch=14"
    expect(run(planes), Fault.ADDRESS, START + 1 + 2 * 4, 0)
    narrow = "STORE memory=ACC8 sram_base=126 x_size=3 y_size=1 z_size=1"
    expect(run(narrow), Fault.ADDRESS, START + 1 + 1 + 2, 0)


def test_a_first_instruction_that_waits_is_at_work_though_nothing_else_moves():
    load = "LOAD push_next memory=INP x_size=9 y_size=1 z_size=1"
    clock = run(f"GEMM pop_prev uop_count=1 extent_0=40\n{load}")
    assert clock.fault == Fault.NONE
    assert clock.finish[0] - clock.start[0] == 52


def test_scales_beyond_acc():
    """Scale, vector, scale: the second plane's."""
    store = "STORE memory=ACC8 scale_base=127 x_size=1 y_size=1 z_size=2"
    expect(run(store), Fault.ADDRESS, START + 1 + 2, 0)
    assert run(store.replace("ACC8", "ACC")).fault == Fault.NONE


@pytest.mark.parametrize("at", ["0x4000", "0xfffffff0"])
def test_a_store_to_outside_dram(at):
    """Read a cycle after the start, in the buffer 9 later, offered in the next."""
    store = f"{NONE}STORE memory=ACC dram_base={at} {ONE}"
    expect(run(store), Fault.ADDRESS, START + 8 + 1 + 9 + 1, 1)


def test_a_store_that_leaves_dram():
    """Two beats fit the page; the third would open the burst outside."""
    store = f"STORE memory=ACC dram_base=0x3ff8 {ONE}"
    expect(run(store), Fault.ADDRESS, START + 1 + 9 + 1 + 2, 0)


def test_a_burst_that_may_not_be_opened_is_no_fault_yet():
    """One write in flight: the second burst waits for the answer of the first, and is seen then."""
    store = f"STORE memory=ACC dram_base=0x3ff8 {ONE}"
    last = START + 1 + 9 + 1 + 1
    answered = last + 1 + LATENCY
    expect(run(store, "writes_in_flight=1"), Fault.ADDRESS, answered + 1, 0)


FORWARDING = "forwarding=1"


def test_a_store_beyond_inp():
    """Scales, two vectors of a beat each; the second one is offered a cycle after the first."""
    store = "STORE memory=INP dram_base=0x3fc x_size={} y_size=1 z_size=1"
    assert run(store.format(1), FORWARDING).fault == Fault.NONE
    expect(run(store.format(2), FORWARDING), Fault.ADDRESS, START + 1 + 1 + 9 + 1 + 1, 0)
    outside = f"STORE memory=INP dram_base=0xfffffffc {ONE}"
    expect(run(outside, FORWARDING), Fault.ADDRESS, START + 1 + 1 + 9 + 1, 0)


def test_a_beat_that_load_keeps_waiting_is_found_to_lie_beyond_inp():
    load = "LOAD memory=INP x_size=0 y_size=1 z_size=1 pad_x0=63\n"
    store = f"STORE memory=INP dram_base=0x400 {ONE}"
    expect(run(load + store, FORWARDING), Fault.ADDRESS, START + 8 + 1 + 1 + 9 + 1, 1)


def test_without_forwarding_a_store_to_inp_is_illegal():
    expect(run("STORE memory=INP"), Fault.ILLEGAL, COMPLETE, 0)
    for memory in ("WGT", "UOP"):
        expect(run(f"STORE memory={memory}", FORWARDING), Fault.ILLEGAL, COMPLETE, 0)


# BUS ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beat", "head"), [(0, 0), (8, 0), (9, 0), (10, 1), (17, 1), (18, 2)])
def test_a_bad_beat_of_the_stream(beat, head):
    """Beat b moves in 65 + b. The first instruction is dispatched in 74, the next in 82."""
    at = BASE + 4 * beat
    clock = run("GEMM uop_count=0\n" * 4, errors=(at, at + 4))
    expect(clock, Fault.BUS, FIRST + beat, head)


def test_a_bad_beat_of_a_load():
    """It belongs to the oldest unfinished LOAD when it moves."""
    load = "LOAD dram_base=0x100 x_size=4 y_size=1 z_size=1"
    expect(run(load, errors=(0x108, 0x10C)), Fault.BUS, START + 2 + 1 + LATENCY + 2, 0)
    pair = f"LOAD dram_base=0x200 {ONE}\n{load}"
    clock = run(pair, errors=(0x108, 0x10C))
    expect(clock, Fault.BUS, START + 8 + 2 + 1 + LATENCY + 2, 1)


def test_a_bad_answer():
    """4 beats move from START + 11 on; the burst is answered 65 cycles after the last."""
    store = f"STORE memory=ACC dram_base=0x100 {ONE}"
    answered = START + 11 + 3 + 1 + LATENCY
    for at in (0x100, 0x10C):
        expect(run(store, errors=(at, at + 4)), Fault.BUS, answered, 0)
    assert run(store, errors=(0x110, 0x200)).fault == Fault.NONE


def test_only_what_moves_can_be_bad():
    assert run("GEMM uop_count=0", errors=(0, BASE)).fault == Fault.NONE


# Two in one cycle ---------------------------------------------------------------------------------


def test_load_reports_its_request_before_its_write():
    """The first pads beyond INP in START + 10, the second's burst lies outside in that cycle."""
    pads = "LOAD sram_base=248 x_size=0 y_size=1 z_size=1 pad_x0=20\n"
    expect(run(f"{pads}LOAD dram_base=0x4000 {ONE}"), Fault.ADDRESS, START + 10, 1)
    expect(run(f"{pads}LOAD dram_base=0x0000 {ONE}"), Fault.ADDRESS, START + 10, 0)


def test_fetch_comes_before_load():
    """What follows the LOAD is complete 8 cycles after it, when its 5th entry is written."""
    for base, fault, cycle, row in (
        (251, Fault.ILLEGAL, START + 6, 1),
        (252, Fault.ILLEGAL, START + 6, 1),
        (253, Fault.ADDRESS, START + 5, 0),
    ):
        pads = Load(sram_base=base, x_size=0, y_size=1, z_size=1, pad_x0=20)
        expect(both(*raw_stream([pads, 7, Finish()])), fault, cycle, row)


def test_load_comes_before_compute():
    """READ holds the second micro-op of the GEMM, which started 8 cycles later, in START + 13."""
    gemm = "GEMM uop_count=1 src_base=255 extent_0=2 src_0=1"
    for base, cycle, row in ((244, 13, 1), (245, 13, 0), (246, 12, 0)):
        pads = f"LOAD sram_base={base} x_size=0 y_size=1 z_size=1 pad_x0=20"
        expect(run(f"{pads}\n{gemm}"), Fault.ADDRESS, START + cycle, row)


def test_compute_comes_before_store():
    """The GEMM's READ at START + 4 + k, the STORE's second read at START + 8 + 1 + 4."""
    store = "STORE memory=ACC sram_base=127 x_size=2 y_size=1 z_size=1"
    for steps, cycle, row in ((9, 13, 0), (8, 12, 0), (10, 13, 1)):
        gemm = f"GEMM uop_count=1 extent_0=20 src_base={256 - steps} src_0=1"
        expect(run(f"{gemm}\n{store}"), Fault.ADDRESS, START + cycle, row)


def test_units_come_before_the_bus():
    """A beat of the stream that is bad moves in the cycle in which LOAD's burst lies outside."""
    text = f"LOAD dram_base=0x4000 {ONE}\nGEMM\nGEMM"
    sent = START + 2
    for cycle, fault, row in ((sent - 1, Fault.BUS, 1), (sent, Fault.ADDRESS, 0)):
        at = BASE + 4 * (cycle - FIRST)
        expect(run(text, errors=(at, at + 4)), fault, cycle, row)


# What the driver of the simulator sees ------------------------------------------------------------


def test_simulate_raises():
    stream, dram = image(f"GEMM\nLOAD dram_base=0x4000 {ONE}")
    with pytest.raises(FaultError) as error:
        simulate(TINY, stream.instructions, dram, BASE)
    assert str(error.value) == (
        "fault ADDRESS in cycle 86 at 1: LOAD dram_base=0x4000 x_size=1 y_size=1 z_size=1"
    )
    found = error.value.fault, error.value.instruction, error.value.cycle
    assert found == (Fault.ADDRESS, 1, START + 10)


def test_simulate_raises_without_instructions():
    with pytest.raises(FaultError, match=r"^fault ILLEGAL in cycle 0 at 0: no instruction$"):
        simulate(TINY, [], np.zeros(DRAM, np.uint8))


def test_dram_is_left_as_it_is():
    stream, dram = image(f"STORE memory=ACC dram_base=0x100 {ONE}\nGEMM uop_count=300")
    dram[:] = 7
    before = dram.copy()
    with pytest.raises(FaultError):
        simulate(TINY, stream.instructions, dram, BASE)
    np.testing.assert_array_equal(dram, before)


# Random programs with wrong fields ----------------------------------------------------------------

CONFIGS = [load_config(name) for name in config_names()]
CONFIGS += [
    load_config("tiny", ["token_queue=2", "command_queue=2", "writes_in_flight=1"]),
    load_config("tiny", ["memory.latency=3", "memory.bytes_per_cycle=1", "reads_in_flight=1"]),
    load_config("narrow", ["memory.latency=0", "burst_beats=3", "read_buffer_beats=16"]),
    load_config("tiny", ["table_bytes=1024"]),
]
LIMIT = 100_000


def spoil(program, random):
    """The program's bytes with one to three fields set anew, or one bit of any word flipped."""
    config, size = program.config, instruction_bytes(program.config)
    raw = bytearray(program.stream())
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(program.instructions))
        word = int.from_bytes(raw[at * size : (at + 1) * size], "little")
        if random.random() < 0.2:
            word ^= 1 << random.randrange(8 * size)
        else:
            cls = type(program.instructions[at])
            _, bit, width = random.choice(cls.layout(config)[5:] or cls.layout(config))
            word &= ~(((1 << width) - 1) << bit)
            word |= random.getrandbits(width) << bit
        raw[at * size : (at + 1) * size] = word.to_bytes(size, "little")
    return bytes(raw)


def test_both_clocks_agree_on_spoilt_programs():
    seen, random = Counter(), Random(5)
    for number in range(600):
        config = CONFIGS[number % len(CONFIGS)]
        program = random_program(config, number, 30)
        dram = memory_image(program, DRAM_BYTES)
        raw = spoil(program, random)
        dram[program.base : program.base + len(raw)] = np.frombuffer(raw, np.uint8)
        stream = Stream.of_bytes(config, raw, program.base)
        errors = (0, 0)
        if random.random() < 0.4:
            at = random.randrange(DRAM_BYTES)
            errors = at, at + random.choice([1, 4 * PAGE_BYTES])
        quick, stepped = (
            Clock(stream, dram, stepped=s, until=LIMIT, errors=errors) for s in (False, True)
        )
        if stepped.cycles >= LIMIT:
            assert quick.cycles >= LIMIT
            continue
        assert (quick.fault, quick.cycles) == (stepped.fault, stepped.cycles), number
        np.testing.assert_array_equal(quick.start, stepped.start)
        np.testing.assert_array_equal(quick.finish, stepped.finish)
        if quick.fault:
            assert quick.fault_row == stepped.fault_row
            check_that_nothing_of_its_cycle_counts(quick, stream.config)
            seen[quick.fault, config.name] += 1
        if quick.cycles > 0:
            np.testing.assert_array_equal(quick.causes, stepped.causes)
        seen[quick.fault] += 1
    assert all(seen[fault] > 20 for fault in (Fault.ILLEGAL, Fault.ADDRESS, Fault.BUS)), seen
    assert seen[Fault.NONE] > 50, seen
