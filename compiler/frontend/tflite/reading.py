"""From the bytes of a TFLite file to its contents, every number checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import prod
from types import ModuleType
from typing import Protocol, TypeVar, cast

import numpy as np

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.sizes import check_size
from vdla.compiler.frontend.tflite.contents import (
    LARGEST_RANK,
    Contents,
    Operator,
    Option,
    Subgraph,
    Tensor,
)
from vdla.compiler.frontend.tflite.schema import DTYPES, names_of, schema
from vdla.compiler.frontend.tflite.sparse import Level, dense
from vdla.compiler.graph.types import Array
from vdla.support.errors import UserError

MAGIC = b"TFL3"
PLACE_OF_MAGIC = slice(4, 8)
VERSION = 3
VECTOR = ("AsNumpy", "Length", "IsNone")  # endings of the methods of one field that is a vector
BUILTIN_CODE = 10  # the place of an operator's number in the table of OperatorCode
PLACED = 1  # a buffer whose bytes lie behind the flatbuffer has a larger offset
T = TypeVar("T")


class Table(Protocol):
    """A class of flatbuffers: methods by the names of fields."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        """The method of a field."""


def read(data: bytes, where: str) -> Contents:
    """The contents of a TFLite file.

    Args:
        data: its bytes.
        where: its name, which opens every error.

    Raises:
        ModelError: they aren't a TFLite file, or one that is damaged.
        UserError: the package ``tflite`` isn't installed.
    """
    if data[PLACE_OF_MAGIC] != MAGIC:
        raise ModelError(where, f"a TFLite file, with {MAGIC.decode()} in it", _start(data))
    package = schema()
    try:
        return _Reader(data, where, package).contents()
    except UserError:
        raise
    except (MemoryError, RecursionError):
        raise ModelError(where, "a TFLite file", "one that is larger than memory") from None
    except Exception as error:  # flatbuffers' classes raise anything at a damaged file
        raise ModelError(
            where, "a whole TFLite file", f"a damaged one: {first_line(error)}"
        ) from None


def _start(data: bytes) -> str:
    return f"{data[:8]!r}" if data else "an empty file"


class _Reader:
    """Reads a file's tables in their order."""

    def __init__(self, data: bytes, where: str, package: ModuleType) -> None:
        self.data, self.where, self.package = data, where, package
        self.model = cast("Table", package.Model.GetRootAs(data, 0))

    def contents(self) -> Contents:
        """The whole file."""
        version = self.model.Version()
        if version != VERSION:
            raise ModelError(self.where, f"version {VERSION} of TFLite's schema", version)
        graphs = self.several(self.model, "Subgraphs")
        if not graphs:
            raise ModelError(self.where, "a subgraph", "none")
        self.buffers = self.several(self.model, "Buffers")
        self.codes = self.several(self.model, "OperatorCodes")
        return Contents(self.where, tuple(self.subgraph(i, g) for i, g in enumerate(graphs)))

    def several(self, table: Table, name: str) -> list[Table]:
        """The tables of a vector; a damaged length is no reason to read for hours."""
        count = cast("int", getattr(table, f"{name}Length")())
        if count > len(self.data):
            raise ModelError(self.where, f"fewer {name} than bytes", count)
        return [cast("Table", getattr(table, name)(i)) for i in range(count)]

    def subgraph(self, index: int, graph: Table) -> Subgraph:
        """A subgraph, whose operators read and write tensors that it has."""
        where = f"{self.where}: subgraph {index}"
        tables = self.several(graph, "Tensors")
        tensors = tuple(self.tensor(i, t, where) for i, t in enumerate(tables))
        operators = tuple(
            self.operator(i, o, len(tensors), where)
            for i, o in enumerate(self.several(graph, "Operators"))
        )
        inputs, outputs = numbers(graph, "Inputs"), numbers(graph, "Outputs")
        _check_indices((*inputs, *outputs), len(tensors), where, 0)
        made = {*inputs, *(each for operator in operators for each in operator.outputs)}
        tensors = tuple(each if each.index in made else _with_nothing(each) for each in tensors)
        return Subgraph(index, text(graph.Name()), tensors, inputs, outputs, operators)

    # Tensors ------------------------------------------------------------------------------------

    def tensor(self, index: int, table: Table, where: str) -> Tensor:
        """A tensor, with its elements where it is a constant."""
        name = text(table.Name()) or f"tensor_{index}"
        where = f"{where}: tensor {index}, {name}"
        number = cast("int", table.Type())
        kind = names_of("TensorType").get(number, "")
        if not kind:
            raise ModelError(where, "an element type of TFLite", number)
        dtype = DTYPES.get(kind, kind.lower())
        shape, signature = numbers(table, "Shape"), numbers(table, "ShapeSignature")
        if len(shape) > LARGEST_RANK or min(shape, default=0) < -1:
            raise ModelError(where, f"at most {LARGEST_RANK} sizes ≥ 0", _short(shape))
        signature = signature if len(signature) == len(shape) else shape
        shape = tuple(abs(size) for size in shape)
        scale, zero_point, axis = self.quantization(table, shape, where)
        data = self.elements(table, dtype, shape, where)
        dtype = "int8" if dtype == "int4" else dtype
        return Tensor(index, name, dtype, shape, signature, scale, zero_point, axis, data)

    def quantization(
        self, table: Table, shape: tuple[int, ...], where: str
    ) -> tuple[Array, Array, int]:
        """Scales, zero points and the axis of channels; no scales where there are none."""
        record = cast("Table | None", table.Quantization())
        scale = np.array(reals(record, "Scale") if record else (), np.float32)
        zero = np.array(numbers(record, "ZeroPoint") if record else (), np.int64)
        if not scale.size or record is None:
            return np.zeros(0, np.float32), np.zeros(0, np.int64), 0
        if not np.isfinite(scale).all() or (scale < 0).any():
            raise ModelError(where, "finite scales ≥ 0", _short(scale.tolist()))
        if zero.size not in (0, scale.size):
            raise ModelError(where, f"{scale.size} zero points", zero.size)
        axis = cast("int", record.QuantizedDimension())
        if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
            raise ModelError(where, f"an axis of {scale.size} sizes, one for each scale", axis)
        return scale, zero if zero.size else np.zeros(scale.size, np.int64), axis

    def elements(
        self, table: Table, dtype: str, shape: tuple[int, ...], where: str
    ) -> Array | None:
        """A constant's elements; None where the tensor is none."""
        index = cast("int", table.Buffer())
        if not 0 <= index < len(self.buffers):
            raise ModelError(where, f"one of {len(self.buffers)} buffers", index)
        raw = self.bytes_of(self.buffers[index])
        if index == 0 or not raw.size:
            return None
        if dtype not in DTYPES.values() or dtype == "resource":
            raise ModelError(where, "a constant of numbers", f"one of type {dtype}")
        check_size(where, shape, "int8" if dtype == "int4" else dtype)
        record = cast("Table | None", table.Sparsity())
        if record is not None:
            values = raw[: raw.size - raw.size % np.dtype(dtype).itemsize].view(dtype)
            return self.densified(record, values, shape, where)
        count = prod(shape)
        if dtype == "int4":
            return _unpacked(raw, count, where).reshape(shape)
        needed = count * np.dtype(dtype).itemsize
        if raw.size < needed:
            raise ModelError(where, f"{needed} bytes of elements", raw.size)
        return raw[:needed].copy().view(dtype).reshape(shape)

    def bytes_of(self, buffer: Table) -> Array:
        """The bytes of a buffer: uint8."""
        offset, size = cast("int", buffer.Offset()), cast("int", buffer.Size())
        if offset > PLACED:
            if offset + size > len(self.data):
                raise ModelError(self.where, f"{offset + size} bytes", len(self.data))
            return np.frombuffer(self.data, np.uint8, size, offset)
        if cast("int", buffer.DataLength()) == 0:
            return np.zeros(0, np.uint8)
        return np.asarray(buffer.DataAsNumpy(), np.uint8)

    def densified(self, record: Table, values: Array, shape: tuple[int, ...], where: str) -> Array:
        """A sparse constant, with zeros where the file has nothing."""
        levels = [_level(each, self.package) for each in self.several(record, "DimMetadata")]
        order, blocks = numbers(record, "TraversalOrder"), numbers(record, "BlockMap")
        try:
            return dense(values, shape, order, blocks, levels)
        except (IndexError, ValueError) as error:
            raise ModelError(where, "a sparse tensor", first_line(error)) from None

    # Operators ----------------------------------------------------------------------------------

    def operator(self, index: int, table: Table, tensors: int, where: str) -> Operator:
        """An operator with its options."""
        where, number = f"{where}: operator {index}", cast("int", table.OpcodeIndex())
        if not 0 <= number < len(self.codes):
            raise ModelError(where, f"one of {len(self.codes)} operator codes", number)
        record = self.codes[number]
        code = max(self.code(record), cast("int", record.DeprecatedBuiltinCode()))
        name = names_of("BuiltinOperator").get(code, "")
        if not name:
            expected = "an operator that TFLite's schema has"
            raise ModelError(where, expected, f"code {code}; a newer package tflite may know it")
        inputs, outputs = numbers(table, "Inputs"), numbers(table, "Outputs")
        _check_indices(inputs, tensors, where, -1)
        _check_indices(outputs, tensors, where, 0)
        custom = name == "CUSTOM"
        if custom:
            name = text(record.CustomCode()) or name
        given = bytes(numbers(table, "CustomOptions")) if custom else b""
        return Operator(index, name, custom, inputs, outputs, self.options(table), given)

    def code(self, record: Table) -> int:
        """The operator's number in the newer one of the two fields that may have it.

        The package ``tflite`` gives the older one for each number below 128; files by Google's own
        quantizer have only the newer one.
        """
        place = getattr(record, "_tab")  # noqa: B009
        offset = int(place.Offset(BUILTIN_CODE))
        start = place.Pos + offset
        return int.from_bytes(self.data[start : start + 4], "little", signed=True) if offset else 0

    def options(self, table: Table) -> dict[str, Option]:
        """An operator's options, by the names of the schema; none where it has none."""
        name = names_of("BuiltinOptions").get(cast("int", table.BuiltinOptionsType()), "NONE")
        place = table.BuiltinOptions()
        if name == "NONE" or place is None:
            return {}
        kind = getattr(self.package, name)
        record = kind()
        record.Init(getattr(place, "Bytes"), getattr(place, "Pos"))  # noqa: B009
        return {each: _option(record, each) for each in fields(kind)}


def _with_nothing(tensor: Tensor) -> Tensor:
    """A tensor that nothing makes: where it has no elements, a constant that needs no bytes."""
    if tensor.data is not None or tensor.elements or tensor.dtype not in DTYPES.values():
        return tensor
    return replace(tensor, data=np.zeros(tensor.shape, tensor.dtype))


def _level(record: Table, package: ModuleType) -> Level:
    """One level of a sparse tensor."""
    if cast("int", record.Format()) == package.DimensionType.DENSE:
        return Level(cast("int", record.DenseSize()))
    vectors = []
    for name in ("ArraySegments", "ArrayIndices"):
        kind, place = getattr(record, f"{name}Type")(), getattr(record, name)()
        vector = getattr(package, names_of("SparseIndexVector")[kind])()
        vector.Init(place.Bytes, place.Pos)
        vectors.append(np.array(vector.ValuesAsNumpy(), np.int64))
    return Level(None, *vectors)


@cache
def fields(kind: type) -> tuple[str, ...]:
    """Names of the fields of one of flatbuffers' classes."""
    methods = [name for name in vars(kind) if name[0].isupper()]
    vectors = [name.removesuffix("AsNumpy") for name in methods if name.endswith("AsNumpy")]
    parts = {vector + ending for vector in vectors for ending in VECTOR}
    return tuple(
        name
        for name in methods
        if name not in parts and name != "Init" and not name.startswith("GetRoot")
        if not name.endswith("BufferHasIdentifier")
    )


def _option(record: Table, name: str) -> Option:
    if hasattr(record, f"{name}AsNumpy"):
        return numbers(record, name)
    value = getattr(record, name)()
    return value if isinstance(value, int | float | bytes) else None


def numbers(table: Table | None, name: str) -> tuple[int, ...]:
    """A vector of integers; empty where the file has none."""
    if table is None or not getattr(table, f"{name}Length")():
        return ()
    return tuple(int(each) for each in getattr(table, f"{name}AsNumpy")())


def reals(table: Table, name: str) -> tuple[float, ...]:
    """A vector of floats; empty where the file has none."""
    if not getattr(table, f"{name}Length")():
        return ()
    return tuple(float(each) for each in getattr(table, f"{name}AsNumpy")())


def text(value: object) -> str:
    """A string of the file; bytes that are no text are replaced."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _unpacked(raw: Array, count: int, where: str) -> Array:
    """Elements of four bits, the lower ones first: int8."""
    if raw.size < (count + 1) // 2:
        raise ModelError(where, f"{(count + 1) // 2} bytes of elements", raw.size)
    low, high = (raw << 4).view(np.int8) >> 4, raw.view(np.int8) >> 4
    return np.stack([low, high], axis=1).reshape(-1)[:count]


def _check_indices(values: tuple[int, ...], count: int, where: str, least: int) -> None:
    """Raises ModelError where a number is beyond its table."""
    if (wrong := next((v for v in values if not least <= v < count), None)) is not None:
        raise ModelError(where, f"tensors below {count}", wrong)


def _short(values: object) -> str:
    return str(values)[:60]
