"""From a laid-out graph to the steps of a module, as far as a processor takes part.

In order: :func:`node_functions` (functions and their own constants), :func:`function_constants`
(what they read), then ``plan_memory`` over those and the accelerator's, then :func:`make_steps`,
:func:`tensor_table` and :func:`constant_image`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, count
from types import MappingProxyType

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Array, Graph, Node
from vdla.compiler.graph.plan import MemoryPlan
from vdla.compiler.placement import (
    ACCELERATOR,
    PROCESSOR,
    Placements,
)
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.functions import Traces, symbol_of, untuned
from vdla.compiler.targets.processor.codegen.link import link_shared
from vdla.compiler.targets.processor.codegen.llvm import compile_object
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.functions import HOST, node_function
from vdla.compiler.targets.processor.views import views
from vdla.compiler.targets.target import Code
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.module import HostCode, TensorInfo
from vdla.runtime.native import host_machine
from vdla.runtime.plan import (
    Accelerate,
    Gpu,
    Host,
    Onnx,
    Open,
    Outside,
    Plan,
    Step,
    accelerator_steps,
)

Functions = Mapping[str, NodeFunction]


def node_functions(
    graph: Graph,
    placements: Placements,
    processor: Processor = NATIVE,
    traces: Traces = untuned,
) -> Functions:
    """Node name to its function, for every node placed on the processor.

    Nodes whose functions are the same but for their names share the first one. ``traces`` gives
    tuned schedules.
    """
    functions: dict[str, NodeFunction] = {}
    known: dict[str, PrimFunc] = {}
    like: dict[Hashable, tuple[NodeFunction, Sequence[str]]] = {}
    symbols: set[str] = set()
    arrays: dict[bytes, str] = {}
    seen = views(graph, placements)
    for node in graph.nodes:
        if placements[node.name].device != PROCESSOR or node.output in seen:
            continue
        form, names = _form(node, graph)
        if form in like:
            first, places = like[form]
            functions[node.name] = _for_others(first, dict(zip(places, names, strict=True)))
            continue
        base = symbol_of(HOST, node)
        tried = chain((base,), (f"{base}_{n}" for n in count(len(symbols))))
        symbol = next(name for name in tried if name not in symbols)
        function = node_function(node, graph, symbol, processor, traces, known)
        functions[node.name] = _with_shared(function, arrays)
        like[form] = functions[node.name], names
        symbols.add(function.func.name)
    return functions


def _form(node: Node, graph: Graph) -> tuple[Hashable, Sequence[str]]:
    """Form that a node's function depends on, and the names of the tensors that it stands for:
    names of activations don't matter, as from step to step of a recurrent layer."""
    names: dict[str, str] = {}
    parts = []
    for part in node.parts if isinstance(node, ops.Fused) else (node,):
        for name in (*part.inputs, part.output):
            if name not in graph.constants:
                names.setdefault(name, f"tensor {len(names)}")
        own = replace(part.renamed(names), name="", output=names[part.output])
        kinds = tuple(graph.tensors[name] for name in (*part.inputs, part.output))
        parts.append((type(part), kinds, *(getattr(own, field.name) for field in fields(own))))
    return tuple(parts), list(names)


def _for_others(function: NodeFunction, names: Mapping[str, str]) -> NodeFunction:
    """A function of some tensors, of others with the same form."""
    return replace(function, args=tuple(names.get(name, name) for name in function.args))


def _with_shared(function: NodeFunction, arrays: dict[bytes, str]) -> NodeFunction:
    """A function that reads constants of other functions' where its own are equal.

    Each step of a recurrent layer rearranges the same weights, which stay in a cache as one.
    ``arrays`` has the names of the constants so far, by what they hold.
    """
    names: dict[str, str] = {}
    for name, array in function.constants.items():
        key = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16)
        key.update(f"{array.shape} {array.dtype}".encode())
        names[name] = arrays.setdefault(key.digest(), name)
    constants = {names[name]: array for name, array in function.constants.items()}
    args = tuple(names.get(name, name) for name in function.args)
    return replace(function, args=args, constants=constants)


def function_work(graph: Graph, functions: Functions) -> dict[str, int]:
    """Number of operations that each function takes, by its node's name."""
    result = {}
    for node in graph.nodes:
        if node.name in functions:
            parts = node.parts if isinstance(node, ops.Fused) else (node,)
            result[node.name] = sum(
                part.work([graph.tensors[n].shape for n in part.inputs],
                          graph.tensors[part.output].shape)
                for part in parts
            )  # fmt: skip
    return result


def index_sizes(graph: Graph) -> dict[str, int]:
    """The inputs that are indices into other tensors, and the length of the axis they are of; the
    least of several."""
    result: dict[str, int] = {}
    for node in graph.nodes:
        for part in node.parts if isinstance(node, ops.Fused) else (node,):
            if isinstance(part, ops.Gather | ops.GatherElements) and part.indices in graph.inputs:
                size = graph.tensors[part.data].shape[part.axis]
                result[part.indices] = min(size, result.get(part.indices, size))
    return result


def check_external(graph: Graph, processor: Processor) -> None:
    """Raises TargetError where a target has to run operators that only onnxruntime has.

    A board's processor gets compiled code alone.
    """
    for node in graph.nodes:
        if isinstance(node, ops.External) and not processor.is_native:
            raise TargetError(
                f"node {node.name} ({node.op}): expected operators that vdla compiles for "
                f"{processor.cpu}, found one for onnxruntime ({node.reason}); this machine has "
                "it"
            )


def external_models(graph: Graph) -> dict[str, bytes]:
    """Node name to what onnxruntime runs."""
    return {node.name: node.model for node in graph.nodes if isinstance(node, ops.External)}


def function_constants(
    graph: Graph, functions: Mapping[str, NodeFunction | Code]
) -> dict[str, Array]:
    """Every constant that a function or onnxruntime reads, or that is a result."""
    external = (node for node in graph.nodes if isinstance(node, ops.External))
    needed: dict[str, Array] = {
        name: graph.constants[name]
        for node in external
        for name in node.inputs
        if name in graph.constants
    }
    needed.update(
        (name, graph.constants[name]) for name in graph.outputs if name in graph.constants
    )
    for function in functions.values():
        for name in function.args:
            if name in function.constants:
                needed[name] = function.constants[name]
            elif name in graph.constants:
                needed[name] = graph.constants[name]
    return needed


def make_steps(
    graph: Graph,
    placements: Placements,
    functions: Functions,
    kernels: Functions = MappingProxyType({}),
    codes: Mapping[str, Code] = MappingProxyType({}),
) -> Plan:
    """The module's run plan; neighbouring accelerator nodes share one program, which is the
    caller's to make. ``kernels`` are a GPU's functions, ``codes`` those of nodes on other packages'
    targets."""
    steps: list[Step] = []
    seen = views(graph, placements)
    for node in graph.nodes:
        if node.output in seen:
            continue
        if placements[node.name].device == ACCELERATOR:
            last = steps[-1] if steps else None
            if not isinstance(last, Accelerate):
                last = Accelerate(f"program{len(accelerator_steps(steps))}", ())
                steps.append(last)
            steps[-1] = _with_layer(last, node, graph)
        elif kernel := kernels.get(node.name):
            steps.append(Gpu(node.name, kernel.func.name, kernel.args))
        elif code := codes.get(node.name):
            steps.append(Outside(node.name, code.target, node.name, code.args))
        elif isinstance(node, ops.Open):
            args = (*node.inputs, node.output)
            steps.append(Open(node.name, node.name, args, node.results, node.order))
        elif isinstance(node, ops.External):
            steps.append(Onnx(node.name, node.name, (*node.inputs, node.output)))
        else:
            function = functions[node.name]
            steps.append(Host(node.name, function.func.name, function.args))
    return tuple(steps)


def _with_layer(step: Accelerate, node: Node, graph: Graph) -> Accelerate:
    """A step of the accelerator with one more layer, or with the tensors of one that is no work."""
    others = (n for n in graph.activations(node) if n not in (*step.reads, *step.writes))
    return Accelerate(
        step.program,
        step.layers if isinstance(node, ops.ByAddresses) else (*step.layers, node.name),
        (*step.reads, *dict.fromkeys(others)),
        (*step.writes, node.output),
    )


def tensor_table(
    graph: Graph, plan: MemoryPlan, constants: Mapping[str, Array]
) -> dict[str, TensorInfo]:
    """Every tensor with an address: the activations, and the constants that are kept."""
    table: dict[str, TensorInfo] = {}
    for name, offset in plan.offsets.items():
        kind = graph.tensors[name]
        table[name] = TensorInfo(kind.physical, kind.dtype, offset)
    for name, array in constants.items():
        table[name] = TensorInfo(array.shape, str(array.dtype), plan.constants[name])
    return table


def constant_image(plan: MemoryPlan, constants: Mapping[str, Array]) -> bytes:
    """The bytes of the constants region."""
    image = np.zeros(plan.constant_bytes, np.uint8)
    for name, array in constants.items():
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        start = plan.constants[name]
        image[start : start + data.size] = data
    return image.tobytes()


def native_code(functions: Functions, processor: Processor = NATIVE) -> HostCode | None:
    """The functions, ready for a target; None if there are none.

    For this machine they are an object file, which the runtime links with LLVM; for another, which
    may have no LLVM, a shared object.

    Raises:
        TargetError: there is no linker for the target.
    """
    if not functions:
        return None
    funcs = {function.func.name: function.func for function in functions.values()}
    code = compile_object(funcs.values(), processor)
    sizes = {name: tuple(map(_bytes, func.params)) for name, func in funcs.items()}
    if processor.is_native:
        return HostCode(code, *host_machine(), sizes)
    return HostCode(
        link_shared(code, processor), processor.triple, processor.cpu, processor.features, sizes
    )


def _bytes(param: Buffer) -> int:
    """The bytes of a parameter's elements."""
    return param.size * dtype_of(param.dtype).itemsize
