"""Float operators between Dequantize and Quantize that are one operator on images of integers.

Each kind of them is a file of this folder, found by being here; ``cluster_of`` tries them in turn.
"""

from importlib import import_module
from pkgutil import iter_modules

from vdla.compiler.graph.clusters.cluster import KINDS, Cluster, End
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.wide import Quantize16

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def cluster_of(node: End, around: Neighbours) -> Cluster | None:
    """Cluster that a node quantizes; None where it quantizes none, or the result isn't int8 with
    one scale, or 16 bits with one.
    """
    wide = isinstance(node, Quantize16)
    dtype = "int32" if wide else "int8"
    if node.axis is not None or around.tensors[node.output].dtype != dtype:
        return None
    clusters = (kind.find(node, around) for kind in KINDS if kind.WIDE or not wide)
    return next((cluster for cluster in clusters if cluster is not None), None)


__all__ = ["Cluster", "End", "cluster_of"]
