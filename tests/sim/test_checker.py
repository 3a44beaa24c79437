"""The static checker: what it finds, in which words, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Finish, Gemm, Load, Mem, Uop, instruction_bytes
from vdla.isa.program import Program
from vdla.sim.checker import check
from vdla.sim.stream import Stream, memory_image

TINY = load_config("tiny")
ONE = "x_size=1 y_size=1 z_size=1"
SHAPE = "x_size=2 y_size=1 z_size=1"
GEMM = "GEMM uop_count=1 extent_0=2 dst_0=1 src_0=1"


def findings(text, config=TINY):
    program = assemble(f".base 0x800\n{text}\nFINISH", config)
    return check(config, program.instructions, memory_image(program, 4096), program.base)


def only(text, config=TINY):
    (found,) = findings(text, config)
    return found.kind, found.index, found.text


def test_a_program_that_is_sound():
    assert findings(f"LOAD push_next {SHAPE}\n{GEMM} pop_prev push_next\nSTORE pop_prev memory=ACC "
                    f"dram_base=64 {SHAPE}") == []  # fmt: skip


def test_reading_what_may_not_be_there_yet():
    assert only(f"LOAD sram_base=1 {SHAPE}\n{GEMM}") == (
        "conflict",
        1,
        "GEMM 1 reads INP[1] that LOAD 0 may not have written yet: no token from LOAD orders them; "
        f"LOAD 0 would push_next and GEMM 1 pop_prev; 0 is `LOAD sram_base=1 {SHAPE}`; "
        "1 is `GEMM uop_count=1 extent_0=2 dst_0=1 src_0=1`",
    )


def test_overwriting_what_may_still_be_read():
    kind, index, text = only(f"{GEMM}\nLOAD {SHAPE}")
    assert (kind, index) == ("conflict", 1)
    assert text.startswith(
        "LOAD 1 writes INP[0] that GEMM 0 may still read: no token from COMPUTE orders them; "
        "GEMM 0 would push_prev and LOAD 1 pop_next; "
    )


LEGAL = Alu.alu_op.legal(load_config("tiny"))
OPERATIONS = "0 ≤ alu_op ≤ 6" if LEGAL[-1] == 6 else f"alu_op in {', '.join(map(str, LEGAL))}"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (f"LOAD memory=ACC {SHAPE}\n{GEMM}", "GEMM 1 writes ACC[0] that LOAD 0 may not"),
        (f"STORE memory=ACC {SHAPE}\n{GEMM}", "GEMM 1 writes ACC[0] that STORE 0 may still read"),
        (f"STORE memory=ACC8 dram_base=64 scale_base=7 {SHAPE}\n"
         f"LOAD memory=ACC sram_base=7 {SHAPE}",
         "LOAD 1 writes ACC[7] that STORE 0 may still read: no token from STORE orders them; "
         "STORE 0 would push_next and LOAD 1 pop_prev"),
        (f"STORE memory=ACC dram_base=64 {SHAPE}\nLOAD dram_base=92 {SHAPE}",
         "LOAD 1 reads DRAM[0x5c] that STORE 0 may not have written yet"),
        (f"LOAD dram_base=92 {SHAPE}\nSTORE memory=ACC dram_base=64 {SHAPE}",
         "STORE 1 writes DRAM[0x5c] that LOAD 0 may still read"),
        (f"LOAD memory=UOP {SHAPE}\n{GEMM}", "GEMM 1 reads UOP[0] that LOAD 0 may not have"),
        (f"LOAD memory=WGT {SHAPE}\n{GEMM}", "GEMM 1 reads WGT[0] that LOAD 0 may not have"),
        (f"STORE memory=ACC dram_base=0x7f0 {SHAPE}",
         "STORE 0 writes DRAM[0x800], which lies in the instruction stream that fetch reads"),
    ],
)  # fmt: skip
def test_conflicts_in_every_memory(text, start):
    kind, _, found = only(text)
    assert kind == "conflict"
    assert found.startswith(start)


def test_a_token_orders_everything_before_it_and_through_third_engines():
    """LOAD 0 → GEMM 2 → STORE 3 → LOAD 4, and LOAD 1's data by LOAD 0's later neighbour."""
    assert findings(
        f"LOAD memory=WGT {SHAPE}\nLOAD {SHAPE} push_next\n{GEMM} pop_prev push_next\n"
        f"STORE memory=ACC dram_base=64 pop_prev push_next {SHAPE}\nLOAD {SHAPE} pop_prev"
    ) == []  # fmt: skip


def test_a_token_of_an_earlier_instruction_orders_nothing_later():
    kind, index, text = only(f"LOAD {SHAPE} push_next\nLOAD {SHAPE}\n{GEMM} pop_prev")
    assert (kind, index) == ("conflict", 2)
    assert text.startswith("GEMM 2 reads INP[0] that LOAD 1 may not have written yet")


def test_footprints_are_exact():
    """A STORE of every other row, a LOAD of one between: no entry in common."""
    store = "STORE memory=ACC x_size=2 y_size=3 z_size=1 y_pitch=4 dram_base=64"
    assert findings(f"{store} y_stride=4\nLOAD memory=ACC sram_base=2 {SHAPE}") == []
    assert len(findings(f"{store} y_stride=4\nLOAD memory=ACC sram_base=3 {SHAPE}")) == 1
    assert findings(f"{store} y_stride=4\nLOAD dram_base=96 x_size=8 y_size=1 z_size=1") == []
    assert len(findings(f"{store}\nLOAD dram_base=88 x_size=4 y_size=1 z_size=1")) == 1


def test_padding_reads_no_memory():
    assert findings(f"STORE memory=ACC {SHAPE}\nLOAD x_size=0 y_size=1 z_size=1 pad_x0=2") == []


def test_missing_tokens():
    kind, index, text = only(f"LOAD pop_next {SHAPE}")
    assert (kind, index) == ("deadlock", 0)
    assert text == (
        "deadlock: LOAD stands at LOAD 0: the token it pops from COMPUTE is one that no "
        f"instruction gives; 0 is `LOAD pop_next {SHAPE}`"
    )


def test_a_circle_of_tokens():
    found = findings(f"LOAD pop_next push_next {SHAPE}\n{GEMM} pop_prev push_prev")
    assert [(each.kind, each.index) for each in found] == [("deadlock", 0), ("deadlock", 1)]
    assert "the token it pops from COMPUTE is one that GEMM 1 would give" in found[0].text
    assert "the token it pops from LOAD is one that LOAD 0 would give" in found[1].text


def test_full_token_queues():
    config = load_config("tiny", ["token_queue=2"])
    loads = "LOAD push_next x_size=0 y_size=0 z_size=0\n"
    alus = "ALU pop_prev\n"
    store = "STORE push_prev memory=ACC\n"
    assert findings(loads * 2 + "ALU pop_next\n" + store + alus * 2, config) == []
    found = findings(loads * 3 + alus * 3 + "STORE memory=ACC", config)
    assert found == []  # COMPUTE pops while LOAD waits
    found = findings("ALU pop_next\n" + alus * 3 + loads * 3 + "LOAD push_prev\n"
                     "STORE pop_next push_prev memory=ACC", config)  # fmt: skip
    assert {each.kind for each in found} == {"deadlock"}
    assert "the queue it pushes to COMPUTE holds 2 tokens, all taken" in found[1].text


def test_full_command_queues():
    config = load_config("tiny", ["command_queue=2"])
    alu = "ALU pop_prev\n"
    load = "LOAD push_next\n"
    assert findings(alu * 2 + load * 2, config) == []
    first, blocked = findings(alu * 3 + load * 3, config)
    assert "the token it pops from LOAD is one that LOAD 3 would give" in first.text
    assert blocked.text == (
        "deadlock: ALU 2 is never dispatched: COMPUTE's queue of 2 is full, with ALU 0 first; "
        "2 is `ALU pop_prev`"
    )


def test_leftover_tokens():
    assert only("LOAD push_next\nLOAD push_next\nALU pop_prev") == (
        "leftover",
        1,
        "LOAD 1 push_next: COMPUTE pops 1 tokens of 2, and never this one; 1 is `LOAD push_next`",
    )


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"LOAD sram_base=255 {SHAPE}", "range",
         "LOAD 0: expected entries of INP below 256, found 256; 0 is"),
        ("STORE memory=ACC8 scale_base=127 x_size=1 y_size=1 z_size=2", "range",
         "STORE 0: expected entries of ACC below 128, found 128; 0 is"),
        (f"STORE memory=ACC dram_base=0xff8 {SHAPE}", "range",
         "STORE 0: expected DRAM addresses below 0x1000, found 0x1017; 0 is"),
        ("STORE memory=ACC dram_base=9", "align",
         "STORE 0: expected dram_base to be a multiple of 4, found 0x9"),
        (f"LOAD dram_base=6 {SHAPE}", "align",
         "LOAD 0: expected dram_base to be a multiple of 4, found 0x6"),
        ("GEMM uop_begin=255 uop_count=2", "range",
         "GEMM 0: expected micro-ops below 256, found 256; 0 is"),
        ("GEMM uop_count=1 extent_1=3 src_1=100 src_base=56", "range",
         "GEMM 0: expected indices of INP below 256, found 256; 0 is"),
        ("GEMM uop_count=1 extent_1=2 wgt_1=100 wgt_base=28", "range",
         "GEMM 0: expected indices of WGT below 128, found 128; 0 is"),
        (f".uop 0x0 first\nLOAD memory=UOP push_next {ONE}\nGEMM pop_prev uop_count=1 extent_0=2 "
         "bias_0=100 bias_base=28 init=BIAS", "range",
         "GEMM 1: expected indices of ACC below 128, found 128; 1 is"),
        ("ALU uop_count=1 src_base=128", "range",
         "ALU 0: expected indices of ACC below 128, found 128; 0 is"),
        ("STORE memory=INP", "field", "STORE 0: expected 2 ≤ memory ≤ 3, found 0"),
        ("ALU alu_op=7", "field", f"ALU 0: expected {OPERATIONS}, found 7"),
        (f"STORE memory=ACC {SHAPE}\nLOAD memory=UOP pop_prev {SHAPE}\nALU\nSTORE push_next "
         "memory=ACC", "uop", "LOAD 1 loads micro-ops from DRAM[0x0] that STORE 0 writes: they"),
    ],
)  # fmt: skip
def test_values_out_of_bounds(text, kind, message):
    found = findings(text)
    assert [(each.kind, each.text.startswith(message)) for each in found if each.kind == kind] == [
        (kind, True)
    ], found


TENSORS = {"a": (0, 64), "b": (64, 160), "micro-ops": (0x400, 0x440)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LOAD x_size=4 y_size=4 z_size=1 x_stride=1 y_stride=4", ""),  # the last of 16 entries
        ("LOAD dram_base=4 x_size=4 y_size=4 z_size=1 x_stride=1 y_stride=4",
         "LOAD 0: expected bytes of one tensor in DRAM, found 0x4..0x43, where a is 0x0..0x3f; 0"),
        ("LOAD dram_base=160 x_size=1 y_size=1 z_size=1",
         "LOAD 0: expected bytes of one tensor in DRAM, found 0xa0..0xa3, which begin in none; 0"),
        ("LOAD dram_base=4000 x_size=1 y_size=0 z_size=1", ""),  # reads nothing
        ("LOAD memory=UOP dram_base=0x400 x_size=8 y_size=1 z_size=1", ""),
        ("STORE memory=ACC dram_base=64 x_size=6 y_size=1 z_size=1", ""),
        ("STORE memory=ACC dram_base=48 x_size=2 y_size=1 z_size=1",
         "STORE 0: expected bytes of one tensor in DRAM, found 0x30..0x4f, where a is 0x0..0x3f;"),
    ],
)  # fmt: skip
def test_transfers_stay_inside_a_tensor(text, message):
    program = assemble(f".base 0x800\n{text}\nFINISH", TINY)
    image = memory_image(program, 4096)
    found = check(TINY, program.instructions, image, program.base, TENSORS)
    assert [each.kind for each in found] == (["tensor"] if message else [])
    assert not message or found[0].text.startswith(message)


def test_a_transfer_of_padding_alone_reads_no_tensor():
    """Even where it would begin before all of them."""
    text = "LOAD memory=INP dram_base=4 x_size=0 y_size=1 z_size=1 pad_x0=3"
    program = assemble(f".base 0x800\n{text}\nFINISH", TINY)
    image = memory_image(program, 4096)
    assert check(TINY, program.instructions, image, program.base, {"b": (64, 160)}) == []


def test_bounds_of_micro_ops():
    """A micro-op's own index counts too, and an immediate operand has none."""
    uops = ".uop 0x0 dst=0 src=120\n"
    load = "LOAD memory=UOP x_size=1 y_size=1 z_size=1 push_next\n"
    assert findings(uops + load + "ALU pop_prev uop_count=1 src_base=7") == []
    (found,) = findings(uops + load + "ALU pop_prev uop_count=1 src_base=8")
    assert found.text.startswith("ALU 1: expected indices of ACC below 128, found 128")
    assert findings(uops + load + "ALU pop_prev uop_count=1 src_base=8 use_imm") == []


def test_where_the_stream_lies():
    program = Program(TINY, assemble("ALU\nFINISH", TINY).instructions, 4078)
    found = check(TINY, program.instructions, np.zeros(4096, np.uint8), program.base)
    assert [(each.kind, each.text) for each in found] == [
        ("align", "expected the stream at a multiple of 4, found 0xfee"),
        ("range", "expected the stream within DRAM of 0x1000 bytes, found its end at 0x102e"),
    ]


def test_addresses_have_32_bits():
    """Where no DRAM is given, whatever they reach is there."""
    load = "LOAD memory=INP dram_base=0xfffffff8 x_size={} y_size=1 z_size=1\nFINISH"
    assert check(TINY, assemble(load.format(2), TINY).instructions) == []
    (found,) = check(TINY, assemble(load.format(3), TINY).instructions)
    assert (found.kind, found.index) == ("range", 0)


def test_programs_without_their_finish():
    for text, index in (("ALU", 0), ("FINISH\nALU", 0), ("FINISH\nFINISH", 0)):
        found = check(TINY, assemble(text, TINY).instructions)
        assert (found[0].kind, found[0].index) == ("finish", index)
    (found,) = check(TINY, assemble("FINISH push_next", TINY).instructions)
    assert found.text == "FINISH 0: expected no token flags, found some"


@pytest.mark.parametrize(
    "text",
    [
        "LOAD memory=WGT sram_base=255 y_size=1 pad_x0=1",
        "GEMM uop_count=2 init=BIAS bias_base=127 extent_0=2 bias_0=1",
    ],
)
def test_what_nothing_reads_or_writes_may_lie_anywhere(text):
    """A tile without planes, and a bias that no micro-op starts from: the machine runs them."""
    assert findings(text) == []


def test_opcodes_that_no_instruction_has():
    """The machine stops at the first; nothing behind it is looked at."""
    known, size = GEMM + "\nFINISH", instruction_bytes(TINY)
    raw = bytearray(Program(TINY, assemble(known, TINY).instructions).stream())
    for opcode in (5, 6, 7):
        raw[0] = raw[0] & ~7 | opcode
        stream = Stream.of_bytes(TINY, bytes(raw[:size]) * 2 + bytes(raw[size:]))
        found = check(TINY, stream.instructions, np.zeros(4096, np.uint8))
        assert [(each.kind, each.index, each.text) for each in found] == [
            ("field", at, f"UNKNOWN {at}: expected 0 ≤ opcode ≤ 4, found {opcode}") for at in (0, 1)
        ]


def test_micro_ops_need_their_image():
    program = assemble("LOAD memory=UOP\nFINISH", TINY)
    with pytest.raises(ValueError, match=r"^expected the DRAM image that holds"):
        check(TINY, program.instructions)


@pytest.mark.parametrize(
    ("memory", "entry"), [("ACC", 3 + 2), ("INP", 1 + 4), ("WGT", 2 + 1)], ids=["dst", "src", "wgt"]
)
def test_a_micro_op_is_added_to_the_base(memory, entry):
    """A LOAD behind a GEMM touches exactly the entry that base and micro-op make."""
    config = load_config("tiny")
    dram = np.zeros(1 << 14, np.uint8)
    raw = Uop(dst=2, src=4, wgt=1).encode(config)
    dram[: len(raw)] = np.frombuffer(raw, np.uint8)
    one = {"x_size": 1, "y_size": 1, "z_size": 1}
    for at in range(8):
        stream = [
            Load(memory=Mem.UOP, push_next=1, **one),
            Gemm(pop_prev=1, uop_count=1, dst_base=3, src_base=1, wgt_base=2),
            Load(memory=Mem.named(memory), sram_base=at, **one),
            Finish(),
        ]
        found = [each.kind for each in check(config, stream, dram, 0x2000)]
        assert found == (["conflict"] if at == entry else []), at


TABLES = load_config("tiny", ["table_bytes=1024"])
LOADED = f"LOAD memory=TAB {SHAPE}\n"


def test_a_table_is_read_as_a_whole():
    """Which of its entries depends on the data: a LOAD of any of them is in its way."""
    table = "ALU alu_op=TABLE uop_count=1 imm={}\n"
    assert findings(f"LOAD push_next {LOADED[5:]}" + table.format(0).replace("ALU", "ALU pop_prev"),
                    TABLES) == []  # fmt: skip
    kind, index, text = only(LOADED + table.format(0), TABLES)
    assert (kind, index) == ("conflict", 1)
    assert text.startswith(
        "ALU 1 reads TAB[0] that LOAD 0 may not have written yet: no token from LOAD orders them; "
        "LOAD 0 would push_next and ALU 1 pop_prev; 0 is"
    )
    last = f"LOAD memory=TAB sram_base=254 {SHAPE}"
    assert findings(last + "\n" + table.format(0), TABLES) == []
    kind, index, text = only(table.format(1) + last, TABLES)
    assert text.startswith(
        "LOAD 1 writes TAB[254] that ALU 0 may still read: no token from COMPUTE"
    )


def test_a_table_that_nothing_reads_is_in_nobodys_way():
    uops = ".uop 0x0 first=1\n"
    load = f"LOAD memory=UOP {ONE}\nLOAD push_next {LOADED[5:]}"
    table = "ALU pop_prev alu_op=TABLE uop_count=1 init imm=2"
    again = f"\nLOAD memory=TAB {SHAPE}"
    assert findings(uops + load + table + again, TABLES) == []
    found = findings(uops + load + table.replace(" init", "").replace("2", "0") + again, TABLES)
    assert [each.kind for each in found] == ["conflict"]


def test_bounds_of_tables():
    kind, _, text = only("ALU uop_count=1 alu_op=TABLE imm=2", TABLES)
    assert (kind, text[:52]) == ("range", "ALU 0: expected indices of TAB below 256, found 383;")
    kind, _, text = only(f"LOAD memory=TAB sram_base=255 {SHAPE}", TABLES)
    assert (kind, text[:53]) == ("range", "LOAD 0: expected entries of TAB below 256, found 256;")
    kind, _, text = only("LOAD memory=TAB")
    assert (kind, text) == ("field", "LOAD 0: expected 0 ≤ memory ≤ 4, found 5")


FORWARDING = load_config("tiny", ["forwarding=1"])
WIDE = load_config("tiny", ["forwarding=1", "block_in=16", "wgt_bytes=4096"])
TO_INP = f"STORE memory=INP dram_base=8 scale_base=7 {SHAPE}"  # entries 2 and 3 of tiny's INP


def test_what_store_writes_to_inp_is_a_write_like_load_s():
    """GEMM, which reads it, and LOAD, which writes it, need a token on either side."""
    gemm, load = f"{GEMM} src_base=1 dst_base=20", f"LOAD sram_base=3 {ONE}"
    for first, second, start in (
        (TO_INP, gemm, "GEMM 1 reads INP[2] that STORE 0 may not have written yet: no token from "),
        (gemm, TO_INP, "STORE 1 writes INP[2] that GEMM 0 may still read: no token from COMPUTE"),
        (TO_INP, load, "LOAD 1 writes INP[3] that STORE 0 may not have written yet: no token from"),
        (load, TO_INP, "STORE 1 writes INP[3] that LOAD 0 may not have written yet: no token from"),
    ):
        kind, index, text = only(f"{first}\n{second}", FORWARDING)
        assert (kind, index, text[: len(start)]) == ("conflict", 1, start)
    assert findings(f"{TO_INP} push_prev\n{gemm} pop_next", FORWARDING) == []
    assert findings(f"{TO_INP}\n{gemm.replace('src_base=1', 'src_base=0')}", FORWARDING) == []


def test_several_vectors_lie_in_an_entry_of_inp():
    """Byte 8 is the third vector of entry 0, and two more reach byte 19, of entry 1."""
    store = TO_INP.replace("x_size=2", "x_size=3")
    for entry, kinds in ((0, ["conflict"]), (1, ["conflict"]), (2, [])):
        found = findings(f"{store}\nLOAD sram_base={entry} {ONE}", WIDE)
        assert [each.kind for each in found] == kinds


def test_bounds_of_a_store_to_inp():
    """Its address is one of INP, not of DRAM, and no tensor's; it reads ACC as others do."""
    kind, _, text = only(TO_INP.replace("=8", "=0x3fc"), FORWARDING)
    assert (kind, text[:53]) == ("range", "STORE 0: expected bytes of INP below 0x400, found 0x4")
    kind, _, text = only(TO_INP.replace("=8", "=6"), FORWARDING)
    assert (kind, text[:53]) == ("align", "STORE 0: expected dram_base to be a multiple of 4, fo")
    kind, _, text = only(f"{TO_INP} sram_base=127", FORWARDING)
    assert (kind, text[:53]) == ("range", "STORE 0: expected entries of ACC below 128, found 128")
    program = assemble(f".base 0x800\n{TO_INP}\nFINISH", FORWARDING)
    image = memory_image(program, 4096)
    assert check(FORWARDING, program.instructions, image, program.base, {"a": (100, 200)}) == []


ROWS = load_config("tiny", ["block_in=8", "window_taps=2", "window_rows=2", "forwarding=1"])


def test_a_window_s_second_row_is_read_like_its_first():
    """GEMM reads INP[1] and INP[2], and a pitch of 5 behind each."""
    gemm = f"{GEMM} src_base=1 window pitch=5"
    for entry in range(9):
        load = f"LOAD sram_base={entry} {ONE}"
        conflict = entry in (1, 2, 6, 7)
        assert [each.kind for each in findings(f"{load}\n{gemm}", ROWS)] == ["conflict"] * conflict
        store = f"STORE memory=INP dram_base={entry * 8} scale_base=9 {ONE}"
        starts = (
            f"GEMM 1 reads INP[{entry}] that STORE 0 may not have written yet: no token from ",
            f"STORE 1 writes INP[{entry}] that GEMM 0 may still read: no token from COMPUTE",
        )
        for text, start in zip((f"{store}\n{gemm} dst_base=20", f"{gemm} dst_base=20\n{store}"),
                               starts, strict=True):  # fmt: skip
            assert [e.text[: len(start)] for e in findings(text, ROWS)] == [start] * conflict
        assert findings(f"{load} push_next\n{gemm} pop_prev", ROWS) == []
    plain = gemm.replace("window ", "")
    assert findings(f"LOAD sram_base=6 {ONE}\n{plain}", ROWS) == []  # nothing reads its pitch


def test_bounds_of_a_window_s_second_row():
    gemm = f"{GEMM} src_base=1 pitch=126"  # INP has 128 entries
    kind, _, text = only(f"{gemm} window", ROWS)
    assert (kind, text[:53]) == ("range", "GEMM 0: expected indices of INP below 128, found 128;")
    assert findings(gemm, ROWS) == []
    assert findings(f"{gemm} window".replace("126", "125"), ROWS) == []
