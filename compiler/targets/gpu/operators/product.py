"""Products of matrices in tiles: a group of threads has a tile, each thread a part of it.

    for tile of rows blockIdx.y: for tile of columns blockIdx.x:
        for ty threadIdx.y: for tx threadIdx.x:
            sums = 0                                          in registers
            for ko:
                the group loads rows × depth of the left factor, and depth × columns of the right
                one, into shared memory
                for ki: for y: for x: sums[y, x] += left[ty, y, ki] * right[ki, tx, x]
            result = what is computed of sums

Each element is then loaded from global memory once for a tile, and not once for every sum. What
lies outside of the matrices counts as 0, so that the sums have no conditions; only what is stored
has. A convolution is such a product: its right factor, [I * KH * KW, N * OH * OW], is never stored
but made tile by tile as its elements are loaded (an implicit GEMM; Chetlur et al., "cuDNN", 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.conv2d import AnyConv2d, Conv2d, QConv2d
from vdla.compiler.graph.ops.dense import AnyDense, Dense, QDense
from vdla.compiler.graph.ops.elementwise import wide
from vdla.compiler.graph.ops.matmul import MatMul, spread
from vdla.compiler.graph.ops.products import bias_of
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.template import ScheduledTemplate
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.support.numbers import ceil_div

Element = Callable[..., Expr]  # of a matrix in a stack, at […, row, column]

SIDE = 16  # threads of a group along rows, and along columns where there are as many rows
GROUP = 256  # threads of a group
REGISTERS = 4  # rows, and columns, of a thread's part
DEPTH = 16  # steps of a sum for which a tile's factors lie in shared memory


@dataclass(frozen=True)
class Tile:
    """Sizes by which a product is divided.

    Attributes:
        threads: of a group, along rows and along columns.
        part: rows and columns of a thread's part.
        depth: steps of a sum for which the factors lie in shared memory.
        ahead: whether the next step's factors are loaded while this one's are multiplied.
    """

    threads: tuple[int, int]
    part: tuple[int, int]
    depth: int
    ahead: bool = False

    @property
    def rows(self) -> int:
        """Rows of a group's tile."""
        return self.threads[0] * self.part[0]

    @property
    def columns(self) -> int:
        """Columns of a group's tile."""
        return self.threads[1] * self.part[1]

    @classmethod
    def of(cls, rows: int, columns: int, steps: int) -> Tile:
        """A tile for matrices of such sizes."""
        high = min(SIDE, _power(rows))
        wide_ = min(GROUP // high, _power(columns))
        part = (
            _power(ceil_div(rows, high), REGISTERS),
            _power(ceil_div(columns, wide_), REGISTERS),
        )
        if wide_ > SIDE:
            part = (part[0], 1)
        return cls((high, wide_), part, _power(steps, DEPTH))


def _power(size: int, most: int = 1 << 30) -> int:
    """The least power of two from ``size`` on, or ``most``."""
    return min(most, 1 << (size - 1).bit_length())


@dataclass(frozen=True)
class Product:
    """The stages of a product: ``left`` […, M, K], ``right`` […, K, N], ``sums`` […, M, N], each
    size rounded up to whole tiles."""

    left: Tensor
    right: Tensor
    sums: Tensor
    tile: Tile

    def schedule(
        self, s: Schedule, result: Tensor, rows: Sequence[Var], columns: Sequence[Var]
    ) -> None:
        """Schedules a function that computes ``result`` of the sums.

        ``rows`` and ``columns`` are the result's axes along which the product's run; the others are
        its stack.
        """
        out, sums, tile = s[result], s[self.sums], self.tile
        columns = [axis for axis in columns if out.extent(axis) > 1] or columns[-1:]
        stack = [axis for axis in out.axis if axis not in (*rows, *columns)]
        out.reorder(*stack, *rows, *columns)
        y = out.fuse(*rows) if len(rows) > 1 else rows[0]
        x = out.fuse(*columns) if len(columns) > 1 else columns[0]
        ty, y = out.split(y, factor=min(tile.part[0], out.extent(y)))
        tx, x = out.split(x, factor=min(tile.part[1], out.extent(x)))
        by, ty = out.split(ty, factor=min(tile.threads[0], out.extent(ty)))
        bx, tx = out.split(tx, factor=min(tile.threads[1], out.extent(tx)))
        out.reorder(*stack, by, bx, ty, tx, y, x)
        high, wide_ = out.extent(ty), out.extent(tx)
        if stack:
            bz = out.fuse(*stack) if len(stack) > 1 else stack[0]
            out.bind(bz, te.thread_axis("blockIdx.z"))
        for loop, tag in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"),
                          (tx, "threadIdx.x")):  # fmt: skip
            out.bind(loop, te.thread_axis(tag))
        sums.set_scope("local")
        sums.compute_at(out, tx)
        (k,) = sums.reduce_axis
        ko, ki = sums.split(k, factor=tile.depth)
        *_, y, x = sums.axis
        sums.reorder(ko, ki, y, x)
        sums.unroll(y)
        sums.unroll(x)
        for factor in (self.left, self.right):
            self._load(s, factor, ko, (high, wide_))

    def _load(self, s: Schedule, factor: Tensor, ko: Var, threads: tuple[int, int]) -> None:
        """A factor's part for some steps of the sums, loaded by all threads of a group."""
        stage = s[factor]
        stage.set_scope("shared")
        stage.compute_at(s[self.sums], ko)
        if self.tile.ahead:
            stage.double_buffer()
        high, wide_ = threads
        fused = stage.fuse(*stage.axis)
        fused, tx = stage.split(fused, factor=min(wide_, stage.extent(fused)))
        _, ty = stage.split(fused, factor=min(high, stage.extent(fused)))
        stage.bind(ty, te.thread_axis("threadIdx.y"))
        stage.bind(tx, te.thread_axis("threadIdx.x"))


def product(
    sizes: tuple[int, ...],
    left: Element,
    right: Element,
    dtype: str,
    start: Element,
    tile: Tile | None = None,
) -> Product:
    """The stages of a product.

    Args:
        sizes: of the stack, then M, N and K.
        left: the left factor's element at […, m, k].
        right: the right factor's at […, k, n].
        dtype: of the sums.
        start: what the sum at […, m, n] begins with.
        tile: how it is divided; by its sizes without.
    """
    *stack, m, n, k = sizes
    tile = tile or Tile.of(m, n, k)
    rows, columns, depth = (
        ceil_div(size, of) * of for size, of in ((m, tile.rows), (n, tile.columns), (k, tile.depth))
    )

    def padded(element: Element, high: int, wide_: int) -> Element:
        """An element of a matrix that ends at such a row and column."""

        def value(*i: Expr) -> Expr:
            result = element(*i)
            here = te.all(inside(i[-2], high), inside(i[-1], wide_))
            return te.select(here, result, te.const(0, result.dtype))

        return value

    a = te.compute((*stack, rows, depth), padded(left, m, k), "left")
    b = te.compute((*stack, depth, columns), padded(right, k, n), "right")
    step = te.reduce_axis((0, depth), "k")

    def total(*i: Expr) -> Expr:
        factor = a[(*i[:-1], step)].astype(dtype) * b[(*i[:-2], step, i[-1])].astype(dtype)
        return te.sum(factor, axis=step, init=start(*i))

    return Product(a, b, te.compute((*stack, rows, columns), total, "sums"), tile)


# The templates ----------------------------------------------------------------------------------


class _Template:
    """Base of the templates of products."""

    product: Product

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """Both factors."""
        return (self.product.left, self.product.right)


@dataclass(frozen=True)
class MatrixProduct(_Template, ScheduledTemplate[MatMul, Gpu]):
    """[…, M, N]: Σ_k a[…, m, k] * b[…, k, n]; stacks of matrices are broadcast."""

    NODES: ClassVar[tuple[type[Node], ...]] = (MatMul,)

    product: Product
    result: Tensor

    @classmethod
    def refusal(cls, node: MatMul, graph: Graph, machine: Gpu) -> str | None:
        """Both have to be matrices."""
        ranks = [len(graph.tensors[name].shape) for name in (node.a, node.b)]
        return None if min(ranks) > 1 else "one of them is a vector"

    @classmethod
    def of(cls, node: MatMul, recipe: Recipe, machine: Gpu) -> MatrixProduct:
        """The sums, in float32 where the factors are of float16."""
        a, b = recipe.read(node.a), recipe.read(node.b)
        *stack, m, n = recipe.out_shape

        def left(*i: Expr) -> Expr:
            return wide(a[(*spread(a.shape[:-2], i[:-2]), *i[-2:])])

        def right(*i: Expr) -> Expr:
            return wide(b[(*spread(b.shape[:-2], i[:-2]), *i[-2:])])

        zeros = (te.const(0, "int32"),) * len(recipe.out_shape)
        dtype = left(*zeros).dtype
        sizes = (*stack, m, n, a.shape[-1])
        made = product(sizes, left, right, dtype, lambda *i: te.const(0, dtype))
        kind = recipe.out_dtype
        result = te.compute(recipe.out_shape, lambda *i: made.sums[i].astype(kind), "out")
        return cls(made, result)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """A stack of products."""
        *_, y, x = s[result].axis
        self.product.schedule(s, result, [y], [x])


@dataclass(frozen=True)
class DenseProduct(_Template, ScheduledTemplate[AnyDense, Gpu]):
    """[N, O]: bias[o] + Σ_i data[n, i] * weight[o, i]."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Dense, QDense)

    product: Product
    result: Tensor

    @classmethod
    def of(cls, node: AnyDense, recipe: Recipe, machine: Gpu) -> DenseProduct:
        """The sums, and of integers their requantization."""
        n, i = recipe.shape(node.data)[:2]
        data, weight = recipe.read(node.data, (n, i)), recipe.read(node.weight)
        sizes = (n, weight.shape[0], i)
        if isinstance(node, QDense):
            zero, start = node.zeros[0], bias_of(recipe, node.bias, "int32")

            def centered(b: Expr, k: Expr) -> Expr:
                return (data[b, k].astype("int32") - zero).astype("int16")

            bias = _within(start, weight.shape[0], -1)
            made = product(sizes, centered, lambda k, o: weight[o, k], "int32", bias)
            narrow = node.narrowing(recipe)

            def value(b: Expr, c: Expr) -> Expr:
                return narrow(made.sums[b, c], c)

            return cls(made, te.compute(recipe.out_shape, value, "out"))
        assert isinstance(node, Dense)
        bias = _within(bias_of(recipe, node.bias, "float32"), weight.shape[0], -1)
        made = product(sizes, lambda b, k: data[b, k], lambda k, o: weight[o, k], "float32", bias)
        return cls(made, te.compute(recipe.out_shape, lambda b, c: made.sums[b, c], "out"))

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """One product."""
        y, x, *_ = s[result].axis
        self.product.schedule(s, result, [y], [x])


@dataclass(frozen=True)
class Convolution(_Template, ScheduledTemplate[AnyConv2d, Gpu]):
    """[N, O, OH, OW]: weights [O, I * KH * KW] times what they meet [I * KH * KW, N * OH * OW]."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Conv2d, QConv2d)

    product: Product
    result: Tensor

    @classmethod
    def refusal(cls, node: AnyConv2d, graph: Graph, machine: Gpu) -> str | None:
        """Groups of channels would be products of their own, too small for a tile."""
        return None if node.groups == 1 else f"it has {node.groups} groups of channels"

    @classmethod
    def of(cls, node: AnyConv2d, recipe: Recipe, machine: Gpu) -> Convolution:
        """The sums, and of integers their requantization."""
        kind = "int32" if isinstance(node, QConv2d) else "float32"
        zero = node.zeros[0] if isinstance(node, QConv2d) else 0
        weight, data = recipe.read(node.weight), recipe.read(node.data)
        n, o, oh, ow = recipe.shape(node.output)
        _, i, kh, kw = weight.shape
        _, _, h, w = data.shape
        (sh, sw), (dh, dw), (top, left, *_) = node.strides, node.dilations, node.pads

        def weights(c: Expr, k: Expr) -> Expr:
            return weight[c, k // (kh * kw), k // kw % kh, k % kw]

        def seen(k: Expr, j: Expr) -> Expr:
            y = j // ow % oh * sh + k // kw % kh * dh - top
            x = j % ow * sw + k % kw * dw - left
            element: Expr = data[j // (oh * ow), k // (kh * kw), y, x]
            if kind == "int32":
                element = (element.astype("int32") - zero).astype("int16")
            if not any(node.pads):
                return element
            here = te.all(inside(y, h), inside(x, w))
            return te.select(here, element, te.const(0, element.dtype))

        bias = bias_of(recipe, node.bias, kind)
        start = _within(bias, o, -2)
        made = product((o, n * oh * ow, i * kh * kw), weights, seen, kind, start)

        def total(b: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            return made.sums[c, (b * oh + y) * ow + x]

        if not isinstance(node, QConv2d):
            return cls(made, te.compute(recipe.out_shape, total, "out"))
        narrow = node.narrowing(recipe)
        return cls(made, node.finished(recipe, lambda *i: narrow(total(*i), i[1])))

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """One product."""
        n, o, y, x = s[result].axis
        self.product.schedule(s, result, [o], [n, y, x])


def _within(bias: Callable[[Expr], Expr], size: int, axis: int) -> Element:
    """Element that sums begin with, by their index along an axis; 0 beyond the bias."""

    def start(*i: Expr) -> Expr:
        value = bias(i[axis])
        return te.select(inside(i[axis], size), value, te.const(0, value.dtype))

    return start
