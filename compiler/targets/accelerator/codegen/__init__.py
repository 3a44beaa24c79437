"""Code for the accelerator: from intrinsic calls in loops to instructions.

It knows instructions and how loops fold into them; it knows no operator.
"""

from vdla.compiler.targets.accelerator.codegen.kernel import Access, Kernel, Op, generate

__all__ = ["Access", "Kernel", "Op", "generate"]
