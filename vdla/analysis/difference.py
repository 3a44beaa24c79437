"""Comparison of a model's numbers with onnxruntime's, layer by layer and as a whole.

Every layer gets onnxruntime's own input tensors and runs where the compiler placed it: on the
simulated accelerator, or as native code on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.analysis.layers import MAX_SHARE, LayerDifference, isolate, layer_differences
from vdla.analysis.ort import cosine, ort_run, ort_tensors
from vdla.compiler.build import Options, compile_graph, rewritten_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.normalize import QNormalize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.rounding import in_the_middle
from vdla.compiler.placement import ACCELERATOR
from vdla.isa.config import Config
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor
from vdla.runtime.values import flat, taken_apart

Array = NDArray[Any]
# Elements of operators in integers that may differ from those in floats, by at most 1: decision 48.
CLUSTERS: Mapping[type[Node], float] = {QMatMul: MAX_SHARE, QSoftmax: 0.003, QNormalize: 0.04}
MIN_COSINE = 0.999
MAX_RELATIVE = 1e-4  # of outputs that nothing quantized, in units of the reference's largest value
STEPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}  # relative, between neighbours of coarser floats
TOLERANCE = 1e-5  # relative: a difference of float32 values that are steps apart


@dataclass(frozen=True)
class Agreement:
    """One input's first output against the reference's, a best class per sample of the batch.

    ``largest`` is the largest difference, ``rounding`` what the reference's own rounding moves: one
    step of the output, or as far as it moves when the reference runs the same file without fusing
    operators. ``behind`` is how far below its best class the reference puts ours; a ``tie`` is no
    farther than its rounding. ``behind`` and ``rounding`` are of the sample where that is tightest.
    ``relative`` is the largest difference of any output, in units of that output's largest value;
    ``close`` is whether each is within the bound of its types, or within the reference's own
    rounding of it: a sigmoid far below 0 is no larger than that. ``unfused`` is the cosine of the
    reference with the one that doesn't fuse operators.
    """

    cosine: float
    same_top1: bool
    tie: bool
    largest: float
    behind: float
    rounding: float
    relative: float
    close: bool
    unfused: float = 1.0

    @property
    def least(self) -> float:
        """The cosine that is expected: of two results that are each as far from the exact one as
        the reference's two are from one another, where rounding grows through the network."""
        return min(MIN_COSINE, 1 - 2 * (1 - self.unfused))

    @property
    def holds(self) -> bool:
        """Whether our best class is one the reference could have answered with."""
        return self.same_top1 or self.tie


@dataclass(frozen=True)
class Check:
    """A model against onnxruntime: every layer, and the whole network per input.

    ``bound`` is how far outputs may be off that nothing quantized, in units of the largest value.
    """

    layers: list[LayerDifference]
    whole: list[Agreement]
    quantized: bool = True
    bound: float = MAX_RELATIVE

    @property
    def holds(self) -> bool:
        """Whether the bounds hold: a layer's elements by at most 1, seldom; the outputs close.

        Of a model of floats, every output alone.
        """
        if not self.quantized:
            return all(a.close for a in self.whole)
        layers = all(layer.holds for layer in self.layers)
        return layers and all(a.cosine >= a.least and a.holds for a in self.whole)


def per_layer(
    graph: Graph,
    path: Path,
    inputs: Mapping[str, Array],
    config: Config,
    options: Options,
    device: str = "sim",
) -> list[LayerDifference]:
    """The difference of every integer layer of ``path``'s optimized ``graph``.

    Each is compiled for the device and target of ``options``, and fed onnxruntime's tensors.
    """

    def result(graph: Graph, node: Node, operands: Sequence[Array]) -> Array:
        values = dict(zip(node.inputs, operands, strict=True))
        return _alone(graph, node, values, config, options, device)

    return layer_differences(graph, ort_tensors(path, inputs), result)


def per_cluster(
    graph: Graph,
    inputs: Mapping[str, Array],
    config: Config,
    options: Options,
    device: str = "sim",
) -> list[LayerDifference]:
    """The difference of every product of two activations, softmax and normalization that the
    accelerator computes in integers from the same in floats.

    ``graph`` is an imported one. Each is fed the tensors that the graph's interpreter computes from
    ``inputs``; the floats are of numpy, rounded once.
    """
    graph, placements = rewritten_graph(graph, config, options)
    nodes = [node for node in graph.nodes if type(node) in CLUSTERS]
    given = taken_apart(graph.arguments, inputs)
    values, result = evaluate(graph, given) if nodes else {}, []
    for node in nodes:
        if placements[node.name].device != ACCELERATOR:
            continue
        assert isinstance(node, QMatMul | QSoftmax | QNormalize)
        floats, size, operations = node.before_rounding([values[name] for name in node.inputs])
        zero, low, high = node.requant.limits
        want = np.clip(np.rint(floats) + zero, low, high).astype(np.int32)
        got = _alone(graph, node, values, config, options, device)
        either = in_the_middle(floats, size, operations) if isinstance(node, QMatMul) else None
        result.append(LayerDifference.of(node, got, want, either, CLUSTERS[type(node)]))
    return result


def _alone(
    graph: Graph,
    node: Node,
    values: Mapping[str, Array],
    config: Config,
    options: Options,
    device: str,
) -> Array:
    """Result that a device computes for one node of a graph."""
    alone = isolate(graph, node)
    chosen = Options(device=options.device, target=options.target)
    module = compile_graph(alone, config, chosen)
    run = Executor(module, make_device(module, device)).run({n: values[n] for n in alone.inputs})
    result: Array = run.outputs[node.output]
    return result


def whole(
    graph: Graph, path: Path, ready: Executor, samples: Sequence[Mapping[str, Array]]
) -> list[Agreement]:
    """Cosine and best classes of the first output, per input; how far any output is off."""
    step, bound = output_step(graph), relative_bound(graph)
    result = []
    for inputs in samples:
        got = ready.run(inputs).outputs
        want, unfused = (ort_run(path, inputs, fuse) for fuse in (True, False))
        pairs = _pairs(*(flat("", [*outputs.values()]) for outputs in (got, want, unfused)))
        relative = max(_relative(ours, theirs) for ours, theirs, _ in pairs)
        close = all(is_close(*each, bound) for each in pairs)
        result.append(_agreement(*pairs[0], step, relative, close))
    return result


def _pairs(
    got: Mapping[str, Array], want: Mapping[str, Array], unfused: Mapping[str, Array]
) -> list[tuple[Array, Array, Array]]:
    """The arrays of three runs that belong together; of runs that don't have the same ones, arrays
    of other shapes."""
    nothing = np.zeros(0)
    if not got.keys() == want.keys() == unfused.keys():
        return [(np.zeros(1), nothing, nothing)]
    pairs = [(got[name], want[name], unfused[name]) for name in got]
    return pairs or [(nothing, nothing, nothing)]


def _relative(got: Array, want: Array) -> float:
    """The largest difference in units of the largest value; infinite where it isn't a number."""
    if got.shape != want.shape:  # of an output whose size depends on data
        return float("inf")
    ours, theirs = got.astype(np.float64), want.astype(np.float64)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if same.all():
        return 0.0
    finite = np.abs(theirs[np.isfinite(theirs)])
    largest = float(np.abs(ours - theirs)[~same].max()) / float(finite.max(initial=0.0) or 1.0)
    return largest if np.isfinite(largest) else float("inf")


def relative_bound(graph: Graph) -> float:
    """Bound of outputs' differences, in units of the reference's largest value.

    ``MAX_RELATIVE``, but one step of the coarsest floats that the graph computes with: two right
    results that are rounded to float16 may be that far apart.
    """
    kinds = {kind.dtype for kind in graph.tensors.values()}
    return max([MAX_RELATIVE, *(STEPS.get(kind, 0.0) for kind in kinds)])


def is_close(got: Array, want: Array, unfused: Array, bound: float = MAX_RELATIVE) -> bool:
    """Whether an output is within a bound of the reference's largest value, or no farther from it
    than the reference that doesn't fuse operators."""
    return _relative(got, want) <= bound or _apart(got, want) <= _apart(unfused, want)


def _apart(a: Array, b: Array) -> float:
    """The largest difference of two outputs; infinite where it isn't a number."""
    if a.shape != b.shape:
        return float("inf")
    result = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))
    return result if np.isfinite(result) else float("inf")


def output_step(graph: Graph) -> float:
    """The distance of neighbouring values of a graph's first output; 0 if it isn't quantized."""
    maker = graph.producers.get(graph.outputs[0])
    if isinstance(maker, ops.Open):
        return 0.0
    if isinstance(maker, ops.Dequantize):
        return max(maker.scale)
    return 0.0 if graph.tensors[graph.outputs[0]].dtype.startswith("float") else 1.0


def _agreement(
    got: Array, want: Array, unfused: Array, step: float, relative: float, close: bool
) -> Agreement:
    if got.shape != want.shape:
        return Agreement(0.0, False, False, relative, relative, step, relative, close)
    if not got.size:  # there is no class to be the best
        return Agreement(1.0, True, True, 0.0, 0.0, step, relative, close)
    ours, theirs, other = (_rows(output) for output in (got, want, unfused))
    behind = theirs.max(1) - np.take_along_axis(theirs, ours.argmax(1)[:, None], 1)[:, 0]
    rounding = np.maximum(np.abs(theirs - other).max(1), step)
    tightest = int((behind - rounding).argmax())
    return Agreement(
        cosine(got, want),
        same_top1=bool((ours.argmax(1) == theirs.argmax(1)).all()),
        tie=bool((behind <= rounding * (1 + TOLERANCE)).all()),
        largest=float(np.abs(ours - theirs).max()),
        behind=float(behind[tightest]),
        rounding=float(rounding[tightest]),
        relative=relative,
        close=close,
        unfused=cosine(unfused, want),
    )


def _rows(output: Array) -> Array:
    """An output as one row of float64 per sample."""
    return output.reshape(len(output) if output.ndim > 1 else 1, -1).astype(np.float64)
