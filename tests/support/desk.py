"""Boards at a desk, without boards: each in Python behind a port of its own, to be unplugged."""

from __future__ import annotations

import os
import pty
import select
import threading
import tty
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory

from fake_board import FakeLine

from vdla.isa.registers import register

CONTROL = register("CONTROL").offset
START = register("CONTROL").field("START").mask


class DeskBoard:
    """A board whose cycles are the simulator's; its port opens as a real one's does.

    It runs so many ``programs`` and is unplugged at the start of the next one.
    """

    def __init__(self, config, programs=None):
        self.line, self.programs = FakeLine(config), programs
        self._ours, self._theirs = pty.openpty()
        tty.setraw(self._theirs)
        # A name that no other pseudo-terminal gets once this one is gone.
        self._folder = TemporaryDirectory(prefix="board-")
        self.port = f"{self._folder.name}/tty"
        os.symlink(os.ttyname(self._theirs), self.port)
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def runs(self):
        """How many programs it was told to start."""
        return self.line.done.count((CONTROL, START))

    def _serve(self):
        while self._ours in select.select([self._ours, self._ended], [], [])[0]:
            self.line.write(os.read(self._ours, 4096))
            if self.programs is not None and self.runs > self.programs:
                break
            os.write(self._ours, bytes(self.line.replies))
            self.line.replies.clear()
        self._folder.cleanup()
        os.close(self._ours)
        os.close(self._theirs)

    def close(self):
        """Unplugs it, unless it was before."""
        os.write(self._end, b"x")
        self._thread.join()
        os.close(self._end)
        os.close(self._ended)


@contextmanager
def desk(config, *programs):
    """As many boards as there are numbers of programs that they run; None for any number."""
    with ExitStack() as stack:
        boards = [DeskBoard(config, count) for count in programs]
        for board in boards:
            stack.callback(board.close)
        yield boards
