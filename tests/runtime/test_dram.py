"""The DRAM image: its size, its alignment, and where programs go in it."""

from __future__ import annotations

import pytest

from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Gemm
from vdla.isa.program import Program
from vdla.runtime.dram import aligned_bytes, host_image, place, whole_pages
from vdla.runtime.errors import DeviceError

TINY = load_config("tiny")


@pytest.mark.parametrize(("size", "pages"), [(0, 0), (1, 1), (4096, 1), (4097, 2), (9000, 3)])
def test_sizes_are_rounded_up_to_pages(size, pages):
    assert whole_pages(size) == 4096 * pages


@pytest.mark.parametrize(("options", "align"), [({}, 64), ({"align": 4096}, 4096)])
def test_an_image_begins_at_a_multiple(options, align):
    for size in (1, 63, 64, 1000):
        image = aligned_bytes(size, **options)
        assert image.ctypes.data % align == 0
        assert (image.size, image.any()) == (size, False)


def test_constants_come_first():
    assert host_image(6, b"abc").tobytes() == b"abc\0\0\0"


def test_a_program_may_end_where_the_image_does():
    program = Program(TINY, [Gemm(uop_count=1), Finish()], base=4096 - 64)
    dram = aligned_bytes(4096)
    dram[:] = 1
    assert place("sim", program.to_bytes(), TINY, dram) == program
    assert dram[-64:].tobytes() == program.stream()
    assert (dram[:-64] == 1).all()
    with pytest.raises(DeviceError, match=r"^device sim: .* byte 4095 of DRAM, .* ends at 4096$"):
        place("sim", program.to_bytes(), TINY, dram[:-1])
