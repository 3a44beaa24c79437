"""Places that models and nodes come from, as an ONNX file notes them for messages.

A model that was translated notes its file or module, a node its line of Python.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx  # which takes long to import

COMPILER = Path(__file__).resolve().parents[1]
OWN = (COMPILER, Path(str(sys.modules["vdla"].__file__)).resolve().parent)  # vdla's sources
SOURCE, LINE = "vdla.source", "vdla.line"  # keys of the metadata of a model, of a node


def note_source(model: onnx.ModelProto, source: str) -> None:
    """Notes the file or the module that a model comes from."""
    forget_source(model)
    model.metadata_props.add(key=SOURCE, value=source)


def forget_source(model: onnx.ModelProto) -> None:
    """Leaves out where a model comes from: it becomes a file of its own."""
    others = [entry for entry in model.metadata_props if entry.key != SOURCE]
    del model.metadata_props[:]
    model.metadata_props.extend(others)


def source_of(model: onnx.ModelProto, default: str) -> str:
    """The file or the module that a model comes from."""
    return next((p.value for p in model.metadata_props if p.key == SOURCE), default)


def note_line(node: onnx.NodeProto, line: str) -> None:
    """Notes the line of Python that a node comes from, as ``net.py:12, in forward``."""
    node.metadata_props.add(key=LINE, value=line)


def line_of(node: onnx.NodeProto) -> str:
    """The line of Python that a node comes from; empty where none is noted."""
    return next((p.value for p in node.metadata_props if p.key == LINE), "")


def last_line(error: BaseException, libraries: Collection[Path]) -> str:
    """The last line on the way to an error that is neither in ``libraries`` nor vdla's, as
    ``net.py:12, in forward``; empty where there is none."""
    frames = [
        f"{frame.filename}:{frame.lineno}, in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not is_library(frame.filename, libraries)
    ]
    return frames[-1] if frames else ""


def is_library(path: str, libraries: Collection[Path]) -> bool:
    """Whether a file lies in one of some folders, is vdla's, or was made at run time."""
    place = Path(path)
    return path.startswith("<") or any(
        place.is_relative_to(folder) for folder in (*OWN, *libraries)
    )
