"""The page of ``vdla compare --report``, in a real browser, offline."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

import pytest

from vdla import api
from vdla.analysis.report import report_page
from vdla.analysis.report.page import embed, machine_facts
from vdla.isa.config import load_config
from vdla.sim.trace import write_trace

NASTY = "</script><script>window.broken = 1</script><!-- <b>&amp;'\" \u2028"
THREADS = (1, 2, 4)


@pytest.fixture(scope="module")
def sweep(once):
    return once(
        "digits-sweep", lambda: api.sweep("digits", "tiny", THREADS, latencies=(256, 0, 64))
    )


@pytest.fixture
def visit(open_page, sweep, tmp_path):
    """Opens a report, by default that of the sweep."""

    def open_text(text=None, **options):
        path = tmp_path / "report.html"
        base = sweep.base
        path.write_text(text or report_page("digits", base, base.layers[0], sweep), "utf-8")
        return open_page(path, **options)

    return open_text


def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


# The file ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_same_input_gives_the_same_file(sweep):
    first, second = (
        report_page("digits", s.base, s.base.layers[0], s)
        for s in (sweep, api.sweep("digits", "tiny", THREADS, latencies=(256, 0, 64)))
    )
    assert first == second


def test_the_page_says_which_cycles_it_leaves_out(sweep):
    rest = [{"name": "up", "op": "Resize", "device": "onnxruntime", "reason": "no operator"}]
    found = replace(sweep.base, placement=sweep.base.placement + rest)
    text = report_page("m", found, found.layers[0])
    assert " layers on the host: their time is not in the cycles" in text


def test_the_file_names_no_other(sweep):
    """Nothing to load, and a policy that forbids loading anything."""
    text = report_page("digits", sweep.base, sweep.base.layers[0], sweep)
    assert re.findall(r"""(?:src|href)="(?!#)(.*?)\"""", text) == [
        "data:,",
        "https://ui.perfetto.dev",
    ]
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(|\bfetch\(|import\(|XMLHttpRequest", text)
    assert "{{" not in text


@pytest.mark.parametrize("text", [NASTY, "]]>", "<!--<script>", "\\u003c", "{{data}}"])
def test_embedded_text_stays_text(text):
    element = embed("data", {text: [text]})
    content = element.removeprefix('<script type="application/json" id="data">')
    content = content.removesuffix("</script>")
    assert not set("<>&\u2028") & set(content)
    assert json.loads(content) == {text: [text]}


def test_the_command_writes_the_page(vdla, tmp_path):
    """It may lie in the folder that the command makes."""
    out = tmp_path / "out"
    page = out / "page.html"
    done = vdla("compare", "digits", "-c", "tiny", "--out", out, "--report", page,
                "--trace-layer", "fc", "--json")  # fmt: skip
    assert done.code == 0
    assert f"wrote {page}" in done.err
    blocks = dict(re.findall(r'<script type="[a-z/]*" id="(.*?)">(.*?)</script>', page.read_text()))
    assert json.loads(blocks["data"])["comparison"] == done.json
    assert json.loads(blocks["data"])["sweep"] is None
    (trace,) = out.glob("*.trace.json")
    assert unpacked(blocks["trace-2-2"]) == json.loads(trace.read_text())


def test_a_page_that_cant_be_written_is_known_at_once(vdla, tmp_path):
    done = vdla("compare", "digits", "--out", tmp_path, "--report", tmp_path / "no" / "page.html")
    assert done.code == 2
    assert done.err.startswith(f"vdla: {tmp_path}/no/page.html: expected the folder")
    assert list(tmp_path.iterdir()) == []


# In the browser -----------------------------------------------------------------------------------


def test_bars_and_figures(visit, sweep):
    page, base = visit(), sweep.base
    bars = page.locator("#utilization-chart .bar")
    assert bars.count() == len(base.layers) * len(THREADS)
    for bar in bars.all():
        layer = next(each for each in base.layers if each.name == bar.get_attribute("data-layer"))
        share = layer.measured[int(bar.get_attribute("data-threads"))].utilization
        top, bottom = 22, 268
        assert float(bar.get_attribute("height")) == pytest.approx(share * (bottom - top), abs=0.1)
    assert page.locator("#utilization-chart .peer").count() == 0  # nobody published this model
    assert page.locator("#roofline-chart .point").count() == len(base.layers) * len(THREADS)
    headline = page.inner_text("#headline")
    best = max(base.utilization(v) for v in THREADS)
    assert f"from {100 * base.utilization(1):.1f} % to {100 * best:.1f} %" in headline
    assert page.locator("#utilization-table tbody tr").count() == len(base.layers) + 1


def test_a_bar_explains_itself(visit):
    page = visit()
    page.locator("#utilization-chart .bar").first.hover()
    assert "conv1: " in page.inner_text("#tip")
    assert "with 1 virtual thread" in page.inner_text("#tip")
    page.mouse.move(1, 1)
    assert page.locator("#tip").is_hidden()
    page.focus("#utilization-chart svg")
    page.keyboard.press("ArrowRight")
    assert "with 2 virtual threads" in page.inner_text("#tip")


def test_causes_of_the_chosen_threads(visit, sweep):
    page = visit()

    def shown():
        cells = page.locator("#causes-table tr:nth-child(2) td.number").all_text_contents()
        return [int(n.replace(",", "")) for n in cells]

    for v in THREADS:
        page.check(f"#causes-threads input[value='{v}']", force=True)
        causes = sweep.base.layers[0].measured[v].run.causes
        assert shown() == list(causes["COMPUTE"].values())
        parts = page.locator("#causes-chart .cause").count()
        assert parts == sum(
            n > 0
            for layer in sweep.base.layers
            for engine in layer.measured[v].run.causes.values()
            for n in engine.values()
        )
    in_shares = page.locator("#causes-chart").inner_html()
    page.check("#causes-scale input[value='cycles']", force=True)
    assert page.locator("#causes-chart").inner_html() != in_shares


def test_the_sweeps_curves(visit, sweep):
    page = visit()
    assert page.locator("#sweep-chart .curve").count() == len(THREADS)
    latencies = page.locator("#sweep-table td:first-child").all_text_contents()
    assert latencies == ["0", "64", "256"]
    page.select_option("#sweep-layer", "fc")
    page.check("#sweep-scale input[value='cycles']", force=True)
    cycles = sweep.points[0].layers[-1]["cycles"]["1"]
    assert f"{cycles:,}" in page.locator("#sweep-table tbody tr").last.text_content()
    before = page.locator("#sweep-chart").inner_html()
    page.check("#sweep-scale input[value='growth']", force=True)
    assert page.locator("#sweep-chart").inner_html() != before


def test_a_page_without_a_sweep_and_with_one_number_of_threads(visit):
    found = api.compare("digits", "tiny", [2])
    page = visit(report_page("digits", found, found.layers[0]))
    assert page.locator("#sweep").is_hidden()
    assert "Slower memory" not in page.inner_text("#contents")
    assert page.locator("#utilization-chart .bar").count() == len(found.layers)
    assert page.inner_text("#headline").endswith("of peak with 2 virtual threads")
    assert page.locator("#causes-threads").is_hidden()


def test_placement_and_its_filter(visit, sweep):
    page = visit()
    rows = page.locator("#placement-table tbody tr")
    assert rows.count() == len(sweep.base.placement)
    page.check("#placement-filter input[value='cpu']", force=True)
    host = [row for row in sweep.base.placement if row["device"] == "cpu"]
    assert rows.count() == len(host)
    assert host[0]["reason"] in rows.first.inner_text()


def test_schedules_are_in_words(visit, sweep):
    page = visit()
    rows = page.locator("#placement-table tbody tr").all_inner_texts()
    assert any(re.search(r"× \d+ pixels, .* \d+ threads?", row) for row in rows)
    for section in ("placement", "utilization"):
        text = page.locator(f"#{section}").text_content()
        assert not re.search(r"stationary=|stages=|resident=|program\d", text)
    cell = page.locator("#placement-table td").last
    assert cell.evaluate("cell => getComputedStyle(cell).textAlign") in ("left", "start")


def test_what_onnxruntime_runs_is_the_hosts(visit, sweep):
    base = sweep.base
    rest = [{"name": "up", "op": "Resize", "device": "onnxruntime", "reason": "no operator"}]
    page = visit(report_page("m", replace(base, placement=base.placement + rest), base.layers[0]))
    lead = page.inner_text("#placement-lead")
    assert lead.endswith("layers on the host: their time is not in the cycles.")
    page.check("#placement-filter input[value='cpu']", force=True)
    assert "up" in page.locator("#placement-table tbody tr").last.inner_text()


# The timeline -------------------------------------------------------------------------------------

COLOURS = """canvas => {
  const c = canvas.getContext("2d"), all = c.getImageData(0, 0, canvas.width, canvas.height).data;
  const found = new Set();
  for (let i = 0; i < all.length; i += 4) found.add(`${all[i]},${all[i + 1]},${all[i + 2]}`);
  return found.size;
}"""


def view(page) -> list[int]:
    """The first and last cycle in view, and of how many."""
    return [int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", page.inner_text(".range"))[:3]]


def settle(page) -> None:
    """Until what was asked for is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def hover_first(page, row: int) -> str:
    """The tooltip of the leftmost instruction in a row of the canvas."""
    box = page.locator("#timeline-canvas").bounding_box()
    for x in range(88, int(box["width"]), 4):
        page.mouse.move(box["x"] + x, box["y"] + 66 + row)
        if page.locator("#tip").is_visible():
            return page.inner_text("#tip")
    raise AssertionError("expected an instruction in the row, found none")


def wait_for(page, layer, threads) -> None:
    """Until a timeline is unpacked and shown."""
    page.wait_for_selector(f"#timeline-canvas[data-shown='trace-{layer}-{threads}']")


@pytest.fixture
def timeline(visit, sweep):
    page = visit()
    wait_for(page, 0, max(THREADS, key=lambda v: -sweep.base.cycles(v)))
    page.locator("#timeline-canvas").scroll_into_view_if_needed()
    settle(page)
    return page


def test_the_timeline_draws_and_tells(timeline, sweep):
    assert timeline.locator("#timeline-canvas").evaluate(COLOURS) > 8
    tip = hover_first(timeline, 0)
    run = sweep.base.layers[0].measured[max(THREADS, key=sweep.base.cycles.__call__)].run
    title, assembly, cycles = tip.splitlines()[:3]
    index = int(re.match(r"#(\d+) LOAD", title)[1])
    assert assembly.startswith("LOAD memory=")
    assert run.instructions[index].mnemonic == "LOAD"
    assert re.match(r"cycles [\d,]+ to [\d,]+: [\d,]+$", cycles)
    assert "stage " in tip


def test_zoom_and_pan(timeline):
    timeline.click("#timeline-fit")
    first, last, cycles = view(timeline)
    assert (first, last) == (0, cycles)
    box = timeline.locator("#timeline-canvas").bounding_box()
    timeline.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80)
    timeline.mouse.wheel(0, -400)
    settle(timeline)
    near = view(timeline)
    assert 0 < near[0] < near[1] < cycles
    timeline.mouse.down()
    timeline.mouse.move(box["x"] + box["width"] / 2 - 100, box["y"] + 80, steps=4)
    timeline.mouse.up()
    moved = view(timeline)
    assert moved[0] > near[0]
    assert moved[1] - moved[0] == pytest.approx(near[1] - near[0], abs=2)
    timeline.click("#timeline-out")
    wide = view(timeline)
    assert wide[1] - wide[0] > moved[1] - moved[0]


def test_a_page_can_be_scrolled_past_the_timeline(timeline):
    timeline.click("#timeline-fit")
    box = timeline.locator("#timeline-canvas").bounding_box()
    timeline.mouse.move(box["x"] + 300, box["y"] + 80)
    before = timeline.evaluate("scrollY")
    timeline.mouse.wheel(0, 200)
    for _ in range(100):
        if timeline.evaluate("scrollY") > before:
            return
        timeline.wait_for_timeout(20)
    raise AssertionError("expected the page to scroll, found it where it was")


def test_keys_step_through_instructions(timeline):
    timeline.focus("#timeline-canvas")
    detail = timeline.locator("#timeline-detail")
    timeline.keyboard.press("ArrowRight")
    assert detail.inner_text().startswith("#0 LOAD")
    timeline.keyboard.press("ArrowDown")
    compute = detail.inner_text()
    assert re.match(r"#\d+ (GEMM|ALU|LOAD)", compute)
    giver = detail.locator("p:has-text('pops a token of') button").first
    title = giver.inner_text()
    giver.click()
    assert detail.inner_text().startswith(title)
    timeline.focus("#timeline-canvas")
    timeline.keyboard.press("Escape")
    assert detail.inner_text().startswith("Choose an instruction")
    before = view(timeline)
    timeline.keyboard.press("+")
    after = view(timeline)
    assert after[1] - after[0] < before[1] - before[0]
    timeline.keyboard.press("Home")
    assert view(timeline)[0] == 0


def test_arrows_and_threads_can_be_chosen(timeline, sweep):
    canvas = timeline.locator("#timeline-canvas")
    with_arrows = canvas.screenshot()
    timeline.uncheck("#timeline-arrows")
    settle(timeline)
    assert canvas.screenshot() != with_arrows
    for v in THREADS:
        timeline.check(f"#timeline-threads input[value='{v}']", force=True)
        wait_for(timeline, 0, v)
        assert view(timeline)[2] == sweep.base.layers[0].measured[v].cycles


def test_every_layer_that_fits_has_its_timeline(timeline, sweep):
    names = timeline.locator("#timeline-layer option").all_text_contents()
    assert names == [layer.name for layer in sweep.base.layers]
    assert timeline.inner_text("#timeline-left") == ""
    for place, layer in enumerate(sweep.base.layers):
        timeline.select_option("#timeline-layer", label=layer.name)
        v = timeline.locator("#timeline-threads input:checked").get_attribute("value")
        wait_for(timeline, place, v)
        assert timeline.inner_text("#timeline-name") == layer.name
        assert view(timeline)[2] == layer.measured[int(v)].cycles


def test_layers_beyond_the_limit_are_left_out(visit, sweep, monkeypatch):
    monkeypatch.setattr("vdla.analysis.report.page.TRACE_BYTES", 0)
    page = visit(report_page("digits", sweep.base, sweep.base.layers[1]))
    wait_for(page, 1, max(THREADS, key=lambda v: -sweep.base.cycles(v)))
    assert page.locator("#timeline-layer").is_hidden()
    assert page.inner_text("#timeline-left").startswith("2 layers more")


@pytest.mark.long
@pytest.mark.parametrize("name", ["resnet18-convs", "resnet18"])
def test_the_page_of_a_large_network_is_small(once, convolutions, visit, name):
    found = convolutions
    if name == "resnet18":
        found = once("compare-resnet18", lambda: api.compare("resnet18"))
    text = report_page(name, found, found.layers[0])
    assert len(text.encode()) < 3_000_000
    page = visit(text)
    wait_for(page, 0, 2)
    assert page.locator("#timeline-layer option").count() == len(found.layers)


def test_the_download_is_the_commands_trace(timeline, sweep, tmp_path):
    timeline.check("#timeline-threads input[value='2']", force=True)
    with timeline.expect_download() as download:
        timeline.click("#timeline-save")
    assert download.value.suggested_filename == "digits-tiny-conv1-2.trace.json"
    measured = sweep.base.layers[0].measured[2]
    linked = measured.program.linked
    write_trace(measured.run, tmp_path / "t.json", layers=linked.layers, stages=linked.stages)
    assert download.value.path().read_bytes() == (tmp_path / "t.json").read_bytes()


# Themes, sizes, names -----------------------------------------------------------------------------

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
CORNER = """canvas => [...canvas.getContext("2d").getImageData(20, canvas.height - 4, 1, 1).data]"""


def test_dark_and_light(visit):
    page = visit(color_scheme="dark")
    canvas = page.locator("#timeline-canvas")
    settle(page)
    dark, corner = page.evaluate(BACKGROUND), canvas.evaluate(CORNER)
    assert max(corner[:3]) < 80
    page.emulate_media(color_scheme="light")
    settle(page)
    assert page.evaluate(BACKGROUND) != dark
    assert min(canvas.evaluate(CORNER)[:3]) > 200


def test_small_screens_and_paper(visit):
    page = visit(viewport={"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("#utilization-chart svg").is_visible()


def test_names_from_models_are_text(visit):
    """A layer named like markup is shown as it is, and runs nothing."""
    found = api.compare("digits", load_config("tiny"))
    layers = [replace(layer, name=NASTY + layer.name) for layer in found.layers]
    placement = [{**row, "name": NASTY, "reason": NASTY} for row in found.placement]
    found = replace(found, layers=layers, placement=placement)
    page = visit(report_page(NASTY, found, layers[0]))
    assert page.evaluate("window.broken") is None
    assert NASTY in page.locator("#timeline-name").text_content()
    assert NASTY in page.locator("#placement-table td").first.text_content()
    assert page.title().startswith(NASTY.split("\u2028")[0].strip())
    page.locator("#utilization-chart .bar").first.hover()
    assert "</script>" in page.inner_text("#tip")


def test_tables_are_among_the_buffers_where_there_are_any():
    buffers = {c: machine_facts(load_config(c))["buffers"] for c in ("paper", "paper-plus")}
    assert buffers["paper-plus"] == {**buffers["paper"], "tables": 2048}
    assert list(buffers["paper"]) == ["inp", "wgt", "acc", "uop"]
