"""Names: ours, which are checked where they are read, and foreign ones, which are escaped.

Configs and spaces are named by the files of vdla's own formats. Their names become parts of paths,
comments of Verilog and C, and lines on a terminal, so a name that could mean anything there is
refused (``check_name``). Tensors, nodes and whatever else a foreign file names may have any name;
it is escaped where it leaves for a terminal (``printable``) or becomes a part of a path
(``path_part``).
"""

from __future__ import annotations

import re

from vdla.support.errors import UserError

LONGEST_NAME = 64  # characters
_NAME = re.compile(rf"[A-Za-z0-9_.+-]{{1,{LONGEST_NAME}}}")
_OTHER = re.compile(r"[^A-Za-z0-9_.+-]")


def check_name(name: str, where: str, error: type[UserError]) -> None:
    """Raises ``error`` unless ``name`` is 1 to 64 letters, digits and ``_ . + -``, all ASCII;
    ``where`` opens its text."""
    if not _NAME.fullmatch(name):
        raise error(
            f"{where}: expected a name of 1 to {LONGEST_NAME} characters out of A-Z a-z 0-9 _ . + -"
            f", found {name!r}; the key name sets it"
        )


def printable(text: str) -> str:
    r"""The text with control characters, line breaks, and what turns the direction of writing, as
    Python's escapes, such as ``\x1b``: a terminal shows them and obeys none."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int) -> str:
    """The text in at most ``most`` characters: of a longer one, start and end around an ellipsis,
    since names of one network often start alike."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def path_part(text: str) -> str:
    """A foreign name as a part of a file's name: at most 64 characters out of those of a name, not
    empty, and with no dot at its start."""
    return _OTHER.sub("_", text)[:LONGEST_NAME].lstrip(".") or "_"
