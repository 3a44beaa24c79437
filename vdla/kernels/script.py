"""Functions of the loop IR, written as Python: ``vdla.prim_func``.

@vdla.prim_func
def scaled(A: vdla.Buffer((64,), "int32"), C: vdla.Buffer((64,), "int32")):
    for i in vdla.parallel(64):
        C[i] = A[i] * 3

kernel = vdla.build(scaled, target="cpu")
print(scaled)                                 # its text, which vdla.parse reads
print(scaled.script())                        # this Python
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import overload

from vdla.compiler.targets.accelerator.description import intrinsics as declare
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.program import Program
from vdla.compiler.tir.script import read_script
from vdla.compiler.tir.script_source import Buffer, Source
from vdla.isa.config import Config
from vdla.kernels.kernel import HOST
from vdla.names.configs import resolve

__all__ = ["Buffer", "parse_script", "prim_func"]

Target = str | Path | Config
Function = Callable[..., object]


@overload
def prim_func(function: Function, /) -> Program: ...
@overload
def prim_func(
    *, target: Target = ..., settings: Iterable[str] = ..., name: str = ...
) -> Callable[[Function], Program]: ...
def prim_func(
    function: Function | None = None,
    /,
    *,
    target: Target = "paper",
    settings: Iterable[str] = (),
    name: str = "",
) -> Program | Callable[[Function], Program]:
    """Makes a function of the loop IR of a Python function, which is read and never run.

    Args:
        function: loops, stores and calls of intrinsics; the grammar stands in
            :mod:`vdla.compiler.tir.script`.
        target: the config whose intrinsics it calls, or "cpu", which has none.
        settings: ``KEY=VALUE`` overrides of the config or the memory.
        name: the function's, where it isn't that of Python's.

    Raises:
        ParseError: it breaks the grammar, or isn't well formed; names file, line and column.
        ScriptError: it has no source.
        ConfigError: the config doesn't exist or describes no machine.
    """
    if function is not None:
        return _program(Source.of(function), target, settings, name)
    return lambda each: _program(Source.of(each), target, settings, name)


def parse_script(text: str, target: Target, settings: Iterable[str]) -> Program:
    """The function of a text that is decorated Python.

    Raises:
        ParseError, ConfigError: as ``prim_func``.
    """
    return _program(Source(text.split("\n")), target, settings, "")


def _program(source: Source, target: Target, settings: Iterable[str], name: str) -> Program:
    """The function of a source."""

    def known() -> Iterable[TensorIntrin]:
        return () if target == HOST else declare(resolve(target, settings))

    func = read_script(source, known, name)
    default = target == "paper" or not isinstance(target, str) or settings
    return Program.of(func, "" if default else str(target))
