"""What a GPU can hold, and where functions have their own buffers."""

from __future__ import annotations

import pytest
from gpus import MORE, ONE, TWICE, gpu_module, kernels

from vdla.runtime import DeviceError, Executor, ModuleError
from vdla.runtime.gpu.base import Limits, check_limits, scratch_offsets
from vdla.runtime.kernels import KernelFunction, Launch, check_launches

LIMITS = Limits(128, (64, 32, 16), 1024, 4096)


def function(launch, params=(16, 16), scratch=()):
    return KernelFunction(params, scratch, (launch,))


def limit_error(launch, size=64):
    with pytest.raises(DeviceError) as caught:
        check_limits("toy", LIMITS, kernels(f=function(launch)), size)
    return str(caught.value)


def test_groups_of_at_most_what_the_device_allows():
    check_limits("toy", LIMITS, kernels(), 4096)
    for group, found in (
        ((8, 8, 4), "128 threads, found 256"),
        ((65, 1, 1), "64 threads along x, found 65"),
        ((1, 33, 1), "32 threads along y, found 33"),
        ((1, 1, 17), "16 threads along z, found 17"),
    ):
        assert limit_error(Launch("k", ONE, group, (0, 1), 0)) == (
            f"gpu toy: expected groups of at most {found} in k; compile the module for less"
        )
    assert limit_error(Launch("k", ONE, ONE, (0, 1), 1025)) == (
        "gpu toy: expected groups of at most 1024 shared bytes, found 1025 in k; compile the "
        "module for less"
    )


def test_a_module_of_at_most_the_device_s_memory():
    assert limit_error(TWICE, 4097) == (
        "gpu toy: expected a module of at most 4,096 bytes, found 4,097: out of device memory"
    )


def test_functions_share_the_bytes_behind_the_image():
    made = kernels(
        a=function(TWICE, scratch=(1, 300)), b=function(MORE), c=function(MORE, (), (9,))
    )
    offsets, end = scratch_offsets(made, 257)
    assert offsets == {"a": (512, 768), "b": (), "c": (512,)}
    assert end == 1280
    assert scratch_offsets(kernels(b=function(MORE)), 256) == ({"b": ()}, 256)


@pytest.mark.parametrize("number", [-1, 3])
def test_launches_take_buffers_that_there_are(number):
    launch = Launch("k", ONE, ONE, (0, number), 0)
    made = kernels(f=function(launch, scratch=(16,)))
    line = f"function f: expected k to take buffers from 0 to 2, found {number}"
    for check in (lambda: check_launches(made), lambda: Executor(gpu_module(kernels=made))):
        with pytest.raises(ModuleError) as caught:
            check()
        assert str(caught.value) == line
