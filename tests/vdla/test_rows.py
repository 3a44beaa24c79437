"""Comparisons as flat tables: CSV and pandas have the figures of the JSON."""

from __future__ import annotations

import csv
import io
import sys

import pytest

import vdla as package
from vdla.analysis.rows import csv_text
from vdla.support.errors import UserError


@pytest.fixture(scope="module")
def comparison():
    return package.compare("digits", "tiny", energy="aladdin-45nm")


def test_rows_are_the_figures(comparison):
    rows = comparison.rows()
    assert [(row["layer"], row["vthreads"]) for row in rows] == [
        (layer.name, v) for layer in comparison.layers for v in (1, 2)
    ]
    for row in rows:
        layer = next(each for each in comparison.layers if each.name == row["layer"])
        measured = layer.measured[row["vthreads"]]
        assert (row["cycles"], row["utilization"]) == (measured.cycles, measured.utilization)
        assert row["work_LOAD"] == measured.work["LOAD"].cycles
        energy = comparison.energy(row["vthreads"])[layer.name].total_uj
        assert row["energy_uj"] == pytest.approx(energy)


def test_csv_is_read_back(comparison):
    rows = list(csv.DictReader(io.StringIO(csv_text(comparison.rows()))))
    assert [int(row["cycles"]) for row in rows] == [row["cycles"] for row in comparison.rows()]
    assert csv_text([{"a": 1}, {"a": 'say "x", y', "b": 2}]) == 'a,b\r\n1,\r\n"say ""x"", y",2\r\n'


def test_pandas(comparison, monkeypatch):
    frame = comparison.to_pandas()
    assert frame.groupby("vthreads")["cycles"].sum().to_dict() == {
        v: comparison.cycles(v) for v in (1, 2)
    }
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="expected pandas, found none; pip install pandas"):
        comparison.to_pandas()


def test_a_sweep_has_rows_for_each_latency():
    sweep = package.sweep("digits", "tiny", latencies=(0, 100))
    rows = sweep.rows()
    assert sorted({row["memory_latency"] for row in rows}) == [0, 100]
    for point in sweep.points:
        own = [r for r in rows if r["memory_latency"] == point.latency and r["vthreads"] == 2]
        assert sum(row["cycles"] for row in own) == point.cycles(2)
    assert repr(sweep) == "Sweep(3 layers on tiny, latencies 0, 100)"


def test_the_command_writes_them(vdla, tmp_path):
    path = tmp_path / "t.csv"
    vdla("compare", "digits", "-c", "tiny", "--csv", path, "--out", tmp_path)
    assert path.read_text().startswith("config,memory_latency,layer,vthreads,macs,")
    done = vdla("compare", "digits", "-c", "tiny", "--csv", tmp_path / "no" / "t.csv")
    assert done.code == 2
    assert "expected the folder" in done.err


def test_notebooks_show_short_texts_and_tables(comparison):
    module = package.compile("digits", "tiny")
    result = package.run(module)
    assert repr(comparison).startswith("Comparison(3 layers on tiny, {1: ")
    assert repr(module).startswith(
        "Module(image: float32[1, 1, 8, 8] -> logits: float32[1, 10] for tiny; "
    )
    assert repr(result).startswith(f"RunResult({result.cycles:,} cycles, ")
    for shown in (comparison, module, result):
        assert len(repr(shown)) < 200
        assert shown._repr_html_().count("<tr>") > 3
