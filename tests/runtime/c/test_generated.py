"""What is generated from runtime/c's sources is what they give, and names no processor."""

from __future__ import annotations

import re
from hashlib import sha256

import llvmlite.binding as llvm
import pytest

from vdla.packaging.files import RUNTIME_SYMBOLS, THREAD_SYMBOLS
from vdla.runtime.c import generate
from vdla.runtime.pool.generate import ziglang_version

TEXTS = {
    "runtime64.ll": RUNTIME_SYMBOLS, "runtime32.ll": RUNTIME_SYMBOLS,
    "threads64.ll": THREAD_SYMBOLS, "threads32.ll": THREAD_SYMBOLS, "wasm32.ll": ("malloc", "free"),
}  # fmt: skip
STAMP = re.compile(r"ziglang ([\w.]+), SHA-256 (\w+)\n")


def stamp(name):
    """The version of ziglang that a generated file comes from, and the digest of its source."""
    return STAMP.search((generate.FOLDER / name).read_text()).groups()


def test_numbers_are_those_of_python():
    assert (generate.FOLDER / "numbers.h").read_text() == generate.numbers_header()


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_of_these_sources(name):
    """Needs no compiler: whoever changes a source alone is told so on every machine."""
    _, digest = stamp(name)
    source = generate.source_text(re.match("[a-z]+", name)[0])
    assert digest == sha256(source.encode()).hexdigest(), f"run: {generate.COMMAND}"


def test_generated_files_are_what_the_compiler_gives():
    present, (used, _) = ziglang_version(), stamp("runtime64.ll")
    if present != used:
        pytest.skip(f"the files are compiled by ziglang {used}; here is {present or 'none'}")
    expected = generate.generated_files()
    assert set(expected) == {"numbers.h", "boards/link.h", *TEXTS}
    for name, text in expected.items():
        assert (generate.FOLDER / name).read_text() == text, f"run: {generate.COMMAND}"


@pytest.mark.parametrize("name", TEXTS)
def test_texts_name_no_processor(name):
    text = (generate.FOLDER / name).read_text()
    module = llvm.parse_assembly(text)
    module.verify()
    assert {*TEXTS[name]} <= {f.name for f in module.functions if not f.is_declaration}
    assert not re.search(r"^(target |attributes |!)", text, re.MULTILINE)
