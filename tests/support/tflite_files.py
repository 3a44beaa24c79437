"""TFLite files of a few operators, built with the schema's own functions."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
import tflite

DTYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "float16": tflite.TensorType.FLOAT16,
    "int4": tflite.TensorType.INT4,
    "int8": tflite.TensorType.INT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "uint8": tflite.TensorType.UINT8,
    "complex64": tflite.TensorType.COMPLEX64,
    "bool": tflite.TensorType.BOOL,
    "resource": tflite.TensorType.RESOURCE,
    "string": tflite.TensorType.STRING,
}

VERSIONS = {"BROADCAST_TO": 2}  # of operators; LiteRT has no first one of these


@dataclass
class T:
    """A tensor of a file; ``scale`` may be one of each channel, along ``axis``."""

    shape: Sequence[int]
    dtype: str = "float32"
    scale: float | Sequence[float] | None = None
    zero: int = 0
    axis: int = 0
    data: object = None
    name: str = ""
    signature: Sequence[int] | None = None
    buffer: int | None = None  # in the place of the one that holds the data


def known(data, dtype="int32", **more):
    """A constant."""
    array = np.array(data, dtype)
    return T(array.shape, dtype, data=array, **more)


@dataclass
class Op:
    """An operator: its name, operands and results (numbers of tensors), and options."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    custom: str = ""


@dataclass
class Graph:
    """A subgraph."""

    tensors: list[T]
    ops: list[Op]
    inputs: Sequence[int]
    outputs: Sequence[int]


def file_of(*graphs: Graph, variables=frozenset()) -> bytes:
    """The bytes of a file; ``variables`` are tensors of the first graph that LiteRT keeps."""
    return _Writer(variables).file(graphs)


class _Writer:
    def __init__(self, variables=frozenset()):
        self.variables = variables
        self.b = flatbuffers.Builder(1024)
        self.buffers = [None]
        self.codes = []

    def table(self, kind, **fields):
        """A table of the schema; values are scalars or offsets."""
        module = importlib.import_module(f"tflite.{kind}")
        getattr(module, f"{kind}Start")(self.b)
        for name, value in fields.items():
            if value is not None:
                getattr(module, f"{kind}Add{name}")(self.b, value)
        return getattr(module, f"{kind}End")(self.b)

    def offsets(self, values):
        self.b.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.b.PrependUOffsetTRelative(value)
        return self.b.EndVector()

    def vector(self, values, dtype=np.int32):
        return self.b.CreateNumpyVector(np.array(values, dtype))

    def file(self, graphs):
        subgraphs = self.offsets([self.subgraph(i, graph) for i, graph in enumerate(graphs)])
        codes = self.offsets([self.code(*code) for code in self.codes])
        buffers = self.offsets([self.buffer(data) for data in self.buffers])
        model = self.table(
            "Model", Version=3, OperatorCodes=codes, Subgraphs=subgraphs, Buffers=buffers
        )
        self.b.Finish(model, b"TFL3")
        return bytes(self.b.Output())

    def buffer(self, data):
        if data is None:
            return self.table("Buffer")
        raw = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        return self.table("Buffer", Data=self.b.CreateNumpyVector(raw))

    def code(self, name, custom):
        text = self.b.CreateString(custom) if custom else None
        number = getattr(tflite.BuiltinOperator, name)
        return self.table(
            "OperatorCode",
            DeprecatedBuiltinCode=min(number, 127),
            BuiltinCode=number,
            CustomCode=text,
            Version=VERSIONS.get(name, 1),
        )

    def subgraph(self, number, graph):
        tensors = self.offsets([self.tensor(i, each) for i, each in enumerate(graph.tensors)])
        operators = self.offsets([self.operator(each) for each in graph.ops])
        inputs, outputs = self.vector(graph.inputs), self.vector(graph.outputs)
        name = self.b.CreateString(f"graph{number}")
        return self.table(
            "SubGraph",
            Tensors=tensors,
            Inputs=inputs,
            Outputs=outputs,
            Operators=operators,
            Name=name,
        )

    def tensor(self, index, tensor):
        buffer = 0
        if tensor.data is not None:
            self.buffers.append(elements(tensor))
            buffer = len(self.buffers) - 1
        buffer = buffer if tensor.buffer is None else tensor.buffer
        name = self.b.CreateString(tensor.name or f"t{index}")
        shape = self.vector(tensor.shape)
        signature = self.vector(tensor.signature) if tensor.signature is not None else None
        quantization = self.quantization(tensor) if tensor.scale is not None else None
        return self.table(
            "Tensor",
            Shape=shape,
            ShapeSignature=signature,
            Type=DTYPES[tensor.dtype],
            Buffer=buffer,
            Name=name,
            Quantization=quantization,
            HasRank=True,
            IsVariable=index in self.variables,
        )

    def quantization(self, tensor):
        scale = np.atleast_1d(np.array(tensor.scale, np.float32))
        zero = np.full(scale.shape, tensor.zero, np.int64)
        scales, zeros = self.vector(scale, np.float32), self.vector(zero, np.int64)
        return self.table(
            "QuantizationParameters", Scale=scales, ZeroPoint=zeros, QuantizedDimension=tensor.axis
        )

    def operator(self, op):
        code = (op.name, op.custom)
        if code not in self.codes:
            self.codes.append(code)
        kind, options = 0, None
        if op.options:
            fields = {name: self.field(value) for name, value in op.fields.items()}
            options = self.table(op.options, **fields)
            kind = getattr(tflite.BuiltinOptions, op.options)
        inputs, outputs = self.vector(op.inputs), self.vector(op.outputs)
        return self.table(
            "Operator",
            OpcodeIndex=self.codes.index(code),
            Inputs=inputs,
            Outputs=outputs,
            BuiltinOptionsType=kind,
            BuiltinOptions=options,
        )

    def field(self, value):
        if isinstance(value, str):
            return self.b.CreateString(value)
        return self.vector(value) if isinstance(value, tuple) else value


def elements(tensor):
    """A constant's elements; two of int4 share a byte, the first one in its lower half."""
    if tensor.dtype != "int4":
        return np.array(tensor.data, tensor.dtype)
    values = np.array(tensor.data, np.int8).reshape(-1)
    low, high = values[::2] & 15, np.append(values[1::2], [0] * (values.size % 2))
    return (low | high.astype(np.int8) << 4).astype(np.int8)


def one(name: str, inputs: Sequence[T], outputs: Sequence[T], options: str = "", **fields) -> bytes:
    """A file of one operator, whose operands that aren't constants are the model's inputs."""
    tensors = [*inputs, *outputs]
    read = [i if t is not None else -1 for i, t in enumerate(inputs)]
    given = [i for i, t in enumerate(inputs) if t is not None and t.data is None]
    made = [len(inputs) + i for i in range(len(outputs))]
    tensors = [T([0]) if t is None else t for t in tensors]
    op = Op(name, read, made, options, fields)
    return file_of(Graph(tensors, [op], given, made))
