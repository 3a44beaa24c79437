"""Schedule search for a whole network on this processor: the network's time against trials.

    python benchmarks/processor_tuning.py --log-folder F [--model MODEL] [--trials 200,1000]
        [--strategies sketch,template,random] [--threads N] [--plot FILE.svg]

MODEL is also ``resnet18-float32``, the network before it is quantized.

Each strategy has its log in the folder, NAME-STRATEGY.jsonl, which ``vdla tune`` can also write and
read; the benchmark goes on from there. ``sketch`` and ``template`` are searched with the learned
model, ``random`` draws schedules of sketches by chance. Trials are the whole network's, shared by
its functions. The time is the sum over all functions, each as often as the network has it, of the
best schedule so far, or of the default schedule where that is faster; over the sum of the default
schedules' times.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path
from tempfile import TemporaryDirectory

from float_models import model_of
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from vdla.analysis.plots import Line, save_lines
from vdla.api.tuning import function_tasks, search
from vdla.compiler.search.records import Log
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.function_task import FunctionTask
from vdla.options import Tune

# The strategy and the searcher of ``vdla tune``.
STRATEGIES = {
    "sketch": ("sketch", "model"),
    "template": ("template", "model"),
    "random": ("sketch", "random"),
}
NAMES = {
    "sketch": "sketches, learned model",
    "template": "templates, learned model",
    "random": "sketches, by chance",
}


@dataclass(frozen=True)
class Searched:
    """Records of what a strategy tried, in order, and the functions that it tried it for."""

    tasks: Sequence[FunctionTask]
    records: Sequence[FunctionRecord]


def searched(model: str, name: str, most: int, options: Tune) -> Searched:
    """A strategy's search from and into its log, which has ``most`` trials then.

    Functions have equally many trials on average, so there may be a few more.
    """
    strategy, searcher = STRATEGIES[name]
    options = replace(options, strategy=strategy, searcher=searcher)
    tasks = function_tasks(model, options)
    with Log(Path(options.log), FunctionRecord) as log:
        search(tasks, replace(options, trials=ceil(most / len(tasks))), log)
        return Searched(tasks, list(log.records))


def default_times(runs: Sequence[Searched]) -> dict[str, tuple[int, float]]:
    """Number of times that the network has each function, and its default schedule's
    shortest time.
    """
    times: dict[str, tuple[int, float]] = {}
    for task in (task for run in runs for task in run.tasks):
        weight, shortest = times.get(task.function.digest, (task.weight, inf))
        times[task.function.digest] = weight, min(shortest, task.reference)
    return {digest: known for digest, known in times.items() if known[1] < inf}


def curve(
    records: Sequence[FunctionRecord], times: Mapping[str, tuple[int, float]], most: int
) -> list[float]:
    """The network's time, over the default schedules', after each trial; at first it is 1."""
    ratios = dict.fromkeys(times, 1.0)
    before = sum(weight * seconds for weight, seconds in times.values())
    ratio, result = 1.0, [1.0]
    for record in [r for r in records if r.function in times][:most]:
        gained = max(ratios[record.function] - record.outcome.cost, 0.0)
        weight, seconds = times[record.function]
        ratios[record.function] -= gained
        ratio -= gained * weight * seconds / before
        result.append(ratio)
    return result


def show(
    console: Console, title: str, curves: Mapping[str, Sequence[float]], trials: Sequence[int]
) -> None:
    """Prints the curves at some numbers of trials."""
    table = Table("strategy", *(f"{n:,} trials" for n in trials), title=title)
    for name, values in curves.items():
        at = (f"{values[n]:.3f}" if n < len(values) else "–" for n in trials)
        table.add_row(NAMES[name], *at)
    console.print(table)


def show_functions(console: Console, runs: Mapping[str, Searched]) -> None:
    """Prints what each strategy found for each function, over the default schedule's time."""
    digests = {t.function.digest: t.layers for run in runs.values() for t in run.tasks}
    table = Table("function", *(NAMES[name] for name in runs), title="best / default")
    for digest, layers in digests.items():
        own = ([t for t in run.tasks if t.function.digest == digest] for run in runs.values())
        more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
        cells = (f"{tasks[0].ratio:.3f} ({tasks[0].trials})" if tasks else "–" for tasks in own)
        table.add_row(f"{layers[0]}{more}", *cells)
    console.print(table)


def main() -> None:
    """Searches, prints tables and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--trials", default="200,1000")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--log-folder", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    trials = sorted(map(int, asked.trials.split(",")))
    stem, console, runs = Path(asked.model).stem, Console(), dict[str, Searched]()
    with TemporaryDirectory() as folder, Progress(console=Console(stderr=True)) as bar:
        model, line = model_of(asked.model, Path(folder)), bar.add_task(stem)
        for name in asked.strategies.split(","):
            log = asked.log_folder / f"{stem}-{name}.jsonl"
            how = Tune(
                log,
                target="cpu",
                threads=asked.threads,
                progress=lambda what, done, of: bar.update(
                    line, description=what, completed=done, total=of
                ),
            )
            runs[name] = searched(model, name, trials[-1], how)
    times = default_times(list(runs.values()))
    curves = {name: curve(run.records, times, trials[-1]) for name, run in runs.items()}
    threads = f"{asked.threads} thread{'s' if asked.threads > 1 else ''}"
    machine = next(iter(runs.values())).tasks[0].function.machine
    title = f"{stem} on {machine}, {threads}: time over the default schedules'"
    show(console, title, curves, trials)
    show_functions(console, runs)
    if asked.plot:
        lines = [Line(NAMES[name], values) for name, values in curves.items()]
        save_lines(asked.plot, lines, title, ("trials", "time / default schedules' time"))


if __name__ == "__main__":
    main()
