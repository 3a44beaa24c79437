"""A recursive network over programs' trees as a cost model, which vdla trains itself.

After the TreeRNN of TVM (Chen et al., OSDI'18, section 5.2). All nodes share their weights; a node
has a state of its row of features and of the sum of its children's states, and the root's state
gives the score:

    h = tanh(W x + U Σ h_child + b)        s = v · h_root

A level of many trees is computed at once, in a scan from the deepest up. The loss is of pairs
within a group, by how much faster one of them is. Forward, gradient and Adam's step are one
compiled function, traced once for each padded size of trees; numpy draws what it is trained with.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.autodiff.grad import value_and_grad
from vdla.compiler.autodiff.optim import Adam, State
from vdla.compiler.search.cost_model import CostModel, ModelKind, speed
from vdla.compiler.search.forest import Forest
from vdla.compiler.search.points import Floats
from vdla.compiler.tracing.control import scan
from vdla.compiler.tracing.fn import fn

Array = NDArray[np.float32]
Params = dict[str, Array]

STATE = 32  # numbers of a node's state
STEPS = 400  # of one training
RATE = 5e-3  # of Adam, at first; it falls to 0 along a cosine
GROUPS, MEMBERS = 4, 16  # of one step: spaces, and candidates of each
BATCH = 256  # trees that are scored at once
DEPTH, WIDTH = 4, 2  # trees are padded to a multiple of so many levels, a power of so many slots
ADAM = Adam(RATE)


def scores(p: Params, rows: Array, links: Array) -> Array:
    """Scores [trees] of trees by levels.

    Args:
        rows: of nodes [trees, depth, width, features].
        links: 1 where a node of the next level is a node's child [trees, depth - 1, width, width].
    """
    trees, depth, width, features = rows.shape
    by_level = rows.transpose(1, 0, 2, 3).reshape(-1, features)
    own = (by_level @ p["w"] + p["b"]).reshape(depth, trees * width, STATE)

    def level(below: Array, above: tuple[Array, Array]) -> tuple[Array, None]:
        own, children = above
        sums = (children @ below).reshape(-1, STATE)
        return np.tanh(own + sums @ p["u"]).reshape(trees, width, STATE), None

    deepest = np.tanh(own[depth - 1]).reshape(trees, width, STATE)
    others = own[: depth - 1], links.transpose(1, 0, 2, 3)
    state, _ = scan(level, deepest, others, reverse=True)
    result: Array = (state[:, 0] @ p["v"]).reshape(trees)
    return result


def loss(p: Params, rows: Array, links: Array, speeds: Array) -> Array:
    """Mean logistic loss of the pairs within groups, by the difference of their speeds.

    Args:
        rows, links: of trees, group by group, as ``scores`` has them.
        speeds: of candidates [groups, members]; two of one speed are no pair.
    """
    groups, members = speeds.shape
    score = scores(p, rows, links).reshape(groups, members)
    ahead = score.reshape(groups, members, 1) - score.reshape(groups, 1, members)
    faster = speeds.reshape(groups, members, 1) - speeds.reshape(groups, 1, members)
    weight = np.maximum(faster, 0)
    wrong = np.maximum(-ahead, 0) + np.log(1 + np.exp(-np.abs(ahead)))
    result: Array = np.sum(weight * wrong) / (np.sum(weight) + 1e-9)
    return result


@fn
def score_trees(p: Params, rows: Array, links: Array) -> Array:
    """Scores, compiled."""
    return scores(p, rows, links)


@fn
def step(
    p: Params, state: State, batch: tuple[Array, Array, Array], rate: np.float32
) -> tuple[Array, Params, State]:
    """The loss of a batch, and the parameters and Adam's state behind one step."""
    value, slopes = cast("tuple[Array, Params]", value_and_grad(loss)(p, *batch))
    return value, *ADAM.step(p, slopes, state, rate)


def initial(features: int, rng: np.random.Generator) -> Params:
    """Random parameters: a node's own share and its children's have the variance of one input."""

    def drawn(inputs: int, outputs: int) -> Array:
        spread = np.float32(1 / np.sqrt(inputs))
        return rng.standard_normal((inputs, outputs), np.float32) * spread

    return {
        "w": drawn(features, STATE),
        "u": drawn(STATE, STATE),
        "b": np.zeros(STATE, np.float32),
        "v": drawn(STATE, 1),
    }


class TreeRanker(CostModel[Forest]):
    """TreeRNN over trees whose nodes have features of some names; each training starts anew.

    ``losses`` are those of the last training's steps.
    """

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.features, self.seed = len(names), seed
        self.params = initial(self.features, np.random.default_rng(seed))
        self.mean, self.spread = np.zeros(self.features), np.ones(self.features)
        self.losses: list[float] = []

    def fit(self, groups: Sequence[tuple[Forest, Floats]]) -> None:
        """Learns from groups of (trees, costs); infinity for an illegal one."""
        forest = Forest.joined([seen for seen, _ in groups])
        self._measure(forest)
        rng = np.random.default_rng(self.seed)
        params = initial(self.features, rng)
        state, self.losses = ADAM.start(params), []
        ends = np.cumsum([0, *(len(costs) for _, costs in groups)])
        members = [np.arange(*each) for each in pairwise(ends)]
        speeds = np.concatenate([speed(costs) for _, costs in groups])
        rates = RATE * (1 + np.cos(np.pi * np.arange(STEPS) / STEPS)) / 2
        for rate in rates:
            own = [members[n] for n in _drawn_groups(len(groups), rng)]
            places = np.concatenate([rng.choice(each, MEMBERS) for each in own])
            wanted = speeds[places].reshape(GROUPS, MEMBERS).astype(np.float32)
            batch = (*self._levels(forest.take(places)), wanted)
            value, params, state = step(params, state, batch, np.float32(rate))
            self.losses.append(float(value))
        self.params = params

    def score(self, seen: Forest) -> Floats:
        """Scores of trees [trees]."""
        result = np.empty(len(seen))
        for start in range(0, len(seen), BATCH):
            places = np.arange(start, min(start + BATCH, len(seen)))
            levels = self._levels(seen.take(np.resize(places, BATCH)))
            result[places] = score_trees(self.params, *levels)[: len(places)]
        return result

    def _measure(self, forest: Forest) -> None:
        """Keeps the mean and the spread of each feature of nodes, which become 0 and 1."""
        rows = forest.rows[forest.nodes].astype(np.float64)
        self.mean, spread = rows.mean(axis=0), rows.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)

    def _levels(self, forest: Forest) -> tuple[Array, Array]:
        """Normalized rows by levels, and links, padded to one of few sizes."""
        depth, width = forest.size
        scaled = (forest.rows - self.mean) / self.spread * forest.nodes[..., None]
        normal = Forest(forest.names, forest.structures, forest.which, scaled.astype(np.float32))
        return normal.levels(-(-depth // DEPTH) * DEPTH, WIDTH ** (width - 1).bit_length())


def _drawn_groups(count: int, rng: np.random.Generator) -> list[int]:
    """Groups of one step: the last one, whose space is searched, has half of them."""
    others = rng.integers(count, size=GROUPS - GROUPS // 2).tolist()
    return [*others, *[count - 1] * (GROUPS // 2)]


TREE = ModelKind.of("tree", TreeRanker, lambda shown, points: shown.trees(points))
