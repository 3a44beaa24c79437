"""TreeRNN against a recursion in numpy, central differences, and a space of structures."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import tree_rnn
from vdla.compiler.autodiff.grad import value_and_grad
from vdla.compiler.search.forest import Forest, Tree
from vdla.compiler.tree_rnn import MEMBERS, TreeRanker, initial, loss, score_trees, scores

NAMES = ("a", "b", "c")
Parents = tuple[int, ...]


def drawn(rng: np.random.Generator, most: int = 7) -> Tree:
    """A random tree."""
    count = int(rng.integers(1, most + 1))
    parents = (-1, *(int(rng.integers(node)) for node in range(1, count)))
    return Tree(parents, rng.standard_normal((count, len(NAMES)), np.float32))


def recursive(p, tree: Tree, node: int = 0):
    """The state of a node, straight from the definition."""
    below = [recursive(p, tree, child) for child, up in enumerate(tree.parents) if up == node]
    total = sum(below, np.zeros(p["u"].shape[0]))
    return np.tanh(tree.rows[node] @ p["w"] + total @ p["u"] + p["b"])


def test_levels_of_many_trees_compute_what_a_recursion_does():
    rng = np.random.default_rng(1)
    trees, p = [drawn(rng) for _ in range(9)], initial(len(NAMES), rng)
    p["b"] += 0.3  # so that an empty slot would show
    forest = Forest.of(NAMES, trees)
    expected = [recursive(p, tree) @ p["v"][:, 0] for tree in trees]
    depth, width = forest.size
    for size in ((depth, width), (depth + 2, width + 1)):
        levels = forest.levels(*size)
        np.testing.assert_allclose(scores(p, *levels), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(score_trees(p, *levels), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["w", "u", "b", "v"])
def test_gradients_are_central_differences(name):
    rng = np.random.default_rng(2)
    p = initial(len(NAMES), rng)
    levels = Forest.of(NAMES, [drawn(rng, 5) for _ in range(8)]).levels(5, 4)
    speeds = rng.random((2, 4)).astype(np.float32)
    _, slopes = value_and_grad(loss)(p, *levels, speeds)
    way = rng.standard_normal(p[name].shape)
    exact = {key: value.astype(np.float64) for key, value in p.items()}
    ends = [loss(exact | {name: exact[name] + h * way}, *levels, speeds) for h in (1e-4, -1e-4)]
    assert np.sum(slopes[name] * way) == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-3)


def structured(count: int, seed: int) -> tuple[Forest, np.ndarray]:
    """Trees of the same nodes, and costs that say how deep the only one that is marked lies."""
    rng = np.random.default_rng(seed)
    trees, costs = [], []
    for _ in range(count):
        parents: Parents = (-1, *(int(rng.integers(max(n - 2, 0), n)) for n in range(1, 7)))
        marked, depth = int(rng.integers(1, 7)), 0
        node = marked
        while node:
            node, depth = parents[node], depth + 1
        rows = np.zeros((7, len(NAMES)), np.float32)
        rows[:, 0], rows[marked, 1] = 1, 1
        trees.append(Tree(parents, rows))
        costs.append(1.0 + depth)
    return Forest.of(NAMES, trees), np.array(costs)


def test_training_lowers_the_loss_and_ranks_by_structure():
    ranker = TreeRanker(NAMES, 0)
    ranker.fit([structured(200, 0)])
    assert np.mean(ranker.losses[-20:]) < np.mean(ranker.losses[:20]) / 3
    seen, costs = structured(100, 1)
    sums = seen.rows.sum(axis=1)
    assert (sums == sums[0]).all()  # no bag of nodes tells them apart
    assert np.corrcoef(ranker.score(seen), -costs)[0, 1] > 0.9


def test_costs_of_other_spaces_are_not_compared():
    seen, costs = structured(60, 2)
    ranker = TreeRanker(NAMES, 0)
    ranker.fit([(seen, 1000 * costs), (seen, costs)])
    assert np.corrcoef(ranker.score(seen), -costs)[0, 1] > 0.9


def test_the_same_seed_gives_the_same_scores(monkeypatch):
    monkeypatch.setattr(tree_rnn, "STEPS", 20)
    seen, costs = structured(MEMBERS, 3)

    def scored(seed):
        ranker = TreeRanker(NAMES, seed)
        ranker.fit([(seen, costs)])
        ranker.fit([(seen, costs)])  # anew, whatever it had learned before
        return ranker.score(seen)

    assert (scored(0) == scored(0)).all()
    assert (scored(0) != scored(1)).any()


def test_what_is_illegal_or_of_one_cost_is_survived(monkeypatch):
    monkeypatch.setattr(tree_rnn, "STEPS", 20)
    seen, _ = structured(5, 4)
    ranker = TreeRanker(NAMES, 0)
    for costs in (np.full(5, np.inf), np.ones(5), np.array([np.inf, 1, 1, 1, 2])):
        ranker.fit([(seen, costs)])
        assert np.isfinite(ranker.score(seen)).all()
