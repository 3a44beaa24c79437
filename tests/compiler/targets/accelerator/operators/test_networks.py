"""Whole networks on every config: default schedules fit, streams are sound, numbers agree."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import models
from vdla.compiler.build import Options, compile_model, place_models
from vdla.isa.config import config_names, load_config
from vdla.isa.program import Program
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.dram import aligned_bytes
from vdla.runtime.executor import Executor
from vdla.sim.checker import check


def run(name, config, device, module=None):
    place = "cpu" if device == "cpu" else "vdla"
    module = module or compile_model(models.model_path(name), config, Options(device=place))
    rng = np.random.default_rng(3)
    inputs = {
        n: rng.standard_normal(module.tensors[n].shape).astype(np.float32) for n in module.inputs
    }
    chosen = CpuDevice() if device == "cpu" else SimDevice(config)
    return module, Executor(module, chosen).run(inputs)


def sound(module, config):
    for code in module.programs.values():
        program = Program.from_bytes(code, config)
        dram = aligned_bytes(module.dram_bytes)
        dram[: len(module.constants)] = np.frombuffer(module.constants, np.uint8)
        assert check(config, program.instructions, dram, program.base) == []


@pytest.mark.parametrize("name", config_names())
def test_digits_on_every_config(name):
    config = load_config(name)
    module, result = run("digits", config, "sim")
    _, want = run("digits", config, "cpu")
    sound(module, config)
    for output, array in want.outputs.items():
        np.testing.assert_array_equal(result.outputs[output], array)


@pytest.mark.long
@pytest.mark.parametrize("network", ["resnet18", "mobilenet"])
def test_whole_networks(network, request, on_cpu):
    config = load_config("paper")
    compiled = request.getfixturevalue("resnet18") if network == "resnet18" else None
    module, result = run(network, config, "sim", compiled)
    _, want = run(network, config, "cpu", on_cpu(network))
    sound(module, config)
    for output, array in want.outputs.items():
        np.testing.assert_array_equal(result.outputs[output], array)
    host = {p["name"] for p in module.metadata["placement"] if p["device"] == "cpu"}
    inside = [p for p in module.metadata["placement"] if p["name"] not in host]
    assert len(module.programs) == 1, "no trip to the host inside"
    assert len(inside) > 20


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in config_names() if n != "paper"])
def test_resnet18_on_every_config(name):
    config = load_config(name)
    module, result = run("resnet18", config, "sim")
    _, want = run("resnet18", config, "cpu")
    sound(module, config)
    for output, array in want.outputs.items():
        np.testing.assert_array_equal(result.outputs[output], array)


@pytest.mark.parametrize(("model", "config"), [("digits", "tiny"), ("resnet18", "paper")])
def test_constants_have_the_shapes_of_their_placeholders(model, config):
    """Else the accelerator would read others, or there would be some that nothing reads."""
    chosen, seen = load_config(config), set()
    for placed in place_models(models.model_paths(model), chosen).values():
        for _, op in placed.layers:
            key = type(op.template), tuple(name.partition("%")[2] for name in op.constants)
            if key in seen:
                continue
            seen.add(key)
            function = op.template.schedule(op.template.best(chosen, 1), chosen).lower()
            declared = {buffer.name: buffer for buffer in function.params}
            for name, array in op.constants.items():
                buffer = declared[name.partition("%")[2]]
                assert (array.shape, array.dtype.name) == (buffer.shape, buffer.dtype), name
    assert len(seen) > 1
