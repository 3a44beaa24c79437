"""If, Loop, Scan, sequences, optional values and functions of random ONNX models.

Each function of CONTROL and LISTS adds nodes to a scope of ``random_loops.py``.
"""

from __future__ import annotations

import numpy as np
from onnx import helper, numpy_helper
from random_loops import COUNT, DTYPES, ELEMENTS, FLAG, Items, Kind, Optional, Scope

STATES = ((), (1,), (3,), (2, 3))  # shapes of what loops carry


def flag(scope: Scope) -> str:
    """A condition: given, computed, constant, or what follows from a shape; with one element."""
    program, way = scope.program, scope.program.count(0, 9)
    if way == 0:
        name = scope.numbers(program.chance(0.5), "bool")
    elif way == 1:
        x = scope.tensor(rank=1)
        sizes = scope.add("Shape", [x], Kind("int64", (len(scope.kind(x).shape),)))
        first = scope.add("Gather", [sizes, scope.numbers(0)], COUNT, axis=0)
        whole = scope.add("Cast", [first], Kind("float32", ()), to=1)
        name = scope.add("Greater", [whole, scope.numbers(2.5, "float32")], FLAG)
    elif way < 5:
        name = scope.of(FLAG)
    else:
        name = scope.compare()
    if program.chance(0.2):
        name = scope.add("Reshape", [name, scope.numbers([1])], Kind("bool", (1,)))
    return name


def choice(scope: Scope) -> None:
    """An If with branches of results alike, or of other shapes."""
    program, condition = scope.program, flag(scope)
    kinds = [Kind(program.pick(DTYPES), program.pick(STATES)) for _ in range(program.count(1, 3))]
    reuse, odd = program.chance(0.4), program.chance(0.15)
    first, graphs, most = program.names, [], 0
    for number in range(2):
        if reuse:
            most, program.names = program.names, first
        branch = Scope(program, scope)
        branch.steps(0, 3)
        wanted = list(kinds)
        if odd and number:
            wanted[0] = Kind(kinds[0].dtype, (*(kinds[0].shape or ()), 2))
        names = [branch.own(branch.of(kind)) for kind in wanted]
        names = [n if n not in names[:k] else branch.add("Identity", [n], branch.kind(n))
                 for k, n in enumerate(names)]  # fmt: skip
        graphs.append(branch.graph(names, program.chance(0.5)))
    program.names = max(program.names, most)
    if odd:
        kinds[0] = Kind(kinds[0].dtype, None)
    results = scope.add_all("If", [condition], kinds, then_branch=graphs[0], else_branch=graphs[1])
    if len(results) > 1 and program.chance(0.01):  # onnxruntime mostly wants all names
        forget(scope, results)


def forget(scope: Scope, names: list[str]) -> None:
    """Leaves the name of a result of the last node empty."""
    name = scope.program.pick(names)
    node = scope.nodes[-1]
    node.output[:] = ["" if n == name else n for n in node.output]
    del scope.values[name]


def trips(scope: Scope) -> tuple[str, int | None]:
    """A number of turns, and what it is where it is known; "" where there is none."""
    program, way = scope.program, scope.program.count(0, 9)
    if way < 4:
        value = program.count(0, 4)
        shape = (1,) if program.chance(0.2) else ()
        return scope.numbers(np.full(shape, value)), value
    if way < 5:
        return "", None
    if way < 8:
        top = scope
        while top.parent:
            top = top.parent
        counts = [n for n in program.inputs if top.values[n] == COUNT]
        return counts[0], None
    return (scope.within(scope.of(COUNT), 0, 3) if program.opset > 8 else scope.numbers(4)), None


def loop(scope: Scope) -> None:
    """A Loop with states that it passes on, swaps or computes, and rows."""
    program = scope.program
    number, turns = trips(scope)
    first = program.pick(("", "", "true", "given")) if number else "given"
    condition = flag(scope) if first == "given" else ""
    condition = scope.numbers(True, "bool") if first == "true" else condition
    kinds = [Kind(program.pick(DTYPES), program.pick(STATES)) for _ in range(program.count(1, 3))]
    if len(kinds) > 1 and program.chance(0.3):
        kinds[1] = kinds[0]
    states = [scope.of(kind) for kind in kinds]
    items, empty = None, program.opset > 12 and program.chance(0.2)
    if empty:
        items = scope.add("SequenceEmpty", [], Items((), Kind("float32", (3,))))
    body = Scope(program, scope)
    turn = body.takes(program.pick((COUNT, COUNT, Kind("int64", (1,)))), letter="i")
    again = body.takes(FLAG, letter="b")
    inner = [body.takes(kind, program.chance(0.6), "s") for kind in kinds]
    grown = body.takes(Items(None, Kind("float32", (3,))), letter="l") if items else ""
    if items:
        del body.values[grown]
    body.steps(1, 4)
    news = []
    for place, (name, kind) in enumerate(zip(inner, kinds, strict=True)):
        way = program.count(0, 9)
        swapped = [other for other, k in zip(inner, kinds, strict=True) if k == kind]
        if way == 0:
            new = name
        elif way < 3:
            new = swapped[(swapped.index(name) + 1) % len(swapped)]
        elif way < 8 and kind.dtype != "bool":
            new = body.small(body.add("Add", [name, body.of(kind)], kind))
        else:
            new = body.of(kind)
        news.append(new if new == inner[place] and program.chance(0.5) else body.own(new))
    rows = [body.own(body.tensor(*DTYPES)) for _ in range(program.pick((0, 0, 1, 1, 2)))]
    stop = 0 if program.chance(0.6) and number else 1
    last = turn
    if body.kind(turn).shape:
        last = body.add("Reshape", [turn, body.numbers(np.zeros(0))], COUNT)
    if stop:
        whole = body.add("Cast", [last], Kind("float32", ()), to=1)
        limit = body.numbers(program.count(0, 3) + 0.5, "float32")
        go = body.add("Less", [whole, limit], FLAG)
        if program.chance(0.3):
            go = body.add("And", [go, body.compare()], FLAG)
    elif program.chance(0.3):
        go = body.numbers(program.pick((True, True, [True])), "bool")
    else:
        go = body.add("Identity", [again], body.kind(again))
    names = [go]
    for name in (*news, *rows):
        again_ = name in names
        names.append(body.add("Identity", [name], body.kind(name)) if again_ else name)
    if items:
        new = body.own(body.of(Kind("float32", (3,))))
        kind = Items(None, Kind("float32", (3,)))
        names.insert(1 + len(kinds), body.add("SequenceInsert", [grown, new], kind))
    graph = body.graph(names, program.chance(0.5))
    known = turns is not None and not stop and first != "given"
    given = turns if known else None
    kinds += [Items(None, Kind("float32", (3,)))] if items else []
    ends = [(body.kind(n).dtype, body.kind(n).shape) for n in names[1 + len(kinds) :]]
    kinds += [Kind(dtype, (given, *shape)) for dtype, shape in ends]
    inputs = [number, condition, *states, *([items] if items else [])]
    results = scope.add_all("Loop", inputs, kinds, body=graph)
    if rows and program.chance(0.02):  # onnxruntime ends where a state has no name
        forget(scope, results[-len(rows) :])


def scan(scope: Scope) -> None:
    """A Scan with axes and directions; in opset 8 one of batches."""
    program = scope.program
    old = program.opset == 8
    turns, batch = program.count(1, 4), (2,) if old else ()
    kinds = [Kind("float32", program.pick(STATES)) for _ in range(program.count(0, 2))]
    shapes = [program.pick(STATES) for _ in range(program.count(1, 2))]
    axes = [0 if old else program.count(-1 - len(s), len(s)) for s in shapes]
    states = [scope.of(Kind(k.dtype, (*batch, *k.shape))) for k in kinds]
    given = []
    for shape, axis in zip(shapes, axes, strict=True):
        whole = list(shape)
        whole.insert(axis % (len(shape) + 1), turns)
        given.append(scope.of(Kind("float32", (*batch, *whole))))
    body = Scope(program, scope)
    inner = [body.takes(kind, program.chance(0.6), "s") for kind in kinds]
    rows = [body.takes(Kind("float32", s), program.chance(0.6), "e") for s in shapes]
    body.steps(1, 3)
    news = [body.small(body.add("Add", [n, body.of(k)], k))
            for n, k in zip(inner, kinds, strict=True)]  # fmt: skip
    ends = [body.small(body.add("Add", [rows[0], body.of(Kind("float32", shapes[0]))],
                                Kind("float32", shapes[0])))]  # fmt: skip
    if program.chance(0.4):
        ends.append(body.own(body.tensor()))
    if ends[-1] in news or len({*ends}) < len(ends):
        ends[-1] = body.add("Identity", [ends[-1]], body.kind(ends[-1]))
    kinds_of = [body.kind(n) for n in ends]
    outs = [0 if old else program.count(-1 - len(k.shape), len(k.shape)) for k in kinds_of]
    graph = body.graph([*news, *ends])  # onnxruntime wants the shapes
    more = {}
    directions = [program.count(0, 1) for _ in shapes], [program.count(0, 1) for _ in ends]
    if old:
        more = {"directions": directions[0]}
    elif program.chance(0.7):
        more = {"scan_input_axes": axes, "scan_output_axes": outs,
                "scan_input_directions": directions[0],
                "scan_output_directions": directions[1]}  # fmt: skip
    elif any(a % (len(s) + 1) for a, s in zip(axes, shapes, strict=True)):
        more, outs = {"scan_input_axes": axes}, [0] * len(ends)
    else:
        outs = [0] * len(ends)
    results = [Kind(k.dtype, (*batch, *k.shape)) for k in kinds]
    for kind, axis in zip(kinds_of, outs, strict=True):
        whole = list(kind.shape)
        whole.insert(axis % (len(whole) + 1), turns)
        results.append(Kind(kind.dtype, (*batch, *whole)))
    inputs = [*([""] if old else []), *states, *given]
    scope.add_all("Scan", inputs, results, body=graph, num_scan_inputs=len(given), **more)


def growing(scope: Scope) -> None:
    """A Loop of known turns whose state grows."""
    program, turns = scope.program, scope.program.count(1, 3)
    row = scope.of(Kind("float32", (1, 3)))
    start = scope.constant(np.zeros((program.pick((0, 1)), 3), np.float32))
    body = Scope(program, scope)
    body.takes(COUNT, letter="i")
    again = body.takes(FLAG, letter="b")
    state = body.takes(Kind("float32", (None, 3)), program.chance(0.5), "s")
    body.steps(0, 2)
    new = body.of(Kind("float32", (1, 3)))
    whole = body.add("Concat", [state, new], Kind("float32", (None, 3)), axis=0)
    go = body.add("Identity", [again], FLAG)
    rows = [body.add("Add", [new, row], Kind("float32", (1, 3)))] if program.chance(0.5) else []
    size = scope.kind(start).shape[0] + turns
    kinds = [Kind("float32", (size, 3)), *(Kind("float32", (turns, 1, 3)) for _ in rows)]
    inputs = [scope.numbers(turns), "", start]
    scope.add_all("Loop", inputs, kinds, body=body.graph([go, whole, *rows], False))


def windows(scope: Scope) -> None:
    """A Loop whose turns read windows [i:i + k] of a tensor, or its first rows."""
    program, turns, wide = scope.program, scope.program.count(1, 3), scope.program.count(1, 3)
    x = scope.constant(program.array(Kind("float32", (turns + wide, 3))))
    state = scope.of(Kind("float32", (3,)))
    body = Scope(program, scope)
    number = body.takes(COUNT, letter="i")
    again = body.takes(FLAG, letter="b")
    carried = body.takes(Kind("float32", (3,)), letter="s")
    behind = body.add("Add", [number, body.numbers(wide)], COUNT)
    ends = [body.add("Reshape", [n, body.numbers([1])], Kind("int64", (1,)))
            for n in (number, behind)]  # fmt: skip
    if program.chance(0.5):
        ends[0] = body.numbers([0])
    part = body.add("Slice", [x, *ends, body.numbers([0])], Kind("float32", (None, 3)))
    if program.opset < 13:
        total = body.add("ReduceSum", [part], Kind("float32", (3,)), axes=[0], keepdims=0)
    else:
        axis = body.numbers([0])
        total = body.add("ReduceSum", [part, axis], Kind("float32", (3,)), keepdims=0)
    new = body.small(body.add("Add", [carried, total], Kind("float32", (3,))))
    go = body.add("Identity", [again], FLAG)
    graph = body.graph([go, new, body.own(total)])
    known = program.chance(0.5)
    trip = scope.numbers(turns)
    if not known:
        limits = [trip, scope.of(COUNT)]
        trip = scope.add("Min", limits, COUNT) if program.opset > 11 else trip
    rows = Kind("float32", (turns if known else None, 3))
    scope.add_all("Loop", [trip, "", state], [Kind("float32", (3,)), rows], body=graph)


def function(scope: Scope) -> None:
    """A call of the model's own function, which has an If inside."""
    program = scope.program
    name = program.pick([*program.functions, ""])
    if not name:
        name = program.name("f")
        big = [helper.make_node("Tanh", ["x"], ["y"])]
        less = [helper.make_node("Neg", ["x"], ["z"]), helper.make_node("Abs", ["z"], ["y"])]
        ends = [helper.make_tensor_value_info("y", 1, None)]
        graphs = [helper.make_graph(nodes, "branch", [], ends) for nodes in (big, less)]
        odd = numpy_helper.from_array(np.float32(0.07))
        nodes = [
            helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
            helper.make_node("Constant", [], ["k"], value=odd),
            helper.make_node("Less", ["s", "k"], ["c"]),
            helper.make_node("If", ["c"], ["r"], then_branch=graphs[0], else_branch=graphs[1]),
        ]
        opsets = [helper.make_opsetid("", program.opset)]
        made = helper.make_function("local", name, ["x"], ["r"], nodes, opsets)
        program.functions[name] = made
    x = scope.tensor("float32")
    scope.add(name, [x], scope.kind(x), domain="local")


CONTROL = (choice, loop, scan, choice, loop, loop, growing, windows, function)

# Sequences and optional values ------------------------------------------------------------------


def known_list(scope: Scope, least: int = 0) -> str:
    """A sequence whose length is known, with some elements at least."""

    def fits(kind: object) -> bool:
        return isinstance(kind, Items) and kind.kinds is not None and len(kind.kinds) >= least

    return scope.any(fits) or construct(scope)


def construct(scope: Scope) -> str:
    """A sequence of tensors of one dtype."""
    x = scope.tensor("float32", "int64")
    kind, names = scope.kind(x), [x]
    for _ in range(scope.program.count(0, 2)):
        names.append(scope.of(kind) if scope.program.chance(0.7) else scope.tensor(kind.dtype))
    kinds = tuple(scope.kind(n) for n in names)
    return scope.add("SequenceConstruct", names, Items(kinds, kind))


def split(scope: Scope) -> None:
    x = scope.tensor("float32", rank=1)
    size, *rest = scope.kind(x).shape
    keeps, dtype = scope.program.count(0, 1), "float32"
    inputs, shapes = [x], [(1, *rest) if keeps else tuple(rest)] * size
    if scope.program.chance(0.4):
        each = scope.program.count(1, 2)
        inputs.append(scope.numbers(each))
        keeps = 1  # onnxruntime heeds it for some parts beside sizes, and ONNX for none
        shapes = [(min(each, size - n), *rest) for n in range(0, size, each)]
    kinds = tuple(Kind(dtype, shape) for shape in shapes)
    scope.add("SplitToSequence", inputs, Items(kinds, kinds[0]), axis=0, keepdims=keeps)


def insert(scope: Scope) -> None:
    x = known_list(scope)
    items = scope.kind(x)
    new = scope.of(items.each)
    place, inputs = len(items.kinds), [x, new]
    if scope.program.chance(0.5):
        place = scope.program.count(-place, place)
        inputs.append(scope.numbers(place))
        place += len(items.kinds) * (place < 0)
    kinds = (*items.kinds[:place], items.each, *items.kinds[place:])
    scope.add("SequenceInsert", inputs, Items(kinds, items.each))


def erase(scope: Scope) -> None:
    x = known_list(scope, 1)
    items = scope.kind(x)
    place, inputs = -1, [x]
    if scope.program.chance(0.5):
        place = scope.program.count(-len(items.kinds), len(items.kinds) - 1)
        inputs.append(scope.numbers(place))
    kinds = list(items.kinds)
    del kinds[place]
    scope.add("SequenceErase", inputs, Items(tuple(kinds), items.each))


def at(scope: Scope) -> None:
    """An element, sometimes at a place that a run says."""
    x = known_list(scope, 1)
    kinds = scope.kind(x).kinds
    if len({*kinds}) == 1 and scope.program.chance(0.3):
        place = scope.within(scope.of(COUNT), 0, len(kinds) - 1)
        scope.add("SequenceAt", [x, place], kinds[0])
        return
    place = scope.program.count(-len(kinds), len(kinds) - 1)
    scope.add("SequenceAt", [x, scope.numbers(place)], kinds[place])


def length(scope: Scope) -> None:
    x = scope.any(lambda kind: isinstance(kind, Items))
    if x is not None:
        scope.add("SequenceLength", [x], COUNT)


def joined(scope: Scope) -> None:
    """The elements of a list as one tensor, also of one that grew."""
    x = scope.any(lambda kind: isinstance(kind, Items))
    if x is None:
        return
    items = scope.kind(x)
    kinds, each = items.kinds or (items.each,), items.each
    if len({*kinds}) > 1 or not each.is_known or len(kinds) * np.prod(each.shape) > ELEMENTS:
        return
    count = None if items.kinds is None else len(kinds)
    if items.kinds == ():
        return
    if scope.program.chance(0.5) or not each.shape:
        kind = Kind(each.dtype, (count, *each.shape))
        scope.add("ConcatFromSequence", [x], kind, axis=0, new_axis=1)
        return
    size = None if count is None else count * each.shape[0]
    scope.add("ConcatFromSequence", [x], Kind(each.dtype, (size, *each.shape[1:])), axis=0)


def mapped(scope: Scope) -> None:
    """A SequenceMap, from opset 17."""
    if scope.program.opset < 17:
        return
    x = known_list(scope, 1)
    items = scope.kind(x)
    body = Scope(scope.program)
    formal = body.takes(Kind(items.each.dtype, None))
    new = body.add("Add", [formal, formal], Kind(items.each.dtype, None))
    scope.add("SequenceMap", [x], items, body=body.graph([new]))


def optional(scope: Scope) -> None:
    """An optional value that is there, and what reads it."""
    if scope.program.opset < 15:
        return
    x = scope.tensor("float32")
    kind = scope.kind(x)
    name = scope.add("Optional", [x], Optional(kind, True))
    scope.add("OptionalHasElement", [name], FLAG)
    scope.add("OptionalGetElement", [name], kind)


LISTS = (construct, split, insert, erase, at, length, joined, mapped, optional)
