"""The instruction of dot8, declared by what it computes."""

from functools import cache

from vdla import te

LANES = 8


@cache
def dot8():
    """``acc[0] += Σ_k a[k] * b[k]`` of eight int8, in int32."""
    a, b = (te.placeholder((LANES,), "int8", name) for name in "ab")
    k = te.reduce_axis((0, LANES), "k")
    product = a[k].astype("int32") * b[k].astype("int32")
    acc = te.compute((1,), lambda i: te.sum(product, axis=k), "acc")
    return te.decl_intrin("dot8", acc)
