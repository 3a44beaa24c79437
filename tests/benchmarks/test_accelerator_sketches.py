"""benchmarks/accelerator_sketches.py: both searches are of one expression, and count alike."""

from __future__ import annotations

from scripts import load_script

from vdla.compiler.search.tuner import TuneOptions
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.isa.config import load_config

sketches = load_script("benchmarks/accelerator_sketches.py")
TINY = load_config("tiny")
ADD = Add(30, 9000, -7000, 3, -8, 2, -128, 127)


def test_a_template_begins_with_its_default_and_only_falls():
    how = TuneOptions(trials=6, searcher="random", workers=1)
    tiles = sketches.of_template("add", ADD, TINY, how)
    s = ADD.schedule(default_tile(ADD, TINY, sketches.THREADS, None), TINY)
    function = sketches.AcceleratorFunction.of(sketches.Schedule(s.built), TINY)
    assert tiles[0] == sketches.KernelMeter(function).measure(s.trace).cost
    assert tiles == sorted(tiles, reverse=True)
    rules = sketches.of_rules(ADD, TINY, how)
    assert len(rules) == 6
    assert rules == sorted(rules, reverse=True)


def test_a_figure_has_a_panel_for_each_layer(tmp_path):
    compared = [sketches.Compared("one", [9.0, 7.0], [8.0]), sketches.Compared("two", [5.0], [4.0])]
    assert [each.ratio for each in compared] == [8 / 7, 0.8]
    sketches.plot(compared, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.count('id="axes_') == 2
