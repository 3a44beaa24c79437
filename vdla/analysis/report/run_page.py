"""One run as one HTML file: its layers, and all of its timeline, without a request to anywhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.metadata import version

from vdla.analysis.report.page import (
    TIMELINE_SCRIPTS,
    asset,
    embed,
    embed_packed,
    fill,
    machine_facts,
    packed,
    timeline_section,
)
from vdla.sim.machine import Run
from vdla.sim.trace import trace_events


def run_page(
    title: str, lead: str, run: Run, layers: Sequence[str] = (), stages: Sequence[str] = ()
) -> str:
    """The page; the same for the same input.

    Args:
        title: what the run is of.
        lead: a sentence about it.
        run: the run on the simulator.
        layers: the name of the layer of each instruction; an empty one for what belongs to none.
        stages: the stage of each instruction within its layer.
    """
    data = {
        "title": title,
        "lead": lead,
        "version": version("vdla"),
        "machine": machine_facts(run.config),
    }
    trace = embed_packed("trace", packed(trace_events(run, layers, stages)))
    return fill(
        asset("run.html"),
        {
            "title": html.escape(f"{title} on {run.config.name}: timeline"),
            "style": asset("page.css"),
            "timeline": timeline_section("run", "vdla run --trace"),
            "data": f"{embed('data', data)}\n{trace}",
            "script": "\n".join(map(asset, (*TIMELINE_SCRIPTS, "run.js"))),
        },
    )
