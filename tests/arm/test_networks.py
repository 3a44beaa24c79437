"""Networks whose host code is ARM's: the runtime, the module and the operators as on a board."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulated import compare

from vdla import api
from vdla.compiler.build import placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.models import digits_test, model_path
from vdla.compiler.models.builder import images
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.isa.config import load_config
from vdla.options import Run
from vdla.runtime import Executor, ModuleError

DIGITS = 8


@pytest.mark.parametrize("device", ["sim", "cpu"])
def test_digits(device, board):
    """Host steps on the board's processor, the accelerator's on the simulator."""
    here, there = (
        api.compile("digits", "paper", device=device, target=host)
        for host in (NATIVE, board.target)
    )
    assert here.accelerated == there.accelerated == (device == "sim")
    ready, _ = api.prepare(here, Run(device=device))
    for picture in digits_test()[0][:DIGITS, None]:
        (want,) = ready.run({"image": picture}).outputs.values()
        (found,) = board.run(there, {"image": picture}).values()
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("model", ["resnet18", "mobilenet"])
def test_what_the_host_keeps_of_a_network(model, board):
    """Quantizing into the accelerator's layout and back, at full size."""
    graph, placements = placed_graph(import_onnx(model_path(model)), load_config("paper"))
    kept = [node for node in graph.nodes if placements[node.name].device == "cpu"]
    assert kept
    for node in kept:
        compare(board, node, graph)


@pytest.mark.long
@pytest.mark.parametrize("model", ["resnet18", "mobilenet"])
def test_networks_without_an_accelerator(model, board):
    """All operators: 1,800 and 570 million multiply-adds."""
    x = {"input": images((1, 3, 224, 224), 1, 8)}
    here, there = (api.compile(model, device="cpu", target=host) for host in (NATIVE, board.target))
    (want,) = Executor(here).run(x).outputs.values()
    (found,) = board.run(there, x).values()
    np.testing.assert_array_equal(found, want)


def test_a_board_refuses_what_it_cannot_run(board):
    module = api.compile("digits", device="cpu", target=board.target)
    picture = {"image": digits_test()[0][:1]}

    def refusal(**changes):
        with pytest.raises(ModuleError) as caught:
            board.run(replace(module, host=replace(module.host, **changes)), picture)
        return str(caught.value)

    name = board.target.gnu
    assert refusal(triple="mips-unknown-linux-gnu", cpu="m14k") == (
        f"host code: expected host code for {name}, found mips-unknown-linux-gnu (m14k)"
    )
    assert refusal(features="+neon,+sve9").endswith(
        f"found code for {board.target.cpu} that needs sve9"
    )
    cut = refusal(code=module.host.code[:64])
    assert cut.startswith("host code: expected a shared object for this machine, found: ")
    native = api.compile("digits", device="cpu").host.code
    assert refusal(code=native).startswith(
        "host code: expected the package llvmlite to link an object file, found none; "
    )
    board.run(module, picture)  # and goes on
