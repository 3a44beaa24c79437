"""Placement by cost, and the host time of a network that is placed one way or the other."""

from __future__ import annotations

import pytest

from vdla.compiler import models
from vdla.compiler.build import Options, import_graph
from vdla.compiler.by_cost import choices
from vdla.compiler.host_time import host_time
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.timing.machine import machine_of
from vdla.compiler.targets.processor.timing.model import HostTime
from vdla.names.configs import resolve

LAYERS = {"conv1", "pool1", "conv2", "pool2", "fc"}


def chosen(host: str, config: str, **options):
    machine = machine_of(host)
    own = Options(processor=machine.processor, **options)
    return choices(import_graph(models.model_path("digits"), own), resolve(config), own, machine)


def test_a_fast_host_takes_all_from_a_small_accelerator():
    """A Zen 4 needs microseconds for what takes `tiny` a tenth of a millisecond."""
    found = chosen("znver4", "tiny")
    assert set(found) >= LAYERS
    assert found["conv2"].host < found["conv2"].accelerator
    assert found["conv2"].reason == (
        f"by cost: {1e3 * found['conv2'].host:.3f} ms here and "
        f"{1e3 * found['conv2'].accelerator:.3f} ms on the accelerator, transfers of its "
        "neighbourhood counted"
    )


def test_a_slow_host_takes_nothing():
    assert not LAYERS & set(chosen("cortex-a9", "paper"))


def test_what_the_user_places_stays():
    found = chosen("znver4", "tiny", places={"conv2": "vdla"})
    assert "conv2" not in found


def test_host_time_of_a_whole_network_and_of_what_is_left():
    machine = machine_of("cortex-a9")
    for device, names in (("cpu", LAYERS), ("vdla", set())):
        options = Options(device=device, processor=machine.processor)
        graph = import_graph(models.model_path("digits"), options)
        time = host_time(graph, resolve("paper"), options)
        assert time.processor == "cortex-a9"
        assert {step.name for step in time.steps} & LAYERS == names
        assert time.steps[0].operators[0] == "Quantize"
        assert time.milliseconds == pytest.approx(
            sum(step.milliseconds for step in time.steps) + 1e3 * time.call_seconds
        )
        assert (time.shared_bytes > 0) == (device == "vdla")
        assert HostTime.from_json(time.to_json()) == time


def test_a_convolution_takes_what_its_multiplications_take_at_least():
    """conv2 of digits: 16 channels of 16 × 3 × 3 on 4 × 4 pixels; a NEON multiplies four lanes in
    two cycles on a Cortex-A9."""
    machine = machine_of("cortex-a9")
    options = Options(device="cpu", processor=machine.processor)
    graph = import_graph(models.model_path("digits"), options)
    work = {node.name: node for node in graph.nodes}
    assert "conv2" in work
    time = host_time(graph, resolve("paper"), options)
    cycles = {step.name: step.cycles for step in time.steps}
    assert cycles["conv2"] > cycles["fc"] > 100


def test_a_gpu_has_no_modelled_time():
    options = Options(device="gpu")
    graph = import_graph(models.model_path("digits"), options)
    with pytest.raises(TargetError) as error:
        host_time(graph, resolve("paper"), options)
    assert str(error.value) == (
        "host time: expected a network for a processor, with the accelerator or without, found one "
        "for gpu"
    )
