"""Instructions of a block-sparse convolution.

The data stay on chip. Weight tiles stream through WGT in the order in which they are used, and a
GEMM for each vector of output channels has a micro-op for each of its tiles, which says what it
reads: ``acc[row] = bias + Σ wgt[i] · inp[source(kept[i])]``. A GEMM ends where its LOAD's tiles do,
and the next one goes on from its sums. Loops can't say this, so there is no schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.operators.sparse.sizes import SparseSizes, SparseTile
from vdla.isa.config import Config
from vdla.isa.instructions import Gemm, Init, Load, Mem, Store


def kernel(shape: SparseSizes, tile: SparseTile, config: Config) -> Kernel:
    """All instructions of a layer, before tokens and addresses."""
    block, rows = config.block_out, len(shape.kept)
    dense = shape.dense
    data = dense.batch * dense.inputs * dense.height * dense.width * config.channel_block
    tensors = {
        "data": data,
        "weight": shape.count * config.entry("wgt"),
        "bias": rows * config.entry("acc"),
        "scale": rows * config.entry("acc"),
        "out": rows * shape.pixels * block,
    }
    return Kernel("sparse", tuple(_Instructions(shape, tile, config).all()), tensors, True)


@dataclass(frozen=True)
class _Rows:
    """Vectors of output channels ``first`` to ``last``, and where ACC has what belongs to them."""

    first: int
    last: int
    sums: int
    bias: int
    scale: int


class _Instructions:
    """Instructions of a layer in the order of the program."""

    def __init__(self, shape: SparseSizes, tile: SparseTile, config: Config) -> None:
        self.shape, self.tile, self.config = shape, tile, config
        self.begins = list(accumulate(map(len, shape.kept), initial=0))
        self.loaded = 0  # weight tiles

    def all(self) -> Iterator[Op]:
        """The data, then for each tile its biases and scales, its sums and its results."""
        yield self._load_data()
        step, size = self.tile.vectors, self.shape.pixels + 2
        for number, first in enumerate(range(0, len(self.shape.kept), step)):
            base = number % self.tile.vthreads * step * size
            last = min(first + step, len(self.shape.kept))
            sums = base + 2 * step
            rows = _Rows(first, last, sums, base, base + step)
            yield self._load_channels("bias", rows, rows.bias)
            yield self._load_channels("scale", rows, rows.scale)
            for begin, end in self.shape.portions(first, last):
                for row in range(begin, end):
                    yield from self._sum(row, rows)
                yield from self._store(rows, begin, end)

    def _load_data(self) -> Op:
        """The whole image, padded."""
        dense, parts = self.shape.dense, self.shape.parts(self.config)
        top, left, bottom, right = dense.pads
        planes = dense.batch * dense.inputs
        count = planes * dense.height * dense.width * parts
        if dense.padded:
            across = dense.width * parts
            sizes = {
                "z_size": planes, "z_stride": dense.height * across,
                "y_size": dense.height, "y_stride": across, "x_size": across,
                "pad_y0": top, "pad_y1": bottom, "pad_x0": left * parts, "pad_x1": right * parts,
                "pad_value": dense.in_zero,
            }  # fmt: skip
        else:
            sizes = {"z_size": 1, "y_size": 1, "x_size": count}
        written = Access("inp", 0, ((self.shape.inputs(self.config), 1),), True)
        size = count * self.config.entry("inp")
        read = Access("data", 0, ((size, 1),), False)
        load = Load(memory=Mem.INP, **sizes)
        return Op(load, (written, read), "data.inp", "data")

    def _load_channels(self, name: str, rows: _Rows, place: int) -> Op:
        """Biases or scales of some vectors of channels."""
        return self._load(Mem.ACC, name, (rows.first, rows.last), place)

    def _load_weights(self) -> Op:
        """The next weight tiles, into the copy of the buffer whose turn it is."""
        first, size = self.loaded, self.tile.weights
        self.loaded = min(first + size, self.shape.count)
        place = first // size % self.tile.vthreads * size
        return self._load(Mem.WGT, "weight", (first, self.loaded), place)

    def _load(self, memory: Mem, name: str, span: tuple[int, int], place: int) -> Op:
        """Entries of a constant one behind another."""
        first, last = span
        count, size = last - first, self.config.entry(memory.buffer)
        load = Load(
            memory=memory,
            sram_base=place,
            dram_base=first * size,
            x_size=count,
            y_size=1,
            z_size=1,
        )
        written = Access(memory.buffer, place, ((count, 1),), True)
        read = Access(name, first * size, ((count * size, 1),), False)
        return Op(load, (written, read), f"{name}.{memory.buffer}", name)

    def _sum(self, row: int, rows: _Rows) -> Iterator[Op]:
        """The sums of a vector of channels, in a GEMM for each LOAD that its weights are part of,
        behind those LOADs."""
        begin, end = self.begins[row : row + 2]
        at = begin
        while at < end:
            if at == self.loaded:
                yield self._load_weights()
            last = min(end, self.loaded)
            yield self._gemm(row, rows, at, last)
            at = last

    def _gemm(self, row: int, rows: _Rows, at: int, last: int) -> Op:
        """Weight tiles ``at`` to ``last`` of all, times what they read at every pixel."""
        shape, config, size = self.shape, self.config, self.tile.weights
        dense, begin = shape.dense, self.begins[row]
        tiles = shape.kept[row][at - begin : last - begin]
        uops = tuple((0, shape.source(tile, config), i) for i, tile in enumerate(tiles))
        first = (at == begin, *(False,) * (last - at - 1))
        down, across = dense.out_height, dense.out_width
        parts, (tall, wide), (sy, sx) = shape.parts(config), shape.padded, dense.strides
        dst = rows.sums + (row - rows.first) * shape.pixels
        bias = rows.bias + row - rows.first
        weights = at // size % self.tile.vthreads * size + at % size
        gemm = Gemm(
            init=Init.BIAS if first[0] else Init.ACC,
            uop_count=len(uops),
            extent_0=dense.batch, extent_1=down, extent_2=across,
            dst_base=dst, dst_0=down * across, dst_1=across, dst_2=1,
            src_0=dense.inputs * tall * wide * parts, src_1=sy * wide * parts, src_2=sx * parts,
            wgt_base=weights,
        )  # fmt: skip
        for i, count in enumerate(gemm.extents()):
            if count == 1:  # a step that is never taken may be more than its field holds
                gemm = gemm.replace(**{f"dst_{i}": 0, f"src_{i}": 0})
        accesses = [
            Access("acc", dst, ((shape.pixels, 1),), True),
            Access("inp", 0, ((shape.inputs(config), 1),), False),
            Access("wgt", weights, ((len(uops), 1),), False),
        ]
        if first[0]:
            gemm = gemm.replace(bias_base=bias)
            accesses.append(Access("acc", bias, (), False))
        return Op(gemm, tuple(accesses), "acc", uops=uops, first=first)

    def _store(self, rows: _Rows, first: int, last: int) -> Iterator[Op]:
        """The results of a portion: at once, or, where a block's parts lie between each other's
        pixels, vector by vector."""
        parts = self.config.channel_block // self.config.block_out
        if parts == 1 or self.shape.pixels == self.shape.dense.batch:
            yield self._store_rows(rows, first, last)
        else:
            for row in range(first, last):
                yield self._store_rows(rows, row, row + 1)

    def _store_rows(self, rows: _Rows, first: int, last: int) -> Op:
        """STORE of some vectors of channels: planes are these, rows the images."""
        dense, size = self.shape.dense, self.config.entry("acc8")
        parts = self.config.channel_block // self.config.block_out
        image, planes, images = self.shape.pixels // dense.batch, last - first, dense.batch
        block, part = divmod(first, parts)
        start = (block * image * parts + part) * size
        z_stride = image if parts == 1 else 1
        y_stride = len(self.shape.kept) * image
        at = rows.sums + (first - rows.first) * self.shape.pixels
        scale = rows.scale + first - rows.first
        store = Store(
            memory=Mem.ACC8, sram_base=at, dram_base=start, scale_base=scale,
            x_size=image, x_stride=parts if image > 1 else 1,
            y_size=images, y_pitch=image, y_stride=y_stride if images > 1 else 1,
            z_size=planes, z_pitch=self.shape.pixels, z_stride=z_stride if planes > 1 else 1,
            zero=dense.zero, low=dense.low, high=dense.high,
        )  # fmt: skip
        dims = ((planes, z_stride * size), (images, y_stride * size), (image, parts * size))
        accesses = (
            Access("out", start, (*dims, (size, 1)), True),
            Access("acc", at, ((planes * self.shape.pixels, 1),), False),
            Access("acc", scale, ((planes, 1),), False),
        )
        return Op(store, accesses, "out", "out")
