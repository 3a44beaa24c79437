"""What boards say of their memories, and what they are told when it can't be true."""

from dataclasses import replace

import pytest

from vdla.boards import MODULES, find_board, find_module, memory_of, ulx3s
from vdla.boards.board import BoardError
from vdla.boards.ddr3 import MT41K256M16, hp_memory
from vdla.boards.soc.sdram import AS4C16M16SA, banks
from vdla.isa.config import load_config

WIDE = ("block_in=32", "block_out=32", "port_bytes=32", "inp_bytes=32768", "wgt_bytes=65536",
        "acc_bytes=65536")  # fmt: skip
TOO_WIDE = (
    "config paper on ulx3s: memory AS4C16M16SA-7: expected port_bytes 2, 4, 8 or 16, found 32"
)


@pytest.mark.parametrize(("board", "name"), [
    ("ulx3s", "ulx3s"), ("ulx3s", "ulx3s-wide"), ("colorlight-i9", "colorlight"),
    ("tang-nano-20k", "nano"),
])  # fmt: skip
def test_a_bundled_config_has_its_boards_memory(board, name):
    config = load_config(name)
    assert memory_of(find_board(board), config) == config.memory
    assert find_board(board).memory == load_config(find_board(board).config).memory


def test_each_number_is_the_datasheets_at_the_clock():
    """AS4C16M16SA-7 at 60 MHz: 16.7 ns a clock."""
    ours = banks(AS4C16M16SA, 60e6, 4)
    assert (ours.count, ours.row_bytes) == (4, 1024)
    assert (ours.activate, ours.precharge, ours.row_open, ours.row_cycle) == (2, 2, 3, 4)
    assert (ours.read_recovery, ours.write_recovery) == (2, 2)
    assert ours.refresh_interval == 468  # 64 ms / 8192
    # PRECHARGE after what was given in cycle 0, REFRESH, and its time
    assert ours.start_cycles == 4 + 2 + 4


def test_a_wider_port_takes_longer():
    four, sixteen = (banks(AS4C16M16SA, 60e6, width) for width in (4, 16))
    assert sixteen.read_cycles - four.read_cycles == 6  # words
    assert (four.write_to_read, sixteen.write_to_read) == (2, 8)


@pytest.mark.parametrize("name", ["pynq-z1", "pynq-z2", "arty-z7-20"])
def test_a_zynqs_ddr3(name):
    """In cycles of 10 ns: 13.75 ns are two, tRFC of 260 ns 26, tREFI of 7.8 µs 780."""
    board = find_board(name)
    memory = board.memory
    assert memory == memory_of(board, load_config("paper"))
    assert (memory.banks.count, memory.banks.row_bytes) == (8, 2048)
    assert (memory.banks.activate, memory.banks.precharge) == (2, 2)
    assert (memory.banks.refresh_cycles, memory.banks.refresh_interval) == (26, 780)
    assert memory.first_beat == 32  # 320 ns
    assert memory.bytes_per_cycle == 21  # 2.1 GB/s


def test_a_faster_fabric_waits_for_more_cycles():
    slow, fast = (hp_memory(MT41K256M16, hz).banks for hz in (100e6, 200e6))
    assert (slow.refresh_cycles, fast.refresh_cycles) == (26, 52)
    assert (slow.activate, fast.activate) == (2, 3)


def test_a_board_without_figures_has_the_configs_memory():
    board, config = find_board("ultra96-v2"), load_config("paper")
    assert board.memory is None
    assert memory_of(board, config) == config.memory


@pytest.mark.parametrize("command", [
    ("synth", "--board", "ulx3s"),
    ("lockstep", "--board", "ulx3s", "--programs", "1"),
    ("run", "digits", "--device", "board", "--board", "ulx3s", "--virtual"),
    ("compile", "digits", "--board", "ulx3s"),
])  # fmt: skip
def test_a_config_wider_than_the_memory(vdla, tmp_path, command):
    settings = [part for each in WIDE for part in ("--set", each)]
    out = {"synth": ["--out", str(tmp_path)], "compile": ["-o", str(tmp_path / "m.vdla")]}
    done = vdla(*command, "-c", "paper", *settings, *out.get(command[0], []))
    assert done.code == 2
    assert done.err.strip() == f"vdla: {TOO_WIDE}"
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize(("figure", "message"), [
    ({"word_bits": 32}, "16 data pins, 2 byte masks, found AS4C16M16SA-7 with 32, 4"),
    ({"row_bits": 12}, "13 address pins, found AS4C16M16SA-7 with 12"),
    ({"bank_bits": 3}, "2 bank pins, found AS4C16M16SA-7 with 3"),
])  # fmt: skip
def test_a_chip_that_isnt_what_the_pins_are_for(monkeypatch, figure, message):
    other = replace(ulx3s.WIRING, chip=replace(AS4C16M16SA, **figure))
    monkeypatch.setattr(ulx3s, "memory_of", other.memory_of)
    with pytest.raises(BoardError, match=f"^board ulx3s: expected a memory with {message}$"):
        memory_of(find_board("ulx3s"), load_config("ulx3s"))


def test_every_board_has_one():
    for name in MODULES:
        assert memory_of(find_board(name), load_config(find_board(name).config)) is not None
        assert find_module(name).BOARD is find_board(name)
