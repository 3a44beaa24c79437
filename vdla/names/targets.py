"""What a model is compiled for: targets, processors and hosts, by the names that users give."""

from __future__ import annotations

from vdla.compiler.placement import GPU, PROCESSOR
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.named import named_gpu
from vdla.compiler.targets.outside import load_target, outside_targets
from vdla.compiler.targets.processor.codegen.link import find_linker
from vdla.compiler.targets.processor.description.processor import (
    NATIVE,
    PROCESSORS,
    Processor,
    find_processor,
)
from vdla.compiler.targets.processor.search import bundled
from vdla.compiler.targets.processor.timing.machine import (
    NAMES,
    Machine,
    is_native,
    machine_of,
)
from vdla.compiler.targets.search.function_records import FunctionRecords
from vdla.compiler.targets.target import Target
from vdla.options.spelling import UsageError
from vdla.runtime.errors import DeviceError
from vdla.runtime.gpu.find import find_gpu
from vdla.runtime.kernels import OPENCL

PLACEMENTS = ("capability", "cost")
BESIDE = ("sim", "rtl", "board")  # devices that leave operators to a host


def host_of(name: str, device: str) -> tuple[str, Machine | None]:
    """Which device runs what the accelerator leaves, and, for a processor by its name, the
    description by which its time is modelled.

    Raises:
        UsageError: there is none of that name, or nothing is left to it on the device.
    """
    if name not in (PROCESSOR, GPU, *NAMES):
        raise UsageError(
            f"--host: expected {PROCESSOR}, {GPU} or a processor whose time is modelled, one of "
            f"{', '.join(NAMES)}, found {name}"
        )
    devices = BESIDE if name == GPU else (*BESIDE, PROCESSOR)
    if name != PROCESSOR and device not in devices:
        raise UsageError(f"--host: expected --device {' or '.join(devices)}, found {device}")
    return (name, None) if name in (PROCESSOR, GPU) else (PROCESSOR, machine_of(name))


def compile_target(
    name: str | Processor | None, device: str, machine: Machine | None = None
) -> tuple[Target | None, Processor]:
    """Another package's target, if the name is one's, and the processor for the rest; ``machine``
    is the one that ``--host`` names.

    Raises:
        TargetError: there is no such target or processor, or its package can't be loaded.
        UsageError: a device that the target doesn't run on, or a processor that isn't the host.
    """
    if machine is not None:
        return None, _processor_of(machine, name)
    if not isinstance(name, str) or name.partition(",")[0] in PROCESSORS:
        return None, processor(name)
    outside = outside_targets()
    if name in outside:
        if device != "sim":
            raise UsageError(
                f"--target {name}: expected --device sim, where another package's target runs its "
                f"code, found --device {device}"
            )
        return load_target(outside[name]), processor(None)
    try:
        return None, processor(name)
    except TargetError as error:
        more = f"; installed packages bring {', '.join(outside)}" if outside else ""
        raise TargetError(f"{error}{more}") from None


def _processor_of(machine: Machine, target: str | Processor | None) -> Processor:
    """The processor that code is for where ``--host`` names one.

    Raises:
        UsageError: ``--target`` names another one.
    """
    if target is not None and target != machine.name:
        raise UsageError(
            f"--host {machine.name}: expected the same processor with --target, or no --target, "
            f"found {target}"
        )
    return NATIVE if is_native(machine) else processor(machine.processor)


def processor(target: str | Processor | None) -> Processor:
    """The processor that host code is for, by default this one; with a linker where it isn't."""
    host = target if isinstance(target, Processor) else find_processor(target or "native")
    if not host.is_native:
        find_linker(host)  # there, or said so before the work
    return host


def check_placement(placement: str, host: str) -> None:
    """Raises UsageError unless it is one of those that there are, and not by the cost of a GPU."""
    if placement not in PLACEMENTS:
        raise UsageError(f"--placement: expected {' or '.join(PLACEMENTS)}, found {placement}")
    if placement == "cost" and host == GPU:
        raise UsageError(
            "--placement cost: expected a processor as host, whose time is modelled, found "
            "--host gpu"
        )


def gpu_of(name: str, device: str, host: str, tuned: FunctionRecords | None) -> Gpu:
    """What a GPU's kernels are made of, by ``--gpu``'s name, and for which: any, or with tuned
    schedules the one at hand, if there is one.

    Raises:
        UsageError: neither the device nor its host is a GPU.
        TargetError: there is no such architecture.
    """
    takes_part = GPU in (device, host)
    if name != OPENCL and not takes_part:
        raise UsageError(
            f"--gpu {name}: expected --device gpu or --host gpu, found --device {device} and "
            f"--host {host}"
        )
    made = named_gpu(name)
    if tuned is None or tuned is bundled.BUNDLED or not takes_part:
        return made
    try:
        return Gpu.of(find_gpu(made.language), made.language, made.architecture)
    except DeviceError:
        return made
