"""The runtime and the ways to boards compile without a warning: C11, and C99 what needs no more."""

import pytest
from c_boards import GCC, SOURCES, ZIG, compiled, program

from vdla.boards import find_board
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.packaging.forms import FORMS
from vdla.packaging.objects import Packaged
from vdla.runtime.c import generate

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
RUNTIME = ("text", "read", "check", "open", "core", "run", "threads", "runtime")
BOARDS = ("boards", "uio", "serial", "on_board")


@pytest.mark.parametrize("command", [GCC, ZIG], ids=["gcc", "zig cc"])
def test_no_compiler_warns(command, digits, tmp_path):
    """_Static_assert and _Alignas make the runtime C11; the ways to boards are C99."""
    for path, data in FORMS["static"].make(Packaged("digits", digits.module, NATIVE), "1").items():
        (tmp_path / path).write_bytes(data)
    for standard, names, folder in (("c11", RUNTIME, SOURCES), ("c99", BOARDS, tmp_path)):
        flags = (*WARNINGS, f"-std={standard}", "-I", tmp_path, "-c", "-o", tmp_path / "made.o")
        for name in names:
            assert compiled(command, *flags, folder / f"{name}.c") == ""


def test_no_compiler_warns_that_optimizes(digits, tmp_path):
    program(digits.module, tmp_path, flags=("-O2", "-std=c99", *WARNINGS))
    flags = (*WARNINGS, "-std=c11", "-O2", "-c", "-o", tmp_path / "made.o")
    assert compiled(GCC, *flags, SOURCES / "runtime.c") == ""


def test_cpp_takes_the_headers(tmp_path):
    source = tmp_path / "m.cpp"
    source.write_text('#include "boards.h"\nint main() { return VDLA_ULX3S_BYTES == 0; }\n')
    flags = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", SOURCES, "-I", SOURCES / "boards")
    assert compiled(("g++",), "-c", *flags, "-o", tmp_path / "m.o", source) == ""


def test_what_c_shares_with_python_is_current():
    for name, text in (
        ("numbers.h", generate.numbers_header()),
        ("boards/link.h", generate.link_header()),
    ):
        assert (SOURCES / name).read_text() == text, f"run: {generate.COMMAND}"


def test_the_memory_of_a_ulx3s():
    text = (SOURCES / "boards/boards.h").read_text()
    assert f"VDLA_ULX3S_BYTES = {find_board('ulx3s').memory_bytes >> 20} << 20" in text
