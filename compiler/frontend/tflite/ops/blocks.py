"""Blocks of an image's rows and columns as batches, and the reverse: dilated convolutions."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.operator import View, converts


def _pairs(view: View, index: int, axes: int) -> list[tuple[int, int]]:
    values = view.numbers(index, "pads or crops")
    if len(values) != 2 * axes or min(values, default=0) < 0:
        raise view.error(f"two numbers ≥ 0 for each of {axes} axes", values)
    return [*zip(values[::2], values[1::2], strict=True)]


def _blocks(view: View) -> list[int]:
    blocks = view.numbers(1, "sizes of blocks")
    if len(blocks) >= view.rank(0) or min(blocks, default=1) < 1:
        raise view.error(f"blocks ≥ 1 of fewer than {view.rank(0)} axes", blocks)
    return blocks


@converts("SPACE_TO_BATCH_ND")
def _to_batches(view: View) -> None:
    """[N, H, W, C] → [by * bx * N, H / by, W / bx, C], behind pads."""
    blocks = _blocks(view)
    count, shape = len(blocks), list(view.shape(0))
    pads = [(0, 0), *_pairs(view, 2, count), *[(0, 0)] * (len(shape) - count - 1)]
    data = view.real(0)
    if any(map(any, pads)):
        flat = [*(a for a, _ in pads), *(b for _, b in pads)]
        data = view.emit("Pad", [data, view.integers_of(flat)])
    sizes = [size + sum(pad) for size, pad in zip(shape, pads, strict=True)]
    if any(sizes[1 + i] % block for i, block in enumerate(blocks)):
        raise view.error(f"sizes that {blocks} divide", sizes)
    parts = [sizes[0]]
    for axis, block in enumerate(blocks):
        parts += [sizes[1 + axis] // block, block]
    rest = sizes[1 + count :]
    inner = [2 + 2 * axis for axis in range(count)]
    outer = [1 + 2 * axis for axis in range(count)]
    perm = [*inner, 0, *outer, *range(1 + 2 * count, 1 + 2 * count + len(rest))]
    data = view.emit("Reshape", [data, view.integers_of([*parts, *rest])])
    data = view.emit("Transpose", [data], perm=perm)
    view.put(
        view.emit("Reshape", [data, view.integers_of([-1, *(parts[i] for i in outer), *rest])])
    )


@converts("BATCH_TO_SPACE_ND")
def _from_batches(view: View) -> None:
    """[by * bx * N, H, W, C] → [N, H * by, W * bx, C], less crops."""
    blocks = _blocks(view)
    count, shape = len(blocks), list(view.shape(0))
    crops = _pairs(view, 2, count)
    batch = shape[0]
    for block in blocks:
        if batch % block:
            raise view.error(f"a multiple of {blocks} batches", shape[0])
        batch //= block
    rest = shape[1 + count :]
    data = view.emit("Reshape", [view.real(0), view.integers_of([*blocks, batch, *shape[1:]])])
    perm = [count]
    for axis in range(count):
        perm += [count + 1 + axis, axis]
    perm += range(2 * count + 1, 2 * count + 1 + len(rest))
    data = view.emit("Transpose", [data], perm=perm)
    sizes = [shape[1 + axis] * block for axis, block in enumerate(blocks)]
    data = view.emit("Reshape", [data, view.integers_of([batch, *sizes, *rest])])
    if any(map(any, crops)):
        ends = [size - behind for size, (_, behind) in zip(sizes, crops, strict=True)]
        bounds = ([before for before, _ in crops], ends, [*range(1, 1 + count)])
        data = view.emit("Slice", [data, *map(view.integers_of, bounds)])
    view.put(data)
