"""Trees of functions: a schedule's loops and statements, for a processor and for a GPU."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.search.forest import depths
from vdla.compiler.targets.processor.search.tasks import function_tasks
from vdla.compiler.targets.search.loop_tree import NAMES, tree_of
from vdla.compiler.tir.lower import flatten_blocks


def rows_of(tree):
    """Each node's depth and features that aren't 0."""
    named = [{n: float(v) for n, v in zip(NAMES, row, strict=True) if v} for row in tree.rows]
    return list(zip(depths(tree.parents), named, strict=True))


def scheduled(how):
    """The tree of a sum of two matrices, of which the second is transposed, of floats."""
    a, b = te.placeholder((8, 32), "float32", "a"), te.placeholder((32, 8), "float32", "b")
    c = te.compute((8, 32), lambda y, x: a[y, x] + b[x, y] + a[y, x], "c")
    s = create_schedule(c)
    how(s[c], *c.axis)
    return rows_of(tree_of(flatten_blocks(s.mod)))


def test_loops_and_accesses_by_hand():
    def how(stage, y, x):
        stage.parallel(y)
        stage.vectorize(x)

    root, outer, inner, store, *accesses = scheduled(how)
    assert root == (0, {"function": 1})
    assert outer[0] == 1
    assert outer[1]["parallel"] == 1
    assert outer[1]["extent"] == pytest.approx(log2(9))
    assert outer[1]["touched"] == pytest.approx(log2(1 + 3 * 8 * 32 * 4))
    assert inner[1]["vectorized"] == 1
    assert inner[1]["turns"] == pytest.approx(log2(1 + 8 * 32))
    assert inner[1]["touched"] == pytest.approx(log2(1 + 3 * 32 * 4))
    assert store == (3, {"store": 1, "ops": pytest.approx(log2(3)), "turns": inner[1]["turns"]})
    assert [depth for depth, _ in accesses] == [4, 4, 4]
    written, first, second = (node for _, node in accesses)
    assert written["write"] == first["read"] == second["read"] == 1
    assert (written["side by side"], first["side by side"]) == (1, 1)
    assert first["times"] == pytest.approx(log2(3))  # one node for two reads of a
    assert "side by side" not in second
    assert second["stride"] == pytest.approx(log2(1 + 8))


def test_a_loop_that_does_not_move_an_access_uses_it_again():
    a, b = te.placeholder((16,), "float32", "a"), te.placeholder((4,), "float32", "b")
    c = te.compute((4, 16), lambda y, x: a[x] * b[y], "c")
    _, *nodes = rows_of(tree_of(flatten_blocks(create_schedule(c).mod)))
    reads = [node for _, node in nodes if "read" in node]
    assert [node["again"] for node in reads] == pytest.approx([log2(1 + 4), log2(1 + 16)])
    assert [node.get("still", 0) for node in reads] == [0, 1]


def test_a_task_shows_trees_of_its_schedules(product):
    (task,) = function_tasks([product], "sketch")
    points = task.space.draw((), 8, np.random.default_rng(0))
    trees = task.trees(points)
    assert trees.names == NAMES
    assert len(trees) == 8
    assert trees.legal.any()
    assert np.isfinite(trees.rows).all()
    keys = {(w, rows.tobytes()) for w, rows in zip(trees.which.tolist(), trees.rows, strict=True)}
    assert len(keys) > 4  # other schedules, other trees
    assert (task.features(points).legal == trees.legal).all()
    assert len(task.trees([])) == len(task.features([])) == 0
