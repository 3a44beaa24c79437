"""vdla: a hardware–software co-design kit around a decoupled deep-learning accelerator.

    import vdla
    module = vdla.compile("resnet18", config="paper")     # ONNX in, token instruction stream out
    module.save("resnet18.vdla")
    result = vdla.run(module, {"input": image})           # every cycle, and the numbers
    vdla.compare("resnet18-convs").utilization(2)         # what latency hiding bought

    from vdla import te                                   # or program the accelerator yourself:
    kernel = vdla.build(schedule, [A, B, C], "paper")
    kernel(a, b, c).cycles

Every error that the caller can mend is a ``vdla.UserError``. See README.md and docs/tutorial.md.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# onnxruntime collects telemetry of its own, and keeps it in ~/.cache/Microsoft, unless this is set
# before it is imported; all that imports it in vdla imports this package first.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from vdla import te
    from vdla.api import (
        check,
        compare,
        compile,
        load,
        profile,
        quantize,
        run,
        same_schedule,
        sweep,
        synth,
        tune,
    )
    from vdla.compiler.targets.accelerator.description import ACC, INP, WGT
    from vdla.compiler.text import ParseError
    from vdla.compiler.user import register_operator
    from vdla.exploration import evaluate, explore_designs
    from vdla.host import host_time
    from vdla.kernel import build, intrinsics, parse
    from vdla.support.errors import UserError

_HOMES = {
    "vdla.api": (
        "check", "compare", "compile", "load", "profile", "quantize", "run", "same_schedule",
        "sweep", "synth", "tune",
    ),
    "vdla.exploration": ("evaluate", "explore_designs"),
    "vdla.host": ("host_time",),
    "vdla.offloading": ("offload",),
    "vdla.kernel": ("build", "intrinsics", "parse"),
    "vdla.compiler.targets.accelerator.description": ("ACC", "INP", "WGT"),
    "vdla.compiler.text": ("ParseError",),
    "vdla.compiler.user": ("register_operator",),
    "vdla.support.errors": ("UserError",),
}  # fmt: skip
__all__ = [
    "ACC", "INP", "WGT", "ParseError", "UserError", "build", "check", "compare", "compile",
    "evaluate", "explore_designs", "host_time", "intrinsics", "load", "offload", "parse", "profile",
    "quantize", "register_operator", "run", "same_schedule", "sweep", "synth", "te", "tune",
]  # fmt: skip
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The API is imported when it is first used: the compiler takes a second to load."""
    if name == "te":
        return import_module("vdla.te")
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'vdla' has no attribute {name!r}")
    return getattr(import_module(home), name)
