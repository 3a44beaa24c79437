"""The Python API: what the ``vdla`` command does, as functions of a model and options.

    run("digits", x, device="board", board="ulx3s")      # the fields of options.Run, in their order
    run("digits", Run(x, device="board", board="ulx3s"))  # or the object itself

A name is imported when it is first used: the compiler takes a second to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vdla import te
    from vdla.api.comparisons import compare, same_schedule, side_by_side, sweep
    from vdla.api.compiling import compile
    from vdla.api.exploration import evaluate, explore_designs
    from vdla.api.host import host_time
    from vdla.api.modules import load
    from vdla.api.modules import random_inputs as random_inputs
    from vdla.api.networks import network
    from vdla.api.offloading import offload
    from vdla.api.packages import package
    from vdla.api.pruning import prune
    from vdla.api.quantizing import (
        quantization_accuracy,
        quantization_noise,
        quantization_score,
        quantize,
        search_quantization,
    )
    from vdla.api.ready import prepare as prepare
    from vdla.api.runs import check, explain, profile, run
    from vdla.api.searching import search
    from vdla.api.synthesis import synth
    from vdla.api.tuning import tune
    from vdla.compiler.autodiff import optim
    from vdla.compiler.autodiff.grad import grad, remat, value_and_grad
    from vdla.compiler.targets.accelerator.description import ACC, INP, WGT
    from vdla.compiler.targets.search.knobs import Knobs
    from vdla.compiler.text import ParseError
    from vdla.compiler.tracing.control import cond, scan, while_loop
    from vdla.compiler.tracing.elements import (
        dynamic_matmul,
        erf,
        gelu,
        relu,
        sigmoid,
        softmax,
    )
    from vdla.compiler.tracing.fn import fn
    from vdla.compiler.tracing.shapes import set_at
    from vdla.compiler.user import register_operator
    from vdla.kernels.build import build, intrinsics, parse
    from vdla.kernels.script import Buffer, prim_func
    from vdla.support.errors import UserError

HOMES = {
    "vdla.api.comparisons": ("compare", "same_schedule", "side_by_side", "sweep"),
    "vdla.api.compiling": ("compile",),
    "vdla.api.exploration": ("evaluate", "explore_designs"),
    "vdla.api.host": ("host_time",),
    "vdla.api.modules": ("load", "random_inputs"),
    "vdla.api.networks": ("network",),
    "vdla.api.offloading": ("offload",),
    "vdla.api.packages": ("package",),
    "vdla.api.pruning": ("prune",),
    "vdla.api.quantizing": (
        "quantization_accuracy", "quantization_noise", "quantization_score", "quantize",
        "search_quantization",
    ),
    "vdla.api.ready": ("prepare",),
    "vdla.api.runs": ("check", "explain", "profile", "run"),
    "vdla.api.searching": ("search",),
    "vdla.api.synthesis": ("synth",),
    "vdla.api.tuning": ("tune",),
    "vdla.compiler.targets.accelerator.description": ("ACC", "INP", "WGT"),
    "vdla.compiler.targets.search.knobs": ("Knobs",),
    "vdla.compiler.text": ("ParseError",),
    "vdla.compiler.autodiff.grad": ("grad", "remat", "value_and_grad"),
    "vdla.compiler.tracing.control": ("cond", "scan", "while_loop"),
    "vdla.compiler.tracing.elements": (
        "dynamic_matmul", "erf", "gelu", "relu", "sigmoid", "softmax",
    ),
    "vdla.compiler.tracing.fn": ("fn",),
    "vdla.compiler.tracing.shapes": ("set_at",),
    "vdla.compiler.user": ("register_operator",),
    "vdla.kernels.build": ("build", "intrinsics", "parse"),
    "vdla.kernels.script": ("Buffer", "prim_func"),
    "vdla.support.errors": ("UserError",),
}  # fmt: skip
MODULES = {"optim": "vdla.compiler.autodiff.optim", "te": "vdla.te"}
__all__ = [
    "ACC", "INP", "WGT", "Buffer", "Knobs", "ParseError", "UserError", "build", "check", "compare",
    "compile", "cond", "dynamic_matmul", "erf", "evaluate", "explain", "explore_designs", "fn",
    "gelu", "grad", "host_time", "intrinsics", "load", "network", "offload", "optim", "package",
    "parse", "prim_func", "profile", "prune", "quantization_accuracy", "quantization_noise",
    "quantization_score", "quantize", "register_operator", "relu", "remat", "run", "same_schedule",
    "scan", "search", "search_quantization", "set_at", "side_by_side", "sigmoid", "softmax",
    "sweep", "synth", "te", "tune", "value_and_grad", "while_loop",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The module or the value of that name, from the file that has it."""
    if name in MODULES:
        return import_module(MODULES[name])
    home = next((home for home, names in HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'vdla' has no attribute {name!r}")
    return getattr(import_module(home), name)
