"""One network on several configs as one HTML file, without a request to anywhere."""

from __future__ import annotations

import html
from importlib.metadata import version

from vdla.analysis.comparison import Comparison
from vdla.analysis.report.page import asset, embed, fill, machine_facts
from vdla.analysis.side_by_side import SideBySide

SCRIPTS = ("dom.js", "charts.js", "side_by_side.js")


def side_by_side_page(model: str, designs: SideBySide) -> str:
    """The page; the same for the same input.

    Args:
        model: how the page names the model.
        designs: at least two of them, with at least one layer.
    """
    labels = " beside ".join(designs.labels)
    wholes = [designs.end_to_end(place) for place in range(len(designs.comparisons))]
    data = {
        "model": model,
        "version": version("vdla"),
        "sideBySide": designs.to_json(),
        "machines": [machine_facts(each.config) for each in designs.comparisons],
        "layers": [_layers(each) for each in designs.comparisons],
        "host": [each.host for each in designs.comparisons],
        "common": designs.common,
        "endToEnd": [whole.text if whole else None for whole in wholes],
    }
    return fill(
        asset("side_by_side.html"),
        {
            "title": html.escape(f"{model}: {labels}"),
            "style": asset("page.css"),
            "data": embed("data", data),
            "script": "\n".join(map(asset, SCRIPTS)),
        },
    )


def _layers(comparison: Comparison) -> dict[str, object]:
    """Figures of each layer with the most virtual threads, by its name."""
    most = comparison.vthreads[-1]
    return {
        layer.name: {
            "cycles": layer.measured[most].cycles,
            "bound": layer.bound_cycles,
            "by": layer.bound_by,
            "utilization": layer.measured[most].utilization,
            "schedule": layer.measured[most].tile,
            "causes": layer.measured[most].run.causes,
        }
        for layer in comparison.layers
    }
