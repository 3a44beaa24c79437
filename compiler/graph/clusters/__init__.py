"""Float operators between Dequantize and Quantize that are one operator on images of integers.

Each kind of them is a file of this folder, found by being here; ``cluster_of`` tries them in turn.
"""

from importlib import import_module
from pkgutil import iter_modules

from vdla.compiler.graph.clusters.cluster import KINDS, Cluster
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.quantize import Quantize

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def cluster_of(node: Quantize, around: Neighbours) -> Cluster | None:
    """Cluster that a node quantizes; None where it quantizes none, or the result isn't int8 with
    one scale.
    """
    if node.axis is not None or around.tensors[node.output].dtype != "int8":
        return None
    clusters = (kind.find(node, around) for kind in KINDS)
    return next((cluster for cluster in clusters if cluster is not None), None)


__all__ = ["Cluster", "cluster_of"]
