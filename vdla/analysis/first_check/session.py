"""A session with a board that is checked: what its steps share, and how one of them fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from vdla.boards.board import Board
from vdla.isa.config import Config
from vdla.options.common import Progress, quiet
from vdla.runtime.board.serial import SerialTransport
from vdla.runtime.board.transport import Transport
from vdla.runtime.devices.board import BoardDevice
from vdla.support.errors import CheckError

Figures = Mapping[str, object]  # of a step, as the report has them: JSON's types


class StepFailure(CheckError):
    """A step that found something else than it had to; ``figures`` say what."""

    def __init__(self, text: str, figures: Figures) -> None:
        super().__init__(text)
        self.figures = figures


@dataclass
class Session:
    """A board behind a transport, with the config that it should have.

    The config's memory is the board's. ``exact`` says whether that is the memory to the cycle: not
    on a real board whose processor has it. So many random ``programs`` run on it.
    """

    board: Board
    config: Config
    transport: Transport
    exact: bool
    programs: int = 10
    progress: Progress = quiet

    @cached_property
    def device(self) -> BoardDevice:
        """The board as a device.

        Raises:
            LinkError: it doesn't answer, or is no VDLA core of this version.
            OtherBitstreamError: its bitstream is for another instruction set or config.
        """
        return BoardDevice(self.config, self.transport)

    @property
    def sent_again(self) -> int:
        """Requests that were sent again so far; 0 where there is no line."""
        transport = self.transport
        return transport.sent_again if isinstance(transport, SerialTransport) else 0
