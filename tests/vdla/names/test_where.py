"""Where a network runs: six options, each held against the others."""

from __future__ import annotations

import pytest

from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.gpu.named import named_gpu
from vdla.compiler.targets.processor.description.processor import NATIVE, find_processor
from vdla.names.where import Where
from vdla.options import Compile, Run
from vdla.options.spelling import UsageError

REFUSED = {
    ("sim", "z80"): "--host: expected cpu, gpu or a processor whose time is modelled, one of "
        "cortex-a53, cortex-a9, znver4, found z80",
    ("cpu", "gpu"): "--host: expected --device sim or rtl or board, found cpu",
    ("gpu", "cortex-a9"): "--host: expected --device sim or rtl or board or cpu, found gpu",
    ("sim", "cpu", None, "sm_80"):
        "--gpu sm_80: expected --device gpu or --host gpu, found --device sim and --host cpu",
    ("sim", "cortex-a9", None, "sm_80"):
        "--gpu sm_80: expected --device gpu or --host gpu, found --device sim and --host cpu",
    ("sim", "cpu", None, "opencl", None, "luck"):
        "--placement: expected capability or cost, found luck",
    ("sim", "gpu", None, "opencl", None, "cost"): "--placement cost: expected a processor as host, "
        "whose time is modelled, found --host gpu",
}  # fmt: skip


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_options_that_do_not_go_together(options):
    with pytest.raises(UsageError) as caught:
        Where(*options)
    assert str(caught.value) == REFUSED[options]


@pytest.mark.parametrize("kind", [Compile, Run])
def test_options_of_a_class_say_where(kind):
    assert Where.of(kind()) == Where("sim")
    told = kind(device="rtl", host="gpu", gpu="sm_80", places={"conv1": "gpu"})
    assert Where.of(told) == Where("rtl", "gpu", None, "sm_80", {"conv1": "gpu"})


def test_a_host_by_its_name_is_described_and_a_module_brings_its_code():
    where = Where("sim", "cortex-a9")
    assert where.runs_rest == "cpu"
    assert where.code_to_run().processor == NATIVE
    shipped = where.code_to_ship(None)
    assert (shipped.target, shipped.processor) == (None, find_processor("cortex-a9"))
    host = where.described_host(shipped.processor)
    assert (host.machine.name, host.named, host.by_cost) == ("cortex-a9", True, False)
    assert Where("sim").described_host(NATIVE) is None


def test_a_module_for_a_board_is_for_its_processor_unless_the_target_is_named():
    assert Where("sim").code_to_ship("cortex-a9").processor == find_processor("cortex-a9")
    assert Where("sim", target="native").code_to_ship("cortex-a9").processor == NATIVE
    with pytest.raises(UsageError) as caught:
        Where("sim", "cortex-a9", "cortex-a53").code_to_ship(None)
    assert str(caught.value) == (
        "--host cortex-a9: expected the same processor with --target, or no --target, found "
        "cortex-a53"
    )
    with pytest.raises(TargetError, match="z80"):
        Where("sim", target="z80").code_to_run()


def test_kernels_are_for_any_gpu_of_a_kind():
    assert Where("gpu", gpu="sm_80").described_gpu(None) == named_gpu("sm_80")
