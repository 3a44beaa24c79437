"""Conversions that leave a loop, on the accelerator: turns pass on the integers themselves."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import TURN, body, imported, model, op

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.runtime.plan import Accelerate, Copy, Next

F = np.float32
SHAPE = (1, 16, 4, 4)
TINY = load_config("tiny")
X = {"x": np.random.default_rng(0).uniform(-4, 4, SHAPE).astype(F)}
RNG = np.random.default_rng(1)
SCALES = {"sx": F(1 / 16), "sw": F(1 / 512), "zero": np.int8(0)}
WEIGHTS = {f"w{n}": RNG.integers(-64, 64, (16, 16, 3, 3)).astype(np.int8) for n in range(2)}


def rounded(source, name):
    """Nodes that quantize a tensor and make numbers of it again."""
    return [op("QuantizeLinear", f"{source} sx zero", f"{name}.q"),
            op("DequantizeLinear", f"{name}.q sx zero", name)]  # fmt: skip


def turn(*more):
    """Two convolutions of quantized tensors; the state is quantized at both ends."""
    nodes = [op("Identity", "go", "go2"), *rounded("s", "a")]
    for n, (source, made) in enumerate((("a", "b"), ("b", "t"))):
        nodes += [op("DequantizeLinear", f"w{n} sw zero", f"k{n}"),
                  op("Conv", f"{source} k{n}", f"y{n}", pads=[1, 1, 1, 1]),
                  *rounded(f"y{n}", made)]  # fmt: skip
    return [*nodes, *more]


def looped(count=None, more=(), rows=()):
    """The loop, whose number of turns is ``count``, or an input n."""
    inner = body(turn(*more), (*TURN, ("f s", SHAPE)), (("b go2", []), ("f t", SHAPE), *rows))
    names = " ".join(["y", *(name[2:] for name, _ in rows)])
    loop = op("Loop", "n - x", names, body=inner)
    given = {**SCALES, **WEIGHTS, **({} if count is None else {"n": np.array(count)})}
    inputs = X if count is not None else {**X, "n": np.array(0)}
    return model([loop], inputs, [f"f {name}" for name in names.split()], **given)


def single():
    """One turn, with no loop."""
    nodes = [node for node in turn() if node.op_type != "Identity"]
    for node in nodes:
        node.input[:] = ["x" if name == "s" else name for name in node.input]
    return model(nodes, X, ["f t"], **SCALES, **WEIGHTS)


def compiled(proto, device="sim"):
    return compile_graph(imported(proto), TINY, Options(device, processor=Processor(quick=True)))


def on_sim(module, inputs):
    return Executor(module, SimDevice(TINY), threads=1).run(inputs)


def wanted(turns):
    """What as many single runs give, one behind another."""
    executor, value = Executor(compiled(single(), "cpu")), X["x"]
    for _ in range(turns):
        value = executor.run({"x": value}).outputs["t"]
    return value


@pytest.fixture(scope="module")
def loop():
    return compiled(looped())


def turns_of(module):
    """The steps of a loop's turns."""
    (last,) = (n for n, step in enumerate(module.steps) if isinstance(step, Next))
    return module.steps[module.steps[last].to : last]


def test_nothing_is_converted_between_turns(loop):
    steps = turns_of(loop)
    assert sum(isinstance(step, Accelerate) for step in steps) == 1
    assert not any(isinstance(step, Copy) for step in steps)
    assert {"y.body.a.q", "y.body.t"} <= set(map(str, loop.steps))  # the conversions
    assert not {"y.body.a.q", "y.body.t"} & set(map(str, steps))
    result = on_sim(loop, {**X, "n": np.array(100)})
    np.testing.assert_array_equal(result.outputs["y"], wanted(100))
    assert result.cycles <= 100 * on_sim(compiled(single()), X).cycles


def test_no_turns_give_the_state_as_it_was(loop):
    """It isn't rounded."""
    result = on_sim(loop, {**X, "n": np.array(0)})
    np.testing.assert_array_equal(result.outputs["y"], X["x"])


def test_what_two_conversions_read_stays():
    """Numbers that a turn stacks are made in it."""
    more = [op("Add", "s s", "r")]
    module = compiled(looped(more=more, rows=[("f r", SHAPE)]))
    value = np.stack([2 * wanted(n) for n in range(3)])
    outputs = on_sim(module, {**X, "n": np.array(3)}).outputs
    np.testing.assert_array_equal(outputs["y"], wanted(3))
    np.testing.assert_array_equal(outputs["r"], value)
    assert any(isinstance(step, Copy) for step in turns_of(module))


def test_turns_of_a_constant_number_are_one_program():
    module = compiled(looped(3))
    assert sum(isinstance(step, Accelerate) for step in module.steps) == 1
    assert not any(isinstance(step, Next) for step in module.steps)
    result = on_sim(module, X)
    np.testing.assert_array_equal(result.outputs["y"], wanted(3))
    assert result.cycles < 3 * on_sim(compiled(single()), X).cycles
