"""Host functions run again for their shortest time, and leave what one run leaves."""

from __future__ import annotations

import numpy as np

from vdla import api
from vdla.options import Run
from vdla.runtime.repeats import MOST, Repeats


class Doubling:
    """A function that works in place, and takes less time each time."""

    def __init__(self):
        self.place, self.runs = np.arange(4, dtype=np.uint8), 0

    def __call__(self):
        self.place *= 2
        self.runs += 1
        seconds = [1.0 / self.runs, 0.5]
        return lambda: seconds


def test_without_seconds_it_runs_once():
    call = Doubling()
    assert Repeats().shortest(call, [call.place])() == [1.0, 0.5]
    assert call.runs == 1


def test_the_shortest_counts_and_the_result_is_that_of_one_run():
    call, repeats = Doubling(), Repeats()
    repeats.left = 60.0
    assert repeats.shortest(call, [call.place])() == [1 / MOST, 0.5]
    assert call.place.tolist() == [0, 2, 4, 6]
    assert 0 < repeats.left < 60


def test_what_takes_longer_than_there_is_time_runs_once():
    call, repeats = Doubling(), Repeats()
    repeats.left = 1e-12
    repeats.shortest(call, [call.place])
    assert call.runs == 1


def test_a_network_gives_the_same_bytes():
    ready, _ = api.prepare("digits", Run(config="tiny"))
    inputs = api.random_inputs(ready.module)
    once = ready.run(inputs)
    ready.repeats.left = 0.05
    again = ready.run(inputs)
    for name, array in once.outputs.items():
        assert np.array_equal(array, again.outputs[name])
    assert again.cycles == once.cycles
