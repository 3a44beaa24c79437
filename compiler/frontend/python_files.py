"""Functions in files of Python: ``net.py:Net``, with the arguments that they are captured for.

class Net(torch.nn.Module): …               or a function that returns one, or one of JAX

def example_inputs():                       in the file, or as a method of the class
    return (torch.randn(1, 3, 224, 224),)
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.functions import Function, is_torch

EXAMPLE = "example_inputs"


def load_function(path: Path, name: str) -> tuple[Function, Sequence[object]]:
    """A function of a file, and arguments to capture it for.

    Raises:
        ModelError: the file can't be imported, has no such name, or no ``example_inputs``.
    """
    where = f"{path}:{name}"
    scope, value = named_in(path, name)
    if isinstance(value, type):
        value = _called(value, where)
    example = getattr(value, EXAMPLE, None) or scope.get(EXAMPLE)
    if example is None:
        expected = f"{EXAMPLE}() in the file or the class, which returns a tuple of arguments"
        raise ModelError(where, expected, "none")
    args = _called(example, where) if callable(example) else example
    args = tuple(args) if isinstance(args, list | tuple) else (args,)
    if not is_torch(value) and not _takes(value, len(args)):
        value = _called(value, where)  # a function that makes the module
    return (value.eval() if is_torch(value) else value), args


def named_in(path: Path, name: str) -> tuple[Mapping[str, Any], Any]:
    """The names of a file, and the class or the function that one of them is.

    Raises:
        ModelError: the file can't be imported, or has no such name.
    """
    scope = vars(_module(path))
    value = scope.get(name)
    if not callable(value):
        known = ", ".join(each for each, v in scope.items() if callable(v) and each[0] != "_")
        raise ModelError(str(path), f"a class or a function {name}", f"only {known or 'none'}")
    return scope, value


def _module(path: Path) -> Any:
    """The module of a file, imported as a script is: its folder's files can be imported."""
    if not path.is_file():
        raise ModelError(str(path), "a file of Python", "no file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # which classes are looked up in
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises
        actual = f"{type(error).__name__}: {first_line(error)}"
        raise ModelError(str(path), "a file of Python that can be imported", actual) from None
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _called(function: Any, where: str) -> Any:
    """Result of a function without arguments."""
    try:
        return function()
    except Exception as error:  # whatever it raises
        actual = f"{type(error).__name__}: {first_line(error)}"
        name = getattr(function, "__name__", "it")
        raise ModelError(where, f"{name}() to return without arguments", actual) from None


def _takes(function: Any, count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    from inspect import signature

    try:
        signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True
