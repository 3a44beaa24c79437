"""``vdla.fn``: a Python function over arrays, traced into a graph and compiled.

It is traced once for each signature: the nesting of its arguments, shapes, element types, and the
values of all that isn't an array. One that says what it ``returns`` is a named function of the
graph, which may call itself; any other is written out wherever it is called.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify_whole
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.tracing import elements as elements  # what is traced of numpy's functions
from vdla.compiler.tracing import shapes as shapes
from vdla.compiler.tracing.arrays import STACK, Array, Session, Trace, Values, name_of
from vdla.compiler.tracing.control import Nested, Value, add_control, nested, tracing
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.nodes import array
from vdla.compiler.tracing.trees import Structure, flatten
from vdla.isa.config import Config, load_config
from vdla.runtime.devices.named import NAMES, make_device
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module

P = ParamSpec("P")
R = TypeVar("R")
Arguments = tuple[tuple[Value, ...], dict[str, Value]]
MOST_INLINED = 50  # calls inside one another that are written out


@dataclass(frozen=True)
class Signature:
    """Key of a trace: the nesting of the arguments, and for each leaf the type of an array,
    or the class and value of whatever else it is."""

    structure: Structure
    leaves: tuple[TensorType | tuple[type, object], ...]

    @property
    def kinds(self) -> list[TensorType]:
        """The types of the arrays."""
        return [leaf for leaf in self.leaves if isinstance(leaf, TensorType)]

    def build(self, arrays: Sequence[Value]) -> Arguments:
        """Arguments with these arrays, and the values of all else."""
        rest = iter(arrays)
        leaves = (next(rest) if isinstance(leaf, TensorType) else leaf[1] for leaf in self.leaves)
        return cast("Arguments", self.structure.build(leaves))

    def names(self, function: Callable[..., Value]) -> list[str]:
        """Names of the arrays, by the function's parameters and the way to them: ``state.0.h``."""
        args, named = self.structure.parts
        bound = inspect.signature(function).bind_partial(*args.parts).arguments
        roots = [
            (name, part)
            for name, parts in bound.items()
            for part in (parts if isinstance(parts, tuple) else (parts,))
        ]
        roots += zip(map(str, named.keys), named.parts, strict=True)
        paths = [path for root, part in roots for path in part.paths(root)]
        pairs = zip(paths, self.leaves, strict=True)
        arrays = [path for path, leaf in pairs if isinstance(leaf, TensorType)]
        return [re.sub(r"\W+", ".", path).strip(".") for path in arrays]


def signature_of(name: str, arguments: Arguments) -> tuple[Signature, list[Array | Values]]:
    """The signature of arguments, and the arrays among them.

    Raises:
        TraceError: an argument is neither an array nor has a hash.
    """
    leaves, structure = flatten(arguments)
    kinds: list[TensorType | tuple[type, object]] = []
    arrays: list[Array | Values] = []
    for leaf in leaves:
        if isinstance(leaf, Array | np.ndarray | np.generic):
            kinds.append(TensorType(tuple(leaf.shape), str(leaf.dtype)))
            arrays.append(leaf if isinstance(leaf, Array) else np.asarray(leaf))
        elif type(leaf).__hash__ is None:
            raise TraceError(name, "arrays, numbers and what has a hash", type(leaf).__name__)
        else:
            kinds.append((type(leaf), leaf))
    return Signature(structure, tuple(kinds)), arrays


@dataclass(frozen=True)
class Traced:
    """A function as a graph, and the nesting of its results."""

    graph: Graph
    structure: Structure


@dataclass(frozen=True)
class Ready:
    """A traced function on its device."""

    traced: Traced
    executor: Executor

    def run(self, arrays: Sequence[Array | Values]) -> Value:
        """The results for arrays of numpy's."""
        graph = self.traced.graph
        inputs = {
            n: a for n, a in zip(graph.inputs, arrays, strict=True) if isinstance(a, np.ndarray)
        }
        outputs = self.executor.run(inputs).outputs
        return self.traced.structure.build([outputs[name] for name in graph.outputs])


class Function(Generic[P, R]):
    """A function that runs compiled: see :func:`fn`.

    ``__wrapped__`` is the Python function itself, which takes numpy's arrays as well.
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        python: Callable[P, R],
        returns: Callable[..., Value] | None = None,
        device: str = "cpu",
        config: str | Path | Config = "paper",
    ) -> None:
        update_wrapper(cast("Callable[P, R]", self), python)
        self.python = cast("Callable[..., Value]", python)
        self.returns, self.device, self.config = returns, device, config
        self.name = name_of(python, "function")
        self._ready: dict[Signature, Ready] = {}

    def __repr__(self) -> str:
        return f"vdla.fn({self.name})"

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """The results for arrays: numpy's, or those of the trace around it."""
        signature, arrays = signature_of(self.name, (args, named))
        if STACK.traces:
            call = self._call if self.returns else self._write_out
            return cast("R", call(signature, arrays))
        if signature not in self._ready:
            traced = self._trace(signature)
            module = _compiled(traced.graph, self.device, self.config)
            executor = Executor(module, make_device(module, self.device))
            self._ready[signature] = Ready(traced, executor)
        return cast("R", self._ready[signature].run(arrays))

    def graph(self, *examples: P.args, **named: P.kwargs) -> Graph:
        """The graph for arguments of the examples' nesting, shapes and element types.

        Raises:
            TraceError: the function can't be a graph.
        """
        return self._trace(signature_of(self.name, (examples, named))[0]).graph

    def compile(
        self,
        *examples: Value,
        device: str | None = None,
        config: str | Path | Config | None = None,
    ) -> Module:
        """The module for arguments of the examples' nesting, shapes and element types; by default
        for the function's own device and config.

        Raises:
            TraceError: the function can't be a graph; or there is no such device.
            ConfigError: there is no such config.
        """
        graph = self._trace(signature_of(self.name, (examples, {}))[0]).graph
        return _compiled(graph, device or self.device, config or self.config)

    # How it is traced -------------------------------------------------------------------------

    def _trace(self, signature: Signature) -> Traced:
        """The whole graph, checked."""
        session, name = Session(), "main" if self.returns else self.name
        trace = Trace(session.fresh(name), name, session)
        call = self._call if self.returns else self._write_out
        with tracing(trace):
            pairs = zip(signature.names(self.python), signature.kinds, strict=True)
            result = nested(call(signature, [trace.input(*pair) for pair in pairs]))
            graph = trace.graph(result.tensors(trace))
        graph.functions = session.functions
        return Traced(verify_whole(graph), result.structure)

    def _write_out(self, signature: Signature, arrays: Sequence[Array | Values]) -> Value:
        """The function's results, in the trace around it."""
        written = STACK.traces[-1].session.written
        if (self, signature) in written:
            rule = "a function that calls itself to say what it returns"
            advice = "nothing; @vdla.fn(returns=lambda x: x) says that it is what x is"
            raise TraceError(self.name, rule, advice)
        if len(written) >= MOST_INLINED:
            rule = f"at most {MOST_INLINED} calls inside one another"
            raise TraceError(self.name, rule, "more, each of other shapes or Python numbers")
        written.append((self, signature))
        try:
            args, named = signature.build(arrays)
            return self.python(*args, **named)
        finally:
            written.pop()

    def _call(self, signature: Signature, arrays: Sequence[Array | Values]) -> Value:
        """The function's results, from a call by its name."""
        trace = STACK.traces[-1]
        if (self, signature) not in trace.session.known:
            self._define(trace.session, signature)
        name, result = cast("tuple[str, Nested]", trace.session.known[self, signature])
        fields = {
            "function": name,
            "shapes": tuple(kind.shape for kind in result.kinds),
            "dtypes": tuple(kind.dtype for kind in result.kinds),
        }
        operands = [trace.own(array(each)) for each in arrays]
        node = trace.session.fresh(f"{trace.stem}.{name}")
        return result.build(add_control(ops.Call, node, operands, result.kinds, **fields))

    def _define(self, session: Session, signature: Signature) -> None:
        """Adds the function to those of a graph, by its name.

        Raises:
            TraceError: it returns something else than it says.
        """
        assert self.returns is not None
        names, kinds = signature.names(self.python), signature.kinds
        with tracing(Trace("returns", self.name, Session())) as scratch:
            inputs = [scratch.input(*pair) for pair in zip(names, kinds, strict=True)]
            args, named = signature.build(inputs)
            stated = nested(self.returns(*args, **named))
        if not stated.arrays:
            raise TraceError(self.name, "a function that returns an array", "none")
        name = session.fresh(self.name)
        session.known[self, signature] = name, stated
        with tracing(Trace(name, name, session)) as trace:
            pairs = zip(names, kinds, strict=True)
            args, named = signature.build([trace.input(f"{name}.{n}", kind) for n, kind in pairs])
            rule = "{} to be {}, as returns says"
            result = stated.like(self.name, rule, self.python(*args, **named))
            session.functions[name] = trace.graph(result.tensors(trace))


def _compiled(graph: Graph, device: str, config: str | Path | Config) -> Module:
    """A graph compiled for a device."""
    if device not in NAMES:
        raise TraceError("device", f"one of {', '.join(NAMES)}", device)
    machine = config if isinstance(config, Config) else load_config(config)
    return compile_graph(graph, machine, Options(device=device))


@overload
def fn(function: Callable[P, R]) -> Function[P, R]: ...


@overload
def fn(
    *,
    returns: Callable[..., Value] | None = None,
    device: str = "cpu",
    config: str | Path | Config = "paper",
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def fn(
    function: Callable[P, R] | None = None,
    *,
    returns: Callable[..., Value] | None = None,
    device: str = "cpu",
    config: str | Path | Config = "paper",
) -> Function[P, R] | Callable[[Callable[P, R]], Function[P, R]]:
    """Decorator of a function over arrays, which is then traced into a graph and runs compiled.

    Arguments and results are arrays, in tuples, lists, dicts and dataclasses as you like; whatever
    else an argument is, as a Python number, is known while the function is traced.

    Args:
        function: made of numpy's functions and operators, ``vdla.cond``, ``vdla.while_loop``,
            ``vdla.scan`` and calls of others like it.
        returns: something of the types that the function returns, of its arguments. With it the
            function is a named one of the graph, and may call itself.
        device: where it runs, as ``vdla.run`` has it.
        config: the accelerator's, by name or path.
    """
    make = partial(Function[P, R], returns=returns, device=device, config=config)
    return make if function is None else make(function)
