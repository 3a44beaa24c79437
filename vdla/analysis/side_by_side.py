"""One network on several configs, layer by layer: where a change of the design pays, and where not.

Each config has the best schedules known for the most virtual threads, as in its own comparison. A
layer that one of the configs leaves to the host has no figures there, and a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from vdla.analysis.comparison import Comparison, Layer
from vdla.analysis.end_to_end import EndToEnd
from vdla.analysis.rows import Row, data_frame
from vdla.isa.config import TABLES, Config
from vdla.support.tables import html_table

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class SideBySide:
    """Comparisons of one network, a config each; the first is what the others are held against."""

    comparisons: Sequence[Comparison]

    @cached_property
    def labels(self) -> list[str]:
        """Name of each config; with its place behind it where two have the same name."""
        names = [each.config.name for each in self.comparisons]
        twice = {name for name, count in Counter(names).items() if count > 1}
        return [f"{n} #{place}" if n in twice else n for place, n in enumerate(names, 1)]

    @property
    def clocks(self) -> str:
        """Clock of each config, and where it comes from, in words."""
        pairs = zip(self.labels, self.comparisons, strict=True)
        return ", ".join(f"{label} {each.config.at_clock}" for label, each in pairs)

    @cached_property
    def layers(self) -> list[str]:
        """Names of the layers that some config's accelerator runs, in the network's order."""
        return list(dict.fromkeys(layer.name for c in self.comparisons for layer in c.layers))

    def layer(self, design: int, name: str) -> Layer | None:
        """The layer on the accelerator of a design, by its place; None where the host has it."""
        return self._by_name[design].get(name)

    @cached_property
    def _by_name(self) -> list[dict[str, Layer]]:
        return [{layer.name: layer for layer in each.layers} for each in self.comparisons]

    @cached_property
    def common(self) -> list[str]:
        """Names of the layers that every design's accelerator runs: what totals are of."""
        return [name for name in self.layers if all(name in each for each in self._by_name)]

    def milliseconds(self, design: int, name: str | None = None) -> float | None:
        """Time of a layer, or of all common layers, on a design at its clock; None on the host."""
        comparison = self.comparisons[design]
        names = self.common if name is None else [name]
        layers = [self.layer(design, each) for each in names]
        measured = [each.measured[comparison.vthreads[-1]] for each in layers if each]
        if len(measured) < len(names):
            return None
        return sum(each.cycles for each in measured) / comparison.config.clock_mhz / 1e3

    def end_to_end(self, design: int) -> EndToEnd | None:
        """Time of an inference on a design, the host's part by a model; None where it isn't
        known."""
        comparison = self.comparisons[design]
        return comparison.end_to_end(comparison.vthreads[-1])

    def ratio(self, design: int, name: str | None = None) -> float | None:
        """Time of a layer, or of all common layers, over the first design's; None where one of both
        is the host's, or nothing is common."""
        first, own = self.milliseconds(0, name), self.milliseconds(design, name)
        return None if not first or own is None else own / first

    @cached_property
    def differences(self) -> dict[str, list[object]]:
        """Parameters whose values aren't the same in all configs, each with a value per config."""
        tables = [_parameters(each.config) for each in self.comparisons]
        keys = dict.fromkeys(key for table in tables for key in table)
        values = {key: [table.get(key) for table in tables] for key in keys}
        return {key: each for key, each in values.items() if len(set(map(str, each))) > 1}

    def rows(self) -> list[Row]:
        """The rows of all comparisons, with the design's label in front."""
        pairs = zip(self.labels, self.comparisons, strict=True)
        return [{"design": label, **row} for label, each in pairs for row in each.rows()]

    def to_pandas(self) -> DataFrame:
        """``rows`` as a table of pandas.

        Raises:
            UserError: pandas isn't installed.
        """
        return data_frame(self.rows())

    def __repr__(self) -> str:
        times = ", ".join(
            f"{label}: {self.milliseconds(i):.3f} ms {self.comparisons[i].config.at_clock}"
            for i, label in enumerate(self.labels)
        )
        return f"SideBySide({len(self.common)} common layers; {times})"

    def _repr_html_(self) -> str:
        """Table of layers, as a notebook shows it."""
        columns = ["layer", *(f"{label}, ms" for label in self.labels)]
        columns += [f"{label} / {self.labels[0]}" for label in self.labels[1:]]
        rows = [[name, *self.cells(name)] for name in self.layers]
        rows.append(["all in common", *self.cells(None)])
        return html_table(repr(self), columns, rows)

    def cells(self, name: str | None) -> list[str]:
        """Texts of a layer's row, or that of all layers: times in ms, then ratios to the first."""
        designs = range(len(self.comparisons))
        times = [self.milliseconds(i, name) for i in designs]
        ratios = [self.ratio(i, name) for i in designs[1:]]
        return [
            *("host" if t is None else f"{t:.3f}" for t in times),
            *("" if r is None else f"{r:.2f}" for r in ratios),
        ]

    def to_json(self) -> dict[str, object]:
        """The object of ``vdla compare -c A -c B --json``; times in ms, ratios to the first."""
        return {
            "designs": [
                {
                    "label": label,
                    "clock_mhz": each.config.clock_mhz,
                    "clock_source": each.config.clock.source,
                    "milliseconds": self.milliseconds(place),
                    "ratio": self.ratio(place),
                    "accelerator_ms": each.cycles(each.vthreads[-1]) / each.config.clock_mhz / 1e3,
                    **each.to_json(),
                }
                for place, (label, each) in enumerate(
                    zip(self.labels, self.comparisons, strict=True)
                )
            ],
            "differences": {
                key: dict(zip(self.labels, values, strict=True))
                for key, values in self.differences.items()
            },
            "layers": [
                {
                    "name": name,
                    "milliseconds": {
                        label: self.milliseconds(i, name) for i, label in enumerate(self.labels)
                    },
                    "ratio": {label: self.ratio(i, name) for i, label in enumerate(self.labels)},
                }
                for name in self.layers
            ],
        }


def _parameters(config: Config) -> dict[str, object]:
    """Each parameter of a config, those of its memory with their table in front."""
    result: dict[str, object] = {}
    for key, value in config.to_dict().items():
        if key in TABLES:
            result |= {f"{key}.{name}": each for name, each in value.items()}
        elif key != "name":
            result[key] = value
    return result
