"""Runs of an image's pixels as images by themselves, and back: bytes stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Array, Recipe, Shape, TensorType
from vdla.compiler.graph.ops.views import ByAddresses, View
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class QRunsOfImage(ByAddresses):
    """Each run of ``run`` pixels of a block of ``lanes`` channels as an image.

    Of [N, C, 1, W] the result is [N * C / lanes * W / run, lanes, 1, run], in the order of bytes.
    """

    PLACED: ClassVar[str] = "runs of pixels by addresses on int8"

    data: str
    lanes: int
    run: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        n, channels, height, width = _image(self, shapes[0])
        if channels % self.lanes or height != 1 or width % self.run:
            expected = f"whole blocks of {self.lanes} and runs of {self.run}"
            raise self.error(expected, list(shapes[0]))
        return n * channels // self.lanes * width // self.run, self.lanes, 1, self.run

    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """The result, where the data is."""
        return {self.output: View(self.data)}

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        n, _, _, width = args[0].shape
        parts = args[0].reshape(n, -1, self.lanes, width // self.run, self.run)
        return np.ascontiguousarray(parts.transpose(0, 1, 3, 2, 4)).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data, (_, channels, _, width) = recipe.image(self.data), recipe.shape(self.data)
        blocks, runs = channels // self.lanes, width // self.run

        def value(i: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            block, run = te.floormod(te.floordiv(i, runs), blocks), te.floormod(i, runs)
            image = te.floordiv(i, runs * blocks)
            return data(image, block * self.lanes + c, te.const(0), run * self.run + x)

        return recipe.compute(value, "runs")


@dataclass(frozen=True, kw_only=True)
class QImageOfRuns(ByAddresses):
    """Inverse of :class:`QRunsOfImage`: an image [N, C, 1, W] of ``channels`` and ``pixels`` from
    runs of its pixels."""

    PLACED: ClassVar[str] = "image of runs by addresses on int8"

    data: str
    channels: int
    pixels: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        images, lanes, height, run = _image(self, shapes[0])
        size = self.channels * self.pixels
        if self.channels % lanes or height != 1 or self.pixels % run or images * lanes * run % size:
            expected = f"runs of images of {self.channels} channels and {self.pixels} pixels"
            raise self.error(expected, list(shapes[0]))
        return images * lanes * run // size, self.channels, 1, self.pixels

    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """The result, where the data is."""
        return {self.output: View(self.data)}

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        _, lanes, _, run = args[0].shape
        parts = args[0].reshape(-1, self.channels // lanes, self.pixels // run, lanes, run)
        return np.ascontiguousarray(parts.transpose(0, 1, 3, 2, 4)).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data, (_, lanes, _, run) = recipe.image(self.data), recipe.shape(self.data)
        blocks, runs = self.channels // lanes, self.pixels // run

        def value(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            row = n * blocks + te.floordiv(c, lanes)
            image = row * runs + te.floordiv(x, run)
            return data(image, te.floormod(c, lanes), te.const(0), te.floormod(x, run))

        return recipe.compute(value, "image")


def _image(node: ByAddresses, shape: Shape) -> Shape:
    """The shape of an image."""
    if len(shape) != 4:
        raise node.error("an image [N, C, 1, W]", list(shape))
    return shape
