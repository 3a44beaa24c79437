"""Faults in the RTL, planted while a test runs."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

Fault = tuple[ModuleType, str, str, str, str]  # module, class, method, what stands there, instead


def plant(fault: Fault, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Puts a fault in its method; models that are built of it go to a cache of their own."""
    module, unit, method, old, new = fault
    cls, namespace = getattr(module, unit), {}
    source = textwrap.dedent(inspect.getsource(getattr(cls, method)))
    assert source.count(old) == 1
    exec(source.replace(old, new), vars(module), namespace)
    monkeypatch.setenv("VDLA_CACHE", str(cache))
    monkeypatch.setattr(cls, method, namespace[method])
