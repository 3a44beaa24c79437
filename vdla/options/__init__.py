"""What commands and the API's functions are told: one class for both, one field per option.

The classes are imported when they are first used: each file here is for some commands alone, and
help comes at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vdla.options.designs import Evaluate, Explore, ExploreOutput
    from vdla.options.models import (
        Compare,
        CompareOutput,
        Compile,
        Lockstep,
        Offload,
        Quantize,
        Run,
        RunFiles,
        Synth,
        Tune,
    )

_HOMES = {
    "designs": ("Evaluate", "Explore", "ExploreOutput"),
    "models": (
        "Compare", "CompareOutput", "Compile", "Lockstep", "Offload", "Quantize", "Run", "RunFiles",
        "Synth", "Tune",
    ),
}  # fmt: skip
__all__ = [
    "Compare", "CompareOutput", "Compile", "Evaluate", "Explore", "ExploreOutput", "Lockstep",
    "Offload", "Quantize", "Run", "RunFiles", "Synth", "Tune",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """The class of that name, from its file."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'vdla.options' has no attribute {name!r}")
    return getattr(import_module(f"vdla.options.{home}"), name)
