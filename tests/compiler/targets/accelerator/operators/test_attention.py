"""Attention as one operator: equal to its parts bit for bit, on the RTL in every cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.analysis.cases import Case
from vdla.analysis.machines import Machines
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import f32
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.operators.attention import Attention
from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.template import operator_of
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Gemm
from vdla.runtime.dram import whole_pages
from vdla.sim.machine import simulate

ZEROS = 0, -128, 127, 7
RECIPROCALS = ["table_bytes=2048", "reciprocal_units=2", "forwarding=1"]
FULL = load_config("paper-full")
CONFIGS = {
    "paper-full": FULL, "tiny": load_config("tiny", RECIPROCALS),
    "ulx3s": load_config("ulx3s", [*RECIPROCALS, "vector_engine=1"]),
}  # fmt: skip


@dataclass(frozen=True)
class Heads:
    """Sizes, zero points of keys, queries, shares and values, limits, and a seed."""

    heads: int = 2
    channels: int = 32
    keys: int = 21
    queries: int = 18
    values: int = 16
    zeros: tuple[int, int, int, int] = (7, -8, -128, 3)
    low: int = -128
    seed: int = 0

    def graph(self) -> Graph:
        """The four operators, one after another."""
        key, query, share, value = self.zeros
        scale = f32(3.0 / (73.0 * 73.0 * self.channels**0.5))
        scores = QMatMul(
            name="s",
            output="s",
            a="k",
            b="q",
            zeros=(key, query),
            requant=Requant((scale * 40,), 5, self.low),
        )
        shares = QSoftmax(
            name="p",
            output="p",
            data="s",
            step=f32(0.04),
            zeros=(0,),
            requant=Requant((f32(1 / 256),), share),
        )
        moved = QTransposeImage(name="t", output="t", data="p")
        mixed = QMatMul(
            name="y",
            output="y",
            a="t",
            b="v",
            zeros=(share, value),
            requant=Requant((f32(0.006),), -9),
        )
        n, shape = self.heads, (self.heads, self.queries, 1, self.keys)
        shapes = {
            "k": (n, self.channels, 1, self.keys), "q": (n, self.channels, 1, self.queries),
            "v": (n, self.keys, 1, self.values), "s": shape, "p": shape,
            "t": (n, self.keys, 1, self.queries), "y": (n, self.values, 1, self.queries),
        }  # fmt: skip
        tensors = {name: TensorType(size, "int8") for name, size in shapes.items()}
        return verify(Graph(("k", "q", "v"), ("y",), (scores, shares, moved, mixed), tensors, {}))

    def inputs(self) -> dict[str, np.ndarray]:
        """Values for keys, queries and values."""
        rng, graph = np.random.default_rng(self.seed), self.graph()
        return {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}

    def node(self) -> QAttention:
        """All of them as one."""
        return QAttention(**fuse(self.graph().nodes, "y").values())


def program_of(case: Heads, config, vthreads=2, tile=None):
    """The operator's program, with its inputs in DRAM."""
    node, graph = case.node(), case.graph()
    template = Attention.of(node, graph, config)
    operator = operator_of(node, graph, template, config)
    layer = layer_program(operator, tile or template.best(config, vthreads), config)
    for name, value in case.inputs().items():
        raw = pack(value, config.channel_block).reshape(-1).view(np.uint8)
        layer.dram[layer.addresses[name] : layer.addresses[name] + raw.size] = raw
    return layer


def check(case: Heads, config, vthreads=2, tile=None) -> int:
    """Runs the operator, whose result equals its parts', and says how many cycles that took."""
    layer = program_of(case, config, vthreads, tile)
    program = layer.program
    run = simulate(config, program.instructions, layer.dram, program.base)
    want = evaluate(case.graph(), case.inputs())["y"]
    kind = TensorType(want.shape, "int8", block=config.channel_block)
    at = layer.addresses["y"]
    got = layer.dram[at : at + kind.nbytes].view(np.int8).reshape(kind.physical)
    np.testing.assert_array_equal(unpack(got, want.shape), want)
    assert not layer.check()
    return run.cycles


@settings(max_examples=5)
@given(
    config=st.sampled_from(["paper-full", "ulx3s"]),
    sizes=st.tuples(
        st.integers(1, 3), st.sampled_from([16, 32, 64]), st.integers(1, 40), st.integers(1, 40),
        st.integers(1, 40),
    ),
    zeros=st.tuples(*[st.sampled_from(ZEROS)] * 4),
    vthreads=st.integers(1, 2),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_any_heads(config, sizes, zeros, vthreads, seed):
    check(Heads(*sizes, zeros=zeros, seed=seed), CONFIGS[config], vthreads)


@pytest.mark.long
@settings(max_examples=600)
@given(
    config=st.sampled_from(list(CONFIGS)),
    sizes=st.tuples(*[st.integers(1, 3), st.integers(1, 90), *[st.integers(1, 70)] * 3]),
    zeros=st.tuples(*[st.integers(-128, 127)] * 4),
    vthreads=st.integers(1, 2),
    seed=st.integers(0, 1 << 16),
)
def test_many_heads(config, sizes, zeros, vthreads, seed):
    try:
        check(Heads(*sizes, zeros=zeros, seed=seed), CONFIGS[config], vthreads)
    except TilingError:
        assert config != "paper-full"


def test_what_zero_points_add_is_left_out_where_there_are_none():
    def gemms(*zeros: int) -> int:
        case = Heads(heads=1, keys=16, queries=16, zeros=zeros)
        program = program_of(case, FULL).program
        return sum(isinstance(i, Gemm) for i in program.instructions)

    assert gemms(7, 3, -128, -9) == gemms(0, 0, 0, 0) + 4


def test_the_engines_work_on_different_blocks_of_queries():
    """One block of queries after another, each engine waits for the one before it."""
    case = Heads(heads=2, channels=64, keys=128, queries=128, values=64)
    assert check(case, FULL, 2) < 0.6 * check(case, FULL, 1)


def test_every_tile():
    case = Heads(heads=3, channels=16, keys=16, queries=17)
    tiles = list(Attention.of(case.node(), case.graph(), FULL).tiles(FULL, 2))
    assert [tile.key_copies for tile in tiles] == [2, 1]
    for tile in tiles:
        check(case, FULL, tile=tile)


def test_what_a_config_must_have():
    case = Heads(keys=600)

    def why(config: str, *options: str) -> str | None:
        return Attention.refusal(case.node(), case.graph(), load_config(config, options))

    assert why("paper-full") is None
    assert why("paper-full", "table_bytes=0") == (
        "config paper-full has no tables for exponentials (table_bytes = 0)"
    )
    assert why("paper-full", "forwarding=0") == (
        "config paper-full has no STORE to INP (forwarding = 0)"
    )
    assert why("paper-full", "reciprocal_units=0") == (
        "config paper-full has no reciprocals (reciprocal_units = 0)"
    )
    assert why("paper-full", "acc_bytes=65536") == (
        "the buffers don't hold attention of a block of queries to 600 keys of 32 channels"
    )
    assert why("narrow", *RECIPROCALS) == (
        "pixels are no tiles of weights where blocks differ, 8 and 16"
    )


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("vector_engine=1",)], ids=["three", "four engines"])
def test_the_rtl_does_the_same_in_the_same_cycles(options):
    config = load_config("tiny", [*RECIPROCALS, *options])
    layer = program_of(Heads(heads=1, channels=8, keys=6, queries=9, values=5), config)
    stream = layer.program
    dram = np.zeros(whole_pages(layer.dram.size), np.uint8)
    dram[: layer.dram.size] = layer.dram
    case = Case(config, stream.stream(), stream.base, dram, Identity.of(config))
    sim, rtl = Machines(config).run(case, config.memory)
    assert sim.fault == rtl.fault == 0
    assert sim.cycles == rtl.cycles
    assert np.array_equal(sim.memories["dram"], rtl.memories["dram"])
