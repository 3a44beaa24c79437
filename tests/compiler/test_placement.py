"""Partition, layout and memory plan."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdq import QdqModel

from vdla.api.modules import random_inputs
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import BY_OP
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.plan import _first_gaps, align, lifetimes, plan_memory
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window
from vdla.compiler.placement import CONVERSIONS, Placement, report
from vdla.compiler.targets.accelerator.rewrites.layout import layout
from vdla.compiler.targets.target import place
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice

PAPER = SimpleNamespace(block_in=16, block_out=16, channel_block=16)
TINY = SimpleNamespace(block_in=4, block_out=4, channel_block=4)


def places_of(graph, config, device="vdla", **options):
    """Where the nodes of a graph run."""
    return place(graph, Options(device, **options).targets(config))


def network(seed=0):
    """First convolution, residual block, concatenation, pools, classifier."""
    m = QdqModel(seed)
    x = m.conv(m.input("x", (1, 3, 12, 12)), 20, 3, activation="Relu")
    x = m.max_pool(x, 2, 2)
    y = m.add(m.conv(x, 20, Window.square(3)), x, "Relu")
    z = m.concat([x, y])
    m.output(m.dense(m.flatten(m.global_pool(m.conv(z, 33, 1))), 7))
    m.output(m.average_pool(y, 3, 1, (1, 1, 1, 1)))
    return optimize(import_model(m.model()))


def placed(graph, config=PAPER):
    return {n.op + ":" + n.name: p for n in graph.nodes
            for p in [places_of(graph, config)[n.name]]}  # fmt: skip


def test_reasons():
    graph = network()
    reasons = {(r["op"], r["device"], r["reason"]) for r in report(graph, places_of(graph, PAPER))}
    assert reasons == {
        ("Quantize", "cpu", "float input becomes integers"),
        ("QConv2d", "cpu", "3 input channels fill 19 % of the 16-lane block"),
        ("QMaxPool", "vdla", "max pool on int8"),
        ("QConv2d+Add", "vdla", "convolution with residual addition on int8"),
        ("QConcat", "cpu", "a part of 20 channels doesn't end with a block of 16"),
        ("QConv2d", "vdla", "convolution on int8"),
        ("QAvgPool", "vdla", "average pool on int8"),
        ("QDense", "vdla", "dense layer on int8"),
        ("Dequantize", "cpu", "integers become float output"),
    }


def test_conversions_are_the_operators_that_convert():
    assert sorted(CONVERSIONS) == sorted(name for name, kind in BY_OP.items() if kind.CONVERTS)


def test_three_channels_are_enough_for_four_lanes():
    graph = network()
    first = graph.nodes[1]
    assert places_of(graph, TINY)[first.name].device == "vdla"
    assert places_of(graph, PAPER, min_fill=0)[first.name].device == "vdla"


def test_one_channel():
    m = QdqModel()
    m.output(m.conv(m.input("x", (1, 1, 5, 5)), 8, 3))
    graph = optimize(import_model(m.model()))
    assert places_of(graph, PAPER)[graph.nodes[1].name] == Placement(
        "cpu", "1 input channel fills 6 % of the 16-lane block"
    )


def test_float_operators_say_so():
    m = QdqModel()
    x = m.node("Softmax", [m.input("x", (1, 4))], (1, 4))
    m.output(x)
    graph = optimize(import_model(m.model()))
    assert places_of(graph, PAPER)[graph.nodes[-1].name].reason == "float operator Softmax"
    m = QdqModel()
    m.output(m.node("Sigmoid", [m.input("x", (1, 4))], (1, 4)))
    graph = optimize(import_model(m.model()))
    assert places_of(graph, PAPER)[graph.nodes[-1].name].reason == "float operator sigmoid"


def test_device_cpu_takes_everything():
    graph = network()
    for places in (
        places_of(graph, TINY, "cpu"),
        places_of(graph, PAPER, "cpu"),
    ):
        assert {p.device for p in places.values()} == {"cpu"}


@pytest.mark.parametrize(("config", "fill"), [(PAPER, 0.5), (PAPER, 0.0), (TINY, 0.5)])
def test_layout_changes_nothing_but_the_layout(config, fill):
    graph = network()
    laid, places = layout(graph, places_of(graph, config, min_fill=fill), config.block_out)
    verify(laid)
    assert set(places) == {n.name for n in laid.nodes}
    x = {"x": np.random.default_rng(0).standard_normal((1, 3, 12, 12)).astype(np.float32)}
    want, got = evaluate(graph, x), evaluate(laid, x)
    for name in graph.outputs:
        np.testing.assert_array_equal(want[name], got[name])


def test_layout_packs_once_at_each_boundary():
    graph = network()
    laid, places = layout(graph, places_of(graph, PAPER), 16)
    for node in laid.nodes:
        blocks = {laid.tensors[n].block for n in laid.activations(node)}
        if places[node.name].device == "vdla":
            assert blocks == {16}
            assert laid.tensors[node.output].block == 16
        elif not isinstance(node, ops.Unpack):
            assert blocks == {0}
    packs = [n.data for n in laid.nodes if isinstance(n, ops.Pack | ops.Unpack)]
    assert len(packs) == len(set(packs))


def test_an_integer_output_keeps_its_name():
    graph = network()
    conv = next(n for n in graph.nodes if n.epilogue)
    graph.outputs = (*graph.outputs, conv.output)
    laid, _ = layout(graph, places_of(graph, PAPER), 16)
    verify(laid)
    assert laid.tensors[conv.output].block == 0
    assert laid.tensors[f"{conv.output}.packed"].block == 16


def test_a_constant_operand_is_packed_now():
    m = QdqModel(0)
    x = m.input("x", (1, 20, 3, 3))
    values = np.random.default_rng(0).integers(-9, 9, (1, 20, 3, 3)).astype(np.int8)
    names = [m.constant("c", values), m.constant("cs", np.array(0.1, np.float32))]
    y = m.node("Add", [x, m.node("DequantizeLinear", names, values.shape)], values.shape)
    m.output(m.finished(y, 0.2, None))
    graph = optimize(import_model(m.model()))
    laid, _ = layout(graph, places_of(graph, PAPER), 16)
    verify_blocks = laid.constants["c.packed"]
    assert verify_blocks.shape == (1, 2, 3, 3, 16)
    assert [n.op for n in laid.nodes].count("Pack") == 1


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_living_tensors_never_overlap(seed):
    graph = network(seed)
    laid, _ = layout(graph, places_of(graph, PAPER), 16)
    plan = plan_memory(laid)
    spans = lifetimes(laid)
    names = list(plan.offsets)
    assert set(names) == {n for n in laid.tensors if n not in laid.constants and n in spans}
    for i, a in enumerate(names):
        start, size = plan.offsets[a], laid.tensors[a].nbytes
        assert start % 64 == 0
        assert plan.constant_bytes <= start
        assert start + size <= plan.total_bytes
        for b in names[i + 1 :]:
            if spans[a][0] <= spans[b][1] and spans[b][0] <= spans[a][1]:
                other = plan.offsets[b]
                assert start + size <= other or other + laid.tensors[b].nbytes <= start


def first_gap(size, taken):
    """The lowest address at which so many bytes fit between those taken."""
    start = 0
    for low, high in sorted(taken):
        if start + size <= low:
            break
        start = max(start, high)
    return start


SPAN = st.tuples(st.integers(-1, 12), st.integers(0, 6)).map(lambda s: (s[0], s[0] + s[1]))
BYTES = st.one_of(st.integers(1, 4), st.integers(1, 1 << 40))


@settings(max_examples=200)
@given(blocks=st.lists(st.tuples(BYTES, SPAN), max_size=20))
def test_each_tensor_lies_in_the_first_gap(blocks):
    """As one by one: of any sizes in any order, where holes are left between others."""
    sizes, spans = [size for size, _ in blocks], [span for _, span in blocks]
    wanted = []
    for size, (begin, end) in blocks:
        placed = zip(wanted, sizes, spans, strict=False)
        together = [(at, at + n) for at, n, (b, e) in placed if b <= end and begin <= e]
        wanted.append(first_gap(size, together))
    assert _first_gaps(sizes, spans) == wanted


def test_memory_is_reused():
    m = QdqModel()
    x = m.input("x", (1, 16, 8, 8))
    for _ in range(10):
        x = m.conv(x, 16, 1)
    m.output(x)
    graph = optimize(import_model(m.model()))
    plan = plan_memory(graph)
    assert plan.arena_bytes < 4 * align(graph.tensors["x"].nbytes)


def test_constants_have_their_own_region():
    graph = network()
    plan = plan_memory(graph, {"a": np.zeros(3, np.int8), "b": np.zeros(70, np.int8)})
    assert plan.constants == {"a": 0, "b": 64}
    assert plan.constant_bytes == 192
    assert plan.address("b") == 64
    assert min(plan.offsets.values()) == 192


def test_addresses_lie_between_no_beats():
    """Of a port wider than what all addresses are multiples of."""
    m = QdqModel()
    x = m.conv(m.input("x", (1, 3, 5, 5)), 9, 1)
    m.output(m.max_pool(x, 2, 1))
    blocks = ["block_in=128", "block_out=128", "port_bytes=128", "wgt_bytes=65536"]
    config = load_config("paper", blocks)
    module = compile_graph(import_model(m.model()), config, Options())
    host = compile_graph(import_model(m.model()), config, Options(device="cpu"))
    inputs = random_inputs(module)
    (result,) = Executor(module, SimDevice(config)).run(inputs).outputs.values()
    (wanted,) = Executor(host, CpuDevice()).run(inputs).outputs.values()
    np.testing.assert_array_equal(result, wanted)
    plan = plan_memory(network(), {"a": np.zeros(3, np.int8), "b": np.zeros(1, np.int8)}, to=128)
    assert plan.constants == {"a": 0, "b": 128}
    assert [name for name, address in plan.offsets.items() if address % 128] == []


def test_what_a_node_has_for_itself_shares_the_arena():
    graph = network()
    first, *_, last = graph.nodes
    alone = plan_memory(graph)
    plan = plan_memory(graph, scratch={first.name: {"a": 70, "b": 8}, last.name: {"c": 100}})
    assert plan.scratch.keys() == {"a", "b", "c"}
    assert plan.offsets.keys() == alone.offsets.keys()
    spans = {**lifetimes(graph), "a": (0, 0), "b": (0, 0), "c": (len(graph.nodes) - 1,) * 2}
    sizes = {name: graph.tensors[name].nbytes for name in plan.offsets} | {
        "a": 70,
        "b": 8,
        "c": 100,
    }
    for one, other in combinations(spans, 2):
        (begin, end), (start, stop) = spans[one], spans[other]
        if begin <= stop and start <= end:
            low, high = sorted((one, other), key=plan.address)
            assert plan.address(low) + sizes[low] <= plan.address(high)


def test_large_constants_of_the_same_bytes_are_stored_once():
    weights = np.arange(4096, dtype=np.int16)
    constants = {"a": weights, "b": weights + 1, "c": weights.copy(), "d": weights.view(np.int8)}
    small = {name: np.zeros(64, np.int8) for name in "ef"}
    plan = plan_memory(network(), {**constants, **small})
    size = weights.nbytes
    assert plan.constants == {
        "a": 0, "b": size, "c": 0, "d": 0, "e": 2 * size, "f": 2 * size + 64,
    }  # fmt: skip
    assert plan.constant_bytes == 2 * size + 128
