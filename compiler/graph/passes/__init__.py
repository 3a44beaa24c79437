"""The pipeline from an imported model to integer operators, as a list of named passes."""

from __future__ import annotations

from collections.abc import Callable

from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.passes import external, fold, fuse, fuse_integer

Pass = Callable[[Graph], Graph]
Dump = Callable[[str, Graph], None]

PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("fold_batch_norm", fold.fold_batch_norm),
    ("to_int8", fuse.to_int8),
    ("merge_duplicates", fold.merge_duplicates),
    ("move_qdq", fuse.move_qdq),
    ("fuse_qdq", fuse.fuse_qdq),
    ("remove_dead", fold.remove_dead),
    ("fuse_clip", fuse_integer.fuse_clip),
    ("fuse_residual", fuse_integer.fuse_residual),
    ("fold_flatten", fold.fold_flatten),
    ("fold_constants", fold.fold_constants),
    ("remove_dead_again", fold.remove_dead),
    ("join_external", external.join_external),
)


def optimize(
    graph: Graph,
    pipeline: tuple[tuple[str, Pass], ...] = PIPELINE,
    dump: Dump | None = None,
) -> Graph:
    """Runs ``pipeline``, checking the graph after every pass.

    Args:
        graph: an imported model.
        pipeline: names and passes.
        dump: called with each pass's name and the graph after it.
    """
    if dump:
        dump("imported", graph)
    for name, run in pipeline:
        graph = verify(run(graph))
        if dump:
            dump(name, graph)
    return graph
