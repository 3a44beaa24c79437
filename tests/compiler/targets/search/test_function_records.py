"""Records of processors' schedules: what a line is, and which schedule is taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vdla.compiler.schedule.trace import Step
from vdla.compiler.search.records import Log, RecordError, export, holds
from vdla.compiler.targets.search.function_records import FunctionRecord, FunctionRecords
from vdla.compiler.targets.search.stopwatch import Timing

TIMING = Timing("ok", seconds=0.016, reference=0.02, spread=0.0)


def record_of(product, **changes):
    trace = [Step("vectorize", "out", {"axis": "out.x"})]
    made = FunctionRecord.of((product.digest, product.machine), trace, TIMING)
    return replace(made, **changes)


def test_a_line_is_read_back(product):
    record = record_of(product)
    assert FunctionRecord.from_line(record.to_line(), "log:1") == record
    assert record.steps == [Step("vectorize", "out", {"axis": "out.x"})]


def test_a_line_without_threads_is_of_one(product):
    line = record_of(product, threads=2).to_line()
    assert FunctionRecord.from_line(line, "log:1").threads == 2
    old = line.replace(b',"threads":2', b"")
    assert FunctionRecord.from_line(old, "log:1").threads == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": "odd"}, "status 'odd'"),
        ({"seconds": None}, "status ok with seconds None"),
        ({"reference": -1.0}, "status ok with reference -1.0"),
        ({"trace": [1]}, "a trace that isn't a list of steps"),
        ({"threads": 0}, "threads 0"),
    ],
)
def test_what_is_no_record_is_refused(product, changes, told):
    line = record_of(product, **changes).to_line()
    with pytest.raises(RecordError) as raised:
        FunctionRecord.from_line(line, "log:1")
    assert str(raised.value) == f"log:1: expected a tuning record, found {told}"


def test_a_log_of_the_accelerator_is_refused(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b'{"schema":2,"workload":{},"tile":{}}\n')
    with pytest.raises(RecordError) as raised:
        Log(path, FunctionRecord)
    assert str(raised.value) == (
        f"{path}:1: expected a tuning record of a processor, found one of an accelerator"
    )
    assert not holds(path, FunctionRecord)


def test_the_best_that_is_worth_it_is_taken(tmp_path, product):
    slow, fast, near = (record_of(product, seconds=s) for s in (0.018, 0.015, 0.0199))
    chosen = FunctionRecords(lambda: [slow, fast])
    assert chosen.best[product.digest, product.machine] is fast
    assert chosen.traces(product.machine)(product.digest) == fast.steps
    assert FunctionRecords(lambda: [near]).traces(product.machine)(product.digest) is None
    other = replace(fast, processor="another")
    assert FunctionRecords(lambda: [other]).traces(product.machine)(product.digest) is None
    assert export([slow, fast, other], tmp_path / "best") == 2
    assert holds(tmp_path / "best", FunctionRecord)
