"""Random programs with nested control flow against an interpreter in numpy, to the bit.

They run on the processor with one and with two threads, on the simulated accelerator, and some on
a GPU. A failure is shrunk, and says the seed that makes its program.
"""

from __future__ import annotations

from collections import Counter

import fuzz_control
import pytest
from fuzz_control import failure, shrunk, wrong
from random_control import DEPTH, random_program, sample

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify_whole
from vdla.compiler.graph.ops.control import Control
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.linear import _Lines

PROGRAMS, LONG = 40, 1_960  # of `make test`, and of `make test-long` beside those
AT_ONCE, LONG_AT_ONCE = 10, 70


def batches(first, count, size):
    """Ranges of seeds, a test each."""
    return [range(seed, seed + size) for seed in range(first, first + count, size)]


def named(seeds):
    return f"{seeds.start}-{seeds.stop - 1}"


def assert_right(seeds):
    for seed in seeds:
        text = wrong(seed)
        assert not text, text


@pytest.mark.parametrize("seeds", batches(0, PROGRAMS, AT_ONCE), ids=named)
def test_programs(seeds):
    assert_right(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", batches(PROGRAMS, LONG, LONG_AT_ONCE), ids=named)
def test_many_programs(seeds):
    assert_right(seeds)


def parts(graph):
    """A graph, its functions, and all regions in them."""
    return [part for each in (graph, *graph.functions.values()) for part in each.whole()]


def depth(graph):
    """The number of control nodes inside one another."""
    inner = [region for node in graph.nodes for region in node.regions]
    own = bool(graph.of(Control))
    return own + max(map(depth, inner), default=0)


def test_programs_have_what_real_ones_have():
    """Over 300 seeds: nesting, recursion, layers for the accelerator, and all ways in which values
    pass into regions and out of them."""
    programs = [random_program(seed) for seed in range(300)]
    graphs = [part for program in programs for part in parts(program)]
    counts = Counter(type(node) for graph in graphs for node in graph.nodes)
    assert min(counts[kind] for kind in (ops.If, ops.While, ops.Scan, ops.Call)) > 100
    assert min(counts[kind] for kind in (ops.Conv2d, ops.Dense, ops.MatMul, ops.Gather)) > 20
    assert max(map(depth, programs)) == DEPTH
    assert sum(depth(program) == DEPTH for program in programs) > 20
    recursive = [
        name
        for program in programs
        for name, function in program.functions.items()
        if any(call.function == name for part in function.whole() for call in part.of(ops.Call))
    ]
    assert len(recursive) > 50
    choices = [node for graph in graphs for node in graph.of(ops.If)]
    loops = [node for graph in graphs for node in graph.of(ops.Loop)]
    regions = [(r, r.outputs) for node in (*choices, *loops) for r in node.regions]
    assert sum(not region.nodes for region, _ in regions) > 50
    assert sum(len({*outputs}) < len(outputs) for _, outputs in regions) > 50
    assert sum(name in r.constants for r, outputs in regions for name in outputs) > 50
    assert sum(name in r.inputs for r, outputs in regions for name in outputs) > 100
    scans = [loop for loop in loops if isinstance(loop, ops.Scan)]
    assert sum(scan.scanned > 1 for scan in scans) > 30
    assert sum(scan.carried == 0 for scan in scans) > 10
    assert sum(len(loop.outputs) > loop.carried for loop in loops) > 50
    swapped = 0
    for loop in loops:
        first = isinstance(loop, ops.While)
        after = loop.body.outputs[first : first + loop.carried]
        before = loop.body.inputs[1 : 1 + loop.carried]
        swapped += any(a != b and a in before for a, b in zip(after, before, strict=True))
    assert swapped > 30


def test_a_program_is_the_same_ever_after():
    program, again = random_program(11), random_program(11)
    assert format_graph(program) == format_graph(again)
    assert repr(beside(program)) == repr(beside(again))
    assert sample(program, 3).keys() == {*program.inputs}


def with_scan(graph):
    return any(part.of(ops.Scan) for part in parts(graph))


def test_a_fault_is_shrunk():
    """A program that fails while it has a Scan shrinks to that, and still runs."""
    program = next(p for p in map(random_program, range(100)) if with_scan(p) and depth(p) > 1)
    least = shrunk(program, with_scan)
    verify_whole(least)
    assert with_scan(least)
    assert len(least.outputs) == 1
    assert sum(len(part.nodes) for part in parts(least)) < 3
    evaluate(least, sample(least, 0))


def test_faults_are_seen(monkeypatch):
    """States of a loop that are never copied back are wrong in some of few programs."""
    copy = _Lines.copy

    def forgetful(self, data, output, **more):
        if not output.startswith("t") or more:
            copy(self, data, output, **more)

    monkeypatch.setattr(_Lines, "copy", forgetful)
    assert any(failure(random_program(seed), seed) for seed in range(5))


def test_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzz_control.py", "--seed", "3", "--programs", "2"])
    with pytest.raises(SystemExit) as end:
        fuzz_control.main()
    assert not end.value.code
    assert capsys.readouterr().out.startswith("seed 3, 2 programs: 0 wrong; ")
