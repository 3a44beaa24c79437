"""The noise of a quantization as one HTML file, without a request to anywhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.metadata import version

from vdla.analysis.report.page import asset, embed, fill
from vdla.compiler.models.noise import LayerNoise

SCRIPTS = ("dom.js", "charts.js", "noise.js")


def noise_page(model: str, layers: Sequence[LayerNoise], samples: int, calibration: str) -> str:
    """The page; the same for the same input.

    Args:
        model: how the page names the model.
        layers: at least one of them, in the network's order.
        samples: how many of them the ratios are of.
        calibration: how the page names what the samples come from.
    """
    data = {
        "model": model,
        "version": version("vdla"),
        "samples": samples,
        "calibration": calibration,
        "layers": [layer.to_json() for layer in layers],
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
