"""The accelerator: description, rewrites of its graphs, operators, passes over loops, code. Whoever
imports a part has the options."""

import vdla.compiler.targets.accelerator.options  # noqa: F401
