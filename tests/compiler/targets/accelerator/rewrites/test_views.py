"""Concatenations and slices by addresses: which become some, and that the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph, placed_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.plan import address_views, lifetimes, plan_memory
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator import target
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.views import view_parts, view_slices
from vdla.isa.config import load_config
from vdla.isa.program import Program
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.dram import aligned_bytes
from vdla.runtime.executor import Executor
from vdla.sim.checker import check

PAPER, TINY = load_config("paper"), load_config("tiny")
IMAGE = 5, 7


class Network:
    """A graph of integers under construction; channels are those of config tiny's blocks."""

    def __init__(self, images: int = 1) -> None:
        self.images, self.inputs, self.nodes = images, [], []
        self.tensors: dict[str, TensorType] = {}

    def input(self, channels: int) -> str:
        """An input of the caller's."""
        self.inputs.append(self._tensor(f"x{len(self.inputs)}", channels))
        return self.inputs[-1]

    def clip(self, data: str) -> str:
        """A tensor that the accelerator writes."""
        name = self._tensor(f"n{len(self.nodes)}", self.tensors[data].shape[1])
        node = ops.QClip(name=name, output=name, data=data, zeros=(3,), requant=Requant((0.9,), -4))
        self.nodes.append(node)
        return name

    def concat(self, parts, scales=None, **changes) -> str:
        """The parts one behind another; at one scale unless others are given."""
        channels = sum(self.tensors[part].shape[1] for part in parts)
        name = self._tensor(f"n{len(self.nodes)}", channels)
        values = {"zeros": (-4,) * len(parts), **changes}
        values.setdefault("requant", Requant(scales or (1.0,) * len(parts), -4))
        node = ops.QConcat(name=name, output=name, parts=tuple(parts), axis=1, **values)
        self.nodes.append(node)
        return name

    def take(self, data: str, first: int, end: int) -> str:
        """Some channels, one behind another."""
        name = self._tensor(f"n{len(self.nodes)}", end - first)
        shape = self.tensors[name].shape
        tables = range(shape[0]), range(first, end), *map(range, shape[2:])
        places = tuple(place for table in tables for place in table)
        node = ops.QTake(name=name, output=name, data=data, shape=shape, places=places)
        self.nodes.append(node)
        return name

    def graph(self, *outputs: str) -> Graph:
        """The network so far."""
        return verify(Graph(tuple(self.inputs), outputs, tuple(self.nodes), self.tensors))

    def _tensor(self, name: str, channels: int) -> str:
        self.tensors[name] = TensorType((self.images, channels, *IMAGE), "int8")
        return name


def kinds(graph: Graph, config=TINY) -> list[str]:
    return [node.op for node in verify(view_parts(graph, Capability(config))).nodes]


def check_numbers(graph: Graph, config=TINY, vthreads=2):
    """The module, whose streams are sound and give what the graph means."""
    rng = np.random.default_rng(0)
    inputs = {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}
    want = evaluate(graph, inputs)
    module = compile_graph(graph, config, Options(vthreads=vthreads))
    for code in module.programs.values():
        program = Program.from_bytes(code, config)
        dram = aligned_bytes(module.dram_bytes)
        dram[: len(module.constants)] = np.frombuffer(module.constants, np.uint8)
        assert check(config, program.instructions, dram, program.base) == []
    got = Executor(module, SimDevice(config)).run(inputs).outputs
    for name in graph.outputs:
        np.testing.assert_array_equal(got[name], want[name], name)
    return module


def instructions(module, config) -> int:
    return sum(len(Program.from_bytes(c, config).instructions) for c in module.programs.values())


def two_parts(channels=8, **changes) -> Graph:
    """Two tensors of the accelerator's, one behind another, and a reader."""
    n = Network()
    a = n.clip(n.input(channels))
    return n.graph(n.clip(n.concat([a, n.clip(a)], **changes)))


@pytest.mark.parametrize("vthreads", [1, 2])
@pytest.mark.parametrize("config", [TINY, PAPER], ids=lambda config: config.name)
def test_parts_of_one_scale_take_no_instructions(config, vthreads, monkeypatch):
    graph = two_parts(2 * config.channel_block)
    assert kinds(graph, config) == ["QClip", "QClip", "QConcatView", "QClip"]
    module = check_numbers(graph, config, vthreads)
    rows = {row["name"]: row for row in module.metadata["placement"]}
    assert rows["n2"]["device"] == "vdla"
    assert rows["n2"]["reason"] == "concatenation by addresses on int8"
    assert "n2" not in {layer["name"] for layer in module.metadata["layers"]}
    assert len(module.programs) == 1
    whole, first, second = (module.tensors[name] for name in ("n2", "n0", "n1"))
    assert (first.offset, second.offset) == (whole.offset, whole.offset + first.nbytes)
    monkeypatch.setattr(target, "view_parts", lambda graph, *_: graph)
    before = check_numbers(graph, config, vthreads)
    assert instructions(module, config) < instructions(before, config)


@pytest.mark.parametrize(
    "changes",
    [{"scales": (1.0, 0.7)}, {"zeros": (-4, 9)}, {"requant": Requant((1.0, 1.0), -4, -4, 60)}],
    ids=str,
)
def test_other_parts_are_copied(changes):
    graph = two_parts(**changes)
    limited = "requant" in changes
    expected = ["QConcat"] if limited else ["QClip", "QConcatView"]
    assert kinds(graph) == ["QClip", "QClip", *expected, "QClip"]
    check_numbers(graph)


def test_a_part_is_a_view_of_one_result():
    n = Network()
    a, b = n.clip(n.input(4)), n.clip(n.input(8))
    first, second = n.concat([a, b, a]), n.concat([b, n.clip(a)])
    graph = n.graph(n.clip(first), n.clip(second), n.clip(b))
    copies = [
        node.name for node in view_parts(graph, Capability(TINY)).nodes if ".part" in node.name
    ]
    assert copies == [f"{first}.part2", f"{second}.part0"]
    check_numbers(graph)


def test_a_constant_is_copied():
    n = Network()
    a, b = n.clip(n.input(4)), n.input(8)
    graph = n.graph(n.concat([a, b]))
    graph.inputs = graph.inputs[:1]
    graph.constants[b] = np.arange(8 * 35).reshape(1, 8, *IMAGE).astype(np.int8)
    assert kinds(graph) == ["QClip", "QClip", "QConcatView"]


def test_which_concatenations_stay():
    assert "QConcatView" not in kinds(two_parts(6))  # no whole blocks
    n = Network(images=2)
    assert kinds(n.graph(n.concat([n.clip(n.input(4)), n.clip(n.input(4))])))[2:] == ["QConcat"]
    n = Network()
    assert kinds(n.graph(n.concat([n.input(4), n.input(4)]))) == ["QConcat"]  # the host's


def test_the_host_writes_a_part_where_the_result_has_it():
    n = Network()
    x = n.input(4)
    graph = n.graph(n.clip(n.concat([x, n.clip(n.input(5))])), n.clip(x))
    assert kinds(graph) == ["QClip", "QConcatView", "QClip", "QClip"]
    module = check_numbers(graph)
    assert module.tensors["x0.packed"].offset == module.tensors["n1"].offset


@pytest.mark.parametrize("vthreads", [1, 2])
@pytest.mark.parametrize("config", [TINY, PAPER], ids=lambda config: config.name)
def test_slices_of_whole_blocks_take_no_instructions(config, vthreads):
    n, block = Network(), config.channel_block
    x = n.clip(n.clip(n.input(4 * block - 1)))
    first, last = n.take(x, block, 3 * block), n.take(x, 3 * block, 4 * block - 1)
    graph = n.graph(n.clip(first), n.clip(last), n.take(first, block, 2 * block))
    kinds = [node.op for node in view_slices(graph, Capability(config)).nodes]
    assert kinds == ["QClip", "QClip", "QTakeView", "QTakeView", "QClip", "QClip", "QTakeView"]
    module = check_numbers(graph, config, vthreads)
    assert [layer["op"] for layer in module.metadata["layers"]] == ["QClip"] * 4
    reasons = {row["op"]: row["reason"] for row in module.metadata["placement"]}
    assert reasons["QTakeView"] == "slice by addresses"
    assert module.tensors[first].offset == module.tensors[x].offset + block * 35


def test_a_slice_of_a_concatenation_and_back():
    """The half that goes on is a view of the whole; as a part of another result it is copied."""
    n = Network()
    a, b = n.clip(n.input(8)), n.clip(n.input(4))
    half = n.take(n.concat([a, b]), 4, 12)
    graph = n.graph(n.clip(n.concat([half, n.clip(half)])))
    module = check_numbers(graph)
    assert module.tensors[half].offset == module.tensors[a].offset + 4 * 35
    copied = [row["name"] for row in module.metadata["placement"] if ".part" in row["name"]]
    assert copied == ["n5.part0"]


@pytest.mark.parametrize(("first", "end"), [(2, 8), (0, 6), (4, 7)])
def test_other_slices_stay(first, end):
    n = Network()
    graph = n.graph(n.take(n.clip(n.input(12)), first, end))
    assert view_slices(graph, Capability(TINY)).nodes == graph.nodes
    n = Network(images=2)
    graph = n.graph(n.take(n.clip(n.input(12)), 0, 8))
    assert view_slices(graph, Capability(TINY)).nodes == graph.nodes
    n = Network()
    graph = n.graph(n.take(n.input(12), 0, 8))  # the host's
    assert view_slices(graph, Capability(TINY)).nodes == graph.nodes


@st.composite
def networks(draw) -> Graph:
    """Concatenations and slices of what the caller, the accelerator or one of them writes."""
    n = Network()
    known = [n.input(draw(st.sampled_from((4, 8)))) for _ in range(2)]
    for _ in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from(("clip", "take", "concat", "concat")))
        data = draw(st.sampled_from(known))
        blocks = n.tensors[data].shape[1] // 4
        if kind == "clip":
            known.append(n.clip(data))
        if kind == "take":
            first = draw(st.integers(0, blocks - 1))
            known.append(n.take(data, 4 * first, 4 * draw(st.integers(first + 1, blocks))))
        if kind != "concat":
            continue
        parts = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        scales = tuple(draw(st.sampled_from((1.0, 1.0, 0.7))) for _ in parts)
        known.append(n.concat(parts, scales))
    written = [name for name in known if name not in n.inputs]
    others = draw(st.lists(st.sampled_from(written), max_size=3, unique=True))
    return n.graph(*dict.fromkeys((written[-1], *others)))


@settings(max_examples=60)
@given(networks())
def test_living_tensors_overlap_only_where_they_hold_the_same_bytes(graph):
    """A tensor and a part of it do; a slice and whatever else is part of the same tensor do."""
    laid, _ = placed_graph(graph, TINY)
    slices = {node.output for node in laid.nodes if isinstance(node, ops.QTakeView)}
    views = address_views(laid)
    plan, spans = plan_memory(laid, views=views), lifetimes(laid)
    assert set(plan.offsets) == set(spans)
    for name, (whole, offset) in views.items():
        assert plan.offsets[name] == plan.offsets[whole] + offset
        assert offset + laid.tensors[name].nbytes <= laid.tensors[whole].nbytes

    def wholes(name):
        return {name} | (wholes(views[name].whole) if name in views else set())

    def overlap(a, b):
        start, other = plan.offsets[a], plan.offsets[b]
        return start < other + laid.tensors[b].nbytes and other < start + laid.tensors[a].nbytes

    for a, (begin, end) in spans.items():
        for b, (first, last) in spans.items():
            alive = begin <= last and first <= end
            sliced = (a in slices or b in slices) and wholes(a) & wholes(b)
            shared = a in wholes(b) or b in wholes(a) or sliced
            assert not (alive and overlap(a, b)) or shared, (a, b)


def test_two_slices_of_one_tensor_are_the_same_bytes():
    n = Network()
    a = n.clip(n.input(8))
    first, second = n.take(a, 0, 4), n.take(a, 0, 4)
    module = check_numbers(n.graph(n.clip(a), first, second))
    assert module.tensors[f"{first}.packed"].offset == module.tensors[f"{second}.packed"].offset


@settings(max_examples=12)
@given(networks(), st.sampled_from((1, 2)))
def test_any_concatenations_keep_their_numbers(graph, vthreads):
    check_numbers(graph, TINY, vthreads)
