"""Places in a user's Python that operators of a PyTorch program come from.

PyTorch notes a node's modules and its stack; its exporter copies both into the ONNX node's
metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from types import FrameType, TracebackType

import onnx
import torch

from vdla.compiler.frontend.sources import is_library, note_line

SCOPES, STACK = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace"
FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
QUOTED = re.compile(r"'([^']*)'")
LIBRARIES = (Path(torch.__file__).resolve().parent,)


def name_nodes(model: onnx.ModelProto) -> None:
    """Names a model's nodes after the paths of their modules, as ``layer1.0.conv1.conv2d``, and
    notes each one's line of Python in place of PyTorch's metadata."""
    taken: set[str] = set()
    for node in model.graph.node:
        noted = {entry.key: entry.value for entry in node.metadata_props}
        scopes = [each for each in QUOTED.findall(noted.get(SCOPES, "")) if each]
        node.name = _fresh(".".join(scopes[-2:]) or node.name, taken)
        del node.metadata_props[:]
        if line := _line(noted.get(STACK, "")):
            note_line(node, line)


def _fresh(name: str, taken: set[str]) -> str:
    """The name, or the next number of it where it is taken."""
    numbered = (f"{name}_{n}" for n in count(2))
    result = next(each for each in chain([name], numbered) if each not in taken)
    taken.add(result)
    return result


def place_of(node: torch.fx.Node) -> str:
    """A program's node as messages name it: operator, path of its module, line of Python."""
    modules = node.meta.get("nn_module_stack") or {}
    paths = [str(path) for path, _ in modules.values() if path]
    inside = f" in module {paths[-1]}" if paths else ""
    line = _line(node.meta.get("stack_trace") or "")
    return f"operator {node.target}{inside}{f', {line}' if line else ''}"


def _line(stack: str) -> str:
    """The last line of a stack trace that isn't a library's: ``model.py:12, in forward``."""
    frames = [
        f"{path}:{line}, in {function}"
        for path, line, function in FRAME.findall(stack)
        if not is_library(path, LIBRARIES)
    ]
    return frames[-1] if frames else ""


def place_of_error(error: BaseException, module: torch.nn.Module) -> str:
    """Path of the innermost module in which an error arose, and the line of a user's Python; as
    what follows in a message, and nothing where neither is known."""
    paths = {id(part): path for path, part in module.named_modules() if path}
    frames = list(_frames(error.__traceback__))
    inside = [paths[each] for each in map(_self_of, frames) if each in paths]
    lines = [
        f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"
        for frame, line in frames
        if not is_library(frame.f_code.co_filename, LIBRARIES)
    ]
    line = lines[-1] if lines else _line(str(error))
    return f"{f', in module {inside[-1]}' if inside else ''}{f', at {line}' if line else ''}"


def _self_of(place: tuple[FrameType, int]) -> int:
    """Identity of the object whose method a frame runs."""
    return id(place[0].f_locals.get("self"))


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
