"""The command that evaluates designs: one, or each line's of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from vdla.api import exploration
from vdla.commands.output import console, log, print_json, table
from vdla.explore.evaluate import AREA_OBJECTIVES, Evaluation, family_of, number
from vdla.isa.parameters import ConfigError
from vdla.options import Evaluate
from vdla.options.spelling import UsageError
from vdla.support.json_text import read_json


def evaluate(given: Sequence[str], options: Evaluate, stdin: bool, json: bool) -> None:
    """Prints what a design is worth; with ``stdin`` a line of JSON for each line's design."""
    models = [each for each in given if _is_model(each)]
    settings = [*options.settings, *(each for each in given if not _is_model(each))]
    options = replace(options, settings=settings)
    if not models:
        raise UsageError(f"evaluate: expected a model, found {' '.join(given)}")
    if stdin:
        _evaluate_lines(models, options)
        return
    result = exploration.evaluate(models, options)
    if json:
        print_json({"config": result.config.name, "settings": settings, **result.to_json()})
    else:
        _show(result, options.part)


def _is_model(text: str) -> bool:
    """Whether an argument is a model, and no KEY=VALUE."""
    return "=" not in text or Path(text).exists()


def _evaluate_lines(models: Sequence[str], options: Evaluate) -> None:
    """A design's result goes out before the next line is read, so a program may ask and wait."""
    design = exploration.designs(models, options)
    for line, settings in _lines():
        try:
            result = design(settings)
        except ConfigError as error:  # of this design alone
            print_json({"settings": settings, "legal": False, "reasons": [str(error)]})
        except UsageError as error:
            raise UsageError(f"line {line}: {error}") from None
        else:
            print_json({"settings": settings, **result.to_json()})
        sys.stdout.flush()


def _lines() -> Iterator[tuple[int, list[str]]]:
    """The settings of each line of standard input that isn't empty, with the line's number.

    Raises:
        UsageError: a line is neither KEY=VALUE… nor an object of numbers.
    """
    for line, raw in enumerate(sys.stdin, 1):
        text = raw.strip()
        if text.startswith("{"):
            yield line, _object(text, line)
        elif text:
            yield line, text.split()


def _object(text: str, line: int) -> list[str]:
    try:
        value = read_json(text)
    except ValueError:
        value = None
    if not isinstance(value, Mapping) or not all(type(each) is int for each in value.values()):
        expected = "KEY=VALUE… or a JSON object of integers"
        raise UsageError(f"line {line}: expected {expected}, found {text[:60]!r}")
    return [f"{key}={each}" for key, each in value.items()]


def _show(result: Evaluation, part: str) -> None:
    """A table per model, the area, and the reasons against the design."""
    rows, own = [], result.config
    for model, cycles in result.cycles.items():
        times = (result.clock.milliseconds(cycles), cycles / own.clock_mhz / 1e3)
        shown = (f"{time:,.4g}" for time in times)
        rows.append((model, *("–" * 3 if cycles == inf else (f"{cycles:,.0f}", *shown))))
    title = f"{result.config.name}, memory {result.config.memory.name}; cycles by {result.level}"
    table(title, ["model", "cycles", f"ms {result.clock.at}", f"ms {own.at_clock}"], rows)
    console.print(f"clock {result.clock.origin.text}")
    if result.area is not None:
        from vdla.explore.area.families import FAMILIES  # with Amaranth, which not everybody has

        title = FAMILIES[family_of(part)].title
        area = (f"{number(getattr(result.area, name)):,} {name}" for name in AREA_OBJECTIVES)
        console.print(f"area on {title}, estimated: {', '.join(area)}")
    if result.energy_uj is not None:
        console.print(f"energy: {result.energy_uj:,.3g} µJ by {result.energy_table}")
    for reason in result.reasons:
        log.print(f"can't be built: {reason}")
