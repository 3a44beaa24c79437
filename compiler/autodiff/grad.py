"""``vdla.grad``, ``vdla.value_and_grad``: gradients of traced functions, as traced functions.

@vdla.fn
def step(w, x, y):
    loss, d = vdla.value_and_grad(lambda w: np.mean((x @ w - y) ** 2))(w)
    return loss, w - 0.1 * d
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import cast

import numpy as np

from vdla.compiler.autodiff.reverse import Reverse
from vdla.compiler.autodiff.rules import variable
from vdla.compiler.graph.ops.control import typed
from vdla.compiler.tracing.arrays import STACK, Array, name_of
from vdla.compiler.tracing.control import Value, nested, scan
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.fn import fn
from vdla.compiler.tracing.nodes import array

Places = int | Sequence[int]


def value_and_grad(function: Callable[..., Value], argnums: Places = 0) -> Callable[..., Value]:
    """A function that gives a loss and its gradients in arguments, of what gives the loss.

    Outside of a trace it is compiled, as ``vdla.fn`` does.

    Args:
        function: of arrays, in tuples, lists, dicts and dataclasses as you like; gives a float, or
            a tuple of one and of whatever else is to be handed on.
        argnums: the places of the arguments: of one, its gradient is given as it is nested; of
            several, a tuple of them. Arguments of integers have none, and none may be among them.

    Returns:
        ``f(*args) -> (result, gradients)``.

    Raises:
        TraceError: when it is called: the loss isn't one float, an argument isn't there or isn't of
            floats, or the loss follows from one by an operator without a gradient.
    """

    @wraps(function)
    def both(*args: Value) -> Value:
        if not STACK.traces:
            return fn(both)(*args)
        return _both(function, argnums, args)

    return both


def grad(function: Callable[..., Value], argnums: Places = 0) -> Callable[..., Value]:
    """A function that gives the gradients alone: see :func:`value_and_grad`."""
    both = value_and_grad(function, argnums)

    @wraps(function)
    def gradients(*args: Value) -> Value:
        if not STACK.traces:
            return fn(gradients)(*args)
        return cast("tuple[Value, Value]", both(*args))[1]

    return gradients


def remat(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function, of which a gradient keeps nothing but the arguments: going back, it is computed
    once more. That is a third more time, and memory for one such function in the place of all.

    It is a loop of one turn, and goes back as loops do.
    """

    @wraps(function)
    def again(*args: Value) -> Value:
        if not STACK.traces:
            return function(*args)
        _, rows = scan(lambda state, _: (state, function(*args)), (), None, length=1)
        results = nested(rows)
        return results.build([each[0] for each in results.arrays])

    return again


def _both(function: Callable[..., Value], argnums: Places, args: Sequence[Value]) -> Value:
    """The result and the gradients, in the innermost trace."""
    trace, places = STACK.traces[-1], [argnums] if isinstance(argnums, int) else list(argnums)
    if not all(0 <= place < len(args) for place in places):
        raise TraceError(name_of(function), f"argnums below {len(args)}", argnums)
    known = [nested(args[place]) for place in places]
    fresh = [each.build([_float(a) for a in each.arrays]) for each in known]
    given = list(args)
    for place, value in zip(places, fresh, strict=True):
        given[place] = value
    variables = [nested(value).arrays for value in fresh]
    first = len(trace.nodes)
    result = function(*given)
    loss = _loss(name_of(function), result[0] if isinstance(result, tuple) else result)
    wanted = [each.name for group in variables for each in group]
    walk = Reverse(trace, trace.nodes[first:], wanted)
    walk.give(trace.own(loss), array(np.ones(loss.shape, loss.dtype)))
    walk.run()
    parts = [
        whole.build([walk.gradient(each) for each in group])
        for whole, group in zip(known, variables, strict=True)
    ]
    return result, parts[0] if isinstance(argnums, int) else tuple(parts)


def _float(given: Array) -> Array:
    """A tensor of its own for an argument: what the function captures stays a constant."""
    if given.dtype.kind != "f":
        raise TraceError("grad", "arguments of floats", typed(given.type))
    return variable(given)


def _loss(name: str, value: Value) -> Array:
    loss = array(value)
    if loss.size != 1 or loss.dtype.kind != "f":
        raise TraceError(name, "a loss of one float", typed(loss.type))
    return loss
