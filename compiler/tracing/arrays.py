"""Arrays without values yet, and the graph that grows as functions are called with them.

numpy's functions and operators, called with such an array, add nodes: ``UFUNCS`` and ``FUNCTIONS``
say which. Python's numbers take the element type of the array that they meet; two arrays of
different element types meet only behind ``astype``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.control import typed
from vdla.compiler.graph.types import DTYPES, Shape, TensorType
from vdla.compiler.tracing.errors import TraceError

Values = NDArray[np.generic]
Function = Callable[..., object]
UFUNCS: dict[object, Callable[..., Array]] = {}  # traced forms of numpy's functions of elements
FUNCTIONS: dict[object, Function] = {}  # and of its others


def name_of(function: object, otherwise: str = "function") -> str:
    """A function's name, for those of its nodes; of a lambda, ``otherwise``."""
    name = str(getattr(function, "__name__", otherwise))
    return name if name.isidentifier() else otherwise


def _method(function: Function) -> Callable[..., Array]:
    """A method that is numpy's function of the array."""

    def call(self: Array, *args: object, **options: object) -> Array:
        return cast("Array", FUNCTIONS[function](self, *args, **options))

    return call


class Array(NDArrayOperatorsMixin):
    """A tensor of a graph in the making, which numpy's functions and operators take."""

    def __init__(self, trace: Trace, name: str) -> None:
        self.trace, self.name = trace, name
        self.type = trace.tensors[name]
        self.shape: Shape = self.type.shape
        self.dtype = np.dtype(self.type.dtype)
        self.ndim, self.size = len(self.shape), self.type.elements
        self.value = trace.constants.get(name)  # where it is known while the function is traced

    __hash__ = object.__hash__
    sum, mean, prod = _method(np.sum), _method(np.mean), _method(np.prod)
    max, min, cumsum = _method(np.max), _method(np.min), _method(np.cumsum)
    argmax, argmin, clip = _method(np.argmax), _method(np.argmin), _method(np.clip)
    take, squeeze, ravel = _method(np.take), _method(np.squeeze), _method(np.ravel)

    @property
    def T(self) -> Array:
        """The array with its axes in reverse."""
        return self.transpose()

    def transpose(self, *axes: object) -> Array:
        """The array with its axes in another order, by default in reverse."""
        one = len(axes) == 1 and isinstance(axes[0], tuple | list)
        return _method(np.transpose)(self, *(axes if one or not axes else [axes]))

    def reshape(self, *shape: object) -> Array:
        """The elements in their order under another shape, in which -1 is what is left."""
        return _method(np.reshape)(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: object) -> Array:
        """The elements as others of another type."""
        return _method(Array.astype)(self, dtype)

    def __repr__(self) -> str:
        return f"Array({self.name}: {typed(self.type)})"

    def __len__(self) -> int:
        if not self.shape:
            raise TraceError("len", "an array with axes", typed(self.type))
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, index: object) -> Array:
        return _method(Array.__getitem__)(self, index)

    def __bool__(self) -> NoReturn:
        expected = "a value known while the function is traced"
        advice = "vdla.cond, vdla.while_loop and np.where decide by arrays"
        raise TraceError("a Python value", expected, f"{typed(self.type)}; {advice}")

    def _no_value(self, *_: object, **__: object) -> NoReturn:
        expected = "a value known while the function is traced"
        advice = "arrays stay arrays: np.take and x[i] take them as indices, astype converts them"
        raise TraceError("a Python value", expected, f"{typed(self.type)}; {advice}")

    __int__ = __float__ = __index__ = __array__ = _no_value

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *args: object, **options: object
    ) -> Array:
        name = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
        if ufunc not in UFUNCS or method != "__call__" or options:
            how = f"{name} with {', '.join(options)}" if options else name
            raise TraceError(name, "a function of numpy's that is traced", how)
        return UFUNCS[ufunc](*args)

    def __array_function__(
        self, function: Function, _: object, args: Sequence[object], options: Mapping[str, object]
    ) -> object:
        module = str(getattr(function, "__module__", "numpy"))
        name = f"{module.replace('numpy', 'np', 1)}.{name_of(function)}"
        if function not in FUNCTIONS:
            own = Array.__getitem__, Array.astype
            known = ", ".join(sorted({name_of(f) for f in FUNCTIONS if f not in own}))
            raise TraceError(name, f"a function of numpy's that is traced ({known})", name)
        try:
            return FUNCTIONS[function](*args, **options)
        except TypeError as error:
            actual = str(error).rpartition("() got ")[2]
            raise TraceError(name, "arguments that are traced", actual) from None


# Graphs in the making ----------------------------------------------------------------------------


@dataclass
class Session:
    """Names and named functions that all traces of a whole graph have in common.

    ``known`` are the named functions by what they were called with, and ``written`` are the others
    that are being written out, the innermost last.
    """

    used: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Graph] = field(default_factory=dict)
    known: dict[object, object] = field(default_factory=dict)
    written: list[object] = field(default_factory=list)

    def fresh(self, stem: str) -> str:
        """A name that nothing has yet: the stem, or with a number behind it."""
        name = stem
        while name in self.used:
            self.used[stem] += 1
            name = f"{stem}{self.used[stem]}"
        self.used[name] = 1
        return name


@dataclass(eq=False)
class Trace:
    """A graph in the making: of a function, or of a region of the graph ``outer``.

    ``stem`` begins the names of its nodes. ``captured`` are, by tensors of the trace around it,
    those in which it gets them; ``kept`` are its constants by the identity of their arrays.
    """

    name: str
    stem: str
    session: Session
    outer: Trace | None = None
    inputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, TensorType] = field(default_factory=dict)
    constants: dict[str, Values] = field(default_factory=dict)
    captured: dict[str, str] = field(default_factory=dict)
    kept: dict[int, tuple[Values, str]] = field(default_factory=dict)

    def tensor(self, stem: str, kind: TensorType) -> str:
        """A new tensor."""
        name = self.session.fresh(stem)
        self.tensors[name] = kind
        return name

    def input(self, stem: str, kind: TensorType) -> Array:
        """A new input."""
        self.inputs.append(self.tensor(stem, kind))
        return Array(self, self.inputs[-1])

    def constant(self, value: Values) -> str:
        """The tensor that has a value known now; one for an array, however often it is used."""
        if id(value) not in self.kept:
            if str(value.dtype) not in DTYPES:
                raise TraceError("a constant", f"one of {', '.join(DTYPES)}", value.dtype)
            name = self.tensor(f"{self.stem}.constant", TensorType(value.shape, str(value.dtype)))
            self.constants[name] = value.copy("C")
            self.kept[id(value)] = value, name
        return self.kept[id(value)][1]

    def own(self, array: Array) -> str:
        """The tensor in which this graph has an array: of another trace, one that it captures."""
        if array.trace is self:
            return array.name
        if array.value is not None:
            return self.constant(array.value)
        if self.outer is None:
            actual = f"{array} of another one; pass it as an argument"
            raise TraceError(self.stem, "arrays of the function that is traced", actual)
        return self.capture(self.outer.own(array))

    def capture(self, source: str) -> str:
        """The input in which a region gets a tensor of the trace around it."""
        assert self.outer is not None
        if source not in self.captured:
            kind, name = self.outer.tensors[source], source.rpartition(".")[-1]
            self.captured[source] = self.tensor(f"{self.name}.{name}", kind)
        return self.captured[source]

    def graph(self, outputs: Sequence[str]) -> Graph:
        """The graph; what it captures are its last inputs."""
        inputs, nodes = (*self.inputs, *self.captured.values()), tuple(self.nodes)
        written = (name for node in nodes for name in node.outputs)
        names = (*inputs, *self.constants, *written)  # in the order of the graph's text
        tensors = {name: self.tensors[name] for name in names}
        return Graph(inputs, tuple(outputs), nodes, tensors, self.constants, self.name)


class Stack(threading.local):
    """Traces of a thread inside one another, the innermost last."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []


STACK = Stack()
