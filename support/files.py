"""Files that are there whole or not at all, the folder of cached things, digests of sources.

What is cached is trusted with the process: machine code, libraries. A power cut or a full disk can
leave a part of it. So a digest lies beside each file, and what it doesn't fit is made again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

SEAL = ".sha256"  # suffix of the file that holds another one's digest
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
SUFFIXES = (".py", ".cpp", ".h", ".v")  # of the files of a folder that are sources


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to, with its suffix.

    What was written takes the place of ``path`` at the end of the block; if the block raises, it
    is removed and ``path`` is as before. The file beside has a name that nobody can foresee, and is
    new: what others lay there, links among it, is neither followed nor written over.

    Raises:
        OSError: it can't be written; names ``path``.
    """
    beside = path.with_name(f".{secrets.token_hex(8)}.{path.name}")
    try:
        os.close(os.open(beside, NEW_FILE, 0o666))  # less what the umask takes
        yield beside
        os.replace(beside, path)
    except OSError as error:
        if error.filename in (None, str(beside), beside):
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        beside.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all."""
    with atomic_write(path) as beside:
        beside.write_bytes(data)


def cache_folder(*parts: str) -> Path:
    """Folder in which what takes long to make is kept: ``$VDLA_CACHE``, else
    ``$XDG_CACHE_HOME/vdla``, else ``~/.cache/vdla``; ``parts`` name a folder within. It need not
    exist."""
    if root := os.environ.get("VDLA_CACHE"):
        return Path(root, *parts)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "vdla", *parts)


def seal(path: Path) -> None:
    """Writes a file's digest beside it."""
    write_bytes(seal_of(path), digest_of_file(path).encode())


def is_sealed(path: Path) -> bool:
    """Whether a file is there and as it was when it was sealed."""
    try:
        return seal_of(path).read_bytes() == digest_of_file(path).encode()
    except OSError:
        return False


def seal_of(path: Path) -> Path:
    """Path of a file's digest."""
    return path.with_name(f"{path.name}{SEAL}")


def keep_newest(folder: Path, pattern: str, most_bytes: int) -> None:
    """Removes files that match a pattern, with their seals, the longest unused first, until the
    rest is no more than ``most_bytes``."""
    size = 0
    for path in sorted(folder.glob(pattern), key=lambda p: p.stat().st_mtime, reverse=True):
        size += path.stat().st_size
        if size > most_bytes:
            path.unlink()
            seal_of(path).unlink(missing_ok=True)


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file, in hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(sources: Iterable[Path], *, also: str = "", digits: int = 16) -> str:
    """The first ``digits`` hex digits of the SHA-256 over sources.

    Args:
        sources: Files, in the order given; of a folder, what SUFFIXES says, sorted by path.
        also: Whatever else a result depends on, such as versions of tools.
    """
    result = hashlib.sha256()
    for source in sources:
        within = (path for path in source.rglob("*") if path.suffix in SUFFIXES)
        for path in sorted(within) if source.is_dir() else (source,):
            result.update(path.read_bytes())
    result.update(also.encode())
    return result.hexdigest()[:digits]
