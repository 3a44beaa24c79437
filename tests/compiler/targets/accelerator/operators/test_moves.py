"""Moves of int8 tensors: which ones the accelerator takes, and that its engines overlap."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.build import Options, accelerator_layers
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.operators.concat import Concat
from vdla.compiler.targets.accelerator.operators.moves import MoveTile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.compiler.targets.target import place
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Load, Mem, Store
from vdla.sim.machine import simulate

PAPER = load_config("paper")


def joined(*shapes, axis=1) -> Graph:
    """A graph of one concatenation."""
    names = tuple(f"x{number}" for number in range(len(shapes)))
    count = len(shapes)
    node = ops.QConcat(
        name="move",
        output="y",
        parts=names,
        axis=axis,
        zeros=(3,) * count,
        requant=Requant((0.7,) * count, -4),
    )
    out = list(shapes[0])
    out[axis] = sum(shape[axis] for shape in shapes)
    tensors = {n: TensorType(s, "int8") for n, s in zip(names, shapes, strict=True)}
    return Graph(names, ("y",), (node,), {**tensors, "y": TensorType(tuple(out), "int8")})


def taken(shape, tables) -> Graph:
    """A graph of one node that takes elements from other places."""
    out = tuple(map(len, tables))
    places = tuple(i for table in tables for i in table)
    node = ops.QTake(name="move", output="y", data="x", shape=out, places=places)
    tensors = {"x": TensorType(shape, "int8"), "y": TensorType(out, "int8")}
    return Graph(("x",), ("y",), (node,), tensors)


def reason(graph: Graph) -> str:
    """Why the node stays on the host, or what it is on the accelerator."""
    return place(graph, Options().targets(PAPER))["move"].reason


def test_which_concatenations_are_taken():
    image = (5, 7)
    assert reason(joined((1, 16, *image), (1, 32, *image))) == "concatenation on int8"
    assert reason(joined((2, 16), (2, 3))) == "concatenation on int8"  # the last ends anywhere
    assert reason(joined((1, 3, *image), (1, 16, *image))) == (
        "a part of 3 channels doesn't end with a block of 16"
    )
    assert reason(joined((1, 3, 5, 7), (1, 3, 2, 7), axis=2)) == "concatenation on int8"
    assert reason(joined((1, 3, 5, 7), (1, 3, 5, 2), axis=3)) == "concatenation on int8"
    assert reason(joined((1, 3, 5, 7), (4, 3, 5, 7), axis=0)) == "concatenation on int8"
    assert reason(joined((1, 16, 5), (1, 16, 5))) == (
        "a tensor of 3 dimensions has no channel blocks"
    )


def test_which_takes_are_taken():
    one, block = range(1), range(16)
    twice, thrice = [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1]
    assert reason(taken((1, 16, 3, 2), [one, block, twice, thrice])) == "nearest upsampling on int8"
    assert reason(taken((1, 16, 3, 2), [one, block, twice, [0, 1]])) == "nearest upsampling on int8"
    images = taken((4, 16, 3, 2), [[2, 3, 3, -1], block, range(3), range(2)])
    assert reason(images) == "images in another order on int8"
    nothing = taken((4, 16, 3, 2), [[-1, -1], block, range(3), range(2)])
    assert reason(nothing) == "images of which none is the data's"
    zigzag = taken((4, 16, 3, 2), [[2, 0] * 33, block, range(3), range(2)])
    assert reason(zigzag) == "66 runs of images; at most 64"
    other = "elements other than each row and each column a number of times"
    for tables in (
        [one, [0, *range(1, 16), 15], twice, thrice],  # channels
        [one, block, [0, 1, 2, 0, 1, 2], thrice],  # all rows, then all again
        [one, block, [0, 0, 1, 1], thrice],  # some rows
        [one, block, [0, 0, 1, 2], thrice],
        [one, block, [1, 1, 2, 2], thrice],
        [[0, 0], block, twice, thrice],
    ):
        assert reason(taken((1, 16, 3, 2), tables)) == other
    assert reason(taken((3, 2), [twice, thrice])) == (
        "a tensor of 2 dimensions has no channel blocks"
    )


def test_pixels_are_repeated_on_chip():
    """A STORE writes whole rows, and as many of them as there are, each ``down`` times."""
    graph = taken((1, 16, 6, 4), [range(1), range(16), [i // 2 for i in range(12)], [0, 1, 2, 3]])
    across = taken((1, 16, 6, 4), [range(1), range(16), range(6), [i // 3 for i in range(12)]])
    for made, alu in ((graph, 0), (across, 1)):
        (operator,), _ = accelerator_layers(made, PAPER)
        layer = layer_program(operator, MoveTile(6, 4), PAPER)
        moves = [i for i in layer.program.instructions if isinstance(i, Store)]
        assert [(i.x_stride, i.x_size * i.y_size) for i in moves] == (
            [(1, 24)] * 2 if made is graph else [(1, 72)]
        )
        assert sum(isinstance(i, Alu) for i in layer.program.instructions) == alu


def test_templates_that_differ_in_numbers_share_their_tile():
    one = Concat(2, (30, 60), 1, (3, 4), 5, -100, 100)
    other = Concat(2, (30, 60), 1, (0, 0), 0, -128, 127)
    assert one.geometry == other.geometry
    assert one.best(PAPER, 2) == one.geometry.best(PAPER, 2)
    assert Concat.from_json(one.to_json()) == one.geometry


@pytest.mark.parametrize(("rows", "pixels", "tiles"), [(1, 81, 16), (2, 243, 4)])
def test_threads_hide_latency(rows, pixels, tiles):
    """With two threads a tile is loaded while another one is stored: the bus hardly rests, where
    STORE fills a beat in each cycle."""
    config = load_config("paper", ["store_groups=1"])
    graph = joined((4, 16, 9, 9), (4, 48, 9, 9))
    (operator,), _ = accelerator_layers(graph, config)
    cycles = {}
    for threads in (1, 2):
        layer = layer_program(operator, MoveTile(rows, pixels, threads), config)
        moves = [i for i in layer.program.instructions if isinstance(i, Load | Store)]
        assert sum(i.memory == Mem.ACC8 for i in moves) == 2 * tiles
        assert not layer.check()
        run = simulate(config, layer.program.instructions, layer.dram, layer.program.base)
        cycles[threads] = run.cycles
    size = np.prod(graph.tensors["y"].shape)
    assert cycles[2] < cycles[1]
    assert cycles[2] < 1.15 * 2 * size / config.bytes_per_cycle
