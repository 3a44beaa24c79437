"""LLVM functions for the steps of a parallel loop, which threads call.

before:  for i in 1000 parallel: BODY
after:   NAME.i(buffers, variables, i)       BODY
         NAME.i.task(context, task)          for i in 4 * task to 4 * task + 4: NAME.i(…, i)
         vdla_parallel(pool, NAME.i.task, context, 250)

The context is what the body uses of its surroundings: where buffers are, and loop variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llvmlite import ir as ll

from vdla.compiler.targets.processor.codegen.emit_memory import I32, POINTER
from vdla.compiler.tir.ir import Alloc, Buffer, Evaluate, For, Load, Prefetch, Stmt, Store, Var
from vdla.compiler.tir.visitor import direct_exprs, walk, walk_expr
from vdla.runtime.pool.numbers import TASKS
from vdla.support.numbers import ceil_div


def value_name(name: str) -> str:
    """A name as LLVM's text has it for a value: any characters but NUL."""
    return name.replace("\0", "_")


def internal_function(
    module: ll.Module, name: str, buffers: Iterable[Buffer], others: Sequence[ll.Value]
) -> ll.Function:
    """A function without a body, of pointers to buffers, which don't alias, and of other types."""
    names = [buffer.name for buffer in buffers]
    kind = ll.FunctionType(ll.VoidType(), [POINTER] * len(names) + list(others))
    function = ll.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")  # else ARM's objects ask for a C++ runtime
    for arg, buffer in zip(function.args, names, strict=False):
        arg.name = value_name(buffer)
        for attribute in ("noalias", "nonnull"):
            arg.add_attribute(attribute)
    return function


def free_names(body: Stmt, var: Var) -> tuple[list[Buffer], list[Var]]:
    """The buffers and the loop variables, but ``var``, that a loop's body uses and doesn't make."""
    buffers: dict[Buffer, None] = {}
    variables: dict[Var, None] = {}
    own: set[Buffer | Var] = {var}
    for stmt in walk(body):
        match stmt:
            case For(own_var):
                own.add(own_var)
            case Alloc(buffer):
                own.add(buffer)
            case Store(buffer):
                buffers[buffer] = None
            case Prefetch(region):
                buffers[region.buffer] = None
            case Evaluate(call):
                buffers.update((operand.buffer, None) for operand in call.operands)
        for expr in (e for direct in direct_exprs(stmt) for e in walk_expr(direct)):
            if isinstance(expr, Load):
                buffers[expr.buffer] = None
            elif isinstance(expr, Var):
                variables[expr] = None
    return [b for b in buffers if b not in own], [v for v in variables if v not in own]


def member(
    b: ll.IRBuilder, pointer: ll.Value, shared: ll.LiteralStructType, index: int
) -> ll.Value:
    """A pointer to a member of a structure."""
    return b.gep(pointer, [I32(0), I32(index)], inbounds=True, source_etype=shared)


def shares(extent: int) -> tuple[int, int]:
    """(steps of a task, tasks) of a parallel loop."""
    steps = ceil_div(extent, TASKS)
    return steps, ceil_div(extent, steps)


def task_function(
    step: ll.Function, shared: ll.LiteralStructType, extent: int
) -> tuple[ll.Function, int]:
    """A function of the context and a task's number, which runs the task's steps; and how many
    tasks there are."""
    size = step.args[-1].type
    steps, tasks = shares(extent)
    task = ll.Function(
        step.module, ll.FunctionType(ll.VoidType(), [POINTER, I32]), f"{step.name}.task"
    )
    task.linkage = "internal"
    task.attributes.add("nounwind")
    b = ll.IRBuilder(task.append_basic_block("entry"))
    context, number = task.args
    outer = [
        b.load(member(b, context, shared, n), typ=kind) for n, kind in enumerate(shared.elements)
    ]
    first = b.mul(b.zext(number, size) if size != I32 else number, size(steps))
    if steps == 1:
        b.call(step, [*outer, first])
        b.ret_void()
        return task, tasks
    last = b.add(first, size(steps))
    last = b.select(b.icmp_unsigned("<", last, size(extent)), last, size(extent))
    entry, head = b.block, b.append_basic_block("step")
    b.branch(head)
    b.position_at_end(head)
    counter = b.phi(size)
    counter.add_incoming(first, entry)
    b.call(step, [*outer, counter])
    following = b.add(counter, size(1))
    counter.add_incoming(following, head)
    end = b.append_basic_block("end")
    b.cbranch(b.icmp_unsigned("<", following, last), head, end)
    b.position_at_end(end)
    b.ret_void()
    return task, tasks
