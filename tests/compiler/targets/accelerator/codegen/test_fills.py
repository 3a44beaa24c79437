"""Padding that is still there isn't written again."""

from __future__ import annotations

from vdla.compiler.targets.accelerator.codegen.fills import repeated_fills
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.isa.instructions import Gemm, Load, Mem, Store


def fill(image, size=16, name="image"):
    written = Access("inp", image, ((size, 1),), True)
    return Op(Load(memory=Mem.INP), (written,), name)


def keep(start, size, name="image"):
    written = Access("inp", start, ((size, 1),), True)
    return Op(Store(memory=Mem.INP), (written, Access("acc", 0, ((size, 1),), False)), name)


GEMM = Op(Gemm(), (Access("inp", 0, ((16, 1),), False),), "sums")


def repeated(*ops):
    dropped = {id(op) for op in repeated_fills(ops)}
    return [id(op) in dropped for op in ops]


def test_the_same_image_again():
    ops = fill(0), keep(1, 14), GEMM, fill(0), keep(1, 14), GEMM, fill(0), keep(1, 14)
    assert repeated(*ops) == [False, False, False, True, False, False, True, False]


def test_copies_are_images_of_their_own():
    ops = fill(0), keep(1, 14), GEMM, fill(16), keep(17, 14), GEMM, fill(0), keep(1, 14)
    assert repeated(*ops) == [False] * 6 + [True, False]


def test_an_image_with_other_padding_is_filled():
    ops = fill(0), keep(1, 14), GEMM, fill(0), keep(3, 12), GEMM, fill(0), keep(3, 12)
    assert repeated(*ops) == [False] * 6 + [True, False]


def test_what_else_writes_there_takes_the_padding():
    load = Op(Load(memory=Mem.INP), (Access("inp", 15, ((4, 1),), True),), "data", tensor="x")
    ops = fill(0), keep(1, 14), GEMM, load, GEMM, fill(0), keep(1, 14)
    assert repeated(*ops) == [False] * 7
    beside = Op(Load(memory=Mem.INP), (Access("inp", 16, ((4, 1),), True),), "data", tensor="x")
    ops = fill(0), keep(1, 14), GEMM, beside, GEMM, fill(0), keep(1, 14)
    assert repeated(*ops) == [False] * 5 + [True, False]


def test_images_in_several_parts():
    """A stage may fill and store by phases: all of its STOREs count."""

    def parts(second):
        return fill(0, 8), keep(1, 6), fill(8, 8), keep(second, 6)

    again = repeated(*parts(9), GEMM, *parts(9))
    assert again == [False] * 5 + [True, False, True, False]
    assert repeated(*parts(9), GEMM, *parts(8)) == [False] * 9
