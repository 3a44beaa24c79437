"""Loads from global memory: tiles divide them by their sides."""

from tests.support.kernels import strided, tiled
from vdla import te
from vdla.compiler.targets.gpu.count import global_loads
from vdla.compiler.targets.gpu.operators.plain import schedule_elements
from vdla.compiler.targets.gpu.passes import to_kernels


def test_a_tile_divides_the_loads_by_its_side():
    a, b = (te.placeholder((64, 64), "float32", name) for name in "AB")
    k = te.reduce_axis((0, 64), "k")
    c = te.compute((64, 64), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), "C")
    s = te.create_schedule(c)
    schedule_elements(s, s[c])
    assert global_loads(to_kernels(s.mod)) == 2 * 64**3
    assert global_loads(to_kernels(tiled(64, 32).mod)) == 2 * 64**3 // 32
    assert global_loads(to_kernels(strided(32, 16).mod)) == 2 * 32**3 // 16
