"""Time of an inference from end to end: the host's time, transfers, the accelerator's.

The parts follow one another: nothing of one is taken to run beside another. The accelerator's time
is its cycles at its clock. The host's is measured here, or modelled for a processor that isn't at
hand. Transfers are what host and accelerator tell each other:

    over a serial line    bytes of the shared tensors, ten bits each at the line's rate
    in shared memory      no byte is copied; a modelled host writes its caches back before the
                          accelerator reads, and forgets them before it reads itself, which takes
                          what its memory takes for the bytes (an estimate)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vdla.boards import clocked
from vdla.boards.board import Board, clock_on
from vdla.isa.clock import at_clock
from vdla.isa.config import Config
from vdla.runtime.board.link import BAUD
from vdla.runtime.module import Module
from vdla.runtime.plan import Accelerate, shared_tensors
from vdla.runtime.results import RunResult

if TYPE_CHECKING:  # few runs have a modelled host
    from vdla.compiler.targets.processor.timing.model import HostTime

BITS_PER_BYTE = 10  # on a serial line: a start bit, eight bits, a stop bit
HERE = "this machine"


@dataclass(frozen=True)
class EndToEnd:
    """Milliseconds of one inference.

    ``host`` names the processor; ``modelled`` says that its time is, and isn't measured.
    ``transfer_bytes`` are those of the tensors that host and accelerator share, ``transport`` says
    how they get from one to the other. ``clock_mhz`` is the accelerator's, ``clock_source``
    where it comes from: "routed", "estimated" or "asked". ``unknown`` are operators that
    onnxruntime runs, whose time a model doesn't have; ``undecided`` are choices, of which both ways
    count in a modelled time, and loops and calls that count once.
    """

    host: str
    modelled: bool
    host_ms: float
    transfer_ms: float
    transfer_bytes: int
    transport: str
    accelerator_ms: float
    clock_mhz: float
    clock_source: str
    unknown: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def total_ms(self) -> float:
        """The whole inference."""
        return self.host_ms + self.transfer_ms + self.accelerator_ms

    @property
    def at_clock(self) -> str:
        """The phrase behind each time of the accelerator: ``at 200 MHz (asked)``."""
        return at_clock(self.clock_mhz, self.clock_source)

    @property
    def text(self) -> str:
        """One line for people."""
        how = f"{self.host}, {'modelled' if self.modelled else 'measured'}"
        count = len(self.unknown)
        without = f"; without {count} operators that onnxruntime runs" if count else ""
        if self.undecided:
            without += f"; choices in full, loops and calls once: {', '.join(self.undecided)}"
        return (
            f"end to end {self.total_ms:.2f} ms: host {self.host_ms:.2f} ms ({how}), transfers "
            f"{self.transfer_ms:.2f} ms ({self.transfer_bytes:,} bytes, {self.transport}), "
            f"accelerator {self.accelerator_ms:.2f} ms {self.at_clock}{without}"
        )

    def to_json(self) -> dict[str, object]:
        """The keys of ``vdla run --json``'s ``end_to_end``."""
        return {**asdict(self), "total_ms": self.total_ms}


def end_to_end(
    module: Module, results: Sequence[RunResult], config: Config, board: Board | None = None
) -> EndToEnd:
    """The end-to-end time of a module by some runs: the mean of the accelerator's cycles, and the
    least of what the host took, since first runs are slow.

    Args:
        module: with the host's modelled time in its metadata, that counts and no measured one.
        results: at least one run.
        config: the accelerator's, whose clock counts unless there is a board.
        board: what it runs on; without one, memory is taken to be shared, as on a Zynq.
    """
    board = clocked(board, config) if board else None
    clock = board.clock_hz if board else config.clock_mhz * 1e6
    own = [
        sum(step.seconds for step in result.steps if step.kind != Accelerate.KIND)
        for result in results
    ]
    host = _modelled_host(module)
    cycles = sum(result.cycles or 0 for result in results) / len(results)
    often = Counter(s.name for s in results[0].steps if s.kind == Accelerate.KIND)
    shared = shared_tensors(module.steps, (*module.inputs, *module.outputs))
    count = sum(often[str(step)] * module.tensors[name].nbytes for step, name in shared)
    return EndToEnd(
        host=host.processor if host else results[0].worker or HERE,
        modelled=host is not None,
        host_ms=1e3 * (host.seconds if host else min(own)),
        transfer_ms=1e3 * transfer_seconds(count, host.processor if host else None, board),
        transfer_bytes=count,
        transport=transport_of(board),
        accelerator_ms=1e3 * cycles / clock if module.accelerated else 0.0,
        clock_mhz=clock / 1e6,
        clock_source=(clock_on(board, config) if board else config.clock).source,
        unknown=host.unknown if host else (),
        undecided=host.undecided if host else (),
    )


def _modelled_host(module: Module) -> HostTime | None:
    """The host's time by a model, where the module brings it."""
    if "host_time" not in module.metadata:
        return None
    from vdla.compiler.targets.processor.timing.model import HostTime

    return HostTime.from_json(module.metadata["host_time"])


def modelled_end_to_end(host: HostTime, cycles: float, config: Config) -> EndToEnd:
    """An inference of so many cycles behind a modelled host, in shared memory."""
    return EndToEnd(
        host=host.processor,
        modelled=True,
        host_ms=host.milliseconds,
        transfer_ms=1e3 * transfer_seconds(host.shared_bytes, host.processor),
        transfer_bytes=host.shared_bytes,
        transport=transport_of(None),
        accelerator_ms=cycles / config.clock_mhz / 1e3,
        clock_mhz=config.clock_mhz,
        clock_source=config.clock.source,
        unknown=host.unknown,
        undecided=host.undecided,
    )


def transport_of(board: Board | None) -> str:
    """Way by which tensors get from the host to the accelerator, in words."""
    return "serial line" if board and board.transport == "serial" else "shared memory"


def transfer_seconds(count: int, processor: str | None, board: Board | None = None) -> float:
    """Seconds that some bytes take between host and accelerator.

    Args:
        count: the bytes.
        processor: a modelled host, whose caches are written back; another one, or None, is taken
            to see what the accelerator does, as this machine with the simulator.
        board: whose transport it is; without one, memory is shared.
    """
    if board and board.transport == "serial":
        return count * BITS_PER_BYTE / BAUD
    if processor is None:
        return 0.0
    from vdla.compiler.targets.processor.timing.machine import NAMES, machine_of

    return count / machine_of(processor).bytes_per_second if processor in NAMES else 0.0
