"""Kernels that configs share are those that each config would make by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla import api
from vdla.compiler.targets.accelerator.kernels import kernel_of
from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d
from vdla.isa.config import load_config
from vdla.isa.memory import Memory

WINDOW = (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)
CONV = Conv2d(1, 1, 4, 2, 9, 7, *WINDOW, 0, 0, -128, 127)
CONFIGS = st.builds(
    lambda inp, wgt, acc, uop, queue, latency: replace(
        load_config("tiny"),
        inp_bytes=inp,
        wgt_bytes=wgt,
        acc_bytes=acc,
        uop_bytes=uop,
        token_queue=queue,
        reads_in_flight=queue,
        memory=Memory(latency),
    ),
    *[st.integers(9, 15).map(lambda n: 3 << n)] * 4,
    st.integers(1, 40),
    st.integers(0, 300),
)


@settings(max_examples=25)
@given(CONFIGS, st.sampled_from([1, 2]))
def test_shared_kernels_are_each_configs_own(config, vthreads):
    tile = CONV.best(config, vthreads)
    own = lower_schedule(CONV.schedule(tile, config), config)
    shared = kernel_of(CONV, tile, config)
    assert shared.ops == own.ops
    assert shared.tensors == own.tensors


def test_a_kernel_is_made_once_for_configs_of_another_pace():
    config = load_config("tiny")
    tile = CONV.best(config, 2)
    slow = replace(config, clock_mhz=7, burst_beats=4, memory=Memory(latency=500))
    assert kernel_of(CONV, tile, config) is kernel_of(CONV, tile, slow)


@pytest.mark.parametrize("blocks", [(132, 132), (256, 128), (256, 256)])
def test_configs_of_more_than_16384_multipliers_compile(blocks):
    """WGT can't hold DEPTH of their tiles; the network runs as it does on the host."""
    sizes = ["port_bytes=4", "wgt_bytes=1048576", "acc_bytes=262144"]
    each = [f"block_in={blocks[0]}", f"block_out={blocks[1]}"]
    config = load_config("paper", [*each, *sizes])
    module, host = api.compile("digits", config), api.compile("digits", config, device="cpu")
    inputs = api.random_inputs(module)
    wanted = api.run(host, inputs).outputs
    for name, array in api.run(module, inputs).outputs.items():
        np.testing.assert_array_equal(array, wanted[name])
    assert sum(row["device"] == "vdla" for row in module.metadata["placement"]) >= 3
