"""The pipeline from an imported model to integer operators, as a list of named passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import remove_dead
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.passes import (
    channels_first,
    dynamic,
    external,
    fold,
    fuse_integer,
    fuse_qdq,
    images,
    interleave,
    layers,
    move,
    move_qdq,
    split,
    tabulate,
    to_int8,
    volumes,
)
from vdla.compiler.graph.spec import INTEGER, Kinds, Pass, spec_of

Dump = Callable[[str, Graph], None]
Rewrite = Callable[[Graph], Graph]

MOVING: Kinds = frozenset((ops.QMaxPool, ops.QTake, ops.QTranspose))  # change places with rounding

FIRST: tuple[Pass[Rewrite], ...] = (
    Pass("spell_dynamic", dynamic.spell_dynamic),
    Pass("channels_first", channels_first.channels_first, adds=frozenset((ops.QTranspose,))),
    Pass("volumes_as_images", volumes.volumes_as_images, adds=frozenset((ops.QReshape,))),
)

PIPELINE: tuple[Pass[Rewrite], ...] = (
    Pass("as_images", images.as_images),
    Pass("fold_scales", fold.fold_scales),
    Pass("to_int8", to_int8.to_int8, adds=MOVING | {ops.FlipSign}),
    Pass("merge_duplicates", fold.merge_duplicates),
    Pass("unify_layers", layers.unify_layers),
    Pass("move_qdq", move_qdq.move_qdq, adds=frozenset((ops.QConcat,))),
    Pass("move_interleave", interleave.move_interleave, adds=frozenset((ops.QInterleave,))),
    Pass("split_layers", split.split_layers),
    Pass("tabulate", tabulate.tabulate, adds=frozenset((ops.QTable,))),
    Pass("fuse_qdq", fuse_qdq.fuse_qdq, adds=INTEGER),
    Pass("fold_moves", move.fold_moves),
    Pass("remove_dead", remove_dead),
    Pass("fuse_clip", fuse_integer.fuse_clip),
    Pass("fuse_residual", fuse_integer.fuse_residual, adds=frozenset((ops.AddStep,))),
    Pass("fold_flatten", fold.fold_flatten),
    Pass("fold_constants", fold.fold_constants),
    Pass("remove_dead_again", remove_dead),
    Pass("join_external", external.join_external),
)


def optimize(
    graph: Graph,
    pipeline: Sequence[Pass[Rewrite]] = (*FIRST, *PIPELINE),
    dump: Dump | None = None,
) -> Graph:
    """Runs ``pipeline``, checking the graph after every pass.

    Args:
        graph: an imported model.
        pipeline: the passes.
        dump: called with each pass's name and the graph after it.
    """
    if dump:
        dump("imported", graph)
    spec = spec_of(graph)
    for each in pipeline:
        spec = spec.after(each)
        result = each.run(graph)
        graph = result if _unchanged(result, graph) else verify(result, spec, before=graph)
        if dump:
            dump(each.name, graph)
    return graph


def _unchanged(graph: Graph, before: Graph) -> bool:
    """Whether a pass had nothing to do, so that there is nothing to check."""
    same = len(graph.nodes) == len(before.nodes) and all(map(is_, graph.nodes, before.nodes))
    return (
        same
        and (graph.inputs, graph.outputs) == (before.inputs, before.outputs)
        and graph.tensors == before.tensors
        and graph.constants.keys() == before.constants.keys()
        and all(map(is_, graph.constants.values(), map(before.constants.get, graph.constants)))
    )
