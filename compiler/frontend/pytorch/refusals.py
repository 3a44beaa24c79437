"""Errors of PyTorch's capture and of its exporter, as one line that names module and line."""

from __future__ import annotations

import re

import torch

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.pytorch.sources import place_of, place_of_error

UNTRANSLATED = re.compile(r"Error when translating node %(\w+) : .*?\[target=([\w.:]+)\]", re.S)
COLOUR = re.compile(r"\x1b\[\d*m")
DETAIL = re.compile(r"^\s+- (.+)$", re.M)  # of sizes that can't stay open
LATER = re.compile(r"[.!]\s+(?=[A-Z(])| \(unhinted")  # what follows a first statement
CAPTURED = "a module that torch.export captures"
EXPECTED = {  # by the class of PyTorch's error
    "GuardOnDataDependentSymNode": "branches, numbers and sizes that don't depend on a tensor's "
    "elements; torch.where and torch.cond choose by them",
    "ConstraintViolationError": "sizes that can stay open; torch.export.Dim(name, min=2) has no 1",
}
UNKNOWN_TYPE = re.compile(r"Found <class '([\w.]+)'> in (output|input)")


def capture_error(error: Exception, module: torch.nn.Module, where: str) -> ModelError:
    """Error of ``torch.export``, which lets through whatever the module raises."""
    text, kind = COLOUR.sub("", str(error)), type(error).__name__
    place = place_of_error(error, module)
    if unknown := UNKNOWN_TYPE.search(text):
        expected = "tensors in tuples, lists, dictionaries and what is registered, as by "
        actual = f"{unknown[1]} in its {unknown[2]}"
        return ModelError(where, f"{expected}torch.export.register_dataclass", actual)
    if details := DETAIL.search(text):
        kind, line = "ConstraintViolationError", details[1]
    else:
        line = first_line(error)
    message = f"{kind}: {LATER.split(line)[0].rstrip('.')}"
    return ModelError(where, EXPECTED.get(kind, CAPTURED), f"{message}{place}")


def export_error(program: torch.export.ExportedProgram, error: Exception, where: str) -> ModelError:
    """Error of PyTorch's exporter, with the place of the operator that it is about."""
    text, cause = UNTRANSLATED.search(str(error)), error.__cause__
    while cause is not None:
        text = text or UNTRANSLATED.search(str(cause))
        error, cause = (cause if isinstance(cause, Exception) else error), cause.__cause__
    if not text:
        actual = f"{type(error).__name__}: {COLOUR.sub('', first_line(error))}"
        return ModelError(where, "a program that PyTorch exports to ONNX", actual)
    name, target = text[1], text[2].removeprefix("torch.ops.")
    node = _node(program, name, target)
    actual = place_of(node) if node is not None else f"operator {target}"
    expected = "operators that PyTorch translates to ONNX"
    return ModelError(where, expected, actual)


def _node(program: torch.export.ExportedProgram, name: str, target: str) -> torch.fx.Node | None:
    """The node of a name, or else of an operator; of the program, or of its decomposition."""
    for each in (program, program.run_decompositions()):
        nodes = [node for node in each.graph.nodes if node.op == "call_function"]
        for node in nodes:
            if node.name == name and str(node.target) == target:
                return node
        for node in nodes:
            if str(node.target) == target:
                return node
    return None
