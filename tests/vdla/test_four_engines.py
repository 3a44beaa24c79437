"""What ``vdla compare`` and ``vdla run`` say of a machine with VECTOR beside the other engines."""

from __future__ import annotations

import base64
import json
import re
import zlib

import onnx
import pytest
from qdq import QdqModel

from vdla import api
from vdla.analysis.report import report_page
from vdla.compiler.graph.window import Window
from vdla.isa.config import load_config
from vdla.isa.ring import engines

CONFIG = load_config("paper-ring", ["table_bytes=512"])
RING = [engine.name for engine in engines(CONFIG)]
OTHERS = ["LOAD", "VECTOR", "STORE"]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Two convolutions with a sum, an inverted bottleneck, and a function."""
    m = QdqModel(seed=5)
    x = m.input("x", (1, 32, 8, 8))
    y = m.conv(x, 32, Window.square(3), activation="Relu")
    y = m.add(m.conv(y, 32, Window.square(3)), x)
    y = m.conv(y, 96, 1, activation="Relu")
    y = m.conv(y, 96, Window.square(3), groups=96, activation="Relu")
    y = m.conv(y, 32, 1)
    m.output(m.quantized(m.node("Sigmoid", [y], m.shapes[y]), 1 / 256, -128))
    path = tmp_path_factory.mktemp("four") / "four.onnx"
    onnx.save(m.model(), path)
    return path


@pytest.fixture(scope="module")
def measured(network, once):
    """The network's layers on four engines, and each with its one schedule."""
    return once(
        "four-engines", lambda: (api.compare(network, CONFIG), api.same_schedule(network, CONFIG))
    )


@pytest.fixture
def compare(vdla, network, measured, monkeypatch, tmp_path):
    """``vdla compare --same-schedule`` of what was measured."""
    monkeypatch.setattr(api, "compare", lambda *_: measured[0])
    monkeypatch.setattr(api, "same_schedule", lambda *_: measured[1])
    return lambda *more: vdla(
        "compare", network, "-c", "paper-ring", "--same-schedule", "--out", tmp_path, *more
    )


def test_the_figures_of_every_engine(compare):
    result = compare("--json").json
    for own in (*result["layers"], result["total"]):
        for v in ("1", "2"):
            work = own["work"][v]
            assert list(work) == OTHERS
            for each in work.values():
                assert 0 <= each["hidden"] <= each["cycles"] <= own["cycles"][v]
    total = result["total"]["work"]["2"]
    for engine in OTHERS:
        parts = [layer["work"]["2"][engine] for layer in result["layers"]]
        assert {k: sum(p[k] for p in parts) for k in ("cycles", "hidden")} == total[engine]
        assert total[engine]["hidden"] > 0
    added = result["layers"][1]["work"]
    assert added["2"]["VECTOR"]["hidden"] > added["1"]["VECTOR"]["hidden"]
    same = result["same_schedule"]["total"]["cycles"]
    assert [name for name in same if name.endswith(" alone")] == [f"{e} alone" for e in OTHERS]
    for engine in OTHERS:
        assert same["both"] < same[f"{engine} alone"] <= same["serialized"]


def test_the_tables_of_every_engine(compare):
    done = compare()
    (hidden,) = [line for line in done.out.splitlines() if "LOAD 1" in line]
    titles = [each.strip() for each in re.split("[┃│]", hidden)][1:-1]
    assert titles == ["layer", *(f"{engine} {v}" for engine in OTHERS for v in (1, 2))]
    (means,) = [line for line in done.out.splitlines() if "serialized" in line]
    titles = [each.strip() for each in re.split("[┃│]", means)][1:-1]
    assert titles[1:5] == ["serialized", *(f"{engine} alone" for engine in OTHERS)]


def test_a_run_says_it_of_each_program(vdla, network):
    options = ["run", network, "-c", "paper-ring", "--set", "table_bytes=512"]
    (program,) = vdla(*options, "--json").json["programs"]
    assert list(program["causes"]) == RING
    assert all(sum(causes.values()) == program["cycles"] for causes in program["causes"].values())
    assert list(program["work"]) == OTHERS
    lines = vdla(*options).out.splitlines()
    first = next(i for i, line in enumerate(lines) if "work beside GEMM" in line)
    cells = [[each.strip() for each in line.split("│")[1:-1]] for line in lines[first + 2 :][:4]]
    assert [row[0] for row in cells] == RING
    for engine, *_, beside in cells:
        work = program["work"].get(engine)
        assert beside == (f"{100 * work['hidden'] / work['cycles']:.1f} %" if work else "")


# The page -----------------------------------------------------------------------------------------


@pytest.fixture
def visit(open_page, measured, tmp_path):
    """Opens the page with the timeline of a layer."""

    def open_layer(layer):
        path = tmp_path / "page.html"
        comparison, same = measured
        path.write_text(report_page("four", comparison, comparison.layers[layer], None, same))
        page = open_page(path)
        page.wait_for_selector("#timeline-canvas[data-shown]")
        return page

    return open_layer


def test_the_page_shows_every_engine(visit, measured):
    shown, result = visit(0), measured[0].to_json()
    lead = shown.inner_text("#lead")
    for engine in OTHERS:
        work = result["total"]["work"]["2"][engine]
        assert f"{100 * work['hidden'] / work['cycles']:.1f} % of {engine}’s" in lead
    for chart, names in (("hiding", OTHERS), ("causes", RING)):
        assert shown.locator(f"#{chart}-chart text.strong").all_text_contents() == names
    bars = shown.locator("#hiding-chart .bar")
    working = [w for layer in result["layers"] for by in layer["work"].values()
               for w in by.values() if w["cycles"]]  # fmt: skip
    assert bars.count() == len(working)
    assert "Work beside GEMM" in shown.inner_text("#contents")
    cells = shown.locator("#hiding-table tr.total td").all_text_contents()
    assert len(cells) == 1 + 2 * len(OTHERS)
    assert "VECTOR alone" in shown.inner_text("#same-legend")


def test_an_engine_without_instructions_has_a_row(visit, measured):
    """The first layer adds nothing: VECTOR stands between COMPUTE and STORE, and keys pass it."""
    shown, layer = visit(0), measured[0].layers[0]
    assert layer.measured[2].work["VECTOR"].cycles == 0
    packed = shown.locator("#trace-0-2").text_content()
    trace = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert trace["otherData"]["engines"] == RING
    shown.focus("#timeline-canvas")
    titles = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        shown.keyboard.press(key)
        titles.append(re.match(r"#\d+ (\w+)", shown.inner_text("#timeline-detail"))[1])
    assert titles == ["LOAD", "GEMM", "STORE", "STORE", "GEMM"]


def test_forwarding_has_a_colour_of_its_own(visit):
    legend = re.split(r"\s*\n\s*", visit(-1).inner_text("#timeline-legend"))
    assert {"GEMM", "STORE", "STORE INP"} <= set(legend)
    legend = re.split(r"\s*\n\s*", visit(1).inner_text("#timeline-legend"))
    assert {"GEMM", "ALU", "STORE"} <= set(legend)
    assert "STORE INP" not in legend
