"""Samples of a network's inputs, by which the ranges of its float tensors are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.measured import Ends, Measure, measured
from vdla.compiler.graph.types import Array
from vdla.compiler.models.calibration import Arrays

Progress = Callable[[str, int, int], None]
Given = Mapping[str, Array]  # by the names of inputs, samples one behind another


def check_samples(where: str, given: Given, graph: Graph) -> None:
    """Raises ModelError where samples aren't those of a network's inputs: names the network,
    ``where``, and the input."""
    if unknown := sorted({*given} - {*graph.inputs}):
        expected = f"samples of the model's inputs, {', '.join(graph.inputs)}"
        raise ModelError(where, expected, ", ".join(unknown))
    _samples(where, given, graph)


def measuring(given: Given, progress: Progress) -> Measure:
    """The function that measures a graph's ranges on samples.

    Of a graph with other inputs, as the body of a loop has, it measures nothing.
    """

    def measure(graph: Graph) -> Ends:
        try:
            samples = _samples(graph.name, given, graph)
        except ModelError:
            return {}
        return measured(graph, each(samples, graph))

    def each(samples: Arrays, graph: Graph) -> Iterator[Mapping[str, Array]]:
        for number in range(len(samples)):
            progress("calibration", number, len(samples))
            sample = samples[number]
            yield {n: array.reshape(graph.tensors[n].shape) for n, array in sample.items()}

    return measure


def _samples(where: str, given: Given, graph: Graph) -> Arrays:
    """Batches of samples, as a graph's inputs have them.

    Raises:
        ModelError: they don't fit the inputs.
    """
    kinds = {name: graph.tensors[name] for name in graph.inputs}
    shapes = {name: kind.shape for name, kind in kinds.items()}
    return Arrays(given, shapes, where, {name: kind.dtype for name, kind in kinds.items()})
