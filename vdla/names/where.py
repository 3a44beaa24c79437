"""Devices that a network's operators run on, by users' names: six options, one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from vdla.compiler.build import Options
from vdla.compiler.placement import PROCESSOR, device_of
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.gpu.description import GPU, Gpu
from vdla.compiler.targets.gpu.named import named_gpu
from vdla.compiler.targets.outside import load_target, outside_targets
from vdla.compiler.targets.processor.codegen.link import find_linker
from vdla.compiler.targets.processor.description.processor import (
    FLUSH,
    KEEP,
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
    machine_for,
    machine_of,
)
from vdla.compiler.targets.search.function_records import FunctionRecords
from vdla.compiler.targets.target import Target
from vdla.options.spelling import UsageError
from vdla.runtime.errors import DeviceError
from vdla.runtime.gpu.find import find_gpu
from vdla.runtime.kernels import OPENCL

if TYPE_CHECKING:
    from vdla.options import Compile, Run

CAPABILITY, COST = "capability", "cost"
PLACEMENTS = (CAPABILITY, COST)
BESIDE = ("sim", "rtl", "board")  # devices that leave operators to a host


@dataclass(frozen=True)
class Code:
    """Machines that a network's code is for: another package's ``target``, if any, in the
    accelerator's place, and the ``processor`` of the rest."""

    target: Target | None
    processor: Processor


@dataclass(frozen=True)
class Host:
    """A host by its description: ``named`` says that the user wants its time, and ``by_cost`` that
    operators are placed by it."""

    machine: Machine
    named: bool
    by_cost: bool


@dataclass(frozen=True)
class Where:
    """Devices of a network's operators: the options of that name, each held against the others.

    ``device`` runs the network, and ``host`` what an accelerator leaves: "cpu", "gpu", or a
    processor by its name, whose time is modelled. ``target`` is the processor that code is for, or
    another package's target. ``gpu`` is "opencl" or NVIDIA's architecture. ``places`` are nodes
    that the user places, by name; ``placement`` says how the others are shared. ``denormals`` says
    what the processor makes of denormal numbers.

    Raises:
        UsageError: a host, a placement or denormals that there aren't, or a host or a placement
            that doesn't go with the device; a GPU's architecture where no GPU takes part.
    """

    device: str
    host: str = PROCESSOR
    target: str | Processor | None = None
    gpu: str = OPENCL
    places: Mapping[str, str] | None = None
    placement: str = CAPABILITY
    denormals: str = FLUSH

    def __post_init__(self) -> None:
        self._check_host()
        self._check_placement()
        if self.denormals not in (FLUSH, KEEP):
            raise UsageError(f"--denormals: expected {FLUSH} or {KEEP}, found {self.denormals}")
        if self.gpu != OPENCL and not self.has_gpu:
            raise UsageError(
                f"--gpu {self.gpu}: expected --device gpu or --host gpu, found --device "
                f"{self.device} and --host {self.runs_rest}"
            )

    @classmethod
    def of(cls, options: Compile | Run) -> Where:
        """Devices on which some options say that a network's operators run."""
        return cls(
            options.device,
            options.host,
            options.target,
            options.gpu,
            options.places,
            options.placement,
            options.denormals,
        )

    def _check_host(self) -> None:
        if self.host not in (PROCESSOR, GPU, *NAMES):
            raise UsageError(
                f"--host: expected {PROCESSOR}, {GPU} or a processor whose time is modelled, one "
                f"of {', '.join(NAMES)}, found {self.host}"
            )
        devices = BESIDE if self.host == GPU else (*BESIDE, PROCESSOR)
        if self.host != PROCESSOR and self.device not in devices:
            expected = f"--device {' or '.join(devices)}"
            raise UsageError(f"--host: expected {expected}, found {self.device}")

    def _check_placement(self) -> None:
        if self.placement not in PLACEMENTS:
            expected = " or ".join(PLACEMENTS)
            raise UsageError(f"--placement: expected {expected}, found {self.placement}")
        if self.placement == COST and self.host == GPU:
            raise UsageError(
                "--placement cost: expected a processor as host, whose time is modelled, found "
                "--host gpu"
            )

    @property
    def runs_rest(self) -> str:
        """The device that runs what the accelerator leaves: "cpu", a processor by its name too, or
        "gpu"."""
        return GPU if self.host == GPU else PROCESSOR

    @property
    def has_gpu(self) -> bool:
        """Whether a GPU takes part."""
        return GPU in (self.device, self.host)

    @cached_property
    def machine(self) -> Machine | None:
        """The description of the host that is a processor by its name."""
        return None if self.host in (PROCESSOR, GPU) else machine_of(self.host)

    def described_host(self, processor: Processor) -> Host | None:
        """The host that a compilation needs the description of, if it needs any: the one named, or
        the ``processor`` that code is for.

        Raises:
            TargetError: operators are placed by the cost of a processor that isn't described.
        """
        by_cost = self.placement == COST
        if self.machine is None and not by_cost:
            return None
        return Host(self.machine or machine_for(processor), self.machine is not None, by_cost)

    def code_to_run(self) -> Code:
        """Machines of code that runs here, as ``target`` has it; by default this processor.

        Raises:
            TargetError: there is no such target or processor, or its package can't be loaded.
            UsageError: a device that the target doesn't run on.
        """
        return self._code(self.target)

    def code_to_ship(self, default: str | None) -> Code:
        """Machines of code that a module brings: the named host, ``target``, or the ``default``, a
        board's processor.

        Raises:
            TargetError, UsageError: as ``code_to_run``; or a processor that isn't the host.
        """
        if self.machine is None:
            return self._code(self.target or default)
        named = self.target.name if isinstance(self.target, Processor) else self.target
        if named is not None and named != self.machine.name:
            raise UsageError(
                f"--host {self.machine.name}: expected the same processor with --target, or no "
                f"--target, found {named}"
            )
        if isinstance(self.target, Processor):
            return Code(None, self.target)
        native = is_native(self.machine)
        return Code(None, NATIVE if native else _processor(self.machine.processor))

    def _code(self, name: str | Processor | None) -> Code:
        """Machines of code for a target or processor by its name."""
        if not isinstance(name, str) or name.partition(",")[0] in PROCESSORS:
            return Code(None, _processor(name))
        outside = outside_targets()
        if name in outside:
            if self.device != "sim":
                raise UsageError(
                    f"--target {name}: expected --device sim, where another package's target runs "
                    f"its code, found --device {self.device}"
                )
            return Code(load_target(outside[name]), _processor(None))
        try:
            return Code(None, _processor(name))
        except TargetError as error:
            more = f"; installed packages bring {', '.join(outside)}" if outside else ""
            raise TargetError(f"{error}{more}") from None

    def options(self, code: Code, tuned: FunctionRecords | None) -> Options:
        """Options of a compilation for these devices, with tuned schedules of functions.

        Raises:
            TargetError: there is no such architecture of a GPU.
        """
        return Options(
            device=device_of(self.device),
            host=self.runs_rest,
            places=self.places or {},
            functions=tuned,
            processor=replace(code.processor, denormals=self.denormals),
            gpu=self.described_gpu(tuned),
            target=code.target,
        )

    def described_gpu(self, tuned: FunctionRecords | None) -> Gpu:
        """GPU that kernels are made for: any of ``gpu``'s kind, or with tuned schedules the one at
        hand, if there is one.

        Raises:
            TargetError: there is no such architecture.
        """
        made = named_gpu(self.gpu)
        if tuned is None or tuned is bundled.BUNDLED or not self.has_gpu:
            return made
        try:
            return Gpu.of(find_gpu(made.language), made.language, made.architecture)
        except DeviceError:
            return made


def _processor(name: str | Processor | None) -> Processor:
    """The processor that host code is for, by default this one; with a linker if it takes one."""
    result = name if isinstance(name, Processor) else find_processor(name or "native")
    if result.shared and not result.is_native:
        find_linker(result)  # there, or said so before the work
    return result
