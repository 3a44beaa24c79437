"""Code for the accelerator: from intrinsic calls in loops to instructions.

It knows instructions and how loops fold into them; it knows no operator.
"""

from vdla.compiler.codegen.vdla.kernel import Kernel, Op, Touch, generate

__all__ = ["Kernel", "Op", "Touch", "generate"]
