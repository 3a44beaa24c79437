"""Networks of several programs on one board: host steps between them, loops, and other networks."""

import numpy as np
import pytest
from c_boards import Zynq
from control_models import TURN, body, imported, model, op

from vdla import api
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.runtime.plan import Accelerate, Host, Next

TINY = load_config("tiny")
SHAPE = (1, 16, 4, 4)
RNG = np.random.default_rng(1)
CONSTANTS = {
    "sx": np.float32(1 / 16), "sw": np.float32(1 / 512), "zero": np.int8(0),
    **{f"w{n}": RNG.integers(-64, 64, (16, 16, 3, 3)).astype(np.int8) for n in range(2)},
}  # fmt: skip


def rounded(source, name):
    """Nodes that quantize a tensor and make numbers of it again."""
    return [op("QuantizeLinear", f"{source} sx zero", f"{name}.q"),
            op("DequantizeLinear", f"{name}.q sx zero", name)]  # fmt: skip


def turn():
    """Two convolutions with a function of the host between them."""
    nodes = rounded("s", "a")
    for n, (source, made) in enumerate((("a", "b"), ("c", "t"))):
        nodes += [op("DequantizeLinear", f"w{n} sw zero", f"k{n}"),
                  op("Conv", f"{source} k{n}", f"y{n}", pads=[1, 1, 1, 1]),
                  *rounded(f"y{n}", made)]  # fmt: skip
        if n == 0:
            nodes += [op("Sin", "b", "d"), *rounded("d", "c")]
    return nodes


def compiled(nodes, inputs, outputs):
    proto = model(nodes, inputs, outputs, **CONSTANTS)
    return compile_graph(imported(proto), TINY, Options("sim", processor=Processor(quick=True)))


def values(seed):
    return np.random.default_rng(seed).uniform(-4, 4, SHAPE).astype(np.float32)


def kinds(module, kind):
    return sum(isinstance(step, kind) for step in module.steps)


def assert_same(net, module, *samples):
    """Outputs and cycles are those of the simulator."""
    ready = Executor(module, SimDevice(TINY))
    for inputs in samples:
        expected = ready.run(inputs)
        actual = net.run(**inputs)
        for name, value in expected.outputs.items():
            np.testing.assert_array_equal(actual[name], value)
        assert net.counters(0)[0] == (expected.cycles or 0)


def test_a_function_of_the_host_between_programs(uio, tmp_path):
    module = compiled([*turn(), op("Add", "t s", "y")], {"s": values(0)}, ["f y"])
    assert kinds(module, Accelerate) == 2
    assert kinds(module, Host) > 2
    assert_same(uio.open(module, tmp_path), module, *({"s": values(n)} for n in range(3)))


def test_a_loop_whose_body_the_accelerator_has(uio, tmp_path):
    """No turn, one, and many."""
    inner = body([op("Identity", "go", "go2"), *turn()], (*TURN, ("f s", SHAPE)),
                 (("b go2", []), ("f t", SHAPE)))  # fmt: skip
    loop = op("Loop", "n - x", "y", body=inner)
    module = compiled([loop], {"x": values(0), "n": np.array(0)}, ["f y"])
    assert kinds(module, Accelerate) == 2
    assert kinds(module, Next) == 1
    samples = [{"x": values(n), "n": np.array(n)} for n in (0, 1, 3)]
    assert_same(uio.open(module, tmp_path), module, *samples)


def test_two_networks_share_a_board_in_turns(uio, digits, tmp_path):
    """Each has its part of the board's memory, until all parts are given back."""
    other = compiled([*turn(), op("Add", "t s", "y")], {"s": values(0)}, ["f y"])
    first, second = uio.open(digits.module, tmp_path, "one"), uio.open(other, tmp_path, "two")
    for n in range(2):
        assert_same(first, digits.module, digits.inputs)
        assert_same(second, other, {"s": values(n)})
    uio.board.way.taken = 0
    third = uio.open(other, tmp_path, "three")
    assert_same(third, other, {"s": values(3)})


def test_two_networks_at_a_port(ways, port, digits, tmp_path):
    other = compiled([*turn(), op("Add", "t s", "y")], {"s": values(0)}, ["f y"])
    reached = ways.serial(port().path)
    first, second = (
        reached.open(digits.module, tmp_path, "one"),
        reached.open(other, tmp_path, "two"),
    )
    for n in range(2):
        assert_same(first, digits.module, digits.inputs)
        assert_same(second, other, {"s": values(n)})
    reached.close()


@pytest.mark.long
@pytest.mark.parametrize("name", ["patches", "characters", "scenes"])
def test_bundled_networks(name, ways, tmp_path):
    zynq = Zynq(TINY, tmp_path / "root", 1 << 24)
    reached = ways.uio(zynq.root)
    module = api.compile(name, TINY)
    net = reached.open(module, tmp_path)
    assert_same(net, module, *(api.random_inputs(module, seed=seed) for seed in range(2)))
    reached.close()
    zynq.close()
