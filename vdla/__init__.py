"""vdla: a hardware–software co-design kit around a decoupled deep-learning accelerator.

    import vdla
    module = vdla.compile("resnet18", config="paper")     # ONNX in, token instruction stream out
    module.save("resnet18.vdla")
    result = vdla.run(module, {"input": image})           # every cycle, and the numbers
    vdla.compare("resnet18-convs").utilization(2)         # what latency hiding bought
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vdla.api import compare, compile, load, quantize, run, tune

__all__ = ["compare", "compile", "load", "quantize", "run", "tune"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The API is imported when it is first used: the compiler takes a second to load."""
    if name not in __all__:
        raise AttributeError(f"module 'vdla' has no attribute {name!r}")
    from vdla import api

    return getattr(api, name)
