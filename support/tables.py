"""Tables of HTML that notebooks show: text is escaped, bars are part of a cell."""

from __future__ import annotations

import html
from collections.abc import Sequence

CELL = 'style="text-align:{align};padding:2px 10px"'


def html_table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
) -> str:
    """A table with a caption above and a note below; numbers are set flush right.

    Args:
        caption: one line about the whole.
        columns: the columns' names.
        rows: a cell for each column; a ``float`` is a share from 0 to 1, and gets a bar.
        note: one line below; none where it is empty.
    """
    head = "".join(f"<th {_cell('left')}>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return (
        f"<div><p><b>{html.escape(caption)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )


def _cell(align: str) -> str:
    """The style of a cell."""
    return CELL.format(align=align)


def _html_cell(value: object) -> str:
    """A cell; a share has a bar whose length is the share of 6 em."""
    match value:
        case float():
            width = 6 * min(max(value, 0.0), 1.0)
            bar = f'<span style="{BAR};width:{width:.2f}em"></span>'
            return f"<td {_cell('left')}>{bar} {100 * value:.1f} %</td>"
        case int():
            return f"<td {_cell('right')}>{value:,}</td>"
    return f"<td {_cell('left')}>{html.escape(str(value))}</td>"


BAR = "display:inline-block;height:.7em;background:#0072b2"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lines of a table whose columns are as wide as what is in them."""
    cells = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
