"""Archives of object files, as System V's ``ar`` writes them: a line, then each file behind a
header.

    header := name 16  time 12  owner 6  group 6  mode 8  size 10  "`" newline     60 bytes of text
    file   := header bytes                                 and a newline where the size is odd
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vdla.runtime.errors import ModuleError

ARCHIVE_MAGIC = b"!<arch>\n"
HEADER = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n"
HEADER_BYTES, SIZE, END = 60, slice(48, 58), slice(58, 60)
MODE = 0o644


def archive_of(objects: Sequence[bytes]) -> bytes:
    """One file of several object files, named by their numbers."""
    parts = [ARCHIVE_MAGIC]
    for number, code in enumerate(objects):
        parts.append(HEADER % (b"%d.o/" % number, 0, 0, 0, MODE, len(code)))
        parts.append(code + b"\n" * (len(code) % 2))
    return b"".join(parts)


def objects_in(code: bytes, where: str) -> list[bytes]:
    """The files of an archive; an object file is itself the only one.

    Raises:
        ModuleError: the archive is broken.
    """
    return [*_members(code, where)] if code.startswith(ARCHIVE_MAGIC) else [code]


def _members(code: bytes, where: str) -> Iterator[bytes]:
    place = len(ARCHIVE_MAGIC)
    while place < len(code):
        header = code[place : place + HEADER_BYTES]
        size = header[SIZE].strip()
        place += HEADER_BYTES
        if header[END] != b"`\n" or not size.isdigit() or place + int(size) > len(code):
            raise ModuleError(
                f"{where}: expected an archive of object files, found a file in it that is cut or "
                f"has no header, at byte {place - HEADER_BYTES} of {len(code)}"
            )
        yield code[place : place + int(size)]
        place += int(size) + int(size) % 2
