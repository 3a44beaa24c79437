"""Tables of the commands: as wide as the terminal, and no name broken inside a word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.commands.tables import BESIDE_A_CELL, fitted

NAME = "pool2_QuantizeLinear_Output.unpacked"
ROWS = [["name", "reason", "ms"], [NAME, "float input becomes integers", "0.000123"]]


@pytest.mark.parametrize(
    ("width", "cells"),
    [
        (100, [NAME, "float input becomes integers", "0.000123"]),
        (70, [NAME, "float input\nbecomes integers", "0.000123"]),
        (46, ["pool2_\nQuantizeLinear_\nOutput.unpacked", "float\ninput\nbecomes\nintegers",
              "0.000123"]),
    ],
)  # fmt: skip
def test_lines_break_between_words_then_behind_dots_and_underscores(width, cells):
    assert fitted(ROWS, (False, False, True), width)[1] == cells


WORDS = st.text("abc._ ", max_size=30)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), st.integers(20, 70))
def test_no_text_is_lost_and_columns_fit(rows, width):
    cells = fitted(rows, (False, False), width)
    for before, after in zip(rows, cells, strict=True):
        for one, other in zip(before, after, strict=True):
            assert "".join(other.split()) == "".join(one.split())
    widths = [
        max(len(line) for row in cells for line in row[column].split("\n")) for column in (0, 1)
    ]
    pieces = max(len(p) for row in rows for cell in row for p in cell.split() or [""])
    assert sum(widths) <= max(width - 2 * BESIDE_A_CELL - 1, 2 * pieces)


@pytest.mark.parametrize("width", [100, 80])
def test_a_run_of_digits_breaks_no_word(vdla, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = vdla("run", "digits", "--images", 1)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    tables = [line for line in lines if line[:1] in "┏┃┡│└"]
    assert max(map(len, tables)) <= width
    for name in ("image_QuantizeLinear", "logits_DequantizeLinear", "integers become float output"):
        assert f" {name} " in done.out
    assert (
        "│ conv1 │ 4 × 8 pixels, 1 output block, 1 input block, 2 threads, parameters" in done.out
    )
    for key in ("stationary=", "stages=", "resident=", "program0"):
        assert key not in done.out
    assert "where each engine's cycles went: conv1 to fc" in done.out


def test_the_last_lines_of_a_run_are_its_result(vdla):
    done = vdla("run", "digits", "--images", 2)
    result = re.sub(r"(\d\.\d+)( ms| s)", r"N\2", done.out).splitlines()[-5:]
    assert result == [
        "2 inputs, N s on device sim",
        "2 inputs, 6,352 cycles on paper (memory 64 cycles, 8 B/cycle): N ms at 200 MHz (asked)",
        "utilization 19.3 % of the multipliers",
        "end to end N ms: host N ms (this machine, measured), transfers N ms (1,040 bytes, shared "
        "memory), accelerator N ms at 200 MHz (asked)",
        "accuracy over 2 test images: 100.00 %, onnxruntime 100.00 %",
    ]


def test_the_cpu_s_result_is_its_time(vdla):
    done = vdla("run", "digits", "--device", "cpu", "--images", 2)
    assert re.fullmatch(r"2 inputs, \d\.\d{3} s on device cpu", done.out.splitlines()[-2])
