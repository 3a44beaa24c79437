"""Options of commands and of the API's functions: one class for both, one field per option.

    @dataclass(frozen=True)
    class Compile:
        vthreads: int = option(2, "--vthreads", typed=int, help="Virtual threads.", min=1, max=8)

A field's type and default are Python's. ``option`` says how the command line spells it, what kind
of text is typed there, how that is read, and with which other options it counts; a field without it
is for Python alone. What is made of such classes is in ``spelling.py``.

The classes are imported when they are first used, so that help comes at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vdla.options.comparisons import Compare, CompareOutput, Offload, OffloadOutput
    from vdla.options.designs import Evaluate, Explore, ExploreOutput
    from vdla.options.hardware import BoardCheck, Lockstep, Synth
    from vdla.options.models import Compile, Prune, Quantize, Run, RunFiles
    from vdla.options.packages import Package
    from vdla.options.tuning import Tune

HOMES = {
    "vdla.options.comparisons": ("Compare", "CompareOutput", "Offload", "OffloadOutput"),
    "vdla.options.designs": ("Evaluate", "Explore", "ExploreOutput"),
    "vdla.options.hardware": ("BoardCheck", "Lockstep", "Synth"),
    "vdla.options.models": ("Compile", "Prune", "Quantize", "Run", "RunFiles"),
    "vdla.options.packages": ("Package",),
    "vdla.options.tuning": ("Tune",),
}
__all__ = [
    "BoardCheck", "Compare", "CompareOutput", "Compile", "Evaluate", "Explore", "ExploreOutput",
    "Lockstep", "Offload", "OffloadOutput", "Package", "Prune", "Quantize", "Run", "RunFiles",
    "Synth", "Tune",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """The class of that name, from its file."""
    home = next((home for home, names in HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'vdla.options' has no attribute {name!r}")
    return getattr(import_module(home), name)
