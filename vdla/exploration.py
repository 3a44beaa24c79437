"""Designs, evaluated and searched for by a user's options: ``vdla.evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vdla.compiler.frontend.shapes import Shapes
from vdla.explore.evaluate import BOUND, EXACT, MODEL, Evaluation, Evaluator
from vdla.explore.networks import Networks
from vdla.lookup import model_files, resolve, tuned_tiles
from vdla.options import Evaluate
from vdla.spelling import UsageError, takes

Models = str | Path | Sequence[str | Path]


@takes(Evaluate)
def evaluate(models: Models, options: Evaluate) -> Evaluation:
    """What a design is worth: cycles of one or several models, area, and why it can't be built.

    Raises:
        ModelError: a model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
        UsageError, ExploreError: no such level, part or weighted model.
    """
    return designs(models, options)(())


def designs(models: Models, options: Evaluate) -> Callable[[Sequence[str]], Evaluation]:
    """What evaluates the design of some options with further settings; models are imported once.

    Raises:
        ModelError, ConfigError, UsageError, ExploreError: as ``evaluate``.
    """
    if options.level not in (EXACT, MODEL, BOUND):
        raise UsageError(f"--level: expected exact, model or bound, found {options.level}")
    base, records = resolve(options.config, options.settings), tuned_tiles(options.records)
    judge = evaluator(models, options.weights, options.part, options.shapes)

    def result(settings: Sequence[str]) -> Evaluation:
        config = base.override(settings)
        if options.level == EXACT:
            return judge.exact(config, records)
        return judge.bound(config) if options.level == BOUND else judge.model(config)

    return result


def evaluator(
    models: Models,
    weights: Mapping[str, float] | None = None,
    part: str = "none",
    shapes: Shapes | None = None,
) -> Evaluator:
    """What evaluates designs for some models, which are imported now.

    Raises:
        ModelError: a model can't be taken.
        UsageError: a model is given twice, or a weight is of none.
    """
    given = [models] if isinstance(models, str | Path) else list(models)
    if not given:
        raise UsageError("models: expected at least one, found none")
    names, paths = dict[str, tuple[str, ...]](), dict[str, Path]()
    for model in given:
        files, name = model_files(model), Path(model).stem
        if name in names or not files.keys().isdisjoint(paths):
            raise UsageError(f"models: expected each once, found {name} twice")
        names[name] = tuple(files)
        paths |= files
    for name in weights or {}:
        if name not in names:
            raise UsageError(f"--weight: expected one of {', '.join(names)}, found {name}")
    return Evaluator(Networks(paths, shapes), names, weights or {}, part)
