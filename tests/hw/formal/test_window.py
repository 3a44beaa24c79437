"""What outputs see of GEMM's window (hw/options/window.py), in one row and in two.

1. Of each row the window holds the vectors of the last ``window_taps`` - 1 cycles, as far back as
   micro-ops went on without a break; what lies before a break is zero.
2. With the window, outputs 2p and 2p + 1 see in the first 2 × ``window_taps`` lanes lanes 2p and
   2p + 1 of the first row, the present vector's first; in as many lanes behind them the same of the
   second row; and elsewhere, as everywhere without the window, the lane of the present vector.
3. A register shows a cycle later what was seen.

Vectors and micro-ops are free.
"""

from __future__ import annotations

import pytest
from amaranth import Module, Mux, Signal
from amaranth.lib import data
from planting import plant

from vdla.hw.layout import lanes
from vdla.hw.options import window
from vdla.hw.options.window import Window
from vdla.isa.config import load_config

SIZES = ["block_in=8", "wgt_bytes=512", "inp_bytes=512"]
CONFIGS = {
    "one row": ["window_taps=3"],
    "one row, all lanes": ["window_taps=4"],
    "two rows": ["window_taps=2", "window_rows=2"],
    "two rows, more lanes": ["block_in=12", "block_out=12", "wgt_bytes=1152", "inp_bytes=768",
                             "acc_bytes=3072", "window_taps=2", "window_rows=2"],
}  # fmt: skip


class Seen:
    """A window whose vectors come from outside."""

    def __init__(self, proof, config):
        self.config = config
        shape = lanes(8, config.block_in)
        self.vectors = [
            data.View(shape, proof.free(shape.size, f"vector_{n}"))
            for n in range(config.window_rows)
        ]
        self.used, self.goes_on = proof.free(name="used"), proof.free(name="goes_on")

    def elaborate(self, platform):
        m = Module()
        self.window = Window(m, self.config, self.vectors, self.used, self.goes_on)
        places = [(o, i) for o in range(self.config.block_out) for i in range(self.config.block_in)]
        self.seen = {place: self.window.sees(*place) for place in places}
        self.registers = {place: self.window.register(*place) for place in places}
        return m


def build(proof, config):
    """The unit, and for each row its ghosts: the vector so many cycles ago, or zero."""
    unit = Seen(proof, config)
    proof.add(unit)
    rows = []
    for vector in unit.vectors:
        history = [vector.as_value()]
        for _ in range(1, config.window_taps):
            before = Signal(len(history[0]), reset_less=True, name=f"ghost_{len(rows)}")
            proof.m.d.sync += before.eq(Mux(unit.goes_on, history[-1], 0))
            history.append(before)
        rows.append(history)
    spans = 2 * config.window_taps
    for (output, lane), seen in unit.seen.items():
        row, at = divmod(lane, spans)
        own = rows[0][0].word_select(lane, 8)
        expected = own
        if row < config.window_rows:
            pair = (output // 2 * 2) % config.block_in
            inside = rows[row][at // 2].word_select(pair + at % 2, 8)
            expected = Mux(unit.used, inside, own)
        proof.check(seen.as_unsigned() == expected.as_unsigned())
        later = Signal(8, reset_less=True, name="later")
        proof.m.d.sync += later.eq(expected)
        proof.check(unit.registers[output, lane].as_unsigned() == later)
    return unit, rows


@pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)
def test_outputs_see_pairs_of_lanes_of_the_last_vectors(proof, settings):
    config = load_config("tiny", [*SIZES, *settings])
    unit, rows = build(proof, config)
    oldest = [history[-1] for history in rows]
    for vector in oldest:
        proof.cover((vector != 0) & unit.used)
    proof.cover((rows[0][1] == 0) & proof.past(unit.goes_on == 0) & unit.used)
    proof.prove(depth=config.window_taps + 1)


@pytest.mark.parametrize(
    "fault",
    [
        (window, "Window", "sees", "self.rows[place.row]", "self.rows[0]"),
        (window, "Window", "_history", "before.eq(0)", "before.eq(before)"),
        (window, "Window", "_place", "at // 2", "(at + 1) // 2 % self.config.window_taps"),
    ],
    ids=["row", "break", "age"],
)
def test_faults_are_found(proof, fault, monkeypatch, tmp_path):
    plant(fault, monkeypatch, tmp_path)
    build(proof, load_config("tiny", [*SIZES, *CONFIGS["two rows"]]))
    proof.refute(depth=5)
