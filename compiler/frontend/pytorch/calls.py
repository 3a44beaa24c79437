"""Calls of a captured module: its arguments as a model's inputs, a model's outputs as its results.

Arguments and results are trees, whose leaves are tensors, numbers, texts, switches and None. Those
that aren't tensors are constants of the capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
import torch
from torch.export.graph_signature import ConstantArgument, InputSpec, OutputSpec
from torch.utils import _pytree as trees

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.pytorch.tensors import Array, to_array, to_tensor


@dataclass(frozen=True)
class Leaf:
    """A leaf that a model computes or reads: its name there, and how a result is made of it."""

    name: str
    make: Callable[[Array], object]

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Captured:
    """An ONNX model, and the trees that its inputs and outputs are leaves of.

    ``passed`` and ``returned`` have a ``Leaf`` for each tensor, and other values themselves.
    """

    model: onnx.ModelProto
    passed: tuple[object, ...]
    arguments: trees.TreeSpec
    returned: tuple[object, ...]
    structure: trees.TreeSpec

    def arrays(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Array]:
        """Inputs by their names; tensors on the CPU aren't copied.

        Raises:
            ModelError: other arguments than the module was captured with.
        """
        where = self.model.graph.name
        leaves, tree = trees.tree_flatten((tuple(args), dict(kwargs)))
        if tree != self.arguments:
            expected = trees.tree_unflatten(self.passed, self.arguments)
            raise ModelError(where, f"arguments {_shown(*expected)}", _shown(args, kwargs))
        result = {}
        for leaf, value in zip(self.passed, leaves, strict=True):
            if isinstance(leaf, Leaf):
                result[leaf.name] = to_array(value)
            elif isinstance(value, torch.Tensor) or value != leaf:
                expected = f"the argument {leaf!r} that the module was captured with"
                raise ModelError(where, expected, repr(_described(value)))
        return result

    def results(self, arrays: Mapping[str, Array]) -> object:
        """Results of the module, of tensors that share the arrays' memory."""
        leaves = [
            leaf.make(arrays[leaf.name]) if isinstance(leaf, Leaf) else leaf
            for leaf in self.returned
        ]
        return trees.tree_unflatten(leaves, self.structure)

    def leaves(self, results: object) -> list[Array]:
        """Results of a call of the module, as the model's outputs in their order."""
        values = zip(self.returned, trees.tree_leaves(results), strict=True)
        return [to_array(value) for leaf, value in values if isinstance(leaf, Leaf)]


def with_trees(program: torch.export.ExportedProgram, model: onnx.ModelProto) -> Captured:
    """A program's model with the trees that its inputs and outputs are leaves of."""
    signature, spec = program.graph_signature, program.call_spec
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    (results,) = program.graph.output_node().args
    return Captured(
        model=model,
        passed=_leaves(signature.input_specs, placeholders, model.graph.input),
        arguments=spec.in_spec,
        returned=_leaves(signature.output_specs, results, model.graph.output),
        structure=spec.out_spec,
    )


def _leaves(
    specs: Sequence[InputSpec | OutputSpec],
    nodes: Sequence[torch.fx.Node],
    named: Sequence[onnx.ValueInfoProto],
) -> tuple[object, ...]:
    """Leaves of a caller's arguments or results: those that a model has by name, in its order, and
    constants as they are."""
    names = iter(value.name for value in named)
    return tuple(
        spec.arg.value
        if isinstance(spec.arg, ConstantArgument)
        else Leaf(next(names), _maker(node.meta["val"]))
        for spec, node in zip(specs, nodes, strict=True)
        if spec.kind.name.startswith("USER_")
    )


def _maker(value: object) -> Callable[[Array], Any]:
    """The way from an array to a result: a tensor like ``value``, or else a number."""
    if not isinstance(value, torch.Tensor):
        return np.ndarray.item
    return partial(to_tensor, complexes=value.is_complex())


def _shown(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Arguments as a message shows them: ``(x, True, scale=0.5)``."""
    places = [repr(trees.tree_map(_described, value)) for value in args]
    named = [f"{name}={trees.tree_map(_described, value)!r}" for name, value in kwargs.items()]
    return f"({', '.join([*places, *named])})"


def _described(value: object) -> Any:
    """A value that messages show, which for a tensor is its shape."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return Leaf(f"{type(value).__name__}{list(value.shape)}", to_tensor)
    return value
