"""The tokens of compiled streams: enough, and not one too many."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vdla.compiler.build import Options, accelerator_layers
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.isa.config import load_config
from vdla.isa.instructions import AluOp, Instruction
from vdla.isa.ring import ring_of
from vdla.sim.checker import check
from vdla.sim.machine import simulate
from vdla.sim.trace import Token, tokens


def convolution(residual: bool) -> Graph:
    """A small convolution with several tiles and reduction steps."""
    rng = np.random.default_rng(1)
    node = ops.QConv2d(
        name="conv", output="y", data="x", weight="w", bias="b", pads=(1, 1, 1, 1), zeros=(3,),
        requant=Requant((0.001,) * 16, -5),
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
        addition = ops.AddStep(addend="r", zeros=(-5, 4), requant=Requant((0.5, 0.7), 0))
        node = dataclasses.replace(node, epilogue=(addition,))
        tensors["r"] = TensorType(shape, "int8")
        inputs = ("x", "r")
    return Graph(inputs, ("y",), (node,), tensors, constants)


def softmax() -> Graph:
    """A softmax of several tiles, which divides by reciprocals."""
    node = QSoftmax(
        name="n", output="y", data="x", step=0.1, zeros=(0,), requant=Requant((1 / 256,), -128)
    )
    kind = TensorType((1, 48, 1, 9), "int8")
    return Graph(("x",), ("y",), (node,), {"x": kind, "y": kind}, {})


def compiled(residual: bool, config: str, vthreads: int) -> LayerProgram:
    """The convolution alone on a config, its name with settings."""
    return alone(convolution(residual), config, vthreads)


def alone(graph: Graph, config: str, vthreads: int) -> LayerProgram:
    """A graph of one layer on a config, its name with settings."""
    name, *settings = config.split()
    chosen = load_config(name, settings)
    (operator,), _ = accelerator_layers(graph, chosen, Options(min_fill=0.0))
    return layer_program(operator, default_tile(operator.template, chosen, vthreads), chosen)


def ends(token: Token) -> tuple[tuple[int, str], tuple[int, str]]:
    """The instruction and the flag at either end of a token."""
    return (token.giver, token.queue.push), (token.taker, token.queue.pop)


def without(instructions: list[Instruction], *flags: tuple[int, str]) -> list[Instruction]:
    """The stream with some token flags cleared."""
    copy = list(instructions)
    for index, flag in flags:
        copy[index] = copy[index].replace(**{flag: 0})
    return copy


CASES = [
    (False, "tiny", 1), (False, "tiny", 2), (True, "tiny", 2),
    (False, "narrow", 2), (True, "paper", 2),
    (True, "tiny vector_engine=1", 2), (True, "paper vector_engine=1", 3),
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
    assert_every_token_is_needed(compiled(residual, config, vthreads))


@pytest.mark.parametrize("vector_engine", [0, 1])
def test_every_token_of_a_softmax_is_needed(vector_engine):
    """Also where ALU waits for its reciprocals."""
    settings = f"vector_engine={vector_engine} table_bytes=1024 reciprocal_units=2"
    layer = alone(softmax(), f"tiny {settings}", 2)
    operations = {getattr(each, "alu_op", None) for each in layer.program.instructions}
    assert AluOp.RECIPROCAL in operations
    assert_every_token_is_needed(layer)


def assert_every_token_is_needed(layer: LayerProgram) -> None:
    program = layer.program
    found = tokens(ring_of(program.config), program.instructions)
    assert len(found) > 4
    for token in found:
        less = without(list(program.instructions), *ends(token))
        kinds = {f.kind for f in check(program.config, less, layer.dram, program.base)}
        assert "conflict" in kinds, token


def test_a_lone_flag_is_caught():
    """A push without its pop is left over, or shifts its queue; a pop without its push waits."""
    layer = compiled(False, "tiny", 2)
    program = layer.program
    for token in tokens(ring_of(program.config), program.instructions):
        for flag in ends(token):
            less = without(list(program.instructions), flag)
            assert check(program.config, less, layer.dram, program.base) != [], flag


def test_tokens_go_directly_between_any_two_engines():
    """ALU waits for the residual's LOAD across the ring, and GEMM for its last tile's STORE."""
    layer = compiled(True, "tiny vector_engine=1", 2)
    ring = ring_of(layer.program.config)
    passed = {
        (token.queue.giver.name, token.queue.taker.name)
        for token in tokens(ring, layer.program.instructions)
    }
    assert {("LOAD", "VECTOR"), ("STORE", "COMPUTE"), ("COMPUTE", "VECTOR")} <= passed
    assert ("VECTOR", "STORE") in passed


@pytest.mark.parametrize("residual", [False, True])
def test_a_vector_engine_changes_no_result(residual):
    """From random inputs the same bytes come out."""
    outputs = []
    for config in ("tiny", "tiny vector_engine=1"):
        layer = compiled(residual, config, 2)
        dram, program, rng = layer.dram.copy(), layer.program, np.random.default_rng(5)
        places = {name: slice(low, layer.ends[name]) for name, low in layer.addresses.items()}
        for name in ("x.packed", "r.packed")[: 1 + residual]:
            size = dram[places[name]].size
            dram[places[name]] = rng.integers(0, 256, size, np.uint8)
        simulate(program.config, program.instructions, dram, program.base)
        outputs.append(dram[places["y.packed"]])
    assert outputs[0].any()
    np.testing.assert_array_equal(*outputs)
