"""The page of ``vdla explore --report``, in a real browser, offline."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import vdla as package
from vdla.analysis.report import designs_page
from vdla.explore.sensitivity import sensitivity
from vdla.isa.config import load_config

SPACE = """
name = "mine"
base = "tiny"
[parameters]
acc_bytes = [2048, 4096, 8192]
inp_bytes = [1024, 2048]
"""
POINTS = "#front-chart circle"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "mine.toml"
    path.write_text(SPACE)
    how = {"objectives": ("cycles", "buffer_bytes"), "searcher": "random", "baseline": "tiny"}
    return package.explore_designs("digits", path, trials=0, workers=1, **how)


@pytest.fixture
def page(open_page, found, tmp_path):
    path = tmp_path / "designs.html"
    path.write_text(designs_page(["digits"], found), "utf-8")
    return open_page(path, POINTS)


def cells(page, name):
    rows = page.locator(f"#{name}-table tr").all()
    return [row.locator("td, th").all_inner_texts() for row in rows][1:]


def test_the_file_names_no_other(found):
    text = designs_page(["digits"], found)
    assert re.findall(r"""(?:src|href)="(?!#)(.*?)\"""", text) == ["data:,"]
    assert "default-src 'none'" in text
    assert "{{" not in text
    assert "<b>digits" not in designs_page(["<b>digits</b>"], found)


def test_every_design_is_a_dot_and_the_front_is_ringed(page, found):
    assert page.locator(POINTS).count() == len(found.evaluations) == 6
    page.check("#front-only")
    assert page.locator(POINTS).count() == len(found.front)
    assert page.locator("#parallel-chart path").count() == 6


def test_a_click_chooses_a_design(page, found):
    point = found.front[0]
    name = f"{found.space.name}-1"
    page.locator(f'{POINTS}[data-name="{name}"]').click()
    each = found.evaluations[point]
    assert page.inner_text("#chosen-name") == name
    rows = {row[0]: row[1:] for row in cells(page, "chosen")}
    change = each.total / found.baseline.total - 1
    sign = "+" if change >= 0 else "−"
    assert rows["cycles of digits"] == [
        f"{each.total:,.0f}", f"{found.baseline.total:,.0f}", f"{sign}{abs(100 * change):.1f} %",
    ]  # fmt: skip
    baseline = found.baseline.config
    assert rows["acc bytes"][:2] == [f"{each.config.acc_bytes:,}", f"{baseline.acc_bytes:,}"]
    assert page.inner_text("#chosen-verdict").endswith(".")
    layers = page.inner_text("#chosen-layers")
    assert all(f"{count:,}" in layers for count in each.layers["digits"].values())


def test_titles_are_words(page, found):
    assert page.inner_text("#headline") == "Designs for digits"
    assert page.inner_text(".kicker") == (
        "Space mine: config tiny with 2 parameters varied, 6 combinations"
    )
    options = page.locator("#front-x option").all_inner_texts()
    assert options == [
        "cycles of digits", "bytes of buffers", "ms (clock estimated)", "LUTs (estimated)",
        "flip-flops (estimated)", "DSPs", "block RAMs", "multipliers",
    ]  # fmt: skip
    assert page.inner_text("#area").endswith(
        "Times are cycles at clocks that a model estimates for xc7z020-1; it was fitted to designs "
        "mapped by yosys."
    )
    assert page.inner_text("#area").startswith("LUTs and flip-flops are estimates")
    assert "outside" not in page.inner_text("#front-legend")


def test_the_clock_of_the_chosen_design_has_its_origin(page, found):
    clock = found.points[0].clock
    assert {row[0]: row[1:] for row in cells(page, "chosen")}["clock"][0] == clock.text
    assert clock.text.endswith(" MHz (estimated)")


def test_what_equals_the_baseline_is_not_better(page, found):
    """The baseline is a point of the space: chosen, it is equal in all."""
    same = next(
        place
        for place, point in enumerate(found.front, start=1)
        if found.evaluations[point].total == found.baseline.total
        and found.evaluations[point].config.acc_bytes == found.baseline.config.acc_bytes
    )
    page.locator(f'{POINTS}[data-name="mine-{same}"]').click()
    rows = {row[0]: row[1:] for row in cells(page, "chosen")}
    assert {row[2] for row in rows.values()} == {"equal"}
    assert page.inner_text("#chosen-verdict") == "Equal in cycles of digits and bytes of buffers."


def test_a_baseline_that_beats_the_front_is_said_to(open_page, tmp_path, found):
    better = replace(found.baseline, total=1.0, config=load_config("paper"))
    path = tmp_path / "designs.html"
    how = replace(found, baseline=better, objectives=("cycles",))
    path.write_text(designs_page(["digits"], how), "utf-8")
    page = open_page(path, POINTS)
    lead = page.inner_text("#lead")
    assert "The baseline paper, which lies outside the space, beats 1 of these." in lead
    assert "outside the space" in page.inner_text("#front-legend")
    assert "worse in cycles" in page.inner_text("#chosen-verdict").lower()


def test_a_dot_tells_its_config_and_layers(page, found):
    page.focus("#front-chart svg")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#tip").startswith("baseline tiny")
    page.keyboard.press("ArrowRight")
    tip = page.inner_text("#tip")
    assert "acc_bytes = " in tip
    assert "cycles of conv2 " in tip
    page.keyboard.press("Enter")
    assert page.inner_text("#chosen-name") == tip.splitlines()[0]


def test_buttons_copy_what_makes_the_design(page, found, tmp_path):
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.click("#copy-toml")
    path = tmp_path / "chosen.toml"
    path.write_text(page.evaluate("window.copied"))
    config = load_config(path)
    assert config.to_dict() == {**found.points[0].config.to_dict(), "name": config.name}
    page.click("#copy-command")
    command = page.evaluate("window.copied")
    settings = " ".join(found.space.settings(found.front[0]))
    assert command == f"vdla evaluate digits -c tiny {settings}"
    assert page.inner_text("#copied") == f"Copied the command of {config.name}."


def test_any_two_objectives_can_be_drawn(page):
    page.select_option("#front-x", "buffer_bytes")
    page.select_option("#front-y", "multipliers")
    label = page.get_attribute("#front-chart svg", "aria-label")
    assert label.startswith("multipliers over bytes of buffers")


def test_sensitivity_is_a_factor_of_each_objective(page, found):
    rows = {row[0]: row[1:] for row in cells(page, "sensitivity")}
    assert rows["acc bytes"][:2] == ["2,048", "8,192"]
    factors = sensitivity(found)["acc_bytes"]
    assert rows["acc bytes"][2:] == [f"{factors[n]:.2f} ×" for n in found.objectives]
    assert factors["cycles"] < 1 < factors["buffer_bytes"]


def test_levels_say_what_was_pruned(page, found):
    levels = [row[:2] for row in cells(page, "levels")]
    assert [name for name, _ in levels] == [each.name for each in found.levels]
    assert json.dumps(found.to_json())


def test_the_page_fits_a_phone(open_page, found, tmp_path):
    path = tmp_path / "designs.html"
    path.write_text(designs_page(["digits"], found), "utf-8")
    page = open_page(path, POINTS, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
