"""A pool of processes: a crash, a hang or a lost resource costs one job, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import misbehaviour as jobs
import pytest

from vdla.farm import processes as module
from vdla.farm.processes import ProcessPool
from vdla.farm.work import CRASH, MEMORY, TIMEOUT, Answer, FarmError, Job, Limits, Setup

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def pool():
    with ProcessPool(2) as opened:
        yield opened


def one(pool, *job, **fields):
    """The answer of a job alone."""
    ((number, answer),) = pool.run([Job(*job, **fields)])
    assert number == 0
    return answer


def test_every_job_has_its_own_answer(pool):
    texts = ["a" * n for n in range(20)]
    answers = dict(pool.run(Job(jobs.length, (text,)) for text in texts))
    assert [answers[n] for n in range(20)] == [Answer(n) for n in range(20)]


def test_two_jobs_run_at_once(pool):
    dict(pool.run([Job(jobs.sleep, (0.01,))] * 2))
    began = time.monotonic()
    assert len(list(pool.run([Job(jobs.sleep, (0.5,))] * 4))) == 4
    assert time.monotonic() - began < 1.6


@pytest.mark.parametrize(
    ("function", "args", "note"),
    [
        (jobs.fault, (), "KeyError: 'a fault of ours'"),
        (jobs.complaint, (), "sizes: expected some, found none"),
        (jobs.segfault, (), "the process ended with exit code -11"),
        (jobs.leave, (3,), "the process ended with exit code 3"),
        (jobs.leave, (0,), "the process ended with exit code 0"),
    ],
)
def test_what_crashes_says_how(pool, function, args, note):
    assert one(pool, function, args) == Answer(None, CRASH, note)
    assert one(pool, jobs.length, ("abc",)) == Answer(3)


def test_a_value_that_cannot_be_pickled_is_a_crash(pool):
    answer = one(pool, jobs.closure)
    assert answer.status == CRASH
    assert answer.note.startswith("its value: ")


def test_what_takes_too_long_is_stopped(pool):
    began = time.monotonic()
    answer = one(pool, jobs.sleep, (60,), limits=Limits(seconds=0.3))
    assert answer == Answer(None, TIMEOUT, "not done after 0.3 s")
    assert time.monotonic() - began < 20
    assert one(pool, jobs.length, ("abc",)) == Answer(3)


def test_what_takes_too_much_memory_is_stopped(pool):
    limits = Limits(bytes=100 * MEGABYTE)
    answer = one(pool, jobs.memory, (300 * MEGABYTE,), limits=limits)
    assert answer == Answer(None, MEMORY, "it took more memory than 104,857,600 bytes")
    assert one(pool, jobs.memory, (50 * MEGABYTE,), limits=limits) == Answer(50 * MEGABYTE)
    assert one(pool, jobs.memory, (300 * MEGABYTE,)) == Answer(300 * MEGABYTE)


def test_a_setup_is_made_once_per_process():
    setups = [Setup(jobs.Counter, (10 * n,)) for n in range(2)]
    with ProcessPool(1) as pool:
        work = [Job(jobs.count, (n,), setups[n % 2]) for n in range(6)]
        answers = dict(pool.run(work))
    assert [answers[n].value for n in range(6)] == [
        (1 + n % 2 if n < 2 else 2, 10 * (n % 2) + n) for n in range(6)
    ]


def test_the_time_of_a_setup_is_not_the_jobs():
    with ProcessPool(1) as pool:
        slow = Setup(jobs.slow_counter, (1, 1.0))
        assert one(pool, jobs.count, (1,), slow, limits=Limits(seconds=0.5)) == Answer((1, 2))


def test_a_setup_that_hangs_is_stopped(monkeypatch):
    monkeypatch.setattr(module, "STARTING", 1.0)
    with ProcessPool(1) as pool:
        answer = one(pool, jobs.count, (1,), Setup(jobs.slow_counter, (1, 60)))
    assert answer == Answer(None, TIMEOUT, "not done after 1 s")


def test_a_process_killed_while_idle_costs_one_job(pool):
    for worker in pool._workers:
        worker.process.kill()
        worker.process.join()
    statuses = [answer.status for _, answer in pool.run([Job(jobs.length, ("a",))] * 4)]
    assert sorted(statuses) == ["crash", "crash", "ok", "ok"]


def test_cancelled_jobs_are_forgotten():
    with ProcessPool(1) as pool:
        for _ in range(3):
            pool.submit(Job(jobs.sleep, (60,)))
        assert pool._hand_out()
        pool.cancel()
        assert list(pool.answers()) == []
        assert one_number(pool) == 3


def one_number(pool):
    """The number of a new job."""
    number = pool.submit(Job(jobs.length, ("a",)))
    assert list(pool.answers()) == [(number, Answer(1))]
    return number


def test_jobs_may_come_while_others_are_out():
    with ProcessPool(1) as pool:
        pool.submit(Job(jobs.length, ("a",)))
        lengths = []
        for _, answer in pool.answers():
            lengths.append(answer.value)
            if len(lengths) < 4:
                pool.submit(Job(jobs.length, ("a" * (1 + len(lengths)),)))
    assert lengths == [1, 2, 3, 4]


def test_no_process_outlives_its_pool():
    with ProcessPool(2) as pool:
        pids = {answer.value for _, answer in pool.run([Job(jobs.process)] * 8)}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


# Resources --------------------------------------------------------------------------------------

BOARDS = [{"board": f"/dev/tty{n}", "rtl": ""} for n in range(2)]


def test_a_job_has_what_it_needs_to_itself():
    with ProcessPool(3, BOARDS) as pool:
        work = [Job(jobs.fragile, ("board", ()), needs=("board",))] * 6
        values = [answer.value for _, answer in pool.run([*work, Job(jobs.length, ("a",))])]
    assert set(values) == {"/dev/tty0", "/dev/tty1", 1}


def test_there_is_a_process_for_each_resource():
    with ProcessPool(resources=BOARDS) as pool:
        assert len(pool._workers) == 2
        assert one(pool, jobs.resource, ("board",)).note == "KeyError: 'board'"  # it asked for none


def test_a_resource_that_nobody_has_is_refused_at_once():
    with ProcessPool(2, BOARDS) as pool:
        pool.submit(Job(jobs.length, ("a",)))
        with pytest.raises(
            FarmError, match=r"^job: expected a process with gpu and rtl, found board, rtl$"
        ):
            pool.submit(Job(jobs.length, ("a",), needs=("gpu", "rtl")))
        assert len(list(pool.answers())) == 1


def test_a_lost_resource_costs_no_job():
    with ProcessPool(2, BOARDS) as pool:
        work = [Job(jobs.fragile, ("board", ("/dev/tty0",)), needs=("board",))] * 4
        assert [a.value for _, a in pool.run(work)] == ["/dev/tty1"] * 4
        assert one(pool, jobs.fragile, ("board", ()), needs=("board",)) == Answer("/dev/tty1")


def test_the_last_resource_that_is_lost_ends_the_work():
    broken = ("/dev/tty0", "/dev/tty1")
    with ProcessPool(2, BOARDS) as pool:
        work = [Job(jobs.fragile, ("board", broken), needs=("board",))] * 2
        with pytest.raises(FarmError, match="doesn't answer") as error:
            list(pool.run(work))
    assert str(error.value).startswith("job: expected a process with board, found no resources (")
