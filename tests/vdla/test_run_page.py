"""The page of one run, in a real browser: an attention head's layers, and all of its timeline."""

from __future__ import annotations

import re

import pytest
from scripts import load_script

from vdla.analysis.report import run_page
from vdla.isa.config import load_config

attention = load_script("benchmarks/attention.py")
LAYERS = "#layers-table tr"


@pytest.fixture(scope="module")
def found():
    return attention.head(load_config("paper-full"))


@pytest.fixture
def page(open_page, found, tmp_path):
    path = tmp_path / "head.html"
    path.write_text(attention.page(found, 197), "utf-8")
    return open_page(path, LAYERS)


def cells(page):
    rows = page.locator(LAYERS).all()
    return [row.locator("td, th").all_inner_texts() for row in rows][1:]


def test_an_attention_head(page, found):
    """All is on the accelerator, as onnxruntime has it; the page names the layers and their
    cycles, and each instruction tells what it is."""
    assert found.cosine > 0.999
    extents = found.extents
    assert extents.keys() >= {"queries", "keys", "values", "output"}
    *layers, whole = cells(page)
    assert [row[0] for row in layers] == list(extents)
    for name, first, last, cycles, *_, instructions in layers:
        start, end = extents[name]
        assert [first, last, cycles] == [f"{n:,}" for n in (start, end - 1, end - start)]
        assert int(instructions.replace(",", "")) == found.layers.count(name)
    assert whole[3] == f"{found.run.cycles:,}"
    assert max(end for _, end in extents.values()) < found.run.cycles
    assert page.inner_text(".range").startswith(f"Cycles 0 to {found.run.cycles:,} of ")
    page.focus("#timeline-canvas")
    page.keyboard.press("ArrowRight")
    assert re.search(r"#0 LOAD .* stage \w+ of keys", page.inner_text("#timeline-detail"), re.S)


def test_layers_are_drawn_where_there_are_several(open_page, found, tmp_path):
    """A run without names of layers has a timeline that is lower."""
    heights = []
    for layers in (found.layers, ()):
        path = tmp_path / "run.html"
        path.write_text(run_page("a run", "", found.run, layers, found.stages), "utf-8")
        canvas = open_page(path, LAYERS).locator("#timeline-canvas")
        heights.append(canvas.bounding_box()["height"])
    assert heights[0] >= heights[1] + 20


def test_titles_say_what_an_operator_is():
    """One that joins several parts is called after itself."""

    placement = [
        {"name": "head.q.matmul/Fusion", "op": "QConv2d", "device": "vdla"},
        {"name": "head.mixed_QuantizeLinear", "op": "QAttention", "device": "vdla"},
        {"name": "head.softmax", "op": "QSoftmax", "device": "cpu"},
        {"name": "a", "op": "QTransposeImage", "device": "vdla"},
        {"name": "b", "op": "QTransposeImage", "device": "vdla"},
    ]
    assert list(attention.titles(placement).values()) == [
        "queries", "scores, softmax, product", "transposition", "transposition 2",
    ]  # fmt: skip
