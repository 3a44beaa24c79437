"""vdla: a hardware–software co-design kit around a decoupled deep-learning accelerator.

    import vdla
    module = vdla.compile("resnet18", config="paper")     # ONNX in, token instruction stream out
    module.save("resnet18.vdla")
    result = vdla.run(module, {"input": image})           # every cycle, and the numbers
    vdla.compare("resnet18-convs").utilization(2)         # what latency hiding bought

    from vdla import te                                   # or program the accelerator yourself:
    kernel = vdla.build(schedule, [A, B, C], "paper")
    kernel(a, b, c).cycles

Every error that the caller can mend is a ``vdla.UserError``. See README.md and docs/tutorial.md.
"""

import os
from typing import TYPE_CHECKING

from vdla.api import __all__ as __all__
from vdla.api import __getattr__ as __getattr__

if TYPE_CHECKING:
    from vdla.api import *  # noqa: F403

# onnxruntime collects telemetry of its own, and keeps it in ~/.cache/Microsoft, unless this is set
# before it is imported; all that imports it in vdla imports this package first.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.2.0"
