"""A PyTorch module or an exported program, as an ONNX model with the structure of its arguments.

captured = capture(module, (x,), {}, {"x": {0: "batch"}}, where="Net")
captured.model                        # ONNX, whose nodes are named after the module's paths
captured.arrays((x,), {})             # {"x": …}, without a copy where the tensor lies on the CPU
captured.results({"logits": …})       # what the module returns, of tensors
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.fx.experimental import _config as fx_config
from torch.utils import _pytree as trees

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.pytorch.quantizers import split_fake_quantizers
from vdla.compiler.frontend.pytorch.sources import line_of_error, name_nodes, place_of
from vdla.compiler.frontend.pytorch.translations import OPERATORS, OPSET

Array = NDArray[Any]
Program = torch.export.ExportedProgram
STATES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
UNTRANSLATED = re.compile(r"Error when translating node %(\w+) : .*?\[target=([\w.:]+)\]", re.S)
LOGGERS = ("torch.onnx", "torch.export", "onnxscript")


@dataclass(frozen=True)
class Captured:
    """An ONNX model, and the trees that its inputs and outputs are the leaves of.

    ``passed`` has an input's name for each argument that is a tensor, and the argument itself for
    others; ``returned`` likewise what the module returns.
    """

    model: onnx.ModelProto
    passed: tuple[Any, ...]
    inputs: frozenset[str]
    arguments: trees.TreeSpec
    returned: tuple[Any, ...]
    outputs: frozenset[str]
    structure: trees.TreeSpec

    def arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Array]:
        """Inputs by their names; tensors on the CPU aren't copied.

        Raises:
            ModelError: other arguments than the module was captured with.
        """
        leaves, tree = trees.tree_flatten((tuple(args), dict(kwargs)))
        if tree != self.arguments:
            raise ModelError(self.model.graph.name, f"arguments {self.arguments}", tree)
        result = {}
        for name, value in zip(self.passed, leaves, strict=True):
            if name in self.inputs:
                result[name] = to_array(value)
            elif value != name:
                expected = f"the argument {name!r} that the module was captured with"
                raise ModelError(self.model.graph.name, expected, repr(value))
        return result

    def results(self, arrays: Mapping[str, Array]) -> Any:
        """What the module returns, of tensors that share the arrays' memory."""
        leaves = [
            torch.from_numpy(np.asarray(arrays[name], order="C")) if name in self.outputs else name
            for name in self.returned
        ]
        return trees.tree_unflatten(leaves, self.structure)

    def leaves(self, results: Any) -> list[Array]:
        """What a call of the module returned, as the model's outputs in their order."""
        values = zip(self.returned, trees.tree_leaves(results), strict=True)
        return [to_array(value) for name, value in values if name in self.outputs]


def to_array(value: Any) -> Array:
    """A tensor's elements, not copied where they lie in the CPU's memory."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return np.asarray(value)


def capture(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    sizes: Any,
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
    if module.training:
        raise ModelError(where, "a module in evaluation mode, as by .eval()", "one in training")
    dims = dynamic_dims(sizes)
    try:
        # An open size stays open where the example's is 1, as PyTorch's own exporter has it.
        with _quiet(), fx_config.patch(backed_size_oblivious=True):
            program = torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=dims)
    except Exception as error:  # torch.export lets through whatever the module raises
        raise ModelError(where, "a module that torch.export captures", _explained(error)) from None
    return convert(program, where, sizes)


def dynamic_dims(sizes: Any, dims: dict[str, Any] | None = None) -> Any:
    """Sizes with a ``torch.export.Dim`` for each name, the same for the same name."""
    dims = {} if dims is None else dims
    if isinstance(sizes, str):
        return dims.setdefault(sizes, torch.export.Dim(sizes))
    if isinstance(sizes, Mapping):
        return {key: dynamic_dims(value, dims) for key, value in sizes.items()}
    if isinstance(sizes, list | tuple):
        return type(sizes)(dynamic_dims(value, dims) for value in sizes)
    return sizes


def _size_names(sizes: Any) -> Any:
    """Sizes with the name of each ``torch.export.Dim`` in its place, by which PyTorch's exporter
    calls them; others keep PyTorch's own names."""
    if isinstance(sizes, Mapping):
        return {key: _size_names(value) for key, value in sizes.items()}
    if isinstance(sizes, list | tuple):
        return type(sizes)(_size_names(value) for value in sizes)
    name = getattr(sizes, "__name__", None)
    return name if isinstance(name, str) else sizes


def load_program(path: Path) -> Program:
    """The exported program in a ``.pt2`` file.

    Raises:
        ModelError: it holds none.
    """
    try:
        with _quiet():
            return torch.export.load(path)
    except Exception as error:  # zipfile, json and PyTorch each raise their own
        raise ModelError(str(path), "a program by torch.export.save", first_line(error)) from None


def convert(program: Program, where: str, sizes: Any = None) -> Captured:
    """The ONNX model of an exported program; ``sizes`` name those that stay open.

    Raises:
        ModelError: it changes a buffer or an argument, or has an operator without a translation;
            names the module's path and the line of Python.
    """
    _check_state(program, where)
    split_fake_quantizers(program, where)
    try:
        with _quiet():
            exported = torch.onnx.export(
                program, dynamo=True, opset_version=OPSET, verbose=False,
                custom_translation_table=OPERATORS, dynamic_shapes=_size_names(sizes),
            )  # fmt: skip
            model = exported.model_proto
    except Exception as error:  # the exporter's errors have no common base class
        raise _refusal(program, error, where) from None
    name_nodes(model)
    model.graph.name = where
    return _with_trees(program, model)


def _check_state(program: Program, where: str) -> None:
    """Raises ModelError where a run would change more than its results."""
    for output in program.graph_signature.output_specs:
        if output.kind in STATES:
            kind = "buffer" if output.kind == OutputKind.BUFFER_MUTATION else "argument"
            node = next(n for n in program.graph.nodes if n.name == output.arg.name)
            actual = f"{kind} {output.target}, which {place_of(node)} changes"
            raise ModelError(where, "a module without state that a run changes", actual)


def _refusal(program: Program, error: Exception, where: str) -> ModelError:
    """Error of PyTorch's exporter, with the place of the operator that it is about."""
    text, cause = "", error.__cause__
    while cause is not None and not (text := UNTRANSLATED.search(str(cause)) or ""):
        cause = cause.__cause__
    match = text or UNTRANSLATED.search(str(error))
    if not match:
        return ModelError(where, "a program that PyTorch exports to ONNX", first_line(error))
    name, target = match[1], match[2].removeprefix("torch.ops.")
    node = _node(program, name, target)
    actual = place_of(node) if node is not None else f"operator {target}"
    expected = "operators that PyTorch translates to ONNX (or register your own translation)"
    return ModelError(where, expected, actual)


def _node(program: Program, name: str, target: str) -> torch.fx.Node | None:
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


def _explained(error: Exception) -> str:
    """Message of torch.export's error, with the line that it is about."""
    line = line_of_error(error)
    return f"{type(error).__name__}: {first_line(error)}{f', at {line}' if line else ''}"


def _with_trees(program: Program, model: onnx.ModelProto) -> Captured:
    """A model with the trees that its inputs and outputs are the leaves of."""
    signature, spec = program.graph_signature, program.call_spec
    names = iter(value.name for value in model.graph.input)
    leaves = [
        next(names) if isinstance(each.arg, TensorArgument) else getattr(each.arg, "value", None)
        for each in signature.input_specs
        if each.kind.name == "USER_INPUT"
    ]
    names = iter(value.name for value in model.graph.output)
    returned = [
        next(names) if isinstance(each.arg, TensorArgument) else getattr(each.arg, "value", None)
        for each in signature.output_specs
        if each.kind.name == "USER_OUTPUT"
    ]
    return Captured(
        model=model,
        passed=tuple(leaves),
        inputs=frozenset(value.name for value in model.graph.input),
        arguments=spec.in_spec,
        returned=tuple(returned),
        outputs=frozenset(value.name for value in model.graph.output),
        structure=spec.out_spec,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without PyTorch's warnings and notes; what goes wrong comes as an exception."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
