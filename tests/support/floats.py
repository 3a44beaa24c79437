"""Networks of floats, put together in a test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType


class Net:
    """A network of floats, put together operator by operator; each gives its tensor's name."""

    def __init__(self, *shape, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], {}
        self.tensors = {"x": TensorType(shape, "float32")}

    def constant(self, *shape):
        name = f"c{len(self.constants)}"
        self.constants[name] = self.rng.standard_normal(shape).astype(np.float32)
        self.tensors[name] = TensorType(shape, "float32")
        return name

    def add(self, kind, shape=None, dtype="float32", **fields):
        name = f"t{len(self.nodes)}"
        node = kind(name=name, output=name, **fields)
        found = node.result_shape([self.tensors[n].shape for n in node.inputs])
        self.tensors[name] = TensorType(shape or found, dtype)
        self.nodes.append(node)
        return name

    def unary(self, function, x):
        return self.add(ops.Unary, data=x, function=function)

    def binary(self, function, a, b):
        if function == "add":
            return self.add(ops.Add, a=a, b=b)
        dtype = "bool" if function == "lt" else "float32"
        return self.add(ops.Binary, a=a, b=b, function=function, dtype=dtype)

    def take(self, data, *tables, fill=0.0):
        """Elements from places along each axis."""
        shape, places = tuple(map(len, tables)), tuple(p for table in tables for p in table)
        name = f"t{len(self.nodes)}"
        self.nodes.append(
            ops.Take(name=name, output=name, data=data, shape=shape, places=places, fill=fill)
        )
        self.tensors[name] = replace(self.tensors[data], shape=shape)
        return name

    def graph(self, *outputs):
        return verify(Graph(("x",), outputs, tuple(self.nodes), self.tensors, self.constants))
