"""Tasks of a search on a GPU: a model's functions, by a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vdla.compiler.targets.gpu.search.function import GpuFunction
from vdla.compiler.targets.gpu.search.rules import derive, template
from vdla.compiler.targets.gpu.search.stopwatch import GpuStopwatch
from vdla.compiler.targets.search.function_task import FunctionTask
from vdla.compiler.targets.search.sketch import Sketch

STRATEGIES: Mapping[str, Callable[[GpuFunction], list[Sketch]]] = {
    "template": template,
    "sketch": derive,
}


def function_tasks(
    functions: Sequence[GpuFunction],
    strategy: str,
    threads: int = 1,
    needs: tuple[str, ...] = (),
) -> list[FunctionTask]:
    """The functions for which a strategy has schedules to choose from, timed by workers that have
    ``needs``."""
    spaces = ((function, STRATEGIES[strategy](function)) for function in functions)
    return [FunctionTask.of(GpuStopwatch(f, needs=needs), own) for f, own in spaces if own]
