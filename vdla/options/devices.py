"""Options that say which devices run a network's operators, by users' names.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Mapping

from vdla.options import spelling
from vdla.options.common import Sized

CPU = "cpu"  # the processor at hand
PROCESSORS = (CPU, "x86-64-v3", "x86-64-v4")  # whose schedules this machine can time
NAMED = spelling.Only("target", "accelerator", "gpu", *PROCESSORS[1:])  # not the processor at hand
RESOURCE = "What one job at a time may have, as board:ulx3s=/dev/ttyUSB0, rtl or gpu."
SECTION = (  # of help, about them
    "--device", "--port", "--virtual", "--toolchain", "--target", "--host", "--gpu", "--threads",
    "--place", "--placement", "--denormals", "--no-native",
)  # fmt: skip


def device_of_resource(resource: str | None) -> tuple[str | None, str | None]:
    """The device that runs on a worker's resource, and the board; None where it says neither.

    ``board:ulx3s`` is a board, ``cpu`` and ``cpu:x86-64-v3`` are processors, ``rtl`` and ``gpu``
    are what their names say; any other resource leaves the device to ``--device``.

    Raises:
        UsageError: it is no name of a resource.
    """
    if resource is None:
        return None, None
    if not isinstance(resource, str) or resource.split() != [resource] or "=" in resource:
        raise spelling.UsageError(
            f"--resource: expected a name that a worker announces, as board:ulx3s, found "
            f"{resource!r}; `vdla farm status` lists them"
        )
    kind, _, name = resource.partition(":")
    if kind == "board" and name:
        return kind, name
    return (kind if kind == CPU or resource in ("rtl", "gpu") else None), None


def processor_of_resource(resource: str | None) -> str | None:
    """The processor that a worker's resource names: ``x86-64-v3`` of ``cpu:x86-64-v3``."""
    kind, _, name = (resource or "").partition(":")
    return name or None if kind == CPU else None


class Placed(Sized):
    """Options with nodes that the user places, too."""

    places: Mapping[str, str] | None

    def __post_init__(self) -> None:
        """Raises UsageError unless the places are a dictionary of names."""
        super().__post_init__()
        given = {} if self.places is None else self.places
        named = isinstance(given, Mapping) and all(
            isinstance(each, str) for pair in given.items() for each in pair
        )
        if not named:
            raise spelling.UsageError(
                "places: expected a dictionary of names, as {'conv1': 'gpu'}, "
                f"found {self.places!r}"
            )


def target(examples: str) -> spelling.Default:
    """Option for the target of what the accelerator leaves, with ``examples`` of its names."""
    return spelling.option(
        None,
        "--target",
        typed=str | None,
        compiles=True,
        metavar="P",
        help=f"The processor of what the accelerator leaves: {examples}; or, in the accelerator's "
        "place, a target that another package brings.",
    )


def host() -> spelling.Default:
    """Which device runs the operators that the accelerator leaves, or whose time is modelled."""
    return spelling.option(
        "cpu", "--host", typed=str, compiles=True, metavar="cpu|gpu|cortex-a9…",
        help="What runs the operators that the accelerator leaves; a processor by its name "
        "is not run but modelled, which gives its time.",
    )  # fmt: skip


def gpu() -> spelling.Default:
    """Option for the language of a GPU's kernels."""
    return spelling.option(
        "opencl",
        "--gpu",
        typed=str,
        compiles=True,
        metavar="opencl|sm_80…",
        help="A GPU's code: OpenCL C for any, or PTX for NVIDIA's of an architecture.",
    )


def places() -> spelling.Default:
    """Nodes that the user places, by name."""
    return spelling.option(
        None,
        "--place",
        typed=list[str] | None,
        shown=None,
        read=lambda texts: spelling.places(texts or ()) or None,
        compiles=True,
        metavar="NODE=DEVICE",
        help="Run a node on vdla, gpu or cpu.",
    )


def placement() -> spelling.Default:
    """Option for the way in which operators are shared among the accelerator and its host."""
    return spelling.option(
        "capability", "--placement", typed=str, compiles=True,
        only=[spelling.Only("device", "sim", "rtl", "board")], metavar="capability|cost",
        help="All that the accelerator can run goes there; or cost: what is faster there.",
    )  # fmt: skip


def denormals() -> spelling.Default:
    """Whether a processor takes denormal numbers for zeros."""
    return spelling.option(
        "flush", "--denormals", typed=str, compiles=True, metavar="flush|keep",
        help="The processor's floats below 1.2e-38 are zeros; or keep them, as numpy does.",
    )  # fmt: skip


def resource() -> spelling.Default:
    """The resource of a farm's worker that a model runs on."""
    return spelling.option(
        None, "--resource", typed=str | None, only=[spelling.Only("farm")], metavar="NAME",
        help="What the farm's worker runs it on: board:ulx3s, rtl, gpu, cpu, cpu:x86-64-v3.",
    )  # fmt: skip


def tuned() -> spelling.Default:
    """The machine that schedules are searched for."""
    return spelling.option(
        "accelerator", "--target", typed=str,
        help="accelerator; cpu or gpu for the one at hand; x86-64-v3 or -v4 for its instructions.",
    )  # fmt: skip


def strategy() -> spelling.Default:
    """The kind of schedules of functions that a search chooses among."""
    return spelling.option(
        "template", "--strategy", typed=str, only=[spelling.Only("target", *PROCESSORS, "gpu")],
        help="On a processor or GPU: template, or sketch for none.",
    )  # fmt: skip
