"""Designs side by side: figures are those of each design's own comparison, of common layers."""

from __future__ import annotations

import csv

import pytest

import vdla as package
from vdla.analysis.report import side_by_side_page
from vdla.options.spelling import UsageError


@pytest.fixture(scope="module")
def designs():
    return package.side_by_side("digits", ["paper", "tiny"])


@pytest.fixture(scope="module")
def partial():
    """On paper the host has what needs tables."""
    return package.side_by_side("patches", ["paper", "paper-full"])


def test_figures_are_those_of_each_comparison(designs):
    for place, name in enumerate(("paper", "tiny")):
        own = package.compare("digits", name)
        clock = own.config.clock_mhz
        assert designs.milliseconds(place) == pytest.approx(own.cycles(2) / clock / 1e3)
        for layer in own.layers:
            cycles = layer.measured[2].cycles
            assert designs.milliseconds(place, layer.name) == pytest.approx(cycles / clock / 1e3)
    assert designs.ratio(0) == 1
    assert designs.ratio(1) == designs.milliseconds(1) / designs.milliseconds(0) > 1


def test_totals_are_of_layers_that_all_have(partial):
    left = [name for name in partial.layers if name not in partial.common]
    assert left
    for name in left:
        assert None in (partial.milliseconds(0, name), partial.milliseconds(1, name))
        assert "host" in partial.cells(name)
    common = sum(partial.milliseconds(1, name) for name in partial.common)
    assert partial.milliseconds(1) == pytest.approx(common)
    assert common < partial.comparisons[1].cycles(2) / 200 / 1e3


def test_two_configs_of_one_name_are_told_apart(tmp_path, vdla):
    path = tmp_path / "mine.toml"
    path.write_text(vdla("configs", "tiny", "--set", "wgt_bytes=4096").out)
    both = package.side_by_side("digits", ["tiny", path])
    assert both.labels == ["tiny #1", "tiny #2"]
    assert list(both.differences) == ["wgt_bytes"]
    assert both.differences["wgt_bytes"][1] == 4096


def test_the_command(vdla, tmp_path):
    page, table = tmp_path / "both.html", tmp_path / "both.csv"
    command = ["compare", "digits", "-c", "paper", "-c", "tiny", "--report", page, "--csv", table]
    done = vdla(*command)
    *_, last = done.out.splitlines()
    assert last.startswith("tiny takes ")
    assert last.endswith(" of paper's time for 3 layers")
    assert "<title>digits: paper beside tiny</title>" in page.read_text()
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["design"] for row in rows] == ["paper"] * 6 + ["tiny"] * 6
    value = vdla("compare", "digits", "-c", "paper", "-c", "tiny", "--json").json
    assert [design["label"] for design in value["designs"]] == ["paper", "tiny"]
    assert value["designs"][1]["ratio"] == pytest.approx(float(last.split()[2]), abs=5e-4)


def test_energy_is_that_of_each_comparison(vdla):
    command = ["compare", "digits", "-c", "paper", "-c", "tiny", "--energy", "aladdin-45nm"]
    lines = vdla(*command).out.splitlines()
    for name in ("paper", "tiny"):
        own = package.compare("digits", name, energy="aladdin-45nm")
        total = sum(each.total_uj for each in own.energy(2).values())
        assert f"{name}: {total:,.1f} µJ, energy by aladdin-45nm" in lines


@pytest.mark.parametrize(
    "option",
    [("--latency", "0,64"), ("--same-schedule",), ("--trace-layer", "conv1"), ("--out", "o"),
     ("--format", "svg")],
)  # fmt: skip
def test_options_of_one_config(vdla, option):
    done = vdla("compare", "digits", "-c", "paper", "-c", "tiny", *option)
    text = f"vdla: {option[0]}: expected one config, found 2\n"
    assert (done.code, done.err) == (2, text)


def test_one_config_is_too_few():
    with pytest.raises(UsageError, match="expected two configs or more to lay side by side"):
        package.side_by_side("digits", "paper")
    with pytest.raises(UsageError, match="expected one config, found 2"):
        package.compare("digits", ["paper", "tiny"])


@pytest.mark.parametrize("which", ["designs", "partial"])
def test_the_page(open_page, tmp_path, request, which):
    shown = request.getfixturevalue(which)
    path = tmp_path / "page.html"
    path.write_text(side_by_side_page("network", shown), "utf-8")
    page = open_page(path, "#figures-table tr")
    rows = page.locator("#figures-table tr").all()
    assert len(rows) == len(shown.layers) + 2
    total = rows[-1].locator("td").all_inner_texts()
    assert total[-1] == f"{shown.ratio(1):.2f}"
    bars = page.locator("#time-chart rect").count()
    assert bars == sum(len(each.layers) for each in shown.comparisons)
    assert f"{100 * shown.ratio(1):.1f} %" in page.inner_text("#headline")
    page.set_viewport_size({"width": 420, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
