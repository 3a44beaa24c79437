"""Measures the schedules that ship with the package again, as they are, and writes their cycles.

    python tools/remeasure.py

For changes of the compiler that leave its schedules as good as they were: `make records` searches,
for hours; this takes a minute. Prints how many were measured and how many have other cycles now.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

from vdla.compiler import models
from vdla.compiler.build import accelerator_layers
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.search.records import best, export, load
from vdla.compiler.targets.accelerator.search.simulation import Simulation
from vdla.compiler.targets.accelerator.search.tile_records import (
    BUNDLED_PATH,
    TileRecord,
    make_tile,
)
from vdla.compiler.targets.accelerator.search.workload import Workload, sources
from vdla.isa.identity import isa_hash

MODELS = (
    "resnet18", "resnet18-convs", "mobilenet", "digits", "dqn", "mobilenetv2", "efficientnet-lite0",
    "yolo-nano", "unet", "dcgan",
)  # fmt: skip
VTHREADS = (1, 2)


def main() -> None:
    """Writes the records, whole or not at all."""
    bundled = best(load(BUNDLED_PATH, TileRecord)).values()
    known, result = {r.workload: r for r in bundled}, dict[Workload, TileRecord]()
    configs = {workload.machine: workload.config for workload in known}
    paths = [path for model in MODELS for path in models.model_paths(model).values()]
    for config, path in product(configs.values(), paths):
        if all(w in result for w in known if w.config == config):
            continue  # building and placing more networks would find no more
        for op in accelerator_layers(import_onnx(path), config)[0]:
            for workload in (Workload.of(op.template, config, n) for n in VTHREADS):
                tile = make_tile(known[workload]) if workload in known else None
                if tile is None or workload in result:
                    continue
                outcome = Simulation(op, config).measure(tile)
                if outcome.status != "ok":
                    sys.exit(
                        f"{path.stem} {op.node.name}: expected a legal tile, found {outcome.note}"
                    )
                today = {"isa": isa_hash(), "sources": sources(), "cycles": outcome.cycles}
                result[workload] = replace(known[workload], **today)
    changed = sum(result[w].cycles != known[w].cycles for w in result)
    export([*result.values(), *(known[w] for w in known if w not in result)], BUNDLED_PATH)
    print(f"{len(result)} of {len(known)} measured, {changed} have other cycles")


if __name__ == "__main__":
    main()
