"""Operators in the spelling that the accelerator's other rewrites know, in a file's floats.

Einsum         of two factors with one sum is a product of stacks of matrices
Where          with a mask that is constant is the least and the greatest of two
Add            of a constant that int8 has exactly, such as a mask, is a sum of integers; so are
               sums and products with a constant of each feature, within a step of the result
Dequantize     of a product's constant factor with a scale for each matrix has one for all
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import quantizing
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.numbers import quantize
from vdla.compiler.graph.types import TensorType

EXTREMES = {"int8": (-128, 127), "uint8": (0, 255)}  # the least and the greatest of each
FUNCTIONS = ("add", "sub", "mul")  # that have integers for a constant
EXACT = 2.0**-8  # steps of a result that a constant may be off, such as a mask
HALF = 0.5  # steps by which a constant of each feature may move a result, so that it is off by one


def respell(graph: Graph) -> Graph:
    """Replaces such operators.

    before: y = Einsum(a, b), bihd,bjhd->bhij
    after:  y = MatMul(Transpose(a), Transpose(b))
    before: y = Q(Where(mask, x, -1e4)), the mask constant
    after:  y = Q(min(x, DQ(most))), most -1e4 behind the mask and the largest integer before it
    """
    return rewrite(graph, as_product, _as_extremes, _as_integers, _with_one_scale)


def as_product(node: ops.Einsum, editor: Editor) -> Made:
    """The product of stacks of matrices that an Einsum is."""
    return [*_product(node, editor)] or None


def _as_extremes(node: ops.Where, editor: Editor) -> Made:
    return [*_extremes(node, editor)] or None


def _as_integers(node: ops.Add | ops.Binary, editor: Editor) -> Made:
    return [*_with_integers(node, editor)] or None


def _product(node: ops.Einsum, editor: Editor) -> Iterator[Node]:
    """The product that an Einsum is; nothing where it is more than one sum."""
    terms, right = node.terms
    if len(terms) != 2 or any(len({*term}) < len(term) for term in (*terms, right)):
        return
    a, b = ({*term} for term in terms)
    stack = [letter for letter in right if letter in a and letter in b]
    rows = [letter for letter in right if letter in a - b]
    columns = [letter for letter in right if letter in b - a]
    sums = [letter for letter in terms[0] if letter in b and letter not in right]
    if {len(rows), len(columns), len(sums)} != {1} or a | b != {*stack, *rows, *columns, *sums}:
        return
    wanted = [*stack, *rows, *sums], [*stack, *sums, *columns]
    names = []
    for number, (part, term, order) in enumerate(zip(node.parts, terms, wanted, strict=True)):
        perm = tuple(term.index(letter) for letter in order)
        name = _turned(f"{node.name}.part{number}", part, perm, editor)
        yield ops.Transpose(name=name, output=name, data=part, perm=perm)
        names.append(name)
    letters = [*stack, *rows, *columns]
    axes = [right.index(letter) for letter in letters]
    turned = _turned(f"{node.name}.product", node.output, axes, editor)
    if node.name in editor.reasons:
        editor.reasons[turned] = editor.reasons[node.name]
    yield ops.MatMul(name=turned, output=turned, a=names[0], b=names[1])
    perm = tuple(letters.index(letter) for letter in right)
    yield ops.Transpose(name=node.name, output=node.output, data=turned, perm=perm)


def _extremes(node: ops.Where, editor: Editor) -> Iterator[Node]:
    """The least and the greatest of two that a choice by a constant is; nothing where none of
    both is constant, or nothing quantizes the result."""
    known, end = editor.constants, quantizing(node, editor)
    if end is None or node.condition not in known:
        return
    mask, data, other = known[node.condition].astype(bool), node.a, node.b
    if data in known:
        mask, data, other = ~mask, other, data
    same = editor.shape(data) == editor.shape(node.output)
    if other not in known or data in known or not same:
        return
    dtype = editor.tensors[end.output].dtype
    low, high = EXTREMES[dtype]
    numbers = np.array(end.scale[0], np.float32), np.array(end.zero_point[0])
    value = quantize(np.broadcast_to(known[other], mask.shape), *numbers, dtype)
    steps = [("min", high)] if (value[~mask] == low).all() else [("min", high), ("max", low)]
    for number, (function, neutral) in enumerate(steps):
        name = f"{node.name}.{function}"
        limit = np.where(mask, neutral, value).astype(dtype)
        bound = editor.constant(f"{name}.bound", limit)
        real = editor.tensor(f"{name}.real", TensorType(limit.shape, "float32"))
        quant = end.scale, end.zero_point
        yield _dequantize(real, bound, quant)
        last = number == len(steps) - 1
        kind = editor.tensors[node.output]
        result = node.output if last else editor.tensor(f"{name}.result", kind)
        yield ops.Binary(name=name, output=result, a=data, b=real, function=function)
        if not last:
            bits = editor.tensor(f"{name}.bits", editor.tensors[end.output])
            yield replace(end, name=bits, output=bits, data=result)
            data = editor.tensor(f"{name}.again", kind)
            yield _dequantize(data, bits, quant)


def _with_integers(node: ops.Add | ops.Binary, editor: Editor) -> Iterator[Node]:
    """A sum or a product whose constant is made of integers; nothing where int8 is too coarse
    for it, or nothing quantizes the operands."""
    known = editor.constants
    data, name = (node.a, node.b) if node.b in known else (node.b, node.a)
    end, source = quantizing(node, editor), editor.maker(data, ops.Dequantize)
    if end is None or source is None or name not in known:
        return
    array, function = known[name].astype(np.float64), getattr(node, "function", "add")
    feature = array.size == array.shape[-1] if array.ndim else False
    if function not in FUNCTIONS or array.size < 2 or (function != "add" and not feature):
        return
    low, high = min(0.0, array.min()), max(0.0, array.max())
    step = np.array(max((high - low) / 255, 1e-30), np.float32)
    zero = np.rint(-128 - low / float(step))
    numbers = quantize(array.astype(np.float32), step, zero, "int8")
    error = np.abs((numbers - zero) * float(step) - array).max()
    if function == "mul":
        error *= _largest(source, editor)
    if not error <= (HALF if feature else EXACT) * end.scale[0]:
        return
    bits = editor.constant(f"{node.name}.constant", numbers)
    real = editor.tensor(f"{node.name}.constant.real", TensorType(array.shape, "float32"))
    yield _dequantize(real, bits, ((float(step),), (int(zero),)))
    yield node.renamed({name: real})


def _largest(node: ops.Dequantize, editor: Editor) -> float:
    """The largest number that a node can give; infinity where its integers are others."""
    ends = EXTREMES.get(editor.tensors[node.data].dtype, ())
    sizes = (abs(n - z) * s for n in ends for z, s in zip(node.zero_point, node.scale, strict=True))
    return max(sizes, default=float("inf"))


def _with_one_scale(node: ops.Dequantize, editor: Editor) -> Made:
    """A product's constant factor at the largest of its matrices' scales."""
    array, axis = editor.constants.get(node.data), node.axis
    if array is None or axis is None or axis >= array.ndim - 2 or any(node.zero_point):
        return None
    users = editor.readers(node.output)
    if array.dtype != np.int8 or not all(_in_integers(user, node, editor) for user in users):
        return None
    scale = max(node.scale)
    real = node.evaluate([array], editor.tensors[node.output])
    whole = quantize(real, np.array(scale, np.float32), np.array(0), "int8")
    data = editor.constant(f"{node.data}.whole", whole)
    return replace(node, data=data, scale=(scale,), zero_point=(0,), axis=None)


def _in_integers(user: Node, factor: ops.Dequantize, editor: Editor) -> bool:
    """Whether a node is a product of a factor and int8 that one scale quantizes."""
    if not isinstance(user, ops.MatMul) or quantizing(user, editor) is None:
        return False
    other = user.b if user.a == factor.output else user.a
    return editor.maker(other, ops.Dequantize) is not None


def _turned(hint: str, like: str, axes: Sequence[int], editor: Editor) -> str:
    """A new tensor with the axes of another one in some order."""
    return editor.like(hint, tuple(editor.shape(like)[axis] for axis in axes), like)


def _dequantize(
    name: str, data: str, quant: tuple[tuple[float, ...], tuple[int, ...]]
) -> ops.Dequantize:
    """The real numbers of integers, a tensor of the node's name."""
    scale, zero = quant
    return ops.Dequantize(name=name, output=name, data=data, scale=scale, zero_point=zero)
