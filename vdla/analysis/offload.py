"""A network on a board's processor alone, and with the accelerator beside it, layer by layer.

TVM's authors showed VDLA first by such a picture: inference on a Cortex-A9, the same with its
convolutions on the FPGA, and how much of the time the layers that stayed behind then take. The
processor's time is a model's (``vdla.host_time``), the accelerator's the simulator's cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from vdla.analysis.comparison import Comparison
from vdla.compiler.placement import ACCELERATOR, PROCESSOR
from vdla.compiler.targets.processor.timing.model import HostTime
from vdla.isa.clock import at_clock
from vdla.isa.config import Config
from vdla.sim.machine import Run

CONVOLUTION = "QConv2d"  # perhaps with steps behind it: "QConv2d+Add"
NOWHERE = "none"  # the device of a step that the accelerator's way of storing makes needless


@dataclass(frozen=True)
class OffloadedLayer:
    """A step of a network: milliseconds with the processor ``alone``, and ``together`` with the
    accelerator, where ``device`` runs it: "vdla", "cpu", or "none" if it isn't needed there."""

    name: str
    operators: tuple[str, ...]
    device: str
    alone: float
    together: float

    @property
    def is_convolution(self) -> bool:
        """Whether it computes a convolution."""
        return any(operator.partition("+")[0] == CONVOLUTION for operator in self.operators)


@dataclass(frozen=True)
class OffloadResult:
    """A network's layers on the processor alone and together with the accelerator, in milliseconds.

    ``calls`` are what the processor takes beside its functions, alone and together; ``transfers``
    what tensors take on their way between the two. ``hiding`` compares the convolutions' schedules
    with latency hiding and without. ``clock_mhz`` is the accelerator's, ``clock_source`` where it
    comes from: "routed", "estimated" or "asked". ``undecided`` are choices, of which both ways
    count, and loops and calls that count once.
    """

    model: str
    board: str
    processor: str
    processor_mhz: float
    config: Config
    clock_mhz: float
    clock_source: str
    layers: Sequence[OffloadedLayer]
    calls: tuple[float, float]
    transfers: float
    hiding: Comparison
    undecided: Sequence[str] = ()

    @property
    def alone(self) -> float:
        """The network on the processor alone."""
        return self.calls[0] + sum(layer.alone for layer in self.layers)

    @property
    def at_clock(self) -> str:
        """The phrase behind each time of the accelerator: ``at 100 MHz (asked)``."""
        return at_clock(self.clock_mhz, self.clock_source)

    @property
    def host(self) -> float:
        """Milliseconds of the processor beside the accelerator."""
        return self.calls[1] + self._together(PROCESSOR)

    @property
    def accelerator(self) -> float:
        """Milliseconds of the accelerator."""
        return self._together(ACCELERATOR)

    @property
    def together(self) -> float:
        """The network on both, one after the other."""
        return self.host + self.transfers + self.accelerator

    @property
    def speedup(self) -> float:
        """Factor by which the network is faster with the accelerator."""
        return self.alone / self.together

    @property
    def convolutions(self) -> tuple[float, float]:
        """The convolutions that the accelerator runs: alone, together."""
        moved = [x for x in self.layers if x.is_convolution and x.device == ACCELERATOR]
        return sum(x.alone for x in moved), sum(x.together for x in moved)

    def _together(self, device: str) -> float:
        return sum(layer.together for layer in self.layers if layer.device == device)

    def to_json(self) -> dict[str, object]:
        """The object of ``vdla offload --json``; milliseconds."""
        alone, together = self.convolutions
        return {
            "model": self.model,
            "board": self.board,
            "processor": {"name": self.processor, "clock_mhz": self.processor_mhz},
            "config": self.config.name,
            "clock_mhz": self.clock_mhz,
            "clock_source": self.clock_source,
            "memory": self.config.to_dict()["memory"],
            "layers": [
                {
                    "name": x.name,
                    "operators": list(x.operators),
                    "device": x.device,
                    "alone": x.alone,
                    "together": x.together,
                }
                for x in self.layers
            ],
            "alone": {"total": self.alone, "calls": self.calls[0]},
            "together": {
                "total": self.together,
                "host": self.host,
                "transfers": self.transfers,
                "accelerator": self.accelerator,
            },
            "speedup": self.speedup,
            "convolutions": {"alone": alone, "together": together},
            "undecided": list(self.undecided),
            "latency_hiding": self.hiding.to_json()["total"],
        }


def milliseconds_text(value: float) -> str:
    """Milliseconds in three significant digits, with no digit of whole ones lost: ``0.392 ms``,
    ``94.0 ms``, ``3,777 ms``."""
    digits = 0 if value == 0 else max(0, 2 - floor(log10(value)))
    return f"{value:,.{digits}f} ms"


def layer_cycles(run: Run, layers: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Cycles of each layer of a stream: from the end of the layers before to its own end. What has
    no name, the stream's end, counts with the layer before.

    Args:
        run: the stream's run.
        layers: names and numbers of instructions, in the stream's order.
    """
    cycles, first, ended, layer = dict[str, int](), 0, 0, ""
    for name, count in layers:
        layer = name or layer
        end = max(ended, int(run.finish[first : first + count].max(initial=-1)) + 1)
        cycles[layer] = cycles.get(layer, 0) + end - ended
        first, ended = first + count, end
    return cycles


def offloaded_layers(
    alone: HostTime, left: HostTime, accelerated: Mapping[str, float]
) -> list[OffloadedLayer]:
    """The layers of a network, in the processor's order, and those that the accelerator adds.

    Args:
        alone: the whole network on the processor.
        left: what it runs beside the accelerator.
        accelerated: milliseconds of each layer on the accelerator, by its name.
    """
    kept = {step.name: step for step in left.steps}
    whole = {step.name: step for step in alone.steps}
    layers = []
    for name in dict.fromkeys([*whole, *kept, *accelerated]):
        step = whole.get(name) or kept.get(name)
        device, together = NOWHERE, 0.0
        if name in accelerated:
            device, together = ACCELERATOR, accelerated[name]
        elif name in kept:
            device, together = PROCESSOR, kept[name].milliseconds
        operators = step.operators if step else ()
        before = whole[name].milliseconds if name in whole else 0.0
        layers.append(OffloadedLayer(name, operators, device, before, together))
    return layers
