"""Random programs with nested control flow: what processor, simulator and GPU give is what an
interpreter in numpy gives, to the bit.

    python tests/support/fuzz_control.py --seed 7 --programs 100

A program runs three times on one executor, the last time with the first inputs again, with one
thread and with two. Every program also runs on the simulator, and where OpenCL has a device, some
run on a GPU. A loop that is not over after its turns is to say so. A program that fails is shrunk
and printed as text.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from random_control import random_program, sample

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify_whole
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Array
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError, InputError
from vdla.runtime.executor import Executor
from vdla.runtime.gpu.opencl import OpenClGpu, find_gpu

TINY = load_config("tiny")
QUICK = Processor(quick=True)
ON_GPU = 8  # of so many programs, one runs on a GPU, too
NO_END = "expected an end after at most"

Values = Mapping[str, Array] | None  # of outputs; None for a loop that isn't over


def fault(graph: Graph, seed: int) -> str:
    """What is wrong with a program; empty if nothing is."""
    text = format_graph(graph)
    again = parse_graph(text, beside(graph))
    if format_graph(again) != text:
        return "text: it reads back as another one"
    samples = [sample(graph, seed), sample(graph, seed + 1)]
    first, second = (wanted(graph, inputs) for inputs in samples)
    runs = list(zip([*samples, samples[0]], [first, second, first], strict=True))
    for name, executor in executors(graph, gpu=seed % ON_GPU == 0):
        for number, (inputs, values) in enumerate(runs, start=1):
            difference = differs(executor, inputs, values)
            if difference:
                return f"{name}: run {number}: {difference}"
    return ""


def wanted(graph: Graph, inputs: Mapping[str, Array]) -> Values:
    """What the interpreter gives; of a loop whose results nobody reads, it doesn't matter whether
    it is over."""
    try:
        values = evaluate(_pruned(graph), inputs)
    except GraphError as error:
        if NO_END in str(error):
            return None
        raise
    return {name: values[name] for name in graph.outputs}


def executors(graph: Graph, gpu: bool) -> Iterator[tuple[str, Executor]]:
    """A program on each device."""
    module = compile_graph(graph, TINY, Options(device="cpu", processor=QUICK))
    for threads in (1, 2):
        yield f"processor, {threads} threads", Executor(module, CpuDevice(), threads=threads)
    module = compile_graph(graph, TINY, Options(processor=QUICK))
    yield "simulator", Executor(module, SimDevice(TINY), threads=1)
    if gpu and opencl() is not None:
        module = compile_graph(graph, TINY, Options(device="gpu", processor=QUICK))
        yield "GPU", Executor(module, CpuDevice(), threads=1, gpu=opencl())


def differs(executor: Executor, inputs: Mapping[str, Array], values: Values) -> str:
    """How a run's outputs differ from what is wanted; empty if they don't."""
    try:
        outputs = executor.run(inputs).outputs
    except InputError as error:
        return "" if values is None and NO_END in str(error) else str(error)
    if values is None:
        return "a loop that isn't over gave outputs"
    for name, value in values.items():
        if not np.array_equal(outputs[name], value):
            return f"{name} is {outputs[name].tolist()}, not {np.asarray(value).tolist()}"
    return ""


def failure(graph: Graph, seed: int) -> str:
    """What is wrong with a program, exceptions included."""
    try:
        return fault(graph, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# Shrinking ---------------------------------------------------------------------------------------


def shrunk(graph: Graph, fails: Callable[[Graph], bool]) -> Graph:
    """The smallest program that still fails, of those that ``_smaller`` leads to."""
    while smaller := next(filter(fails, filter(_is_valid, _smaller(graph))), None):
        graph = smaller
    return graph


def _is_valid(graph: Graph) -> bool:
    try:
        verify_whole(graph)
    except GraphError:
        return False
    return True


def _smaller(graph: Graph) -> Iterator[Graph]:
    """Programs with one output alone, less a node, or less what a region needn't have."""
    if len(graph.outputs) > 1:
        yield from (_pruned(replace(graph, outputs=(name,))) for name in graph.outputs)
    for part in _less(graph):
        yield _pruned(part)
    for name, function in graph.functions.items():
        for part in _less(function):
            yield _pruned(replace(graph, functions={**graph.functions, name: part}))


def _less(graph: Graph) -> Iterator[Graph]:
    """A graph less one of its nodes, whose results are inputs, others' results or constants then;
    or with less in a region."""
    known: list[str] = [*graph.inputs]
    for number, node in reversed([*enumerate(graph.nodes)]):
        known = [*graph.inputs, *(n for each in graph.nodes[:number] for n in each.outputs)]
        for choose in (_constant, _alike):
            yield _without(graph, node, known, choose)
        for key, region in _regions(node):
            for part in _less(region):
                nodes = [replace(node, **{key: part}) if n is node else n for n in graph.nodes]
                yield replace(graph, nodes=tuple(nodes))
        yield from _less_captured(graph, node)


def _regions(node: Node) -> Iterator[tuple[str, Graph]]:
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Graph):
            yield each.name, value


def _constant(graph: Graph, name: str, known: Sequence[str]) -> str | None:
    return None


def _alike(graph: Graph, name: str, known: Sequence[str]) -> str | None:
    """A tensor of the same type before."""
    kind = graph.tensors[name]
    return next((n for n in reversed(known) if graph.tensors[n] == kind), None)


def _without(graph: Graph, node: Node, known: Sequence[str], choose: Callable) -> Graph:
    """The graph less a node."""
    names, constants = dict[str, str](), dict(graph.constants)
    for name in node.outputs:
        other = choose(graph, name, known)
        if other is None:
            kind = graph.tensors[name]
            constants[name] = np.ones(kind.shape, kind.dtype)
        else:
            names[name] = other
    nodes = tuple(n.renamed(names) for n in graph.nodes if n is not node)
    outputs = tuple(names.get(name, name) for name in graph.outputs)
    return replace(graph, nodes=nodes, outputs=outputs, constants=constants)


def _less_captured(graph: Graph, node: Node) -> Iterator[Graph]:
    """The graph with a node that captures less: nothing that its regions don't read."""
    if not isinstance(node, ops.If | ops.Loop):
        return
    first = 1 if isinstance(node, ops.If) else node.carried + isinstance(node, ops.While)
    first += node.scanned if isinstance(node, ops.Scan) else 0
    for place in range(first, len(node.operands)):
        last = place - len(node.operands)
        gone = [region.inputs[last] for region in node.regions]
        if any(_reads(r, name) for r, name in zip(node.regions, gone, strict=True)):
            continue
        changes = {
            key: replace(region, inputs=_less_place(region.inputs, last))
            for key, region in _regions(node)
        }
        less = replace(node, operands=_less_place(node.operands, last), **changes)
        nodes = [less if n is node else n for n in graph.nodes]
        yield replace(graph, nodes=tuple(nodes))


def _less_place(names: Sequence[str], place: int) -> tuple[str, ...]:
    place %= len(names)
    return (*names[:place], *names[place + 1 :])


def _reads(graph: Graph, name: str) -> bool:
    return name in graph.outputs or any(name in node.inputs for node in graph.nodes)


def _pruned(graph: Graph) -> Graph:
    """The graph, less nodes whose results nobody reads, and functions that nobody calls."""
    functions = {name: _pruned(function) for name, function in graph.functions.items()}
    needed, nodes = set(graph.outputs), list[Node]()
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            changes = {key: _pruned(region) for key, region in _regions(node)}
            nodes.append(replace(node, **changes) if changes else node)
            needed.update(node.inputs)
    written = {name for node in nodes for name in node.outputs}
    constants = {n: v for n, v in graph.constants.items() if n in needed and n not in written}
    kept = {*graph.inputs, *written, *constants}
    tensors = {name: kind for name, kind in graph.tensors.items() if name in kept}
    whole = replace(graph, nodes=tuple(nodes[::-1]), tensors=tensors, constants=constants)
    called = {
        c.function for f in (whole, *functions.values()) for g in f.whole() for c in g.of(ops.Call)
    }
    return replace(whole, functions={n: f for n, f in functions.items() if n in called})


# Many of them ------------------------------------------------------------------------------------


def wrong(seed: int, *, shrink: bool = True) -> str:
    """What is wrong with the program of a seed, and the smallest like it; empty if nothing is."""
    graph = random_program(seed)
    text = failure(graph, seed)
    if not text or not shrink:
        return text and f"seed {seed}: {text}"
    kind = text.partition(":")[0]
    least = shrunk(graph, lambda g: failure(g, seed).partition(":")[0] == kind)
    return f"seed {seed}: {text}\n{failure(least, seed)}\n{format_graph(least)}"


@cache
def opencl() -> OpenClGpu | None:
    """OpenCL's best device, if there is one."""
    try:
        return find_gpu()
    except DeviceError:
        return None


def main() -> None:
    """The command: exit code 1 when a program is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1, help="processes that share the programs")
    options = parser.parse_args()
    began, count = time.monotonic(), 0
    seeds = range(options.seed, options.seed + options.programs)
    with get_context("spawn").Pool(options.workers) as pool:
        for text in pool.imap(wrong, seeds):
            count += bool(text)
            if text:
                print(text, flush=True)
    took = time.monotonic() - began
    print(f"seed {options.seed}, {options.programs} programs: {count} wrong; {took:.0f} s")
    raise SystemExit(bool(count))


if __name__ == "__main__":
    main()
