"""Models by the names that users give: bundled ones, files of models, modules."""

from __future__ import annotations

from pathlib import Path

from vdla.compiler import models
from vdla.names.kinds import check_kind
from vdla.options.spelling import UsageError
from vdla.runtime.module import MAGIC, Module
from vdla.support.errors import UserError


def is_module(model: Module | str | Path) -> bool:
    """Whether it is a module, or a file of one.

    Raises:
        UsageError: it is neither a module nor a name.
    """
    kinds = "a module, a .vdla or ONNX file or a bundled name"
    check_kind("model", kinds, model, Module | str | Path)
    return isinstance(model, Module) or str(model).endswith(".vdla") or _begins_as_one(Path(model))


def _begins_as_one(path: Path) -> bool:
    """Whether a file begins as a module's does, whatever its name."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def model_files(model: str | Path) -> dict[str, Path]:
    """Every network that a path or a bundled name stands for, as ONNX files."""
    if str(model) in models.MODELS:
        return models.model_paths(str(model))
    path = model_file(model)
    return {path.stem: path}


def model_file(model: str | Path) -> Path:
    """The one network that a path or a bundled name stands for, as an ONNX file.

    Raises:
        ModelError: there is none, or there are several.
        UsageError: it isn't a name.
    """
    if isinstance(model, Module):
        raise UsageError("model: expected an ONNX file or a bundled name, found a module")
    if is_module(model):
        raise UsageError(f"model: expected an ONNX file or a bundled name, found {model}")
    if str(model) in models.MODELS:
        try:
            return models.model_path(str(model))
        except KeyError:
            raise _refusal(model, "one network", "several; only compare takes it") from None
    from vdla.compiler.frontend.files import onnx_file, python_name

    if not Path(model).exists() and python_name(str(model)) is None:
        known = ", ".join(models.MODELS)
        raise _refusal(model, f"an ONNX file or one of {known}", "neither")
    return onnx_file(model)


def _refusal(model: str | Path, expected: str, actual: str) -> UserError:
    """A ModelError, whose package takes long to import: a model that is there doesn't need it."""
    from vdla.compiler.frontend.errors import ModelError

    return ModelError(str(model), expected, actual)
