"""Which depthwise convolutions take in which of their neighbours."""

from __future__ import annotations

import pytest

from tests.compiler.targets.accelerator.operators.test_separable import (
    BOTH,
    FORWARDING,
    SIZES,
    WINDOW,
    Chain,
    bottleneck,
)
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.placement import ACCELERATOR, PROCESSOR, Placement
from vdla.compiler.targets.accelerator.operators.separable import Parts
from vdla.compiler.targets.accelerator.rewrites.fuse_separable import (
    NO_TILE,
    Costs,
    fuse_separable,
)
from vdla.isa.config import load_config


class Cheap(Costs):
    """Costs by which joined convolutions always win, the more the better."""

    def alone(self, node, graph):
        return 10.0

    def together(self, parts, graph):
        return 1.0


class Dear(Costs):
    """Costs by which they never do."""

    def alone(self, node, graph):
        return 1.0

    def together(self, parts, graph):
        return 10.0


class Impossible(Costs):
    """Buffers that hold nothing but the depthwise convolution and what it reads."""

    def alone(self, node, graph):
        return 10.0

    def together(self, parts, graph):
        return 1.0 if parts.project is None else None


def fused(chain, config, kind=Cheap, elsewhere=(), outputs=None):
    """The names of the parts of each node, and its placement."""
    graph = chain.graph
    graph.outputs = outputs or graph.outputs
    placements = {
        n.name: Placement(PROCESSOR if n.name in elsewhere else ACCELERATOR, "as it is")
        for n in graph.nodes
    }
    result, placements = fuse_separable(graph, placements, kind(config, 2, None))
    parts = [
        [p.name for p in n.parts] if isinstance(n, ops.Fused) else n.name for n in result.nodes
    ]
    return parts, {n.name: placements[n.name].reason for n in result.nodes}


def test_both_neighbours_stay_on_chip():
    parts, reasons = fused(bottleneck(), BOTH)
    assert parts == [["expand", "filter", "project"]]
    assert reasons == {"filter": "expand → filter → project on int8, as one"}


@pytest.mark.parametrize(("config", "parts"), [
    (load_config("paper"), ["expand", "filter", "project"]),
    (FORWARDING, [["expand", "filter", "project"]]),
    (WINDOW, ["expand", ["filter"], "project"]),
    (load_config("narrow", ["forwarding=1", "window_taps=2"]), ["expand", "filter", "project"]),
], ids=["no option", "forwarding", "window", "other blocks"])  # fmt: skip
def test_what_a_config_can(config, parts):
    assert fused(bottleneck(), config)[0] == parts


LEFT_OUT = "as it is; not one with expand, project: "


@pytest.mark.parametrize(("kind", "config", "reason"), [
    (Dear, BOTH, LEFT_OUT + "apart: 3 cycles, fused: 10"),
    (Dear, WINDOW, "as it is; not by the window: apart: 1 cycles, fused: 10"),
    (Impossible, BOTH, "expand → filter on int8, as one; not one with project: no tile of them "
     "fits inp 1024, wgt 128, acc 512 entries"),
    (Cheap, load_config("narrow", ["forwarding=1"]),
     LEFT_OUT + "expected block_in = block_out, found 8 and 16"),
    (Dear, load_config("paper"), "as it is"),
], ids=["dear", "dear window", "no tile", "other blocks", "no option"])  # fmt: skip
def test_the_placement_says_why_a_chain_is_apart(kind, config, reason):
    assert fused(bottleneck(), config, kind)[1]["filter"] == reason


@pytest.mark.parametrize(("outputs", "groups", "counts"), [(32, 16, "1 and 2"), (16, 8, "2 and 2")])
def test_groups_that_are_no_depthwise_convolution(outputs, groups, counts):
    chain = Chain(7, (1, 16, 9, 9))
    chain.add("filter", outputs, 3, groups=groups)
    chain.add("project", 16)
    assert fused(chain, BOTH) == (
        ["filter", "project"],
        {"filter": "as it is; not one with project: expected one channel and one output per "
         f"group, found {counts}", "project": "as it is"},
    )  # fmt: skip


def test_an_operator_of_which_the_buffers_hold_no_tile_joins_others():
    """By itself a depthwise convolution takes nine tiles of WGT, which has eight."""
    config = load_config("tiny", [*SIZES, "wgt_bytes=512", "forwarding=1", "window_taps=3"])
    graph = bottleneck().graph
    costs = Costs(config, 2, None)
    assert [costs.alone(node, graph) == NO_TILE for node in graph.nodes] == [False, True, False]
    assert fused(bottleneck(), config, Costs)[0] == [["expand", "filter"], "project"]


def test_a_depthwise_convolution_by_itself():
    assert fused(bottleneck(), WINDOW)[1]["filter"] == "depthwise convolution on int8"


def test_only_where_it_pays():
    assert fused(bottleneck(), BOTH, Dear)[0] == ["expand", "filter", "project"]


def test_only_what_the_buffers_hold():
    assert fused(bottleneck(), BOTH, Impossible)[0] == [["expand", "filter"], "project"]


@pytest.mark.parametrize(("node", "parts"), [
    ("expand", ["expand", ["filter", "project"]]),
    ("filter", ["expand", "filter", "project"]),
    ("project", [["expand", "filter"], "project"]),
])  # fmt: skip
def test_what_runs_elsewhere_is_left_out(node, parts):
    assert fused(bottleneck(), BOTH, elsewhere=(node,))[0] == parts


@pytest.mark.parametrize(("tensor", "parts"), [
    ("expand", ["expand", ["filter", "project"]]),
    ("filter", [["expand", "filter"], "project"]),
])  # fmt: skip
def test_what_the_caller_reads_is_stored(tensor, parts):
    result, reasons = fused(bottleneck(), BOTH, outputs=(tensor, "project"))
    assert result == parts
    assert reasons["filter"].endswith(f": {tensor} is a result of the network")


def test_what_somebody_else_reads_is_stored():
    chain = bottleneck()
    chain.last = "filter"
    chain.add("other", 8)
    parts, reasons = fused(chain, BOTH)
    assert parts == [["expand", "filter"], "project", "other"]
    assert reasons["filter"] == (
        "expand → filter on int8, as one; not one with project: filter has other readers; "
        "not one with other: filter has other readers"
    )


def test_a_convolution_joins_one_neighbour_at_most():
    """Between two depthwise convolutions it goes to the first."""
    chain = bottleneck()
    chain.add("second", 16, 3, groups=16)
    chain.add("last", 8)
    assert fused(chain, BOTH)[0] == [["expand", "filter", "project"], ["second", "last"]]


@pytest.mark.parametrize("other", [
    {"kernel": 3}, {"strides": (2, 2)}, {"pads": (1, 1, 1, 1)}, {"groups": 2},
])  # fmt: skip
def test_neighbours_that_are_no_plain_1x1_convolutions(other):
    chain = Chain(7, (1, 16, 9, 9))
    chain.add("filter", 16, 3, groups=16)
    chain.add("project", 16, **other)
    parts, reasons = fused(chain, BOTH)
    assert parts == [["filter"], "project"]
    why = "; not one with project: expected one group, stride 1 and no padding"
    assert reasons["filter"].endswith(why) is ("kernel" not in other)  # that is no candidate


def test_what_an_addition_makes_is_stored():
    """An addition behind the first convolution is none of the joined operator's steps."""
    chain = Chain(7, (1, 16, 9, 9))
    chain.tensors["r"] = TensorType((1, 16, 9, 9), "int8")
    addition = ops.AddStep(addend="r", zeros=(0, 3), requant=Requant((0.7, 0.4), -5))
    chain.add("expand", 16, epilogue=(addition,))
    chain.add("filter", 16, 3, groups=16)
    chain.add("project", 8)
    parts, reasons = fused(chain, BOTH)
    assert parts == ["expand", ["filter", "project"]]
    assert reasons["filter"].endswith("; not one with expand: an addition makes expand")


def test_the_models_decide():
    """By the models of the templates, one bottleneck of a MobileNetV2 is worth joining."""
    costs = Costs(load_config("paper", ["forwarding=1", "window_taps=3"]), 2, None)
    chain = Chain(7, (1, 32, 28, 28))
    chain.add("expand", 192)
    chain.add("filter", 192, 3, groups=192, pads=(1, 1, 1, 1))
    chain.add("project", 32)
    graph = chain.graph
    together = costs.together(Parts(*graph.nodes), graph)
    assert together < 0.8 * sum(costs.alone(node, graph) for node in graph.nodes)
