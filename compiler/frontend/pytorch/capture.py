"""A PyTorch module or an exported program, as an ONNX model with the structure of its arguments.

captured = capture(module, (x,), {}, {"x": {0: "batch"}}, where="Net")
captured.model                        # ONNX, whose nodes are named after the module's paths
captured.arrays((x,), {})             # {"x": …}, without a copy where the tensor lies on the CPU
captured.results({"logits": …})       # what the module returns, of tensors
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental import _config as fx_config

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.pytorch.calls import Captured, with_trees
from vdla.compiler.frontend.pytorch.quantizers import split_fake_quantizers
from vdla.compiler.frontend.pytorch.refusals import capture_error, export_error
from vdla.compiler.frontend.pytorch.same_steps import add_quantizers
from vdla.compiler.frontend.pytorch.sources import name_nodes
from vdla.compiler.frontend.pytorch.states import check_state
from vdla.compiler.frontend.pytorch.training import as_in_inference
from vdla.compiler.frontend.pytorch.translations import OPERATORS, OPSET


def capture(
    module: torch.nn.Module,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    sizes: object,
    where: str,
) -> Captured:
    """The ONNX model of a module that is called with some arguments.

    Args:
        module: in evaluation mode.
        args: its positional arguments, as tensors of the shapes that it is captured for.
        kwargs: its others.
        sizes: those that stay open, as ``torch.export.export`` takes them for ``dynamic_shapes``;
            a name may stand for a ``torch.export.Dim``.
        where: what opens every error.

    Raises:
        ModelError: torch.export or PyTorch's ONNX exporter doesn't take it; names the module's path
            and the line of Python.
    """
    # A module of torch.export's, as PT2E makes it, says that it is in training and has no eval().
    if module.training and not isinstance(module, torch.fx.GraphModule):
        raise ModelError(where, "a module in evaluation mode, as by .eval()", "one in training")
    dims = dynamic_dims(sizes)
    try:
        # An open size stays open where the example's is 1, as PyTorch's own exporter has it.
        patch = fx_config.patch(backed_size_oblivious=True)
        with _quiet(), patch, as_in_inference(module):
            program = torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=dims)
    except Exception as error:  # torch.export lets through whatever the module raises
        raise capture_error(error, module, where) from None
    return convert(program, where, sizes)


def dynamic_dims(sizes: object, dims: dict[str, Any] | None = None) -> Any:
    """Sizes with a ``torch.export.Dim`` for each name, the same for the same name."""
    dims = {} if dims is None else dims
    if isinstance(sizes, str):
        return dims.setdefault(sizes, torch.export.Dim(sizes))
    if isinstance(sizes, Mapping):
        return {key: dynamic_dims(value, dims) for key, value in sizes.items()}
    if isinstance(sizes, list | tuple):
        return type(sizes)(dynamic_dims(value, dims) for value in sizes)
    return sizes


def _size_names(sizes: object) -> Any:
    """Sizes with the name of each ``torch.export.Dim`` in its place, by which PyTorch's exporter
    calls them; others keep PyTorch's own names."""
    if isinstance(sizes, Mapping):
        return {key: _size_names(value) for key, value in sizes.items()}
    if isinstance(sizes, list | tuple):
        return type(sizes)(_size_names(value) for value in sizes)
    name = getattr(sizes, "__name__", None)
    return name if isinstance(name, str) else sizes


def load_program(path: Path) -> torch.export.ExportedProgram:
    """The exported program in a ``.pt2`` file.

    Raises:
        ModelError: it holds none.
    """
    try:
        with _quiet():
            program: torch.export.ExportedProgram = torch.export.load(path)
            return program
    except Exception as error:  # zipfile, json and PyTorch each raise their own
        raise ModelError(str(path), "a program by torch.export.save", first_line(error)) from None


def convert(program: torch.export.ExportedProgram, where: str, sizes: object = None) -> Captured:
    """The ONNX model of an exported program; ``sizes`` name those that stay open.

    Raises:
        ModelError: it changes a buffer or an argument, or has an operator without a translation;
            names the module's path and the line of Python.
    """
    split_fake_quantizers(program, where)
    with _quiet():
        check_state(program, where)
    _drop_constants(program.graph)
    try:
        with _quiet():
            exported = torch.onnx.export(
                program, dynamo=True, opset_version=OPSET, verbose=False,
                custom_translation_table=OPERATORS, dynamic_shapes=_size_names(sizes),
            )  # fmt: skip
            model = exported.model_proto
    except Exception as error:  # the exporter's errors have no common base class
        with _quiet():
            raise export_error(program, error, where) from None
    name_nodes(model)
    add_quantizers(model)
    model.graph.name = where
    return with_trees(program, model)


def _drop_constants(graph: torch.fx.Graph) -> None:
    """Takes numbers, texts and switches from what a program returns: its signature has them, and
    PyTorch's exporter has no place for any but None."""
    (results,) = graph.output_node().args
    assert isinstance(results, tuple)
    kept = tuple(each if isinstance(each, torch.fx.Node) else None for each in results)
    graph.output_node().args = (kept,)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without PyTorch's warnings and notes, and what the module prints, which has no elements yet;
    what goes wrong comes as an exception."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
