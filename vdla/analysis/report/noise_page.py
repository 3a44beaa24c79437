"""The noise of a quantization as one HTML file, without a request to anywhere."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib.metadata import version

from vdla.analysis.report.page import asset, embed, fill
from vdla.compiler.models.noise import Noise

SCRIPTS = ("dom.js", "charts.js", "noise.js")


def noise_page(
    model: str, noise: Noise, calibration: str, frontier: Mapping[str, object] | None = None
) -> str:
    """The page; the same for the same input.

    Args:
        model: how the page names the model.
        noise: of at least one layer.
        calibration: how the page names what the samples come from.
        frontier: recipes that were tried, as the schema of ``vdla quantize --json`` has them.
    """
    data = {
        "model": model,
        "version": version("vdla"),
        "samples": noise.samples,
        "calibration": calibration,
        "layers": [layer.to_json() for layer in noise.layers],
        "frontier": frontier,
    }
    return fill(
        asset("noise.html"),
        {
            "title": html.escape(f"{model}: noise of its quantization"),
            "style": asset("page.css"),
            "data": embed("data", data),
            "script": "\n".join(map(asset, SCRIPTS)),
        },
    )
