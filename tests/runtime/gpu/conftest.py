"""GPUs for the tests: one that is there, and drivers of some that aren't."""

from __future__ import annotations

import pytest
from gpus import Driver

from vdla.runtime.gpu import opencl


@pytest.fixture
def driver(monkeypatch):
    """``driver(platform, …)`` is what pyopencl finds from then on."""

    def install(*platforms):
        found = Driver(*platforms)
        monkeypatch.setattr(opencl, "_pyopencl", lambda: found)
        return found

    monkeypatch.delenv(opencl.CHOICE, raising=False)
    return install
