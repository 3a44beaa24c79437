"""What is generated from pool.c is what pool.c gives, and suits every processor."""

from __future__ import annotations

import re
import tomllib
from hashlib import sha256
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from vdla.compiler.targets.processor.codegen.builtins import builtins_ir
from vdla.compiler.targets.processor.codegen.llvm import compile_object
from vdla.compiler.targets.processor.description.processor import PROCESSORS, Processor
from vdla.runtime.pool import generate

MAC = Processor("aarch64-apple-darwin", "apple-m1", "+neon")
OTHER = Processor("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d")
EXPORTS = {"vdla_call", "vdla_parallel", "vdla_begin", "vdla_work", "vdla_set"}
GENERATED = ("pool64.ll", "pool32.ll", "numbers.py")
STAMP = re.compile(r"ziglang ([\w.]+), SHA-256 (\w+)\n")


def stamp(name):
    """The version of ziglang that a generated file comes from, and the digest of its source."""
    return STAMP.search((generate.FOLDER / name).read_text()).groups()


@pytest.mark.parametrize("name", GENERATED)
def test_generated_files_are_of_this_source(name):
    """Needs no compiler: whoever changes pool.c alone is told so on every machine."""
    _, digest = stamp(name)
    assert digest == sha256(generate.SOURCE.read_bytes()).hexdigest(), f"run: {generate.COMMAND}"


def test_generated_files_are_what_the_compiler_gives():
    present, (used, _) = generate.ziglang_version(), stamp("numbers.py")
    if present != used:
        pytest.skip(f"the files are compiled by ziglang {used}; here is {present or 'none'}")
    expected = generate.generated_files()
    assert set(expected) == set(GENERATED)
    for name, text in expected.items():
        assert (generate.FOLDER / name).read_text() == text, f"run: {generate.COMMAND}"


def test_developers_have_the_compiler_that_the_files_come_from():
    project = tomllib.loads(Path(__file__).parents[3].joinpath("pyproject.toml").read_text())
    needed = project["project"]["optional-dependencies"]["dev"]
    assert f"ziglang=={stamp('numbers.py')[0]}" in needed


@pytest.mark.parametrize(
    ("processor", "pause"),
    [
        ("native", None),
        ("x86-64-v3", "@llvm.x86.sse2.pause()"),
        ("cortex-a53", "@llvm.aarch64.hint(i32 1)"),
        ("cortex-a9", "@llvm.arm.hint(i32 1)"),
        (MAC, "@llvm.aarch64.hint(i32 1)"),
        (OTHER, None),
    ],
)
def test_the_code_of_a_processor(processor, pause):
    """It exports five functions, waits by the processor's instruction, and names no processor."""
    processor = PROCESSORS.get(processor, processor)
    text = builtins_ir(processor)
    module = llvm.parse_assembly(text)
    module.verify()
    defined = [f for f in module.functions if not f.is_declaration]
    assert {f.name for f in defined if f.linkage == llvm.Linkage.external} == EXPORTS
    hidden = [*(f for f in defined if f.name not in EXPORTS), *module.global_variables]
    assert {value.linkage for value in hidden} == {llvm.Linkage.internal}
    assert not re.search(r"target |attributes|metadata|!|#|vdla_clock = external", text)
    if pause:
        assert f"  call void {pause}\n" in text


@pytest.mark.parametrize(("name", "more"), [
    ("thumbv7em", ()), ("wasm32", ("__extendhfsf2", "__truncsfhf2")),
])  # fmt: skip
def test_machines_without_threads(name, more):
    """Parallel loops are serial, and nothing is called of a library; WebAssembly has none that
    converts float16."""
    module = llvm.parse_assembly(builtins_ir(PROCESSORS[name]))
    module.verify()
    assert [function.name for function in module.functions] == ["vdla_parallel", *more]
    assert not any(function.is_declaration for function in module.functions)
    assert not list(module.global_variables)


def test_the_clock_is_the_systems():
    """CLOCK_MONOTONIC is 1 in Linux's and 6 in Darwin's <time.h>."""
    for processor, clock in ((PROCESSORS["cortex-a9"], 1), (MAC, 6)):
        assert f"@vdla_clock = internal constant i32 {clock}\n" in builtins_ir(processor)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("x86-64-v3", b"\xf3\x90"),
        ("cortex-a53", b"\x3f\x20\x03\xd5"),
        ("cortex-a9", b"\x01\xf0\x20\xe3"),
    ],
)
def test_loops_that_wait_execute_the_processors_instruction(name, instruction):
    """PAUSE of x86-64, YIELD of A64 and of A32, as their manuals encode them."""
    assert instruction in compile_object([], PROCESSORS[name])


def test_processors_that_would_get_different_texts(monkeypatch):
    monkeypatch.setattr(generate, "compiled", lambda source, target: f"{target}\n")
    with pytest.raises(SystemExit) as caught:
        generate.generated_files()
    assert str(caught.value) == (
        "pool.c: expected one text for 64 bits, found several: x86_64-linux-gnu, aarch64-linux-gnu"
    )


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(generate, "ziglang_version", lambda: None)
    with pytest.raises(SystemExit) as caught:
        generate.main()
    assert str(caught.value) == (
        "pool.c: expected the package ziglang, found none; run: pip install 'vdla[dev]'"
    )


def test_source_that_does_not_compile(monkeypatch, tmp_path):
    if generate.ziglang_version() is None:
        pytest.skip("no ziglang")
    broken = tmp_path / "pool.c"
    broken.write_text("int zero(void) { }\n")
    monkeypatch.setattr(generate, "SOURCE", broken)
    with pytest.raises(SystemExit) as caught:
        generate.generated_files()
    assert "pool.c:1:" in str(caught.value)
