"""LLVM's text of a loop, as numba makes and optimizes it.

numba counts references to arrays at every call, inlined or not, and took nine tenths of the
simulator's time for it; it looks at every divisor, which took a twentieth. Loops make no array and
divide by no 0, so both are off. Entries from Python and C took a third of the time to compile:
nobody uses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.extending import overload, register_jitable

LEAN: Mapping[str, Any] = {
    "nogil": True, "_nrt": False, "error_model": "numpy",
    "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
}  # fmt: skip
NAME = re.compile(r"_ZN[\w.$]+")

_registered: set[Callable[..., Any]] = set()


def text_of(
    function: Callable[..., Any],
    helpers: Mapping[Callable[..., Any], bool],
    seams: Set[Any],
    arguments: tuple[Any, ...],
) -> str:
    """``i64 @loop(ptr words)`` for arguments of such types.

    Args:
        function: the loop.
        helpers: what loops call, and whether it is inlined.
        seams: functions that options add to.
        arguments: some of the types that it is for.
    """
    for each in seams - _registered:
        overload(each, jit_options={"forceinline": True, **LEAN}, strict=False)(
            _giving(each.joined)
        )
        _registered.add(each)
    for helper in helpers.keys() - _registered:
        register_jitable(forceinline=helpers[helper], **LEAN)(helper)
        _registered.add(helper)
    dispatcher: Any = numba.njit(**LEAN)(function)
    compiled = dispatcher._compiler.compile(tuple(map(numba.typeof, arguments)), None)
    module = llvm.parse_assembly(compiled.library.get_llvm_str())
    main = module.get_function(compiled.fndesc.llvm_func_name)
    text = f"{module}\n{_entry(main)}"
    return _stripped(text.replace(main.name, "body"))


def _giving(joined: Callable[..., Any]) -> Callable[..., Any]:
    """An overload's choice, which is always the same."""
    return lambda *types, **named: joined


def _entry(main: Any) -> str:
    """The function that takes words, and calls the one that numba made.

    That gets where its result goes, where an exception would, and the words as what they are.
    """
    lines, given = [], ["ptr %result", "ptr %exception"]
    for number, argument in enumerate(list(main.arguments)[2:]):
        kind = str(argument.type)
        lines += [
            f"  %p{number} = getelementptr i64, ptr %words, i64 {number}",
            f"  %v{number} = load {kind}, ptr %p{number}",  # the low bytes come first
        ]
        given.append(f"{kind} %v{number}")
    return "\n".join([
        "define i64 @loop(ptr %words) {",
        "  %result = alloca i64",
        "  store i64 0, ptr %result",
        "  %exception = alloca ptr",
        *lines,
        f"  %status = call i32 @body({', '.join(given)})",
        "  %number = load i64, ptr %result",
        "  ret i64 %number",
        "}",
    ])  # fmt: skip


def _stripped(text: str) -> str:
    """Without what nothing refers to, numba's long names, and what is of one machine."""
    module = llvm.parse_assembly(text)
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != "loop":
            each.linkage = "internal"
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=0))
    passes = builder.getModulePassManager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    names: dict[str, str] = {}

    def short(name: re.Match[str]) -> str:
        return names.setdefault(name[0], f"n{len(names)}")

    left_out = (";", "source_filename", "target ")
    lines = [each for each in str(module).splitlines() if each and not each.startswith(left_out)]
    return NAME.sub(short, "\n".join(lines)) + "\n"
