"""Separable convolutions with their neighbours, as one operator: numbers, streams, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.analysis.cases import Case
from vdla.analysis.machines import Machines
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Quant, Requant, TensorType
from vdla.compiler.targets.accelerator.codegen.allocate import footprint
from vdla.compiler.targets.accelerator.lower import UOPS
from vdla.compiler.targets.accelerator.operators.cost import TilingError, parts
from vdla.compiler.targets.accelerator.operators.loops import loops_of
from vdla.compiler.targets.accelerator.operators.separable import Separable, is_depthwise
from vdla.compiler.targets.accelerator.operators.separable.kept import Layout
from vdla.compiler.targets.accelerator.operators.separable.sizes import SeparableTile
from vdla.compiler.targets.accelerator.operators.template import operator_of
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Gemm
from vdla.isa.options.weights4 import has_weights4
from vdla.runtime.dram import whole_pages
from vdla.sim.machine import simulate
from vdla.support.numbers import divisors

SIZES = ["block_in=8", "block_out=8", "inp_bytes=8192", "wgt_bytes=8192", "acc_bytes=16384"]
FORWARDING = load_config("tiny", [*SIZES, "forwarding=1"])
WINDOW = load_config("tiny", [*SIZES, "window_taps=3"])
BOTH = load_config("tiny", [*SIZES, "forwarding=1", "window_taps=4", "weights4=1"])
WIDE = ["block_in=16", "block_out=16", *SIZES[2:]]
ROWS = load_config("tiny", [*WIDE, "forwarding=1", "window_taps=3", "window_rows=2", "weights4=1"])
CONFIGS = {"forwarding": FORWARDING, "window": WINDOW, "both": BOTH, "two rows": ROWS}
SCALE = 2.0**-7
QUANT = Quant(1.0, 0)


class Chain:
    """A graph of up to three convolutions, with random numbers; the middle one is depthwise."""

    def __init__(self, seed, data):
        self.rng = np.random.default_rng(seed)
        self.half = 8 if seed % 2 else 20  # of the weights' range: int4, or not
        self.tensors = {"x": TensorType(data, "int8", QUANT)}
        self.constants, self.nodes, self.last = {}, [], "x"

    def add(self, name, outputs, kernel=1, epilogue=(), **rest):
        """Appends a convolution of what the last one gave."""
        rng, shape = self.rng, self.tensors[self.last].shape
        groups = rest.get("groups", 1)
        size = outputs, shape[1] // groups, kernel, kernel
        weight = rng.integers(-self.half, self.half, size).astype(np.int8)
        bias = rng.integers(-900, 900, outputs).astype(np.int32)
        self.constants |= {f"{name}.w": weight, f"{name}.b": bias}
        low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
        numbers = {
            "zeros": (int(rng.integers(-20, 20)),),
            "requant": Requant(
                tuple(float(SCALE * f) for f in rng.uniform(0.3, 2, outputs)),
                int(rng.integers(-20, 20)),
                low,
                high,
            ),
        }
        names = {"data": self.last, "weight": f"{name}.w", "bias": f"{name}.b"}
        zero = numbers["requant"].zero
        steps = tuple(replace(step, zeros=(zero, *step.zeros[1:])) for step in epilogue)
        node = ops.QConv2d(name=name, output=name, **names, **numbers, **rest, epilogue=steps)
        for key, dtype in (("w", "int8"), ("b", "int32")):
            array = self.constants[f"{name}.{key}"]
            self.tensors[f"{name}.{key}"] = TensorType(array.shape, dtype)
        result = node.result_shape([self.tensors[n].shape for n in node.inputs])
        self.tensors[name] = TensorType(result, "int8", QUANT)
        self.nodes.append(node)
        self.last = name

    @property
    def graph(self):
        """The graph, its parts as nodes of their own."""
        inputs = tuple(n for n in ("x", "r") if n in self.tensors)
        return Graph(inputs, (self.last,), tuple(self.nodes), self.tensors, self.constants)


def run(chain, config, tile=None, vthreads=2):
    """The result of the simulator, and that of the graph; the program is sound."""
    graph = chain.graph
    node = fuse(graph.nodes, "fused")
    template = Separable.of(node, graph, config)
    assert template.weights4 == (chain.half == 8 and has_weights4(config))
    operator = operator_of(node, graph, template, config)
    program = layer_program(operator, tile or template.best(config, vthreads), config)
    assert program.check() == []
    values = {
        name: chain.rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8)
        for name in graph.inputs
    }
    dram = np.zeros(whole_pages(program.dram.size), np.uint8)
    dram[: program.dram.size] = program.dram
    for name, value in values.items():
        raw = pack(value, config.channel_block).reshape(-1).view(np.uint8)
        dram[program.addresses[name] :][: raw.size] = raw
    simulate(config, program.program.instructions, dram, program.program.base)
    kind = replace(graph.tensors[chain.last], block=config.channel_block)
    raw = dram[program.addresses[chain.last] :][: kind.nbytes]
    result = unpack(raw.view(np.int8).reshape(kind.physical), kind.shape)
    return result, evaluate(graph, values)[chain.last]


@st.composite
def chains(draw):
    """Convolutions of any sizes, one or both neighbours, a residual addition behind the last."""
    side = st.integers(3, 11)
    expands, projects = draw(st.booleans()), draw(st.booleans())
    channels = draw(st.sampled_from((5, 8, 20, 24)))
    inputs = draw(st.sampled_from((3, 8, 12))) if expands else channels
    chain = Chain(draw(st.integers(0, 1 << 30)), (1, inputs, draw(side), draw(side)))
    if expands:
        chain.add("expand", channels)
    kernel = draw(st.sampled_from((2, 3, 5)))
    pads = tuple(draw(st.integers(0, kernel - 1)) for _ in range(4))
    strides = draw(st.sampled_from(((1, 1), (2, 2), (1, 2), (2, 1), (3, 3))))
    height, width = chain.tensors[chain.last].shape[2:]
    pads = tuple(
        p if n >= kernel else kernel - 1 for p, n in zip(pads, (height, width) * 2, strict=True)
    )
    chain.add("filter", channels, kernel, groups=channels, pads=pads, strides=strides)
    if projects:
        outputs = draw(st.sampled_from((4, 8, 17)))
        if draw(st.booleans()):
            shape = (1, outputs, *chain.tensors["filter"].shape[2:])
            chain.tensors["r"] = TensorType(shape, "int8", QUANT)
            total = Requant((0.7, 0.4), -5)
            addition = ops.AddStep(addend="r", zeros=(0, 3), requant=total)
            chain.add("project", outputs, epilogue=(addition,))
        else:
            chain.add("project", outputs)
    return chain


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_chain_equals_its_graph(config, data):
    equals_its_graph(config, data)


@pytest.mark.long
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_more_chains_equal_their_graphs(config, data):
    equals_its_graph(config, data)


def equals_its_graph(config, data):
    chain = data.draw(chains().filter(lambda c: config.forwarding or len(c.nodes) == 1))
    result, wanted = run(chain, config, vthreads=data.draw(st.integers(1, 2)))
    assert np.array_equal(result, wanted)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_entries_of_a_tile_are_those_of_its_loops(data):
    """Whether the buffers hold them or not, in a column as alone."""
    config = data.draw(st.sampled_from([*CONFIGS.values()]))
    chain = data.draw(chains().filter(lambda c: config.forwarding or len(c.nodes) == 1))
    template = Separable.of(fuse(chain.graph.nodes, "f"), chain.graph, config)
    vthreads = data.draw(st.integers(1, 3))
    tile = SeparableTile(
        data.draw(st.sampled_from(parts(template.out_height))),
        data.draw(st.sampled_from(parts(template.out_width))),
        data.draw(st.sampled_from(divisors(template.blocks))),
        vthreads,
        data.draw(st.integers(1, min(vthreads, 2))) if template.inputs else 1,
        data.draw(st.booleans()),
        data.draw(st.integers(2, 9)) if vthreads > 1 else 1,
    )
    needed = footprint(loops_of(template, tile, config), config)
    layout = Layout(template, config)
    own = layout.entries(tile)
    assert own == {scope: needed[scope] for scope in own}
    column = replace(tile, rows=np.array([1, tile.rows]), cols=np.array([1, tile.cols]))
    counted = {scope: np.broadcast_to(n, 2)[1] for scope, n in layout.entries(column).items()}
    assert counted == own


TILES = [6, pytest.param(12, marks=pytest.mark.long)]  # how many of a space are tried


def bottleneck(side=9, stride=1):
    chain = Chain(7, (1, 8, side, side))
    chain.add("expand", 24)
    chain.add("filter", 24, 3, groups=24, pads=(1, 1, 1, 1), strides=(stride, stride))
    chain.add("project", 16)
    return chain


@pytest.mark.parametrize("count", TILES)
@pytest.mark.parametrize("stride", [1, 2])
def test_every_tile_of_the_space_computes_the_same(stride, count):
    chain = bottleneck(stride=stride)
    template = Separable.of(fuse(chain.graph.nodes, "f"), chain.graph, BOTH)
    tiles = [tile for threads in (1, 2) for tile in template.tiles(BOTH, threads)]
    assert {(tile.resident, tile.stages) for tile in tiles} == {
        (True, 1), (False, 1), (True, 2), (False, 2),
    }  # fmt: skip
    for tile in tiles[:: len(tiles) // count]:
        result, wanted = run(chain, BOTH, tile)
        assert np.array_equal(result, wanted), tile
        assert template.is_legal(tile, BOTH, tile.vthreads)


@pytest.mark.parametrize("count", TILES)
@pytest.mark.parametrize("stride", [1, 2])
def test_every_tile_of_two_rows_computes_the_same(stride, count):
    chain = bottleneck(stride=stride)
    template = Separable.of(fuse(chain.graph.nodes, "f"), chain.graph, ROWS)
    tiles = [tile for threads in (1, 2) for tile in template.tiles(ROWS, threads)]
    for tile in tiles[:: len(tiles) // count]:
        result, wanted = run(chain, ROWS, tile)
        assert np.array_equal(result, wanted), tile


OF_TWO_ROWS = ["block_in=8", "block_out=8", "window_taps=2", "window_rows=2"]


@pytest.mark.parametrize(
    "options",
    [["window_taps=2"], OF_TWO_ROWS],
    ids=["a row", "two rows"],
)
@pytest.mark.long
def test_the_rtl_does_the_same_in_the_same_cycles(options):
    config = load_config("tiny", ["table_bytes=16384", "forwarding=1", *options])
    chain = bottleneck(side=6)
    graph = chain.graph
    node = fuse(graph.nodes, "fused")
    template = Separable.of(node, graph, config)
    operator = operator_of(node, graph, template, config)
    program = layer_program(operator, template.best(config, 2), config)
    dram = chain.rng.integers(0, 256, whole_pages(program.dram.size)).astype(np.uint8)
    low = min(program.addresses[name] for name in operator.constants.keys() | {UOPS})
    dram[low : program.dram.size] = program.dram[low:]
    stream = program.program
    case = Case(config, stream.stream(), stream.base, dram, Identity.of(config))
    sim, rtl = Machines(config).run(case, config.memory)
    assert sim.fault == rtl.fault == 0
    assert sim.cycles == rtl.cycles
    assert np.array_equal(sim.memories["dram"], rtl.memories["dram"])


def test_two_threads_hide_what_one_waits_for():
    cycles = []
    for threads in (1, 2):
        chain = bottleneck(side=16)
        graph = chain.graph
        node = fuse(graph.nodes, "fused")
        template = Separable.of(node, graph, BOTH)
        operator = operator_of(node, graph, template, BOTH)
        program = layer_program(operator, template.best(BOTH, threads), BOTH)
        stream = program.program
        ran = simulate(BOTH, stream.instructions, program.dram, stream.base, numerics=False)
        cycles.append(ran.cycles)
    assert cycles[1] < 0.8 * cycles[0]


def test_a_micro_op_for_each_row_of_the_kernel():
    """Nine taps take three micro-ops where a window sees a row of them, two where it sees two rows,
    and nine without."""
    chain = Chain(3, (1, 8, 6, 6))
    chain.add("filter", 8, 3, groups=8)
    steps = []
    for config in (FORWARDING, WINDOW, ROWS):
        shape = Separable.of(fuse(chain.graph.nodes, "f"), chain.graph, config)
        steps.append(shape.micro_ops)
    assert steps == [9, 3, 2]


def test_two_rows_of_a_window_take_64_multiply_adds_a_cycle():
    """Two micro-ops for the nine taps of 16 channels, 18 steps for 16 pixels of a row."""
    chain = bottleneck(side=16)
    graph = chain.graph
    node = fuse(graph.nodes, "fused")
    template = Separable.of(node, graph, ROWS)
    operator = operator_of(node, graph, template, ROWS)
    tile = replace(template.best(ROWS, 1), rows=2, cols=16)
    instructions = layer_program(operator, tile, ROWS).program.instructions
    windows = [i for i in instructions if isinstance(i, Gemm) and i.window]
    lanes = 2 * ROWS.block_out  # of 24 channels, in whole blocks
    assert lanes * 16 * 16 * 9 / sum(i.steps() for i in windows) == 64


def test_dilated_windows_take_products_with_diagonals():
    chain = Chain(3, (1, 8, 9, 9))
    chain.add("filter", 8, 3, groups=8, dilations=(2, 2))
    assert Separable.of(fuse(chain.graph.nodes, "f"), chain.graph, WINDOW).taps == 1
    result, wanted = run(chain, WINDOW)
    assert np.array_equal(result, wanted)


def test_buffers_that_hold_no_tile():
    chain = bottleneck()
    template = Separable.of(fuse(chain.graph.nodes, "f"), chain.graph, BOTH)
    small = BOTH.override(["acc_bytes=512"])
    with pytest.raises(TilingError, match=(
        r"^config tiny: expected buffers that hold one tile of a 3×3 depthwise convolution, found "
        "inp 1024, wgt 128, acc 16 entries$"
    )):  # fmt: skip
        template.best(small, 1)


def test_which_convolutions_are_depthwise():
    chain = Chain(1, (1, 8, 5, 5))
    chain.add("one", 8)
    chain.add("pairs", 8, groups=4)
    chain.add("each", 8, groups=8)
    chain.add("twice", 16, groups=8)
    graph = chain.graph
    assert [n.name for n in graph.nodes if is_depthwise(n, graph)] == ["each"]
