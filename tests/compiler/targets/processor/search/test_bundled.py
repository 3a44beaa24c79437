"""The records that ship: each is of a function of a bundled network, and applies to it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from processor import HAS_RECORDED_SCALES

from vdla.compiler.build import Options, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.models import model_path, networks
from vdla.compiler.placement import PROCESSOR
from vdla.compiler.search.records import best, load
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.description.processor import V4, Processor, find_processor
from vdla.compiler.targets.processor.search.bundled import BUNDLED_PATH
from vdla.compiler.targets.processor.search.function import functions_of
from vdla.compiler.targets.search.function_records import MAX_TIME_SHARE, FunctionRecord
from vdla.compiler.targets.search.stopwatch import alike, random_array
from vdla.isa.config import load_config
from vdla.runtime.native import missing_features

TRIPLE = "x86_64-unknown-linux-gnu"
PROCESSORS = {
    "x86-64-v3": find_processor("x86-64-v3"),
    "x86-64-v4": find_processor("x86-64-v4"),
    "x86-64-v4 vnni": Processor(TRIPLE, "x86-64-v4", f"{V4},+avx512vnni"),
}
RECORDS = best(load(BUNDLED_PATH, FunctionRecord)).values()


def test_what_ships_is_worth_it():
    assert RECORDS
    assert {record.processor for record in RECORDS} <= PROCESSORS.keys()
    assert all(record.outcome.cost < MAX_TIME_SHARE for record in RECORDS)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("x86-64-v4 vnni", marks=pytest.mark.long),
        pytest.param("x86-64-v3", marks=pytest.mark.long),
        pytest.param("x86-64-v4", marks=pytest.mark.long),
    ],
)
def test_each_schedule_computes_what_the_default_one_does(kind, tmp_path):
    processor = PROCESSORS[kind]
    assert processor.kind == kind
    onnx.save(networks.resnet18(), tmp_path / "floats.onnx")
    known = {}
    for path in (model_path("resnet18"), tmp_path / "floats.onnx"):
        graph = import_onnx(path, floats=True)
        how = Options(device=PROCESSOR, processor=processor)
        functions = functions_of(*placed_graph(graph, load_config("paper"), how), processor)
        known |= {function.digest: function for function in functions}
    own = [record for record in RECORDS if record.processor == kind]
    if not HAS_RECORDED_SCALES:  # a function has them within; those of floats have none
        own = [record for record in own if record.function in known]
    assert own
    assert {record.function for record in own} <= known.keys()
    runs_here = not missing_features(processor.triple, processor.features)
    for record in own:
        function, rng = known[record.function], np.random.default_rng(0)
        code = function.code(record.steps)
        if not runs_here:
            continue
        arrays = [random_array(param, rng) for param in function.params]
        results = []
        for each in (code, function.code(function.default)):
            (run,) = jit([each], processor=processor).values()
            run(*arrays)
            results.append(arrays[-1].copy())
        assert alike(*results)
