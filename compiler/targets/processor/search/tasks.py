"""Tasks of a search on a processor: a model's functions, by a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.processor.search.rules import derive, template
from vdla.compiler.targets.processor.search.stopwatch import ProcessorStopwatch
from vdla.compiler.targets.search.function_task import FunctionTask
from vdla.compiler.targets.search.sketch import Sketch

STRATEGIES: Mapping[str, Callable[[ProcessorFunction], list[Sketch]]] = {
    "template": template,
    "sketch": derive,
}


def function_tasks(
    functions: Sequence[ProcessorFunction],
    strategy: str,
    threads: int = 1,
    needs: tuple[str, ...] = (),
) -> list[FunctionTask]:
    """The functions for which a strategy has schedules to choose from, timed with some threads by
    workers that have ``needs``."""
    spaces = ((function, STRATEGIES[strategy](function)) for function in functions)
    return [FunctionTask.of(ProcessorStopwatch(f, threads, needs), own) for f, own in spaces if own]
