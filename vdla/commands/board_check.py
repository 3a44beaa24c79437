"""`vdla board check`: a board's first check, a line for each step, and a report in a file."""

from __future__ import annotations

import json as jsonlib
from contextlib import suppress
from pathlib import Path

from vdla.analysis.first_check.session import Session
from vdla.analysis.first_check.steps import FAILED, StepVerdict, report_of, run_steps
from vdla.boards import find_board
from vdla.boards.board import Board
from vdla.boards.connect import connect, find_ports
from vdla.commands.output import (
    check_folder,
    console,
    log,
    print_json,
    progress,
    write_text,
)
from vdla.names.configs import resolve_on
from vdla.options import BoardCheck
from vdla.options.spelling import require
from vdla.support.errors import CheckError


def check(options: BoardCheck, json: bool) -> None:
    """Prints each step's verdict as it comes, or the report; writes that in any case.

    Raises:
        CheckError: a step failed.
        UserError: no such board, config or port, or no place for the report.
    """
    require(options)
    board = find_board(options.board)
    config = resolve_on(options.board, options.config, options.settings)
    path = options.out or Path(f"board-check-{board.name}.json")
    check_folder(path, *([options.config] if isinstance(options.config, str | Path) else []))
    port = _port(board, options)
    transport = connect(board, config, port=port, virtual=options.virtual)
    exact = board.transport == "serial" or options.virtual
    paper = log if json else console

    def tell(verdict: StepVerdict) -> None:
        paper.print(_line(verdict), highlight=False)

    try:
        with progress() as update:
            session = Session(board, config, transport, exact, options.programs, update)
            verdicts = run_steps(session, tell)
        reached = "virtual" if options.virtual else port or "uio"
        report = report_of(session, reached, verdicts)
        write_text(path, jsonlib.dumps(report, indent=2) + "\n")
    finally:
        with suppress(OSError):  # of a port that has gone away
            transport.close()
    if json:
        print_json(report)
    else:
        paper.print(f"wrote {path}", soft_wrap=True)
    for verdict in verdicts:
        if verdict.verdict == FAILED:
            raise CheckError(f"{verdict.name}: {verdict.text}; {path} is the report")


def _port(board: Board, options: BoardCheck) -> str | None:
    """The port that is named, or the one that says it is the board; None where there are none to
    name, or several."""
    if options.port or options.virtual or board.transport != "serial":
        return options.port
    ports = find_ports(board)
    return ports[0] if len(ports) == 1 else None


def _line(verdict: StepVerdict) -> str:
    """A step's verdict in one line."""
    text = f"{verdict.name}: {verdict.verdict}"
    if verdict.seconds:
        text += f" in {verdict.seconds:.1f} s"
    if verdict.sent_again:
        text += f", {verdict.sent_again} requests sent again"
    return text
