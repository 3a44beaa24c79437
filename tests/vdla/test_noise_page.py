"""The page of a quantization in a browser: its layers, and the recipes that a search has tried."""

from __future__ import annotations

from vdla.analysis.report import noise_page
from vdla.compiler.models.noise import LayerNoise, Noise

NOISE = Noise([LayerNoise("first", "Conv", 40.0, 30.0, 20.0)], 4)
POINTS = [("as given", 20.0, 100), ("GPTQ", 26.0, 100), ("GPTQ, 16 bits", 40.0, 190)]


def frontier():
    points = [
        {"recipe": name, "score": score, "cycles": cycles, "bytes": 7, "bits16": 2,
         "chosen": name == "GPTQ, 16 bits"}
        for name, score, cycles in POINTS
    ]  # fmt: skip
    return {"config": "tiny", "unit": "dB", "floats": None, "wanted": 30.0, "points": points}


def opened(open_page, folder, tried):
    path = folder / "noise.html"
    path.write_text(noise_page("net", NOISE, "images", tried))
    return open_page(path, "#figures-table tr")


def test_recipes_are_points_and_what_was_wanted_a_line(open_page, tmp_path):
    page = opened(open_page, tmp_path, frontier())
    dots = {dot.get_attribute("data-recipe"): dot for dot in page.query_selector_all(".recipe")}
    assert list(dots) == [name for name, *_ in POINTS]
    x, y = ([float(dot.get_attribute(key)) for dot in dots.values()] for key in ("cx", "cy"))
    wanted = float(page.query_selector(".wanted").get_attribute("y1"))
    assert x[0] == x[1] < x[2]
    assert y[0] > y[1] > wanted > y[2]
    assert "Written: GPTQ, 16 bits, 40.00 dB, 190 cycles on tiny." in page.inner_text("#frontier")


def test_without_a_search_there_are_layers_alone(open_page, tmp_path):
    page = opened(open_page, tmp_path, None)
    assert not page.is_visible("#frontier")
    assert len(page.query_selector_all("#noise-chart .bar")) == 3
