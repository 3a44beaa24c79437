"""The pictures of a comparison and the roofline on its page: every layer is in them, no label
covers another, and their colours are the same."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import pytest
from figures import markers, overlapping_texts
from hypothesis import given
from hypothesis import strategies as st

from vdla import api
from vdla.analysis.figures import COLOURS
from vdla.analysis.labels import Box, placed_labels
from vdla.analysis.plots import save_plots, utilization_plot
from vdla.analysis.report import report_page
from vdla.analysis.report.page import asset
from vdla.analysis.roofline_plot import MOST_LISTED, roofline_plot

WORKLOADS = ["digits", pytest.param("resnet18-convs", marks=pytest.mark.long)]
BOXES = """nodes => nodes.map(node => {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  return [left, top, right, bottom];
})"""


@pytest.fixture(scope="module")
def compared(once, request):
    """A bundled workload on ``paper``."""

    def of(name):
        if name == "resnet18-convs":
            return request.getfixturevalue("convolutions")
        return once(f"compare-{name}", lambda: api.compare(name))

    return of


def named(texts):
    return sorted(name for text in texts for name in text.split(", "))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_layer_is_in_the_picture_and_has_its_label(compared, workload):
    found = compared(workload)
    figure = roofline_plot(found)
    (axes,) = figure.axes
    assert overlapping_texts(figure) == []
    assert named(text.get_text() for text in axes.texts) == sorted(x.name for x in found.layers)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    dots = markers(axes)
    assert len(dots) == len(found.layers) * len(found.vthreads)
    assert all(left < x < right and bottom < y < top for x, y in dots)
    peak = found.config.peak_gops
    assert bottom > min(y for _, y in dots) / 2  # no empty decades
    assert top < 2 * peak


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_text_covers_another_above_the_bars(compared, workload):
    found = compared(workload)
    figure = utilization_plot(found)
    assert overlapping_texts(figure) == []
    (axes,) = figure.axes
    assert all(text.get_window_extent().x0 >= axes.bbox.x1 - 1 for text in axes.texts)
    layers, threads = found.layers, found.vthreads
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    for i in range(len(layers)):
        assert sum(middles[i :: len(layers)]) / len(threads) == pytest.approx(i)


def test_pictures_and_pages_have_the_same_colours():
    light = asset("page.css").split("@media")[0]
    assert tuple(re.findall(r"--t\d: (#\w+);", light)) == COLOURS
    assert set(re.findall(r"--(?:accent|focus|busy|gemm): (\S+);", light)) == {"var(--t1)"}


BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_each_format_is_the_same_for_the_same_comparison(compared, tmp_path, kind):
    found = compared("digits")
    first, second = (
        [path.read_bytes() for path in save_plots(found, tmp_path / name, "x", formats=[kind])]
        for name in ("a", "b")
    )
    assert first == second
    assert all(data.startswith(BEGINNINGS[kind]) for data in first)


def test_the_command_writes_the_formats_that_are_asked_for(vdla, tmp_path):
    done = vdla("compare", "digits", "-c", "tiny", "--out", tmp_path, "--format", "pdf,svg,pdf")
    assert done.code == 0, done.err
    names = {path.name for path in tmp_path.iterdir() if "trace" not in path.name}
    assert names == {
        f"digits-tiny-{name}.{kind}"
        for name in ("utilization", "roofline")
        for kind in ("pdf", "svg")
    }


def test_another_format_is_refused(vdla, tmp_path):
    for command in (("compare", "digits"), ("offload", "digits", "--board", "pynq-z2")):
        done = vdla(*command, "--out", tmp_path, "--format", "png,bmp")
        message = "vdla: --format: expected png, svg or pdf, found bmp\n"
        assert (done.code, done.err) == (2, message)
    assert list(tmp_path.iterdir()) == []


def test_long_names_are_numbers_and_a_list(compared):
    found = compared("digits")
    layers = [replace(found.layers[i % 3], name=f"block{i}/a_long_node") for i in range(100)]
    figure = roofline_plot(replace(found, layers=layers))
    assert overlapping_texts(figure) == []
    shown = [text.get_text() for text in figure.legends[-1].get_texts()]
    assert shown[0] == "1  block0/a_long_node"
    assert shown[-1] == f"and {100 - MOST_LISTED + 1} more"


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_pages_labels_keep_clear_of_one_another(compared, open_page, tmp_path, workload, width):
    found = compared(workload)
    path = tmp_path / "report.html"
    path.write_text(report_page(workload, found, found.layers[0]), "utf-8")
    page = open_page(path, viewport={"width": width, "height": 900})
    texts = page.locator("#roofline-chart text")
    boxes = texts.evaluate_all(BOXES)
    for a, b in combinations(boxes, 2):
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], (a, b)
    names = page.locator("#roofline-chart .layer-name").all_text_contents()
    assert named(names) == sorted(layer.name for layer in found.layers)
    (frame,) = page.locator("#roofline-chart svg").evaluate_all(BOXES)
    for box in page.locator("#roofline-chart .point").evaluate_all(BOXES):
        assert frame[0] < box[0] < box[2] < frame[2]
        assert frame[1] < box[1] < box[3] < frame[3]


PLACES = st.tuples(st.integers(0, 200), st.integers(0, 200))


@given(st.lists(PLACES, max_size=12))
def test_labels_never_overlap(points):
    bounds = Box(0, 0, 200, 200)
    labels = placed_labels(points, [(30, 10)] * len(points), bounds, [])
    boxes = [label.box for label in labels if label]
    assert all(bounds.holds(box) for box in boxes)
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_a_label_without_room_is_left_out():
    everywhere = Box(-1000, -1000, 1000, 1000)
    assert placed_labels([(5, 5)], [(4, 4)], everywhere, [everywhere]) == [None]
    ((box, has_line),) = placed_labels([(0, 0)], [(4, 4)], everywhere, [])
    assert box == (-2, -10, 2, -6)
    assert not has_line
