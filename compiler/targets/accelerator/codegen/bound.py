"""Bound of a program's length, known before its instructions are made."""

from __future__ import annotations

from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.tir.ir import Evaluate, For, PrimFunc, Stmt
from vdla.compiler.tir.visitor import stmt_children
from vdla.isa.config import Config
from vdla.isa.registers import most_instructions


def steps(stmt: Stmt, threads: bool = False) -> int:
    """Number of times that the calls of intrinsics in a statement run, all together: the most
    instructions that it can become. With ``threads``, as often as virtual threads alone repeat
    them."""
    if isinstance(stmt, Evaluate):
        return 1
    inner = sum(steps(each, threads) for each in stmt_children(stmt))
    if isinstance(stmt, For) and (not threads or _is_interleaved(stmt)):
        return stmt.extent * inner
    return inner


def _is_interleaved(loop: For) -> bool:
    """Whether each step of a loop becomes statements of its own: a thread per step."""
    return loop.kind == "vthread" and not loop.annotations


def check_threads(func: PrimFunc, config: Config) -> None:
    """Refuses virtual threads that would repeat a function's statements too often.

    Raises:
        CodegenError: each copy is an instruction at least, and a program holds fewer.
    """
    check_length(func, steps(func.body, threads=True), config)


def check_length(func: PrimFunc, instructions: int, config: Config) -> None:
    """Refuses a function that becomes too many instructions.

    Raises:
        CodegenError: there are more than a program holds beside its FINISH.
    """
    most = most_instructions(config) - 1
    if instructions > most:
        raise CodegenError(
            f"{func.name}: expected loops that become at most {most:,} instructions, as a program "
            f"holds (config {config.name}), found {instructions:,}; let intrinsics take larger "
            "tiles, or split the function"
        )
