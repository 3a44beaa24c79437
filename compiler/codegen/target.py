"""The processors that host code can be compiled for, by name."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.support.errors import UserError


class TargetError(UserError):
    """A host processor that isn't known, or that this machine can't make code for."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the code runs, in LLVM's words; the default is this machine.

    ``triple`` has all of its parts, vendor too: LLVM takes a shorter one for another ABI.
    ``quick`` is for code that is compiled to run once: LLVM leaves out what takes it long.
    """

    triple: str = ""
    cpu: str = ""
    features: str = ""
    quick: bool = False

    @property
    def is_native(self) -> bool:
        """Whether it is the machine that this runs on."""
        return not self.triple

    @property
    def gnu(self) -> str:
        """The triple as GNU's tools and Debian have it: ``arm-linux-gnueabihf``."""
        return self.triple.replace("-unknown-", "-")

    @property
    def size_bits(self) -> int:
        """Bits of C's ``size_t``."""
        return 32 if self.triple.startswith("arm") else 64


NATIVE = Target()
TARGETS = {
    "native": NATIVE,
    "cortex-a9": Target("arm-unknown-linux-gnueabihf", "cortex-a9", "+neon"),
    "cortex-a53": Target("aarch64-unknown-linux-gnu", "cortex-a53", "+neon"),
}


def find_target(name: str) -> Target:
    """A host processor by its name.

    Raises:
        TargetError: there is none of that name.
    """
    if name not in TARGETS:
        raise TargetError(f"host: expected one of {', '.join(TARGETS)}, found {name}")
    return TARGETS[name]
