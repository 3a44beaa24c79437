"""Forests: trees by structures, and by levels."""

from __future__ import annotations

import numpy as np

from vdla.compiler.search.forest import Forest, Tree, depths

NAMES = ("a", "b")
#        0
#      1   3
#     2   4 5
DEEP = Tree((-1, 0, 1, 0, 3, 3), np.arange(1, 13, dtype=np.float32).reshape(6, 2))
FLAT = Tree((-1, 0, 0), np.full((3, 2), 7, np.float32))


def test_levels_have_every_node_once_under_its_parent():
    forest = Forest.of(NAMES, [FLAT, DEEP])
    assert forest.size == (3, 3)
    rows, links = forest.levels(4, 3)
    assert rows.shape == (2, 4, 3, 2)
    assert links.shape == (2, 3, 3, 3)
    assert rows[1, :, :, 0].tolist() == [[1, 0, 0], [3, 7, 0], [5, 9, 11], [0, 0, 0]]
    assert links[1, 0].tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert links[1, 1].tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert not links[:, 2].any()
    assert rows[0, 1, :, 0].tolist() == [7, 7, 0]
    assert depths(DEEP.parents) == [0, 1, 2, 1, 2, 2]


def test_trees_of_one_structure_share_it():
    forest = Forest.of(NAMES, [FLAT, None, DEEP, FLAT])
    assert forest.structures == (FLAT.parents, DEEP.parents)
    assert forest.which.tolist() == [0, -1, 1, 0]
    assert forest.legal.tolist() == [True, False, True, True]
    assert forest.nodes.sum(axis=1).tolist() == [3, 0, 6, 3]
    assert not forest.rows[1].any()
    taken = forest.take([2, 1])
    assert (len(taken), taken.which.tolist()) == (2, [1, -1])


def test_joined_forests_keep_their_trees():
    both = Forest.joined([Forest.of(NAMES, [FLAT, None]), Forest.of(NAMES, [DEEP, FLAT])])
    assert both.which.tolist() == [0, -1, 1, 0]
    assert both.rows[2].tolist() == DEEP.rows.tolist()
    assert both.rows[3, :3].tolist() == FLAT.rows.tolist()


def test_a_forest_of_what_is_not_legal_has_levels():
    forest = Forest.of(NAMES, [None])
    rows, links = forest.levels(2, 1)
    assert not rows.any()
    assert links.shape == (1, 1, 1, 1)
    assert len(Forest.of(NAMES, [])) == 0
