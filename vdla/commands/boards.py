"""`vdla synth`: a board's bitstream, or a project for its vendor's tool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla import api
from vdla.boards.board import Bitstream
from vdla.boards.flows.files import digest
from vdla.commands.output import console, log, print_json, progress, table
from vdla.options import Synth


def synth(board: str, options: Synth, json: bool) -> None:
    """Makes what the toolchain makes, and reports area and timing."""
    with progress() as update:
        made = api.synth(board, replace(options, progress=update))
    if json:
        print_json(_summary(made))
    else:
        _print(made)
    for note in made.notes:
        log.print(note)


def _summary(made: Bitstream) -> dict[str, object]:
    return {
        "board": made.board.name,
        "toolchain": made.toolchain,
        "config": made.config,
        "bitstream": made.bitstream,
        "sha256": digest(Path(made.folder), made.hashed),
        "fmax_mhz": made.fmax_mhz,
        "target_mhz": made.board.clock_hz / 1e6,
        "clock": made.clock.to_dict(),
        **made.used,
        "available": dict(made.board.available),
    }


def _print(made: Bitstream) -> None:
    board = made.board
    rows = []
    for name, used in made.used.items():
        most = board.available[name]
        rows.append((name, f"{used:,.0f}", f"{most:,}", f"{100 * used / most:.0f} %"))
    title = f"config {made.config} on {board.title} ({board.device})"
    table(title, ("resource", "used", "available", "share"), rows)
    target = f"{board.clock_hz / 1e6:g} MHz"
    if made.fmax_mhz is not None:
        console.print(f"{made.fmax_mhz:.1f} MHz by the place-and-route's report, {target} wanted")
    wrote = made.bitstream or f"{made.folder}; target {target}"
    console.print(f"wrote {wrote}", soft_wrap=True)
    what = made.hashed[0] if len(made.hashed) == 1 else f"its {len(made.hashed)} files"
    if not made.clock.is_asked:
        own = f"clock_mhz = {board.clock_hz / 1e6:.0f}"
        for line in ("the config's file may say so:", own, *made.clock.to_toml().splitlines()):
            console.print(line, highlight=False)
    console.print(f"SHA-256 {digest(Path(made.folder), made.hashed)} of {what}", soft_wrap=True)
