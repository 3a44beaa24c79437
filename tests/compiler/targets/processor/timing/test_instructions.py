"""LLVM's text as blocks of instructions, and the form of each."""

from __future__ import annotations

import pytest
from llvm_texts import LOOP

from vdla.compiler.targets.processor.timing.instructions import functions_of

SPLAT = """
define void @f(ptr %p, i32 %x) {{
  {source}
  %b = insertelement <16 x i32> poison, i32 %a, i64 0
  %c = bitcast <16 x i32> %b to <64 x i8>
  %d = shufflevector <64 x i8> %c, <64 x i8> poison, <64 x i32> <{mask}>
  store <64 x i8> %d, ptr %p, align 1
  ret void
}}
"""


def forms(line: str) -> list[str]:
    text = f"define void @f(ptr %p) {{\n  {line}\n  ret void\n}}\n"
    return [each.form for each in functions_of(text)["f"].blocks["entry"].instructions][:-1]


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("%x = fadd fast <16 x float> %a, %b", "fadd <16 x float>"),
        ("%x = add nuw nsw i64 %a, 1", "add i64"),
        ("%x = sext <16 x i8> %a to <16 x i32>", "sext <16 x i8> <16 x i32>"),
        ("%x = load <16 x i8>, ptr %p, align 1, !alias.scope !45", "load <16 x i8>"),
        ("store i32 7, ptr %p, align 4", "store i32"),
        ("%x = icmp samesign ult i64 %a, 56", "icmp i64"),
        ("%x = fcmp uno <8 x float> %a, zeroinitializer", "fcmp <8 x float>"),
        ("%x = select <4 x i1> %c, <4 x float> %a, <4 x float> %b", "select <4 x i1> <4 x float>"),
        ("%x = udiv i64 %a, 7", "udiv i64 constant"),
        ("%x = udiv i64 %a, %b", "udiv i64"),
        ("%x = call float @llvm.fma.f32(float %a, float %b, float 1.0)",
         "llvm.fma.f32 (float, float, float) float"),
        ("%x = tail call dereferenceable_or_null(64) ptr @malloc(i64 64)", "malloc (i64) ptr"),
        ("call void @llvm.memset.p0.i64(ptr noundef nonnull align 1 %p, i8 0, i64 9, i1 false)",
         "llvm.memset.p0.i64 (ptr, i8, i64, i1) void"),
        ("%x = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, <4 x i1> <i1 true, i1 true, "
         "i1 false, i1 false>, <4 x i32> poison)",
         "llvm.masked.load.v4i32.p0 (ptr, <4 x i1>, <4 x i32>) <4 x i32>"),
        ("tail call void @llvm.lifetime.start.p0(ptr %p)", ""),
        ("%x = getelementptr inbounds i8, ptr %p, i64 8", ""),
    ],
)  # fmt: skip
def test_what_a_price_depends_on(line, form):
    assert forms(line) == [form]


def test_blocks_and_where_they_lead():
    function = functions_of(LOOP)["f"]
    assert (function.name, function.params) == ("f", ("%p", "%task"))
    assert {label: block.targets for label, block in function.blocks.items()} == {
        "entry": ("loop",), "loop": ("inside", "next"), "inside": ("next",),
        "next": ("end", "loop"), "end": (),
    }  # fmt: skip
    load = function.blocks["inside"].instructions[1]
    assert (load.name, load.operation, load.operands) == ("%a", "load", ("%q",))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("%a = load i32, ptr %p, align 4", "loaded splat <16 x i32>"),
        ("%a = add i32 %x, 1", "splat <16 x i32>"),
    ],
)
def test_an_element_in_all_lanes_is_one_instruction(source, expected):
    mask = ", ".join(f"i32 {n % 4}" for n in range(64))
    block = functions_of(SPLAT.format(source=source, mask=mask))["f"].blocks["entry"]
    known = [each.form for each in block.instructions if each.form]
    own = [] if "load" in source else ["add i32"]
    assert known == [*own, expected, "store <64 x i8>"]


def test_another_shuffle_is_none():
    mask = ", ".join(f"i32 {63 - n}" for n in range(64))
    block = functions_of(SPLAT.format(source="%a = load i32, ptr %p", mask=mask))["f"]
    assert block.blocks["entry"].instructions[0].form == "load i32"


def test_a_switch_over_several_lines():
    text = """
define void @f(i64 %x) {
  switch i64 %x, label %c [
    i64 0, label %a
    i64 5, label %b
  ]

a:
  ret void

b:
  ret void

c:
  ret void
}
"""
    function = functions_of(text)["f"]
    assert function.blocks["entry"].targets == ("c", "a", "b")
