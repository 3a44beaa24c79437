"""Static shapes for a model's inputs: what the file says, and what the user gives for the rest.

A file may leave sizes open: a symbolic dimension has a name ("batch"), an unknown one has none.
``shapes`` gives sizes by name: of an input, all of its sizes; of a symbolic dimension, its one.
A file that vdla quantized notes the shapes that were given then: they hold for sizes that the file
leaves open and nobody gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.support.json_text import read_json

Shapes = Mapping[str, int | Sequence[int] | Sequence[Sequence[int]] | None]
Open = tuple[int | str | None, ...]
NOTE = "vdla.shapes"  # the key of a model's metadata under which shapes of inputs are noted


def input_values(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """A graph's inputs that are no initializers."""
    constants = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


def open_shape(value: onnx.ValueInfoProto) -> Open:
    """An input's sizes as the file has them: a number, a name, or None."""
    return tuple(_size(dim) for dim in value.type.tensor_type.shape.dim)


def _size(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return None if dim.dim_param in ("", "?") else str(dim.dim_param)


def known_shapes(graph: onnx.GraphProto, where: str, shapes: Shapes | None) -> dict[str, Open]:
    """Every input's shape with the sizes that are given in place of open ones.

    Raises:
        ModelError: a size is given that the file has otherwise, or for no such name.
    """
    lists = {v.name for v in input_values(graph) if not v.type.HasField("tensor_type")}
    given = {n: _sizes(n, s, where) for n, s in (shapes or {}).items() if n not in lists}
    values = {v.name: open_shape(v) for v in input_values(graph) if v.name not in lists}
    symbols = {size for shape in values.values() for size in shape if isinstance(size, str)}
    for name in given:
        if name not in values and name not in symbols:
            raise ModelError(where, f"shapes for {_known(values, symbols)}", f"one for {name}")
    return {n: _filled(n, shape, f"{where}: input {n}", given) for n, shape in values.items()}


def static_shapes(
    model: onnx.ModelProto, where: str, shapes: Shapes | None
) -> dict[str, tuple[int, ...]]:
    """Shapes of a model's inputs, as :func:`known_shapes` gives them, with every size known.

    Raises:
        ModelError: a size is open, not given and not noted; says how to give it.
    """
    known, noted = known_shapes(model.graph, where, shapes), _noted(model)
    return {
        name: _closed(name, _with_noted(shape, noted.get(name)), f"{where}: input {name}")
        for name, shape in known.items()
    }


def note_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Notes shapes of inputs in a model, whose sizes stay open."""
    kept = [entry for entry in model.metadata_props if entry.key != NOTE]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    text = json.dumps({name: list(shape) for name, shape in shapes.items()})
    model.metadata_props.add(key=NOTE, value=text)


def _noted(model: onnx.ModelProto) -> dict[str, object]:
    """Notes in a model's metadata about its inputs; empty where they can't be read."""
    text = next((entry.value for entry in model.metadata_props if entry.key == NOTE), "{}")
    try:
        noted = read_json(text)
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def _with_noted(shape: Open, noted: object) -> Open:
    """A shape whose open sizes are those noted, where what is noted is a shape of its length."""
    if not isinstance(noted, list) or len(noted) != len(shape):
        return shape
    sizes = (size if type(size) is int and size > 0 else None for size in noted)
    return tuple(
        size if isinstance(size, int) or other is None else other
        for size, other in zip(shape, sizes, strict=True)
    )


def shapes_like(graph: onnx.GraphProto, arrays: Mapping[str, object]) -> Shapes:
    """Shapes for the inputs that leave sizes open, from arrays of the right number of sizes; for
    sequences and optional values from lists of arrays, and from None."""
    result: dict[str, tuple[int, ...] | list[tuple[int, ...]] | None] = {}
    for value in input_values(graph):
        if not value.type.HasField("tensor_type"):
            given = arrays.get(value.name)
            is_list = isinstance(given, list | tuple)
            if value.name in arrays and is_list >= value.type.HasField("sequence_type"):
                result[value.name] = _shape_of(given)
            continue
        shape, array = open_shape(value), arrays.get(value.name)
        is_open = not all(isinstance(size, int) for size in shape)
        if is_open and array is not None and len(shape) == np.ndim(np.asarray(array)):
            result[value.name] = np.asarray(array).shape
    return result


def _shape_of(value: object) -> tuple[int, ...] | list[tuple[int, ...]] | None:
    """The shape of an array, those of a list's elements, or None."""
    if isinstance(value, list | tuple):
        return [np.asarray(each).shape for each in value]
    return None if value is None else np.asarray(value).shape


def _sizes(name: str, given: object, where: str) -> tuple[int, ...]:
    sizes = tuple(given) if isinstance(given, Sequence) else (given,)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ModelError(f"{where}: shape {name}", "positive sizes", list(sizes))
    return sizes


def _known(values: Mapping[str, Open], symbols: set[str]) -> str:
    inputs = f"its inputs ({', '.join(values)})"
    return f"{inputs} or dimensions ({', '.join(sorted(symbols))})" if symbols else inputs


def _filled(name: str, shape: Open, where: str, given: Mapping[str, tuple[int, ...]]) -> Open:
    """One input's shape: given as a whole, or the file's with the symbols that were given."""
    if name not in given:
        return tuple(_symbol(size, where, given) for size in shape)
    sizes = given[name]
    fits = len(shape) == len(sizes) and all(
        size in (want, None) or isinstance(size, str)
        for want, size in zip(sizes, shape, strict=True)
    )
    if not fits:
        raise ModelError(where, f"a shape that fits the file's {shape_text(shape)}", list(sizes))
    return sizes


def _symbol(
    size: int | str | None, where: str, given: Mapping[str, tuple[int, ...]]
) -> int | str | None:
    if not isinstance(size, str) or size not in given:
        return size
    if len(given[size]) != 1:
        raise ModelError(where, f"one size for dimension {size!r}", list(given[size]))
    return given[size][0]


def _closed(name: str, shape: Open, where: str) -> tuple[int, ...]:
    for index, size in enumerate(shape):
        if not isinstance(size, int):
            result = "an unknown size" if size is None else repr(size)
            result = f"{result} in dimension {index}; give it: {_option(name, shape)}"
            raise ModelError(where, "a static shape", result)
    return tuple(size for size in shape if isinstance(size, int))


def _option(name: str, shape: Open) -> str:
    """Option to add to the command: the symbols, or the whole shape where a size has no name."""
    symbols = dict.fromkeys(size for size in shape if isinstance(size, str))
    if None not in shape:
        return " ".join(f"--shape {symbol}=SIZE" for symbol in symbols)
    sizes = (str(s) if isinstance(s, int) else f"D{i}" for i, s in enumerate(shape))
    return f"--shape {name}={','.join(sizes)}"


def shape_text(shape: Open) -> str:
    """A shape for messages; a size nobody knows is "?"."""
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"
