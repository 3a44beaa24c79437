"""The expression of attention.

Images lie in channel blocks, as rows of pixels by head and block. Between them, for each head ``n``
and block of queries ``w``

    scores[n, w, k, l]    int32   of each key, queries in lanes
    shares[n, w, k, l]    int8    their softmax, by way of DRAM
    moved[n, b, q, i]     int8    the same with keys in lanes: products with unit vectors
    mixed[n, e, q, l]     int32   what each query takes of the values

Keys are padded to whole blocks. Where softmax adds up they are left out, and what is computed of
them beyond that is multiplied by zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.attention.sizes import AttentionSizes
from vdla.compiler.targets.accelerator.operators.stages import Steps, softmax_stages
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.options.tables import TABLE_RESULTS

Shape = tuple[int, ...]


@dataclass(frozen=True)
class AttentionTensors:
    """The tensors of the expression.

    ``head_keys`` are the keys of a head in INP; ``value_tiles``, ``query_tiles`` and
    ``share_tiles`` are in WGT. The others are stages in ACC with their instructions, the last one
    first: ``of_keys`` and ``of_values`` are made once for each head, ``scored`` up to
    the shares, ``picked`` between these and ``moved``, ``mixed`` before the result.
    """

    images: list[Tensor]
    constants: dict[str, Tensor]
    head_keys: Tensor
    of_keys: Steps
    value_tiles: Tensor
    of_values: Steps
    query_tiles: Tensor
    scored: Steps
    shares: Tensor
    share_tiles: Tensor
    picked: Steps
    moved: Tensor
    mixed: Steps
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [*self.images, *self.constants.values()]


def expression(shape: AttentionSizes, config: Config) -> AttentionTensors:
    """The expression of attention."""
    lanes = config.channel_block
    parts = _Parts(shape, lanes, intrinsics(config))
    channels, blocks, _, _ = shape.blocks(lanes)
    keys = _image("keys", shape.heads * channels, shape.keys, lanes)
    queries = _image("queries", shape.heads * channels, shape.queries, lanes)
    values = _image("values", shape.heads * blocks, shape.values, lanes)
    head_keys = te.compute(
        (shape.heads, shape.key_rows(lanes), lanes),
        lambda n, r, i: keys[n * channels * shape.keys + r, i],
        "head_keys",
    )
    query_tiles = _tiles("query_tiles", queries, (shape.heads, channels, shape.queries))
    value_tiles = _tiles("value_tiles", values, (shape.heads, blocks, shape.values))
    parts.score(head_keys, query_tiles)
    shares = parts.share()
    share_tiles, moved = parts.move(shares)
    out = parts.mix(moved, value_tiles)
    return AttentionTensors(
        [keys, queries, values], parts.constants, head_keys, parts.of_keys[::-1], value_tiles,
        parts.of_values[::-1], query_tiles, parts.scored[::-1], shares, share_tiles, parts.picked,
        moved, parts.mixed[::-1], out,
    )  # fmt: skip


def _image(name: str, blocks: int, pixels: int, lanes: int) -> Tensor:
    """Rows of pixels by block; the last tile of each ends behind its rows."""
    return te.placeholder((blocks * pixels + -pixels % lanes, lanes), "int8", name)


def _tiles(name: str, image: Tensor, size: tuple[int, int, int]) -> Tensor:
    """Blocks of the pixels of an image, of heads, blocks and pixels, as tiles of weights."""
    (heads, blocks, pixels), lanes = size, image.shape[-1]
    return te.compute(
        (heads, blocks, -(-pixels // lanes), lanes, lanes),
        lambda n, c, w, l, i: image[(n * blocks + c) * pixels + w * lanes + l, i],
        name,
    )


Row = Callable[[Expr, Expr], Expr]  # an int8 element by its block and lane


def _dot(a: Row, b: Row, size: tuple[int, int], start: Expr | None = None) -> Expr:
    """The sum of products over so many blocks of so many lanes."""
    c, i = te.reduce_axis((0, size[0]), "c"), te.reduce_axis((0, size[1]), "i")
    product = a(c, i).astype("int32") * b(c, i).astype("int32")
    return te.sum(product, axis=[c, i], init=te.const(0) if start is None else start)


class _Stages(Steps):
    """Stages in their order."""

    def step(
        self, name: str, intrin: TensorIntrin, shape: Shape, value: Callable[..., Expr]
    ) -> Tensor:
        """One more."""
        tensor = te.compute(shape, value, name)
        self.append((tensor, intrin))
        return tensor

    def scaled(self, name: str, ins: Intrinsics, sums: Tensor, factor: int) -> Tensor:
        """One more: so many times some sums."""
        times = te.const(factor)
        return self.step(name, ins.alu_mul_imm, sums.shape, lambda *at: sums[at] * times)

    def added(self, name: str, ins: Intrinsics, sums: Tensor, term: Callable[..., Expr]) -> Tensor:
        """One more: sums, and a term at each of their places."""
        return self.step(name, ins.alu_add, sums.shape, lambda *at: sums[at] + term(*at))


class _Parts:
    """Builds the stages in ACC, part by part, in their order.

    Sums of products stand before what the ALU does with them, so that GEMM doesn't wait for it.
    """

    def __init__(self, shape: AttentionSizes, lanes: int, ins: Intrinsics) -> None:
        self.shape, self.lanes, self.ins = shape, lanes, ins
        self.channels, self.blocks, self.groups, self.outs = shape.blocks(lanes)
        self.rows = self.blocks * lanes
        self.of_keys, self.of_values = _Stages(), _Stages()
        self.scored, self.picked, self.mixed = _Stages(), _Stages(), _Stages()
        self.constants = {
            "table": te.placeholder((TABLE_RESULTS,), "int16", "table"),
            "units": te.placeholder((lanes, lanes), "int8", "units"),
            "known": te.placeholder((self.blocks, lanes), "int32", "known"),
            "scale": te.placeholder((1, lanes), "int32", "scale"),
            "out_scale": te.placeholder((1, lanes), "int32", "out_scale"),
        }
        if shape.query_zero or shape.value_zero:
            self.constants["ones"] = te.placeholder((1, lanes, lanes), "int8", "ones")
        if shape.key_zero or shape.share_zero:
            self.constants["one"] = te.placeholder((1, lanes), "int8", "one")

    def score(self, head_keys: Tensor, query_tiles: Tensor) -> None:
        """int8 scores, in ACC: products less what zero points add to them."""
        s, ins, size = self.shape, self.ins, (self.channels, self.lanes)
        rows = self._key_rows(head_keys) if s.query_zero else None
        sums = self._query_sums(query_tiles) if s.key_zero else None

        def total(n: Expr, w: Expr, k: Expr, l: Expr) -> Expr:
            start = None if rows is None else rows[n, k, l]
            return _dot(
                lambda c, i: head_keys[n, c * s.keys + k, i],
                lambda c, i: query_tiles[n, c, w, l, i],
                size,
                start,
            )

        gemm = ins.gemm_zero if rows is None else ins.gemm
        result = self.scored.step("scores", gemm, self._of_step(self.rows), total)
        if sums is not None:
            columns = self.scored.scaled("columns", ins, sums, -s.key_zero)
            if s.query_zero:
                constant = te.const(s.channels * s.key_zero * s.query_zero)
                scaled = columns
                columns = self.scored.step(
                    "terms", ins.alu_add_imm, scaled.shape, lambda *at: scaled[at] + constant
                )
            result = self.scored.added("centred", ins, result, lambda n, w, k, l: columns[n, w, l])
        scale, scores = self.constants["scale"], result
        self.scored.step(
            "narrow", ins.alu_rq, scores.shape,
            lambda *at: te.requantize(scores[at], scale[0, at[-1]], *s.scored),
        )  # fmt: skip

    def _of_step(self, *sizes: int) -> Shape:
        """The shape of a stage that is made for each block of queries, queries in lanes."""
        return self.shape.heads, self.groups, *sizes, self.lanes

    def _key_rows(self, head_keys: Tensor) -> Tensor:
        """Terms that the queries' zero point adds to the scores of each key."""
        s, ones = self.shape, self.constants["ones"]
        sums = self.of_keys.step(
            "key_sums", self.ins.gemm_zero, (s.heads, self.rows, self.lanes),
            lambda n, k, l: _dot(
                lambda c, i: head_keys[n, c * s.keys + k, i], lambda c, i: ones[0, l, i],
                (self.channels, self.lanes),
            ),
        )  # fmt: skip
        return self.of_keys.scaled("rows", self.ins, sums, -s.query_zero)

    def _query_sums(self, query_tiles: Tensor) -> Tensor:
        """The sum of each query's channels."""
        one, size = self.constants["one"], (self.channels, self.lanes)
        return self.scored.step(
            "query_sums", self.ins.gemm_zero, self._of_step(),
            lambda n, w, l: _dot(
                lambda c, i: one[0, i], lambda c, i: query_tiles[n, c, w, l, i], size
            ),
        )  # fmt: skip

    def share(self) -> Tensor:
        """The softmax of the scores."""
        s, scores, table = self.shape, self.scored[-1][0], self.constants["table"]
        softmax = softmax_stages(scores, 2, s.keys, table, (s.factor, s.shift), self.ins)
        self.scored += softmax.steps
        powers, word = softmax.powers, softmax.word

        def share(n: Expr, w: Expr, k: Expr, l: Expr) -> Expr:
            return te.requantize(powers[n, w, k, l], word[n, w, l], *s.shared).astype("int8")

        return te.compute(scores.shape, share, "shares")

    def move(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """Shares as tiles of weights, and with keys in lanes: zeros where there is no key."""
        lanes, units, known = self.lanes, self.constants["units"], self.constants["known"]
        tiles = te.compute(
            (self.shape.heads, self.groups, self.blocks, lanes, lanes),
            lambda n, w, b, l, i: shares[n, w, b * lanes + l, i],
            "share_tiles",
        )
        i = te.reduce_axis((0, lanes), "i")

        def picked(n: Expr, b: Expr, q: Expr, l: Expr) -> Expr:
            unit = units[te.floormod(q, lanes), i].astype("int32")
            return te.sum(unit * tiles[n, te.floordiv(q, lanes), b, l, i].astype("int32"), axis=i)

        size = self.shape.heads, self.blocks, self.groups * lanes, lanes
        picks = self.picked.step("picks", self.ins.gemm_zero, size, picked)
        moved = te.compute(
            size,
            lambda n, b, q, l: te.requantize(picks[n, b, q, l], known[b, l], 0, -128, 127).astype(
                "int8"
            ),
            "moved",
        )
        return tiles, moved

    def mix(self, moved: Tensor, value_tiles: Tensor) -> Tensor:
        """The result: products of shares and values less what zero points add to them."""
        s, ins, size = self.shape, self.ins, (self.blocks, self.lanes)
        columns = self._value_columns(value_tiles) if s.share_zero else None
        sums = self._share_sums(moved) if s.value_zero else None

        def total(n: Expr, e: Expr, q: Expr, l: Expr) -> Expr:
            start = None if columns is None else columns[n, e, l]
            return _dot(
                lambda b, i: moved[n, b, q, i], lambda b, i: value_tiles[n, b, e, l, i], size, start
            )

        padded = s.heads, self.outs, self.groups * self.lanes, self.lanes
        gemm = ins.gemm_zero if columns is None else ins.gemm
        result = self.mixed.step("products", gemm, padded, total)
        if sums is not None:
            rows = self.mixed.scaled("share_rows", ins, sums, -s.value_zero)
            result = self.mixed.added("mixed", ins, result, lambda n, e, q, l: rows[n, q, l])
        scale, last = self.constants["out_scale"], result
        return te.compute(
            (s.heads, self.outs, s.queries, self.lanes),
            lambda *at: te.requantize(last[at], scale[0, at[-1]], *s.mixed).astype("int8"),
            "out",
        )

    def _value_columns(self, value_tiles: Tensor) -> Tensor:
        """Terms that the shares' zero point adds to each value, and that both zero points add."""
        s, one, size = self.shape, self.constants["one"], (self.blocks, self.lanes)
        sums = self.of_values.step(
            "value_sums", self.ins.gemm_zero, (s.heads, self.outs, self.lanes),
            lambda n, e, l: _dot(
                lambda b, i: one[0, i], lambda b, i: value_tiles[n, b, e, l, i], size
            ),
        )  # fmt: skip
        scaled = self.of_values.scaled("value_columns", self.ins, sums, -s.share_zero)
        if not s.value_zero:
            return scaled
        constant = te.const(s.keys * s.share_zero * s.value_zero)
        return self.of_values.step(
            "value_terms", self.ins.alu_add_imm, scaled.shape, lambda *at: scaled[at] + constant
        )

    def _share_sums(self, moved: Tensor) -> Tensor:
        """The sum of each query's shares."""
        ones, size = self.constants["ones"], (self.blocks, self.lanes)
        return self.mixed.step(
            "share_sums", self.ins.gemm_zero,
            (self.shape.heads, self.groups * self.lanes, self.lanes),
            lambda n, q, l: _dot(lambda b, i: moved[n, b, q, i], lambda b, i: ones[0, l, i], size),
        )  # fmt: skip
