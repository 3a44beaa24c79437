"""Runs the network once: on the arrays of an .npz file, or on random ones."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Mapping
from typing import Any


def main() -> None:
    """The command line."""
    package = importlib.import_module(__package__)
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("--input", metavar="X.npz", help="one array for each input")
    parser.add_argument("--output", metavar="Y.npz", help="where the outputs go")
    parser.add_argument("--threads", type=int, help="default: all processors")
    options = parser.parse_args()
    import numpy as np

    try:
        network = package.Network(options.threads)
        given = dict(np.load(options.input)) if options.input else _random(network.inputs)
        begun = time.perf_counter()
        outputs = network.run(**given)
    except (OSError, TypeError, ValueError, package.NetworkError) as error:
        sys.exit(str(error))
    print(f"{1000 * (time.perf_counter() - begun):.3f} ms")
    for name, value in outputs.items():
        print(f"{name} = {value}")
    if options.output:
        arrays = ((k, a) for name, value in outputs.items() for k, a in _flat(name, value))
        named = dict[str, Any]((name, np.asarray(array)) for name, array in arrays)
        np.savez(options.output, **named)


def _random(inputs: Mapping[str, tuple[str, tuple[int, ...]]]) -> dict[str, object]:
    import numpy as np

    rng, made = np.random.default_rng(0), dict[str, object]()
    for name, (kind, shape) in inputs.items():
        values = np.asarray(rng.standard_normal(shape))
        made[name] = (values if kind.startswith("float") else abs(values)).astype(kind)
    return made


def _flat(name: str, value: object) -> list[tuple[str, object]]:
    """(name, array) of an output; of a list ``y`` those of ``y[0]``, ``y[1]`` …"""
    if isinstance(value, list):
        return [pair for n, each in enumerate(value) for pair in _flat(f"{name}[{n}]", each)]
    return [] if value is None else [(name, value)]


main()
