"""A search for designs as one HTML file: fronts, parameters, the chosen design; no request."""

from __future__ import annotations

import html
import shlex
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from math import isfinite

from vdla.analysis.report.page import asset, embed, fill
from vdla.explore.evaluate import AREA_OBJECTIVES, ENERGY, OBJECTIVES, Evaluation, number
from vdla.explore.search import Exploration
from vdla.explore.sensitivity import sensitivity
from vdla.explore.space import Point

SCRIPTS = ("dom.js", "charts.js", "designs.js")


def designs_page(models: Sequence[str], result: Exploration) -> str:
    """The page; the same for the same input but for the seconds that the search took.

    Args:
        models: what the designs were evaluated for, as the command takes it.
        result: what the search came to; without a legal design there is a page without points.
    """
    title = f"Designs of {result.space.name} for {', '.join(models)}"
    return fill(
        asset("designs.html"),
        {
            "title": html.escape(title),
            "style": asset("page.css"),
            "data": embed("data", _data(title, models, result)),
            "script": "\n".join(map(asset, SCRIPTS)),
        },
    )


def _data(title: str, models: Sequence[str], result: Exploration) -> dict[str, object]:
    energy = result.baseline.energy_table
    unknown = (*(() if energy else (ENERGY,)), *(() if result.baseline.area else AREA_OBJECTIVES))
    names = [name for name in OBJECTIVES if name not in unknown]
    chosen = [*result.objectives, *(name for name in names if name not in result.objectives)]
    legal = [p for p, e in result.evaluations.items() if isfinite(e.total)]
    front = {point: place for place, point in enumerate(result.front, start=1)}
    legal.sort(key=lambda point: (front.get(point, len(front) + 1), point))
    return {
        "title": title,
        "version": version("vdla"),
        "energy": energy,
        "seconds": round(result.seconds),
        "objectives": list(result.objectives),
        "metrics": chosen,
        "parameters": [
            {"name": name, "values": list(values)}
            for name, values in result.space.parameters.items()
        ],
        "designs": [_design(models, result, point, front.get(point, 0), chosen) for point in legal],
        "baseline": _evaluation(result.baseline, chosen) | {"name": result.baseline.config.name},
        "levels": [
            {"level": each.name, "seen": each.seen, "pruned": dict(each.pruned)}
            for each in result.levels
        ],
        "sensitivity": sensitivity(result),
    }


def _design(
    models: Sequence[str], result: Exploration, point: Point, place: int, metrics: Sequence[str]
) -> dict[str, object]:
    """A design: its place in the front, or 0, what it is worth, and how to have it."""
    each = result.evaluations[point]
    name = f"{result.space.name}-{place or 'x'.join(map(str, point))}"
    base, settings = result.space.base.name, result.space.settings(point)
    words = ["vdla", "evaluate", *models, "-c", base, *settings]
    return {
        "name": name,
        "front": place,
        "point": list(point),
        "toml": replace(each.config, name=name).to_toml(),
        "command": shlex.join(words),
        **_evaluation(each, metrics),
    }


def _evaluation(each: Evaluation, metrics: Sequence[str]) -> dict[str, object]:
    return {
        "level": each.level,
        "mapped": each.mapped,
        "legal": each.legal,
        "metrics": {name: number(each.objective(name)) for name in metrics},
        "models": {model: number(cycles) for model, cycles in each.cycles.items()},
        "layers": {model: dict(layers) for model, layers in each.layers.items()},
    }
