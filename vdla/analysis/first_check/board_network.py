"""A bundled network on a board and on the simulator behind its memory: outputs and cycles."""

from __future__ import annotations

import numpy as np

from vdla.analysis.first_check.session import Figures, Session, StepFailure
from vdla.compiler.build import Options, compile_model
from vdla.compiler.models import model_path, test_split
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor

NETWORK = "digits"


def check_network(session: Session) -> Figures:
    """The network's name, its cycles expected and found, and the class of a test image.

    Raises:
        StepFailure: an output isn't the simulator's; or, where the memory is exact, the cycles
            aren't.
        DeviceError: the board doesn't answer, or a fault stops its core.
    """
    options = Options(progress=session.progress)
    module = compile_model(model_path(NETWORK), session.config, options)
    split = test_split(NETWORK)
    assert split is not None
    (name,) = module.inputs
    inputs = {name: split[0][:1]}
    expected = Executor(module, make_device(module, "sim", session.config)).run(inputs)
    session.progress(NETWORK, 0, 1)
    actual = Executor(module, session.device).run(inputs)
    figures: dict[str, object] = {
        "network": NETWORK,
        "cycles": {"expected": expected.cycles, "found": actual.cycles},
    }
    where = f"{session.transport.name}: {NETWORK}"
    for output, values in expected.outputs.items():
        apart = int(np.count_nonzero(values != actual.outputs[output]))
        figures |= {"output": output, "different": apart, "elements": values.size}
        if apart:
            raise StepFailure(
                f"{where}: expected the simulator's {values.size} elements of {output}, "
                f"found {apart} others",
                figures,
            )
    if session.exact and expected.cycles != actual.cycles:
        raise StepFailure(
            f"{where}: expected {expected.cycles:,} cycles, found {actual.cycles:,}", figures
        )
    return figures
