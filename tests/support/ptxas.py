"""ptxas, NVIDIA's assembler, where the package nvidia-cuda-nvcc is installed."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest


@cache
def find_ptxas() -> Path | None:
    """The assembler of an installed package of NVIDIA's."""
    for package in metadata.distributions():
        if (package.metadata["Name"] or "").startswith("nvidia-cuda-nvcc"):
            for file in package.files or ():
                if file.name == "ptxas":
                    return Path(str(package.locate_file(file)))
    return None


def assemble(source: str, architecture: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What ptxas says to a source; skips the test where there is none."""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc")
    path = tmp_path / "kernels.ptx"
    path.write_text(source)
    command = [ptxas, "-v", "-arch", architecture, path, "-o", tmp_path / "kernels.cubin"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check_assembles(source: str, architecture: str, tmp_path: Path) -> str:
    """What ptxas says to a source that it must take."""
    result = assemble(source, architecture, tmp_path)
    assert result.returncode == 0, result.stderr
    return result.stderr
