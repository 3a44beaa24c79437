"""Trees of programs, many at once: what a cost model sees that reads loops and not features.

A tree's nodes are the loops and statements of a candidate's program, each with a row of features.
Candidates of one space share few structures, so a forest has each structure once and the rows of
all its trees in one array. A model that goes from leaves to roots takes them by levels: all nodes
of one depth at a time, in as many slots as the widest level has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.search.points import Ints

Rows = NDArray[np.float32]
Structure = tuple[int, ...]  # each node's parent, which stands before it; -1 of the root alone
LONE: Structure = (-1,)


@dataclass(frozen=True)
class Tree:
    """A program's tree: the parents of its nodes, and a row of features for each [nodes, features].

    The root is node 0, and a parent stands before its children.
    """

    parents: Structure
    rows: Rows


@dataclass(frozen=True)
class Forest:
    """Trees whose nodes have features of the same ``names``.

    ``which`` [trees] are the trees' structures, as places in ``structures``; -1 for a candidate
    that isn't legal and has no tree. ``rows`` [trees, nodes, features] are zero behind a tree's
    last node.
    """

    names: tuple[str, ...]
    structures: tuple[Structure, ...]
    which: Ints
    rows: Rows

    @classmethod
    def of(cls, names: tuple[str, ...], trees: Sequence[Tree | None]) -> Self:
        """Forest of some trees; None for candidates that have none."""
        own = dict.fromkeys(tree.parents for tree in trees if tree is not None)
        number = {parents: n for n, parents in enumerate(own)}
        which = [-1 if tree is None else number[tree.parents] for tree in trees]
        most = max(map(len, own), default=1)
        rows = np.zeros((len(trees), most, len(names)), np.float32)
        for row, tree in zip(rows, trees, strict=True):
            if tree is not None:
                row[: len(tree.rows)] = tree.rows
        return cls(names, tuple(own) or (LONE,), np.array(which, np.int64), rows)

    @classmethod
    def joined(cls, forests: Sequence[Self]) -> Self:
        """Forest of the trees of some forests, one forest behind the other."""
        own = dict.fromkeys(each for forest in forests for each in forest.structures)
        number = {parents: n for n, parents in enumerate(own)}
        most = max(forest.rows.shape[1] for forest in forests)
        which, rows = [], []
        for forest in forests:
            places = np.array([number[parents] for parents in forest.structures])
            which.append(np.where(forest.which < 0, -1, places[forest.which]))
            rows.append(np.pad(forest.rows, ((0, 0), (0, most - forest.rows.shape[1]), (0, 0))))
        return cls(forests[0].names, tuple(own), np.concatenate(which), np.concatenate(rows))

    def __len__(self) -> int:
        return len(self.which)

    def take(self, places: Sequence[int] | Ints) -> Forest:
        """Forest of the trees at some places."""
        places = np.asarray(places, np.int64)
        return Forest(self.names, self.structures, self.which[places], self.rows[places])

    @property
    def legal(self) -> NDArray[np.bool_]:
        """Whether there is a tree, for each candidate."""
        return self.which >= 0

    @cached_property
    def nodes(self) -> NDArray[np.bool_]:
        """Whether a row is a node's [trees, nodes]."""
        sizes = np.array([len(parents) for parents in self.structures])[self.which] * self.legal
        return np.arange(self.rows.shape[1]) < sizes[:, None]

    @cached_property
    def size(self) -> tuple[int, int]:
        """Number of levels of the deepest tree, and of nodes in the widest level."""
        levels = [np.bincount(depths(parents)) for parents in self.structures]
        return max(map(len, levels)), max(int(level.max()) for level in levels)

    def levels(self, depth: int, width: int) -> tuple[Rows, Rows]:
        """Rows by levels [trees, depth, width, features], zero where there is no node; and which
        nodes of the next level are a node's children [trees, depth - 1, width, width].

        Args:
            depth, width: at least those of ``size``.
        """
        layouts = [_layout(parents, depth, width) for parents in self.structures]
        slots = np.stack([slot for slot, _ in layouts])[self.which]
        links = np.stack([link for _, link in layouts])[self.which]
        behind = np.zeros((len(self), 1, len(self.names)), np.float32)
        rows = np.concatenate([self.rows, behind], axis=1)  # slot -1 has the row of zeros
        return rows[np.arange(len(self))[:, None, None], slots], links


def depths(parents: Structure) -> list[int]:
    """Number of nodes above each node."""
    result: list[int] = []
    for parent in parents:
        result.append(0 if parent < 0 else result[parent] + 1)
    return result


@lru_cache(maxsize=1 << 10)
def _layout(parents: Structure, depth: int, width: int) -> tuple[Ints, Rows]:
    """Node of each slot [depth, width], -1 in those that are empty; and the links of levels."""
    slots = np.full((depth, width), -1)
    links = np.zeros((depth - 1, width, width), np.float32)
    slot: list[int] = []
    for node, level in enumerate(depths(parents)):
        slot.append(int(np.count_nonzero(slots[level] >= 0)))
        slots[level, slot[node]] = node
        if level:
            links[level - 1, slot[parents[node]], slot[node]] = 1
    return slots, links
