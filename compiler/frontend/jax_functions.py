"""A function of JAX, as an ONNX model with the structure of its arguments.

``jax2onnx`` writes the ONNX; here is what it leaves to its caller: trees of arguments, arguments
that are no arrays, names.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import jax
import jax2onnx
import numpy as np
import onnx
from jax import tree_util as trees
from jax.extend import source_info_util
from numpy.typing import NDArray

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.sources import last_line

Array = NDArray[Any]
OPSET = 21
LIBRARIES = [Path(each.__file__).resolve().parent for each in (jax, jax2onnx)]


@dataclass(frozen=True)
class Captured:
    """An ONNX model, and the trees that its inputs and outputs are the leaves of.

    ``fixed`` are the arguments that are no arrays, by their places among the leaves.
    """

    model: onnx.ModelProto
    fixed: Mapping[int, Any]
    arguments: trees.PyTreeDef
    structure: trees.PyTreeDef

    def arrays(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Array]:
        """Inputs by their names.

        Raises:
            ModelError: other arguments than the function was captured with.
        """
        where = self.model.graph.name
        leaves, tree = trees.tree_flatten((tuple(args), dict(kwargs)))
        if tree != self.arguments:
            raise ModelError(where, f"arguments {self.arguments}", tree)
        for place, value in self.fixed.items():
            if leaves[place] != value:
                expected = f"the argument {value!r} that the function was captured with"
                raise ModelError(where, expected, repr(leaves[place]))
        arrays = [leaf for place, leaf in enumerate(leaves) if place not in self.fixed]
        names = [value.name for value in self.model.graph.input]
        return {name: np.asarray(leaf) for name, leaf in zip(names, arrays, strict=True)}

    def results(self, arrays: Mapping[str, Array]) -> Any:
        """Results of the function, of JAX's arrays."""
        leaves = [jax.numpy.asarray(arrays[value.name]) for value in self.model.graph.output]
        return trees.tree_unflatten(self.structure, leaves)

    def leaves(self, results: object) -> list[Array]:
        """Arrays of what a call of the function returned, in the order of the model's outputs."""
        return [np.asarray(leaf) for leaf in trees.tree_leaves(results)]


def capture(
    function: Callable[..., Any],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    sizes: object,
    where: str,
) -> Captured:
    """The ONNX model of a function that is called with some arguments.

    Args:
        function: of arrays; weights that it doesn't take as arguments are constants.
        args: its positional arguments; those that are no arrays are constants.
        kwargs: its others.
        sizes: those that stay open, as ``{"x": {0: "batch"}}``.
        where: what opens every error.

    Raises:
        ModelError: JAX can't trace it, or jax2onnx has no translation; names the line of Python.
    """
    paths, tree = trees.tree_flatten_with_path((tuple(args), dict(kwargs)))
    fixed = {place: leaf for place, (_, leaf) in enumerate(paths) if not _is_array(leaf)}
    inner: list[trees.PyTreeDef] = []

    def flat(*arrays: Any) -> Any:
        rest = iter(arrays)
        leaves = [fixed[place] if place in fixed else next(rest) for place in range(len(paths))]
        own_args, own_kwargs = trees.tree_unflatten(tree, leaves)
        result, structure = trees.tree_flatten(function(*own_args, **own_kwargs))
        inner.append(structure)
        return tuple(result)

    names = _names(function, [path for path, _ in paths])
    kept = [place for place in range(len(paths)) if place not in fixed]
    specs = [_spec(paths[place][1], names[place], paths[place][0], sizes) for place in kept]
    try:
        with _quiet():
            model = jax2onnx.to_onnx(
                flat, specs, model_name=where, opset=OPSET,
                input_names=[names[place] for place in kept],
            )  # fmt: skip
    except Exception as error:  # JAX and jax2onnx each raise their own
        line = _place(flat, specs, error)
        actual = f"{type(error).__name__}: {first_line(error)}{f', at {line}' if line else ''}"
        raise ModelError(where, "a function that jax2onnx translates", actual) from None
    return Captured(model, fixed, tree, inner[-1])


def _is_array(leaf: object) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _names(function: Callable[..., Any], paths: Sequence[trees.KeyPath]) -> list[str]:
    """Names of the leaves of a call's arguments: ``x``, ``params.w``, ``layers.0.b``."""
    try:
        parameters = list(signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    result = []
    for kind, *rest in paths:
        keys = [_key(each) for each in rest]
        if kind.idx == 0 and int(keys[0]) < len(parameters):
            keys[0] = parameters[int(keys[0])]
        elif kind.idx == 0:
            keys[0] = f"arg{keys[0]}"
        result.append(".".join(keys))
    return result


def _key(entry: object) -> str:
    """A step of a path into a tree: a place, a key or a field."""
    for attribute in ("key", "idx", "name"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def _spec(
    leaf: jax.Array, name: str, path: trees.KeyPath, sizes: object
) -> jax.ShapeDtypeStruct | tuple[int | str, ...]:
    """A leaf's shape and dtype, with names for the sizes that stay open."""
    open_sizes: Mapping[int, str] = {}
    if isinstance(sizes, Mapping):
        open_sizes = sizes.get(name) or {}
    elif isinstance(sizes, Sequence) and path[0].idx == 0 and path[1].idx < len(sizes):
        open_sizes = sizes[path[1].idx] or {}
    if open_sizes:
        return tuple(open_sizes.get(axis, size) for axis, size in enumerate(leaf.shape))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _place(function: Callable[..., Any], specs: Sequence[object], error: Exception) -> str:
    """The line of Python that an error is about: the last one before it, or that of the operator
    which its message names."""
    if line := last_line(error, LIBRARIES):
        return line
    try:
        traced = jax.make_jaxpr(function)(*specs)
    except Exception:  # it can't be traced for these sizes, or at all
        return ""
    for operator, line in _operators(traced.jaxpr, ""):
        if re.search(rf"\b{re.escape(operator)}\b", str(error)):
            return line
    return ""


def _operators(jaxpr: Any, around: str) -> Iterator[tuple[str, str]]:
    """All operators of a traced function and of its parts, each with its line of Python; those of
    a library's function have the line that calls it, ``around``."""
    for equation in jaxpr.eqns:
        line = str(source_info_util.summarize(equation.source_info)) or around
        yield equation.primitive.name, line
        for value in equation.params.values():
            for part in value if isinstance(value, list | tuple) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from _operators(inner, line)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings and notes; what goes wrong comes as an exception."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
