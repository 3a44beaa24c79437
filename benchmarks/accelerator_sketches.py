"""Schedules that rules derive for the accelerator, beside those of templates: cycles by trials.

    python benchmarks/accelerator_sketches.py [-c CONFIG] [--trials 64] [--plot F.svg] [LAYER …]

Each layer is searched for twice, by the same searcher and seed, on the same expression: among the
tiles of its template, from the analytic model's choice on (a product of two images isn't tuned: its
template has that choice alone); and among the schedules that
``search/rules.py`` derives of the expression alone. Cycles are the simulator's, of the layer alone
and cold. A ratio above 1 says that the template's best is faster.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from rich.console import Console
from rich.table import Table

from vdla.analysis.figures import COLOURS, new_figure, save
from vdla.compiler.schedule import Schedule
from vdla.compiler.search.records import Log
from vdla.compiler.search.tuner import TuneOptions, tune
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d
from vdla.compiler.targets.accelerator.operators.matmul import MatMul
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Operator
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.kernel_meter import KernelMeter
from vdla.compiler.targets.accelerator.search.kernel_records import KernelRecord
from vdla.compiler.targets.accelerator.search.knob_task import CycleKnobTask
from vdla.compiler.targets.accelerator.search.simulation import Simulation
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_space import tile_space
from vdla.compiler.targets.accelerator.search.tile_task import TileTask
from vdla.compiler.targets.accelerator.search.transfer import TransferData
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.isa.config import Config, load_config

THREADS = 2  # virtual threads of a template's tiles; rules have one or two
INT8 = {"zero": 0, "low": -128, "high": 127}
WINDOW = {
    "batch": 1, "kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1),
    "in_zero": 0, "residual": None, **INT8,
}  # fmt: skip
LAYERS: dict[str, AnyTemplate] = {  # channels come in blocks of 16
    "convolution": Conv2d(groups=1, inputs=4, outputs=4, height=28, width=28, **WINDOW),
    "matmul": Conv2d(groups=1, inputs=8, outputs=16, height=14, width=14,
                        **WINDOW | {"kernel": (1, 1), "pads": (0, 0, 0, 0)}),
    "depthwise": Conv2d(groups=8, inputs=1, outputs=1, height=14, width=14, **WINDOW),
    "two images": MatMul(1, 64, 4, 196, 196, 0, 0, **INT8),
    "addition": Add(14 * 14 * 16, 9000, -7000, 3, -8, 2, -128, 127),
}  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """The least cycles after each trial, of a layer's template and of the rules."""

    layer: str
    template: Sequence[float]
    rules: Sequence[float]

    @property
    def ratio(self) -> float:
        """The rules' best over the template's."""
        return self.rules[-1] / self.template[-1]


def least(costs: Sequence[float]) -> list[float]:
    """The least of so many costs."""
    result: list[float] = []
    for cost in costs:
        result.append(min([cost, *result[-1:]]))
    return result


def of_template(name: str, template: AnyTemplate, config: Config, how: TuneOptions) -> list[float]:
    """The least cycles after each trial among a template's tiles; of one that isn't tuned, those of
    the tile that it takes."""
    default = default_tile(template, config, THREADS, None)
    if not template.TUNED:
        s = template.schedule(default, config)
        function = AcceleratorFunction.of(Schedule(s.built), config)
        return [KernelMeter(function).measure(s.trace).cost]
    params = template.schedule(default, config).mod.params
    operator = Operator(SimpleNamespace(name=name), template, {p.name: p.name for p in params},
                        {}, 0, 0)  # type: ignore[arg-type]  # fmt: skip
    workload = Workload.of(template, config, default.vthreads)
    space = tile_space(template, config, default.vthreads)
    task = TileTask([name], space, Simulation(operator, config), workload, default, TransferData())
    with tempfile.TemporaryDirectory() as folder, Log(Path(folder) / "log", TileRecord) as log:
        tune([task], log, how)
    return least([outcome.cost for outcome in task.outcomes.values()])


def of_rules(template: AnyTemplate, config: Config, how: TuneOptions) -> list[float]:
    """The least cycles after each trial among the schedules that rules derive."""
    built = template.schedule(default_tile(template, config, THREADS, None), config).built
    task = CycleKnobTask.of(AcceleratorFunction.of(Schedule(built), config))
    with tempfile.TemporaryDirectory() as folder, Log(Path(folder) / "log", KernelRecord) as log:
        tune([task], log, how)
    return least([outcome.cost for outcome in task.outcomes.values()])


def compare(name: str, config: Config, how: TuneOptions) -> Compared:
    """Both searches for a layer."""
    template = LAYERS[name]
    return Compared(name, of_template(name, template, config, how), of_rules(template, config, how))


def plot(compared: Sequence[Compared], path: Path) -> None:
    """Draws a panel for each layer, with a line for each search."""
    figure = new_figure(2.6 * len(compared), 2.8)
    for n, each in enumerate(compared):
        axes = figure.add_subplot(1, len(compared), n + 1)
        axes.spines[["top", "right"]].set_visible(False)
        for label, values, colour in (("template", each.template, COLOURS[1]),
                                      ("rules", each.rules, COLOURS[6])):  # fmt: skip
            last = max(len(each.template), len(each.rules))
            held = [*values, *[values[-1]] * (last - len(values))]
            axes.step(range(1, last + 1), held, where="post", label=label, c=colour)
        axes.set_title(each.layer, fontsize=9)
        axes.set_xlabel("trials", fontsize=8)
        axes.tick_params(labelsize=7)
        if n == 0:
            axes.set_ylabel("least cycles", fontsize=8)
            axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def main() -> None:
    """Prints the table, and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=", ".join(LAYERS))
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--searcher", default="model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    if unknown := [name for name in args.layers if name not in LAYERS]:
        parser.error(f"expected layers of {', '.join(LAYERS)}, found {unknown[0]}")
    config = load_config(args.config)
    how = TuneOptions(trials=args.trials, searcher=args.searcher, seed=args.seed)
    compared = [compare(name, config, how) for name in args.layers or LAYERS]
    table = Table("layer", "tiles tried", "template's first", "template's best", "rules' best",
                  "ratio", title=f"{args.trials} trials on {config.name}; cycles")  # fmt: skip
    for each in compared:
        cycles = (each.template[0], each.template[-1], each.rules[-1])
        table.add_row(each.layer, str(len(each.template)), *(f"{n:,.0f}" for n in cycles),
                      f"{each.ratio:.3f}")  # fmt: skip
    Console(width=100).print(table)
    if args.plot:
        plot(compared, args.plot)


if __name__ == "__main__":
    main()
