"""The tokens of compiled streams: enough, and not one too many."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from vdla.compiler.build import Options, accelerator_layers
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, TensorType
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.isa.config import load_config
from vdla.isa.instructions import Engine, Instruction
from vdla.sim.checker import check

QUEUES = [
    (source, sink, push, pop)
    for source in Engine
    for sink, push, pop in (
        (source.next, "push_next", "pop_prev"),
        (source.prev, "push_prev", "pop_next"),
    )
]


def convolution(residual: bool) -> Graph:
    """A small convolution with several tiles and reduction steps."""
    rng = np.random.default_rng(1)
    node = ops.QConv2d(
        name="conv", output="y", data="x", weight="w", bias="b", pads=(1, 1, 1, 1),
        in_zp=3, out_zp=-5, scale=(0.001,) * 16,
    )  # fmt: skip
    shape = (1, 16, 12, 12)
    tensors = {
        "x": TensorType(shape, "int8"),
        "y": TensorType(shape, "int8"),
        "w": TensorType((16, 16, 3, 3), "int8"),
        "b": TensorType((16,), "int32"),
    }
    constants = {
        "w": rng.integers(-128, 128, (16, 16, 3, 3), np.int8),
        "b": rng.integers(-99, 99, 16, np.int32),
    }
    inputs = ("x",)
    if residual:
        fields = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
        node = ops.QConv2dAdd(**fields, residual="r", add_scales=(0.5, 0.7), res_zp=4, add_zp=0)
        tensors["r"] = TensorType(shape, "int8")
        inputs = ("x", "r")
    return Graph(inputs, ("y",), (node,), tensors, constants)


def compiled(residual: bool, config: str, vthreads: int) -> LayerProgram:
    """The convolution alone on a config."""
    chosen = load_config(config)
    (operator,), _ = accelerator_layers(convolution(residual), chosen, Options(min_fill=0.0))
    return layer_program(operator, default_tile(operator.template, chosen, vthreads), chosen)


def tokens(instructions: list[Instruction]) -> Iterator[tuple[int, str, int, str]]:
    """Every token: who gives it with which flag, who takes it with which."""
    for source, sink, push, pop in QUEUES:
        given = [i for i, e in enumerate(instructions) if e.engine == source and getattr(e, push)]
        taken = [i for i, e in enumerate(instructions) if e.engine == sink and getattr(e, pop)]
        assert len(given) == len(taken)
        yield from ((g, push, t, pop) for g, t in zip(given, taken, strict=True))


def without(instructions: list[Instruction], *flags: tuple[int, str]) -> list[Instruction]:
    """The stream with some token flags cleared."""
    copy = list(instructions)
    for index, flag in flags:
        copy[index] = copy[index].replace(**{flag: 0})
    return copy


CASES = [
    (False, "tiny", 1), (False, "tiny", 2), (True, "tiny", 2),
    (False, "narrow", 2), (True, "paper", 2),
]  # fmt: skip


@pytest.mark.parametrize(("residual", "config", "vthreads"), CASES)
def test_a_compiled_stream_is_sound(residual, config, vthreads):
    layer = compiled(residual, config, vthreads)
    program = layer.program
    assert check(program.config, program.instructions, layer.dram, program.base) == []


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_short_queues_do_not_deadlock(slots):
    config = load_config("tiny", [f"token_queue={slots}", "command_queue=2"])
    (operator,), _ = accelerator_layers(convolution(True), config, Options(min_fill=0.0))
    layer = layer_program(operator, default_tile(operator.template, config, 2), config)
    assert check(config, layer.program.instructions, layer.dram, layer.program.base) == []


@pytest.mark.parametrize(("residual", "config", "vthreads"), CASES)
def test_every_token_is_needed(residual, config, vthreads):
    """Without any one token, two conflicting accesses are no longer in order."""
    layer = compiled(residual, config, vthreads)
    program = layer.program
    found = list(tokens(list(program.instructions)))
    assert len(found) > 4
    for giver, push, taker, pop in found:
        less = without(list(program.instructions), (giver, push), (taker, pop))
        kinds = {f.kind for f in check(program.config, less, layer.dram, program.base)}
        assert "conflict" in kinds, (giver, push, taker, pop)


def test_a_lone_flag_is_caught():
    """A push without its pop is left over, or shifts its queue; a pop without its push waits."""
    layer = compiled(False, "tiny", 2)
    program = layer.program
    for giver, push, taker, pop in tokens(list(program.instructions)):
        for flag in ((giver, push), (taker, pop)):
            less = without(list(program.instructions), flag)
            assert check(program.config, less, layer.dram, program.base) != [], flag
