"""An operator without GEMMs runs beside the one before it."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import vdla
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import Builder
from vdla.compiler.models.networks import calibration
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.targets.accelerator.codegen.beside import (
    acc_entries,
    moved_in_acc,
    places_beside,
)
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.order import conflict
from vdla.compiler.targets.accelerator.codegen.touches import Touches
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm, Load, Mem, Store

VECTOR = load_config("paper", ["vector_engine=1"])
BETWEEN, SIZE = "between", 64  # a tensor that one operator stores and the other loads
KINDS = (Load, Gemm, Alu, Store)


def entry(space, number, write):
    return Access(space, number, ((1, 1),), write)


def random_ops(rng, kinds, count):
    """Instructions that touch entries of ACC, INP and words of DRAM."""
    ops = []
    for number in range(count):
        accesses = [
            entry(space, rng.randrange(0, SIZE, 8), rng.random() < 0.5)
            for space in rng.sample(("acc", "inp", BETWEEN), rng.randrange(1, 3))
        ]
        ops.append(Op(rng.choice(kinds)(), tuple(accesses), str(number)))
    return ops


@pytest.mark.parametrize("seed", range(40))
def test_every_dependence_is_kept(seed):
    rng = random.Random(seed)
    first, second = random_ops(rng, KINDS, 30), random_ops(rng, (Load, Alu, Store), 12)
    places = places_beside(first, second, Touches({BETWEEN: 0}, SIZE, VECTOR))
    assert all(a <= b for a, b in pairwise(places))
    for op, place in zip(second, places, strict=True):
        behind = [other for other in first[place:] if conflict(other, op)]
        assert not behind, op.name


def row(number):
    """A convolution's row: loaded into one of two buffers, computed, stored."""
    buffer, at = number % 2, 8 * number
    return [
        Op(Load(), (entry("inp", buffer, True),), f"load {number}"),
        Op(Gemm(), (entry("inp", buffer, False), entry("acc", buffer, True)), f"gemm {number}"),
        Op(Store(), (entry("acc", buffer, False), entry(BETWEEN, at, True)), f"store {number}"),
    ]


def widened(number):
    return Op(Load(), (entry(BETWEEN, 8 * number, False), entry("acc", 9, True)), f"wide {number}")


def test_a_load_goes_where_those_behind_it_wait_no_less():
    """Behind row 1's STORE stand row 2's LOAD, which waits for row 0 alone, and row 3's, which
    waits for row 1's GEMM; row 4's waits for row 2's, behind that STORE."""
    first = [op for number in range(6) for op in row(number)]
    places = places_beside(first, [widened(1)], Touches({BETWEEN: 0}, SIZE, VECTOR))
    assert first[places[0]].name == "load 4"


def test_what_is_ready_at_once_is_spread():
    first = [op for number in range(8) for op in row(number)]
    second = [widened(n) for n in (3, 2, 1, 0, 7)]
    places = places_beside(first, second, Touches({BETWEEN: 0}, SIZE, VECTOR))
    distances = [b - a for a, b in pairwise(places)]
    assert first[places[0]].name == "load 6"
    assert max(distances) - min(distances) <= 1
    assert places[-1] == len(first)


def test_all_of_acc_moves():
    load = Op(Load(memory=Mem.ACC8, sram_base=3), (entry("acc", 3, True),), "wide")
    alu = Op(Alu(dst_base=1, src_base=3), (entry("acc", 3, False), entry("acc", 1, True)), "max")
    store = Op(Store(sram_base=1, scale_base=5), (entry("acc", 1, False),), "out")
    assert acc_entries([load, alu, store]) == 4
    wide, reduced, out = moved_in_acc([load, alu, store], 10)
    assert wide.instruction.sram_base == 13
    assert (reduced.instruction.dst_base, reduced.instruction.src_base) == (11, 13)
    assert (out.instruction.sram_base, out.instruction.scale_base) == (11, 15)
    assert [a.start for op in (wide, reduced, out) for a in op.accesses] == [13, 13, 11, 11]


# Networks ----------------------------------------------------------------------------------------

SHAPE = (1, 16, 33, 33)


def network(folder, pools):
    """A convolution, and pools of its result."""
    samples = calibration(SHAPE)
    b = Builder("pooled", 3, samples)
    x = b.relu(b.conv("conv", "input", 32, Window.square(3)))
    outputs = [b.max_pool(f"pool{n}", x, Window.square(*pool)) for n, pool in enumerate(pools)]
    path = folder / "pooled.onnx"
    quantize_model(b.model(*outputs), path, [{"input": each[None]} for each in samples])
    return path


def figures(path, config, device="sim"):
    """Outputs and cycles for inputs of a seed."""
    inputs = {"input": np.random.default_rng(0).uniform(0, 1, SHAPE).astype(np.float32)}
    module = vdla.compile(path, config, device=device)
    return vdla.run(module, inputs)


def beside(path, config):
    """Whether instructions of a pool stand between those of the convolution."""
    (stream,) = vdla.compile(path, config).metadata["streams"].values()
    return [name for name, _ in stream["layers"]].count("conv") > 1


@pytest.mark.parametrize("pools", [[(3, 2)], [(2, 2), (3, 2)]])
def test_a_pool_runs_beside_its_convolution(tmp_path, pools):
    path = network(tmp_path, pools)
    wanted, result = figures(path, VECTOR, "cpu"), figures(path, VECTOR)
    for name, array in wanted.outputs.items():
        assert np.array_equal(result.outputs[name], array)
    assert beside(path, VECTOR)
    assert result.cycles < figures(path, load_config("paper")).cycles


@pytest.mark.parametrize("settings", [[], ["vector_engine=1", "acc_bytes=16384"]])
def test_a_pool_runs_behind_without_the_engine_or_the_room(tmp_path, settings):
    path, config = network(tmp_path, [(3, 2)]), load_config("paper", settings)
    wanted, result = figures(path, config, "cpu"), figures(path, config)
    for name, array in wanted.outputs.items():
        assert np.array_equal(result.outputs[name], array)
    assert not beside(path, config)
