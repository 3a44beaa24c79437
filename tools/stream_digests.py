"""Prints a digest of the accelerator's streams for some networks, to compare two commits.

    python tools/stream_digests.py [FILE ...] [--networks 25] [-c paper -c tiny]

For each config and network a line: the number of streams, of their instructions, and a digest over
their bytes and micro-ops. A change of the compiler that is to change no stream prints the same
lines as before; run the same file for both commits, by path. Networks are those of
``graph_digests.py``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from graph_digests import print_lines

from vdla.compiler.build import link_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.placement import ACCELERATOR
from vdla.compiler.targets.accelerator.part import StreamPart
from vdla.isa.config import load_config
from vdla.support.errors import UserError


def summary(path: Path, config: str) -> str:
    """Streams and instructions of a network, and sixteen hex digits over their bytes; where there
    are none, why."""
    try:
        linked = link_graph(import_onnx(path), load_config(config))
    except UserError as error:
        return f"none: {str(error).partition(chr(10))[0]}"
    part = linked.parts[ACCELERATOR]
    assert isinstance(part, StreamPart)
    content = hashlib.sha256()
    for program in part.programs.values():
        content.update(program.stream())
    for address, uops in part.uops.items():
        content.update(address.to_bytes(8, "little") + uops.tobytes())
    count = sum(len(program.instructions) for program in part.programs.values())
    return f"{len(part.programs)} {count:7} {content.hexdigest()[:16]}"


if __name__ == "__main__":
    print_lines(__doc__, summary)
