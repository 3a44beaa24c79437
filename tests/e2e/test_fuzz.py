"""Random configs times random networks: outputs are the host's, or the compiler refuses by name."""

from __future__ import annotations

import time
from collections import Counter
from random import Random

import fuzz
import pytest
from fuzz import Pair, failure, limited, shrunk
from random_configs import random_settings
from random_networks import KINDS, Layer, random_network

from vdla.farm.processes import ProcessPool
from vdla.farm.work import Answer
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.support.errors import UserError

PART = 300  # pairs of a long test


def assert_no_failure(seed: int, pairs: int) -> fuzz.Report:
    report = fuzz.fuzz(seed, pairs)
    print(f"seed {seed}, {pairs} pairs: {report}")
    assert not report.failed, f"python tests/support/fuzz.py --seed {seed} --pairs {pairs}"
    assert report.equal + report.refused.total() == pairs
    return report


def test_twenty_pairs():
    """Starting where a fetch that can starve fails 22 times in 200."""
    report = assert_no_failure(100, 20)
    assert report.equal > 15
    assert report.layers > 10


def test_processes_share_the_pairs():
    with ProcessPool(2) as pool:
        shared = fuzz.fuzz(3, 4, pool=pool)
    assert shared == fuzz.fuzz(3, 4)
    assert shared.equal + shared.refused.total() == 4


def test_pairs_that_nobody_answers_for_fail(capsys):
    class Dead(ProcessPool):
        def answers(self):
            yield 0, Answer(None, "crash", "the process ended with exit code -9")

    with Dead(1) as pool:
        report = fuzz.fuzz(5, 3, pool=pool)
    assert set(report.failed) == {5, 6, 7}
    assert capsys.readouterr().out == "pairs 5 to 7: the process ended with exit code -9\n"


@pytest.mark.long
def test_eighty_more_pairs():
    assert_no_failure(120, 80)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_three_thousand_pairs(part):
    assert_no_failure(10_000 + part * PART, PART)


# What is drawn ----------------------------------------------------------------------------------


def test_configs_reach_the_ends():
    """Every parameter takes several values, the least and the greatest among them."""
    values: dict[str, set[int]] = {}
    for seed in range(400):
        for key, _, value in (each.partition("=") for each in random_settings(Random(seed))):
            values.setdefault(key, set()).add(int(value))
    ends = {
        "command_queue": (2, 1000), "token_queue": (1, 1000), "burst_beats": (1, 256),
        "reads_in_flight": (1, 512), "writes_in_flight": (1, 512), "memory.latency": (0, 5000),
        "memory.bytes_per_cycle": (1, 64), "port_bytes": (4, 32),
    }  # fmt: skip
    for key, (low, high) in ends.items():
        assert (min(values[key]), max(values[key])) == (low, high), key
    depths = Counter()
    for seed in range(400):
        config = load_config("tiny", random_settings(Random(seed)))
        depths.update((b, config.depth(b)) for b in ("inp", "wgt", "acc", "uop"))
    assert values["block_in"] & values["block_out"] & {12, 20, 28, 36, 60}  # no powers of two
    assert all(depths[b, 2] for b in ("inp", "wgt", "acc", "uop"))


def test_networks_have_every_kind_of_layer():
    networks = [random_network(seed) for seed in range(len(KINDS))]
    assert {layer.kind for each in networks for layer in each.layers} == set(KINDS)
    assert random_network(7) == random_network(7)
    ops = {node.op_type for each in networks for node in each.model().graph.node}
    assert ops >= {
        "Conv", "Gemm", "Add", "MaxPool", "AveragePool", "GlobalAveragePool", "Mul", "Sub", "Min",
        "Concat", "Relu", "Clip", "Flatten", "Resize",
    }  # fmt: skip


# What is found ----------------------------------------------------------------------------------


def test_a_failure_is_printed_as_small_as_it_gets(monkeypatch, capsys):
    """One that needs a dense layer and a token queue of one."""

    def fails(pair):
        if "token_queue=1" in pair.settings and any(
            layer.kind == "dense" for layer in pair.network.layers
        ):
            raise RuntimeError("it stands still")
        return 1

    monkeypatch.setattr(fuzz, "run", fails)
    number = next(n for n in range(1000) if failure(Pair.of(n)) and len(Pair.of(n).settings) > 9)
    report = fuzz.fuzz(number, 1)
    assert report.failed == {number: "RuntimeError: it stands still"}
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "RuntimeError: it stands still"
    assert second.startswith(f"  pair {number}: Network(seed={number // fuzz.CONFIGS}, shape=[")
    assert second.endswith(", [dense()])")
    assert third == "  -c tiny --set token_queue=1"


def test_a_refusal_is_no_failure(monkeypatch):
    def refuses(pair):
        raise UserError("config tiny: expected more")

    monkeypatch.setattr(fuzz, "run", refuses)
    report = fuzz.fuzz(0, 3)
    assert (report.equal, report.refused, report.failed) == (0, Counter({"config tiny": 3}), {})


def test_another_output_is_a_failure(monkeypatch):
    class Wrong(SimDevice):
        def load(self, program, dram, given=(), wanted=()):
            start = super().load(program, dram, given, wanted)

            def run():
                result = start()
                dram[:] ^= 1
                return result

            return run

    monkeypatch.setattr(fuzz, "SimDevice", Wrong)
    number = next(n for n in range(100) if Pair.of(n).network.layers[-1].kind == "max_pool")
    assert failure(Pair.of(number)).startswith("AssertionError: ")


def test_a_pair_without_an_end_is_a_failure():
    with limited(1), pytest.raises(fuzz.TooLong, match="expected an end within 1 s, found none"):
        time.sleep(30)


def test_shrinking_leaves_what_fails():
    pair = Pair.of(3)
    assert shrunk(pair, lambda p: True).network.layers == ()
    assert shrunk(pair, lambda p: True).settings == ()
    assert shrunk(pair, lambda p: False) == pair
    assert str(Layer("conv", channels=3)) == "conv(channels=3)"
