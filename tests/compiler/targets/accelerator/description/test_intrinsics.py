"""Every intrinsic does what it declares: the interpreter, the simulator and the RTL agree.

Operands cover the whole declared range and its ends. The interpreter runs the behaviour that
``tensorize`` matches; the machines run the instructions that code generation makes of the call.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vdla.analysis.case import Case
from vdla.analysis.machines import Machines
from vdla.compiler import te
from vdla.compiler.targets.accelerator.codegen.kernel import generate
from vdla.compiler.targets.accelerator.description import (
    ACC,
    BUFFER_OF_SCOPE,
    INP,
    WGT,
    entries,
    intrinsics,
)
from vdla.compiler.targets.accelerator.lower import Linker
from vdla.compiler.targets.accelerator.options.tables import TAB
from vdla.compiler.targets.accelerator.standalone import standalone
from vdla.compiler.tir.interp import run
from vdla.compiler.tir.ir import (
    INT_RANGES,
    Buffer,
    BufferRef,
    Evaluate,
    Expr,
    For,
    IntrinCall,
    PrimFunc,
    Var,
    const,
    seq,
)
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.runtime.dram import whole_pages
from vdla.sim.checker import check

N = 24  # calls in a row: vectors, one after the other
TINY = load_config(
    "tiny",
    ["table_bytes=16384", "forwarding=1", "window_taps=2", "reciprocal_units=2", "weights4=1"],
)
NAMES = [i.name for i in intrinsics(TINY)]
LOADS = {INP: "load_inp", WGT: "load_wgt", ACC: "load_acc", TAB: "load_tab"}
COPY = "tab.pair_0"  # one of several that hold the same


def test_loads_that_pad_take_a_condition():
    for intrin in intrinsics(TINY):
        params = {p.name for p in intrin.params}
        assert ("inside" in params) == intrin.name.endswith("_pad"), intrin.name


@pytest.fixture(scope="module")
def machines():
    return {}


def samples(rng, low, high, shape):
    """Values of a range: its ends, their neighbours, small ones, and any."""
    corners = [low, min(low + 1, high), max(high - 1, low), high]
    corners += [v for v in (-1, 0, 1) if low <= v <= high]
    picked = rng.choice(np.array(corners), shape)
    anything = rng.integers(low, high, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.5, picked, anything)


def parameter(rng, intrin, param, step):
    if param.dtype == "bool":
        return te.all(step >= 2, step < N - 3)
    low, high = intrin.laws.ranges.get(param.name, INT_RANGES[param.dtype])
    return int(samples(rng, low, high, ()))


def parameters(rng, intrin, step):
    """Constants whose sums are within what the intrinsic declares of them."""
    values = {p.name: parameter(rng, intrin, p, step) for p in intrin.params}
    for name, (low, high) in intrin.laws.ranges.items():
        first, *others = name.split(" + ")
        if others:
            values[first] = int(samples(rng, low, high, ())) - sum(values[o] for o in others)
    kinds = {p.name: p.dtype for p in intrin.params}
    return {n: v if isinstance(v, Expr) else const(v, kinds[n]) for n, v in values.items()}


def call_of(intrin, config, rng, inplace=""):
    """A function that fills on-chip operands and makes N calls, its buffers, and their values."""
    step = Var("i")
    buffers, values = {}, {}
    for operand in intrin.operands:
        scope = intrin.scopes[operand.name]
        buffer = Buffer(operand.name, (N, *operand.shape), operand.dtype, scope)
        buffers[operand.name] = buffer
        low, high = intrin.laws.ranges.get(operand.name, INT_RANGES[operand.dtype])
        values[buffer] = samples(rng, low, high, buffer.shape).astype(operand.dtype)
    if inplace:
        buffers[intrin.output.name] = buffers[inplace]
    params = parameters(rng, intrin, step)
    refs = tuple(
        BufferRef(buffers[o.name], (step, *(const(0) for _ in o.shape))) for o in intrin.operands
    )
    first = step.equal(0) if intrin.is_reduction else None
    if intrin.is_reduction:  # every call adds to one vector
        refs = (BufferRef(refs[0].buffer, (const(0), *refs[0].indices[1:])), *refs[1:])
        if "bias" in buffers:
            bias = intrin.operands.index(next(o for o in intrin.operands if o.name == "bias"))
            here = BufferRef(buffers["bias"], (const(0), const(0)))
            refs = (*refs[:bias], here, *refs[bias + 1 :])
    made = For(step, N, "serial", Evaluate(IntrinCall(intrin, refs, params, first)))
    ins, loads, sources = intrinsics(config), [], {}
    for name, buffer in buffers.items():
        if buffer.scope == "global" or (name == intrin.output.name and not inplace):
            continue
        if any(buffer is known for known in sources.values()):
            continue
        source = Buffer(f"{name}_source", buffer.shape, buffer.dtype)
        sources[source] = buffer
        values[source] = values[buffer]
        loads.append(filled(getattr(ins, LOADS[buffer.scope]), buffer, source))
    params = tuple(dict.fromkeys([*buffers.values(), *sources]))
    return PrimFunc(intrin.name, params, seq(*loads, made)), buffers, values


def filled(load, buffer, source):
    step = Var("j")
    indices = (step, *(const(0) for _ in buffer.shape[1:]))
    call = IntrinCall(load, (BufferRef(buffer, indices), BufferRef(source, indices)))
    return For(step, N, "serial", Evaluate(call))


def bases_of(func, config):
    """Buffers side by side on chip."""
    used, bases = dict.fromkeys(BUFFER_OF_SCOPE, 0), {}
    for buffer in func.params:
        if buffer.scope in BUFFER_OF_SCOPE:
            bases[buffer] = used[buffer.scope]
            used[buffer.scope] += entries(buffer, config)
    return bases


def disagreement(intrin, machines, config, seed, inplace=""):
    """Where a machine's result isn't the declared behaviour's; None where both are."""
    func, buffers, values = call_of(intrin, config, np.random.default_rng(seed), inplace)
    out = buffers[intrin.output.name]
    arrays = [values.get(p, np.zeros(p.shape, p.dtype)).copy() for p in func.params]
    if out.scope == "global" or not inplace:
        arrays[func.params.index(out)][...] = 0
    run(func, arrays)
    want = arrays[func.params.index(out)]
    bases = bases_of(func, config)
    kernel = generate(func, bases, config)
    linker = Linker(config)
    linker.add(intrin.name, kernel, {name: name for name in kernel.tensors})
    alone = standalone(linker, kernel.tensors, {})
    dram = np.zeros(whole_pages(alone.dram.size), np.uint8)
    dram[: alone.dram.size] = alone.dram
    for param in func.params:
        if param.scope == "global" and param is not out:
            raw = np.ascontiguousarray(values[param]).view(np.uint8).reshape(-1)
            at = alone.addresses[param.name]
            dram[at : at + raw.size] = raw
    assert not check(config, alone.program.instructions, dram, alone.program.base)
    raw = alone.program.stream()
    case = Case(config, raw, alone.program.base, dram, Identity.of(config))
    for name, outcome in zip(("sim", "rtl"), machines.run(case, config.memory), strict=True):
        got = read(outcome, out, alone.addresses, bases)
        touched = 1 if intrin.is_reduction else N
        if not np.array_equal(got[:touched], want[:touched]):
            where = np.argwhere(got[:touched] != want[:touched])[0]
            return f"{name}{list(map(int, where))}: {got[tuple(where)]}, not {want[tuple(where)]}"
    return None


def read(outcome, buffer, addresses, bases):
    size = buffer.size * np.dtype(buffer.dtype).itemsize
    if buffer.scope == "global":
        at = addresses[buffer.name]
        raw = outcome.memories["dram"][at : at + size]
    else:
        memory = outcome.memories[COPY if buffer.scope == TAB else BUFFER_OF_SCOPE[buffer.scope]]
        raw = memory.reshape(-1)[bases[buffer] * size // entries(buffer, TINY) :][:size]
    return np.ascontiguousarray(raw).view(buffer.dtype).reshape(buffer.shape)


@pytest.mark.parametrize("name", NAMES)
def test_an_intrinsic_is_its_instruction(name, tiny_machines):
    config = tiny_machines.config
    intrin = getattr(intrinsics(config), name)
    for seed in range(8):
        assert disagreement(intrin, tiny_machines, config, seed) is None
        inplace = intrin.lowering.inplace
        if inplace:
            assert disagreement(intrin, tiny_machines, config, seed, inplace) is None


@pytest.fixture(scope="module")
def tiny_machines():
    return Machines(TINY)


@pytest.mark.parametrize("name", ["alu_wadd", "alu_wsub", "alu_mul", "alu_shr"])
def test_the_check_can_fail(name, tiny_machines):
    """Without its operands' ranges, an intrinsic promises what its instruction doesn't do."""
    config = tiny_machines.config
    intrin = getattr(intrinsics(config), name)
    operands = {o.name for o in intrin.operands}
    known = {name: ends for name, ends in intrin.laws.ranges.items() if name not in operands}
    laws = dataclasses.replace(intrin.laws, ranges=known)
    boundless = dataclasses.replace(intrin, laws=laws)
    assert any(disagreement(boundless, tiny_machines, config, seed) for seed in range(8))
