"""A TreeLSTM over a tree of 31 nodes, its children arrays of indices: by levels and by nodes."""

import sys
from time import perf_counter

import numpy as np

import vdla

WIDE = int((*sys.argv[1:], 150)[0])
NODES = NONE = 31  # node 31 stands for none: it fills levels up
rng = np.random.default_rng(0)
w, u, b = (rng.normal(0, 0.1, size).astype(np.float32) for size in (
    (WIDE, 5 * WIDE), (2 * WIDE, 5 * WIDE), 5 * WIDE))  # fmt: skip
x = rng.normal(size=(NODES + 1, WIDE)).astype(np.float32)
leaves, children = np.arange(16), np.full((NODES + 1, 2), NONE)
children[16:NODES] = np.arange(30).reshape(15, 2)  # of 16: 0 and 1; of 17: 2 and 3; of 30: 28, 29
levels, nodes = np.full((4, 8), NONE), np.arange(NODES)[:, None]
for level, (first, end) in zip(levels, ((16, 24), (24, 28), (28, 30), (30, 31)), strict=True):
    level[: end - first] = range(first, end)


@vdla.fn
def cell(x, h=None, c=None):  # some nodes' inputs, and the states of two children of each
    gates = x @ w + b if h is None else x @ w + h.reshape(-1, 2 * WIDE) @ u + b
    i, o, new, left, right = np.split(gates, 5, axis=1)
    old = 0 if c is None else vdla.sigmoid(left) * c[:, 0] + vdla.sigmoid(right) * c[:, 1]
    c = vdla.sigmoid(i) * np.tanh(new) + old
    return vdla.sigmoid(o) * np.tanh(c), c


@vdla.fn
def tree(x, children, leaves, groups):  # groups of nodes, each behind those of its children
    def step(state, nodes):
        below = np.take(children, nodes, axis=0)
        new = cell(np.take(x, nodes, axis=0), *(np.take(s, below, axis=0) for s in state))
        return [vdla.set_at(s, nodes, n) for s, n in zip(state, new, strict=True)], None

    state = [np.zeros_like(x), np.zeros_like(x)]
    if leaves is not None:  # all at once, as they have no children
        state = [vdla.set_at(state[0], leaves, s) for s in cell(np.take(x, leaves, axis=0))]
    return vdla.scan(step, state, groups)[0][0][NODES - 1]


def calls(x, children, leaves, nodes):  # of the cell, one for each node
    h, c = np.zeros((2, NODES + 1, WIDE), np.float32)
    for n in nodes:
        h[n], c[n] = cell(x[n]) if n in leaves else cell(x[n], h[children[n]], c[children[n]])
    return h[NODES - 1]


def seconds(function, *groups):
    starts = [(perf_counter(), function(x, children, *groups))[0] for _ in range(50)]
    return min(np.diff(starts))


expected = tree.__wrapped__(x, children, leaves, levels)  # numpy alone
ways = {"a call per node": (calls, leaves, nodes), "a scan over nodes": (tree, None, nodes)}
for name, way in ways.items():
    for function, *groups in (way, (tree, leaves, levels)):
        assert np.allclose(function(x, children, *groups), expected, atol=1e-5)
    print(f"by levels ÷ {name}: {seconds(tree, leaves, levels) / seconds(*way):.2f} of the time")
