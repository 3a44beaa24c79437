"""A search for designs as one HTML file: fronts, parameters, the chosen design; no request."""

from __future__ import annotations

import html
import shlex
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from math import isfinite
from pathlib import Path

from vdla.analysis.report.page import asset, embed, fill
from vdla.explore.evaluate import AREA_OBJECTIVES, ENERGY, OBJECTIVES, Evaluation, number
from vdla.explore.search import Exploration
from vdla.explore.sensitivity import sensitivity
from vdla.explore.space import Point, Space
from vdla.isa.config import Config

SCRIPTS = ("dom.js", "charts.js", "designs.js")


def designs_page(models: Sequence[str], result: Exploration) -> str:
    """The page; the same for the same input but for the seconds that the search took.

    Args:
        models: what the designs were evaluated for, as the command takes it.
        result: what the search came to; without a legal design there is a page without points.
    """
    title = f"Designs for {', '.join(Path(model).stem for model in models)}"
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
        "space": _space(result.space),
        "models": [Path(model).stem for model in models],
        "area": f"{_area(result)} {_clock(result)}".strip(),
        "version": version("vdla"),
        "energy": energy,
        "clock": result.clocks,
        "seconds": round(result.seconds),
        "objectives": list(result.objectives),
        "metrics": chosen,
        "parameters": [
            {"name": name, "values": list(values)}
            for name, values in result.space.parameters.items()
        ],
        "designs": [_design(models, result, point, front.get(point, 0), chosen) for point in legal],
        "baseline": _evaluation(result.baseline, chosen) | _baseline(result),
        "levels": [
            {"level": each.name, "seen": each.seen, "pruned": dict(each.pruned)}
            for each in result.levels
        ],
        "sensitivity": sensitivity(result),
    }


def _space(space: Space) -> str:
    """A space in words: what varies, around which config."""
    count = len(space.parameters)
    return (
        f"Space {space.name}: config {space.base.name} with {count} "
        f"parameter{'s' if count > 1 else ''} varied, {space.size:,} combinations"
    )


def _area(result: Exploration) -> str:
    """Origin of the areas in words; empty where there are none."""
    if result.baseline.area is None:
        return ""
    estimated = (
        "LUTs and flip-flops are estimates of a model that was fitted to designs mapped by yosys; "
        "DSPs and block RAMs are counted exactly."
    )
    if any(each.mapped for each in result.evaluations.values()):
        return f"yosys counted the areas of the front (--map). Of all other designs, {estimated}"
    return f"{estimated} With --map, yosys counts them for the front."


def _clock(result: Exploration) -> str:
    """Origin of the clocks in words."""
    clock = result.baseline.clock
    if clock.origin.is_asked:
        return f"Times are cycles {clock.at}."
    return (
        f"Times are cycles at clocks that a model estimates for {clock.origin.part}; it was fitted "
        "to designs mapped by yosys."
    )


def _baseline(result: Exploration) -> dict[str, object]:
    """The baseline's name, its values of the space's parameters, and whether the space has it."""
    config = result.baseline.config
    memory = {f"memory.{name}": value for name, value in vars(config.memory).items()}
    every = vars(config) | memory
    values = {name: every.get(name) for name in result.space.parameters}
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    point = result.space.point(numbers)
    return {
        "name": config.name,
        "parameters": values,
        "inside": point is not None and _is_same(result.space, point, config),
    }


def _is_same(space: Space, point: Point, config: Config) -> bool:
    """Whether a point of a space is a config, whatever their names."""
    return replace(space.base.override(space.settings(point)), name=config.name) == config


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
        "clock": each.clock.text,
        "metrics": {name: number(each.objective(name)) for name in metrics},
        "models": {model: number(cycles) for model, cycles in each.cycles.items()},
        "layers": {model: dict(layers) for model, layers in each.layers.items()},
    }
