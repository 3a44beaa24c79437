"""Prints a digest of the functions that a processor gets of some networks, to compare two commits.

    python tools/function_digests.py [--networks 25]

For each device, processor and network a line: the digest is over every function's text, arguments
and constants. A change of the compiler that is to change no code prints the same lines as before.
Networks are the bundled ones, and random ones of floats and quantized, as the tests make them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx

from vdla.compiler.build import Options, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.models import model_path
from vdla.compiler.targets.processor.description.processor import Processor, find_processor
from vdla.compiler.targets.processor.node_functions import node_functions
from vdla.compiler.tir.printer import show
from vdla.isa.config import load_config

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ("digits", "mobilenet", "resnet18")
PROCESSORS = ("x86-64-v4", "x86-64-v3", "cortex-a53")
DEVICES = ("cpu", "vdla")
FLOATS = "floats"  # what names of networks begin with that the accelerator has no part in


def networks(count: int, folder: Path) -> Iterator[Path]:
    """ONNX files: the bundled ones, then ``count`` of floats and as many quantized ones."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from random_graphs import float_model, quantized

    yield from map(model_path, BUNDLED)
    for seed in range(count):
        models = {
            FLOATS: float_model(7000 + seed),
            "quantized": quantized(float_model(9000 + seed, integer=True), seed),
        }
        for kind, model in models.items():
            path = folder / f"{kind}{seed}.onnx"
            onnx.save(model, path)
            yield path


def digest(path: Path, device: str, processor: Processor) -> str:
    """Sixteen hex digits over all functions of a network."""
    graph = import_onnx(path, floats=device == "cpu")
    options = Options(device=device, processor=processor)
    graph, placements = placed_graph(graph, load_config("tiny"), options)
    text = hashlib.sha256()
    for name, function in node_functions(graph, placements, processor).items():
        text.update(f"{name} {show(function.func)} {function.args}".encode())
        for constant, array in function.constants.items():
            text.update(constant.encode() + array.tobytes())
    return text.hexdigest()[:16]


def main() -> None:
    """Prints the lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", type=int, default=25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = list(networks(arguments.networks, Path(folder)))
        for device in DEVICES:
            for name in PROCESSORS:
                for path in paths:
                    if device == "vdla" and path.stem.startswith(FLOATS):
                        continue
                    line = digest(path, device, find_processor(name))
                    print(device, name, path.stem, line, flush=True)


if __name__ == "__main__":
    main()
