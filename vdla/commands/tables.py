"""Widths of a table's columns, and places where the lines of their cells break: between words, else
behind a dot or an underscore, and inside a name never while there is another way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rich.cells import cell_len

BESIDE_A_CELL = 3  # characters of a cell's borders and margins
_PIECES = re.compile(r"[^\s._/:@=-]*[._/:@=-]+|[^\s._/:@=-]+")  # of a word, each with what ends it

Row = Sequence[str]
Break = Callable[[str], list[str]]


def fitted(rows: Sequence[Row], fixed: Sequence[bool], width: int) -> list[list[str]]:
    """The cells of a table with line breaks, so that it is at most ``width`` characters wide, if
    its longest words and numbers allow.

    Args:
        rows: cells, the titles of the columns first.
        fixed: for each column whether its cells below the title stay in one line, as numbers do.
        width: characters in a line of the terminal.
    """
    columns = [list(cells) for cells in zip(*rows, strict=True)]
    room = width - BESIDE_A_CELL * len(columns) - 1
    most = [max(map(cell_len, cells)) for cells in columns]
    if sum(most) <= room:
        return [list(row) for row in rows]
    for pieces in (str.split, _pieces):
        least = [
            _least(cells, is_fixed, pieces) for cells, is_fixed in zip(columns, fixed, strict=True)
        ]
        if sum(least) <= room:
            break
    widths = _shared(least, most, max(0, room - sum(least)))
    wrapped = [
        [_wrapped(cell, size, pieces) for cell in cells]
        for cells, size in zip(columns, widths, strict=True)
    ]
    return [list(row) for row in zip(*wrapped, strict=True)]


def _least(cells: Sequence[str], is_fixed: bool, pieces: Break) -> int:
    """The characters that a column needs at least."""
    title, *rest = cells
    parts = pieces(title) + (rest if is_fixed else [p for cell in rest for p in pieces(cell)])
    return max(map(cell_len, parts), default=0)


def _pieces(text: str) -> list[str]:
    return [piece for word in text.split() for piece in _PIECES.findall(word)]


def _shared(least: Sequence[int], most: Sequence[int], spare: int) -> list[int]:
    """Widths between two bounds that take up what room there is: columns that miss little get all
    of it, the others equal parts of the rest."""
    widths, left = list(least), len(least)
    for index in sorted(range(len(least)), key=lambda i: most[i] - least[i]):
        more = min(most[index] - least[index], spare // left)
        widths[index] += more
        spare, left = spare - more, left - 1
    return widths


def _wrapped(text: str, width: int, pieces: Break) -> str:
    """The text in lines of at most ``width`` characters, as far as its pieces allow."""
    if cell_len(text) <= width:
        return text
    lines = [""]
    for word in text.split():
        space = " " if lines[-1] else ""
        if cell_len(lines[-1] + space + word) <= width:
            lines[-1] += space + word
            continue
        for number, piece in enumerate(pieces(word)):
            between = space if number == 0 else ""
            if lines[-1] and cell_len(lines[-1] + between + piece) > width:
                lines.append(piece)
            else:
                lines[-1] += between + piece
    return "\n".join(lines)
