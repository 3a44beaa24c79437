"""The ledger of a farm: each job has one answer, whatever is lost; short jobs go together."""

from __future__ import annotations

import pickle

import pytest

from vdla.farm.batches import TARGET_SECONDS, Batch, Done, Ledger
from vdla.farm.work import CRASH, LOST, NO_LIMITS, Answer, Packed


def packed(size=1, needs=()):
    return Packed(b"x" * size, b"", needs, NO_LIMITS)


def places(count):
    """There are so many processes, whatever a job needs."""
    return lambda needs: count


def done(batch, seconds=0.01, count=None):
    """A batch's jobs are done, or the first few; each value is its number."""
    numbers = batch.numbers[:count]
    return Done(tuple(Answer(pickle.dumps(n)) for n in numbers), seconds * len(numbers))


@pytest.fixture
def ledger():
    return Ledger()


def add(ledger, count, **fields):
    return [ledger.add(packed(**fields), "kind") for _ in range(count)]


def learn(ledger, seconds):
    """Has a ledger see some jobs that take so long."""
    for turn in range(13):
        add(ledger, 2 ** (turn + 1))
        batch = ledger.take(places(1))
        ledger.settle(batch, done(batch, seconds))
        ledger.clear()


def test_every_job_has_an_answer_once(ledger):
    add(ledger, 3)
    answers = []
    while batch := ledger.take(places(2)):
        answers += ledger.settle(batch, done(batch))
        assert ledger.settle(batch, done(batch)) == []
    assert answers == [(n, Answer(n)) for n in range(3)]
    assert len(ledger) == 0


@pytest.mark.parametrize(
    ("seconds", "count"), [(1e-4, int(TARGET_SECONDS / 1e-4)), (0.01, 25), (0.1, 2), (3.0, 1)]
)
def test_a_batch_takes_a_quarter_of_a_second(ledger, seconds, count):
    learn(ledger, seconds)
    add(ledger, 10_000)
    assert len(ledger.take(places(1)).numbers) == pytest.approx(count, rel=0.01)


def test_the_first_jobs_go_alone_and_batches_grow_slowly(ledger):
    add(ledger, 10_000)
    sizes = []
    for _ in range(6):
        batch = ledger.take(places(1))
        sizes.append(len(batch.numbers))
        ledger.settle(batch, done(batch, 1e-6))
    assert sizes == [1, 2, 4, 8, 16, 32]


def test_the_last_jobs_are_spread_over_all_processes(ledger):
    learn(ledger, 0.05)
    add(ledger, 8)
    assert [len(ledger.take(places(4)).numbers) for _ in range(8)] == [1] * 8
    ledger.clear()
    learn(ledger, 0.005)
    add(ledger, 8)
    assert len(ledger.take(places(4)).numbers) == 8  # it isn't worth while for less than 50 ms


def test_jobs_wait_for_more_to_come(ledger):
    learn(ledger, 0.01)
    add(ledger, 24)
    assert ledger.take(places(1), more_comes=True) is None
    add(ledger, 1)
    assert ledger.take(places(1), more_comes=True).numbers


def test_a_batch_is_no_larger_than_a_message_should_be(ledger):
    learn(ledger, 1e-6)
    add(ledger, 5, size=1_500_000)
    assert len(ledger.take(places(1)).numbers) == 2


def test_jobs_with_other_needs_go_apart(ledger):
    learn(ledger, 1e-4)
    add(ledger, 2)
    add(ledger, 2, needs=("gpu",))
    assert {ledger.take(places(1)).needs, ledger.take(places(1)).needs} == {(), ("gpu",)}


def test_jobs_that_wait_for_one_board_hold_up_no_others(ledger):
    add(ledger, 100, needs=("board",))
    add(ledger, 100)
    taken = list(iter(lambda: ledger.take(lambda needs: 1 if needs else 3), None))
    assert [len(batch.numbers) for batch in taken] == [1] * 12
    assert sum(batch.needs == ("board",) for batch in taken) == 4
    ledger.settle(taken[0], done(taken[0]))
    assert ledger.take(places(1)).needs == ("board",)


def test_what_is_lost_is_sent_again_first(ledger):
    add(ledger, 3)
    first = ledger.take(places(1))
    ledger.put_back(first)
    assert ledger.take(places(1)).numbers == first.numbers == (0,)


def test_what_a_batch_had_no_time_for_waits_again(ledger):
    learn(ledger, 1e-3)
    numbers = add(ledger, 10)
    batch = ledger.take(places(1))
    assert [n for n, _ in ledger.settle(batch, done(batch, count=4))] == numbers[:4]
    assert ledger.take(places(1)).numbers[0] == numbers[4]


def test_a_lost_resource_costs_no_job(ledger):
    add(ledger, 1, needs=("gpu",))
    batch = ledger.take(places(1))
    assert ledger.settle(batch, Done((Answer(None, LOST, "gone"),), 0.1)) == []
    assert ledger.take(places(1)).numbers == batch.numbers


def test_who_takes_workers_down_is_found_among_its_batch(ledger):
    learn(ledger, 1e-3)
    first, second, third = add(ledger, 3)
    batch = ledger.take(places(1))
    assert batch.numbers == (first, second, third)
    assert ledger.accuse(batch) == []
    suspect = ledger.take(places(1))
    assert suspect == Batch((first,), batch.jobs[:1], suspect=True)
    assert (
        ledger.take(places(1)) is None
    )  # one suspect at a time: otherwise it wouldn't be known which
    assert ledger.settle(suspect, done(suspect)) == [(first, Answer(first))]
    suspect = ledger.take(places(1))
    assert ledger.accuse(suspect) == [
        (second, Answer(None, CRASH, "it took down its worker 4 times"))
    ]
    assert ledger.take(places(1)).numbers == (third,)


def test_a_suspect_that_is_lost_with_the_scheduler_stays_one(ledger):
    add(ledger, 1)
    ledger.accuse(ledger.take(places(1)))
    ledger.put_back(ledger.take(places(1)))
    assert ledger.take(places(1)).suspect


def test_a_value_that_cannot_be_unpickled_is_a_crash(ledger):
    add(ledger, 1)
    ((_, answer),) = ledger.settle(ledger.take(places(1)), Done((Answer(b"?"),), 0.1))
    assert answer.status == CRASH
    assert answer.note.startswith("its value: UnpicklingError")


def test_nothing_is_left_of_what_is_cleared(ledger):
    add(ledger, 3)
    ledger.accuse(ledger.take(places(1)))
    batch = ledger.take(places(1))
    ledger.clear()
    assert ledger.take(places(1)) is None
    assert ledger.settle(batch, done(batch)) == []
    assert len(ledger) == 0
