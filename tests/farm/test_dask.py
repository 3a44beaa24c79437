"""A farm of real processes over loopback: jobs, resources, losses, and who is kept out."""

from __future__ import annotations

import asyncio
import builtins
import os
import shutil
import socket
import ssl
import struct
import time
from itertools import pairwise
from pathlib import Path

import misbehaviour as jobs
import pytest

pytest.importorskip("distributed")

from distributed.comm.utils import to_frames
from distributed.protocol import ToPickle
from distributed.protocol.utils import pack_frames_prelude
from farms import LocalFarm

from vdla.farm import certificates, dask
from vdla.farm.address import Address
from vdla.farm.certificates import credentials
from vdla.farm.client import Farm
from vdla.farm.identity import Identity
from vdla.farm.work import CRASH, MEMORY, TIMEOUT, Answer, FarmError, Job, Limits, Setup, leased

BOARD = "board:ulx3s"


@pytest.fixture(scope="module")
def farm():
    first = ("--resource", f"{BOARD}=/dev/a", "--resource", "rtl")
    with LocalFarm(first, ("--resource", f"{BOARD}=/dev/b")) as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(farm):
    return Path(farm.folder.name)


def one(farm, *job, **fields):
    """The answer of a job alone."""
    ((_, answer),) = farm.client.run([Job(*job, **fields)])
    return answer


# Jobs ---------------------------------------------------------------------------------------------


def test_every_job_has_its_own_answer_once(farm):
    texts = ["a" * n for n in range(300)]
    answers = list(farm.client.run(Job(jobs.length, (text,)) for text in texts))
    assert len(answers) == 300
    assert dict(answers) == {n: Answer(n) for n in range(300)}


def test_a_setup_is_made_once_in_each_process(farm):
    setup = Setup(jobs.Counter, (10,))
    answers = dict(farm.client.run(Job(jobs.count, (n,), setup) for n in range(20)))
    made, sums = zip(*(answers[n].value for n in range(20)), strict=True)
    assert set(made) == {1}
    assert list(sums) == [10 + n for n in range(20)]


def test_what_goes_wrong_is_an_answer_and_the_rest_goes_on(farm):
    too_long = Job(jobs.sleep, (30,), limits=Limits(seconds=0.3))
    too_much = Job(jobs.memory, (1 << 30,), limits=Limits(bytes=1 << 26))
    answers = farm.client.run(
        [Job(jobs.fault), Job(jobs.segfault), too_long, too_much] + [Job(jobs.length, ("abc",))] * 3
    )
    assert [answer for _, answer in sorted(answers, key=lambda each: each[0])] == [
        Answer(None, CRASH, "KeyError: 'a fault of ours'"),
        Answer(None, CRASH, "the process ended with exit code -11"),
        Answer(None, TIMEOUT, "not done after 0.3 s"),
        Answer(None, MEMORY, "it took more memory than 67,108,864 bytes"),
        *[Answer(3)] * 3,
    ]


def test_a_job_that_cannot_be_pickled_is_refused(farm):
    with pytest.raises(FarmError, match=r"^job sleep: expected what can be pickled, found TypeErr"):
        farm.client.submit(Job(jobs.sleep, (socket.socket(),)))


def test_cancelled_jobs_make_way_at_once(farm):
    for _ in range(4):
        farm.client.submit(Job(jobs.sleep, (60,)))
    time.sleep(0.3)
    began = time.monotonic()
    farm.client.cancel()
    assert one(farm, jobs.length, ("abc",)) == Answer(3)
    assert time.monotonic() - began < 10


# Resources ----------------------------------------------------------------------------------------


def board(seconds):
    """Which board a job has, and from when to when."""
    begin = time.monotonic()
    time.sleep(seconds)
    return leased(BOARD), begin, time.monotonic()


def test_a_board_is_one_jobs_at_a_time(farm):
    answers = list(farm.client.run([Job(board, (0.1,), needs=(BOARD,))] * 8))
    spans = sorted(answer.value for _, answer in answers)
    assert {name for name, _, _ in spans} == {"/dev/a", "/dev/b"}
    for (name, _, end), (next_name, begin, _) in pairwise(spans):
        assert name != next_name or end <= begin


def test_two_resources_are_had_together(farm):
    answer = one(farm, board, (0.0,), needs=("rtl", BOARD))
    assert answer.value[0] == "/dev/a"


@pytest.mark.parametrize("needs", [("gpu",), ("rtl", "gpu")])
def test_a_resource_that_nobody_has_is_said_at_once(farm, needs):
    with pytest.raises(FarmError) as caught:
        farm.client.submit(Job(jobs.length, ("abc",), needs=needs))
    assert str(caught.value) == (
        f"job: expected a worker with {' and '.join(needs)}, found {BOARD}, rtl on the farm's "
        "2 workers"
    )


def test_its_status_says_what_there_is(farm, folder):
    status = dask.status(farm.address, credentials(folder, "client"))
    assert {each.resources for each in status.workers} == {
        ((BOARD, "/dev/a"), ("rtl", "")),
        ((BOARD, "/dev/b"),),
    }
    assert (status.places(()), status.places((BOARD,)), status.places(("rtl", BOARD))) == (2, 2, 1)
    assert status.done > 0


# Who is kept out ----------------------------------------------------------------------------------


class Evil:
    """What opens a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return builtins.open, (str(self.path), "w")


def evil_bytes(path):
    """A message of Dask's, as it travels, that opens a file where it is read."""
    frames = asyncio.run(to_frames({"op": "identity", "x": ToPickle(Evil(path))}))
    frames = [pack_frames_prelude(frames), *map(bytes, frames)]
    return struct.pack("Q", sum(map(len, frames))) + b"".join(frames)


def send(port, data, certificate=None):
    """Sends bytes as soon as one can, over TLS with a (certificate, key) or without, or plainly.

    It stays until it is thrown out, or for a second.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=1) as plain:
        try:
            if certificate == "plain":
                plain.sendall(data)
                plain.recv(1)
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if certificate:
                context.load_cert_chain(*certificate)
            with context.wrap_socket(plain) as encrypted:
                encrypted.sendall(data)
                while encrypted.recv(1 << 16):
                    pass
        except OSError:
            return


def pair(folder, role):
    return folder / f"{role}.pem", folder / f"{role}-key.pem"


@pytest.fixture(scope="module")
def strangers(folder, tmp_path_factory):
    """Certificates with which nobody gets in, by what is wrong with them."""
    other, expired = tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("expired")
    certificates.complete(other)
    for name in ("ca.pem", "ca-key.pem"):
        shutil.copy2(folder / name, expired)
    certificates._write_pair(expired, "client", -1)
    return {
        "another farm's": pair(other, "client"),
        "expired": pair(expired, "client"),
        "none": None,
        "plain": "plain",
    }


def ports(farm, folder):
    """Those of the scheduler and of a worker."""
    status = dask.status(farm.address, credentials(folder, "client"))
    return farm.address.port, int(status.workers[0].address.rpartition(":")[2])


@pytest.mark.parametrize("which", ["another farm's", "expired", "none", "plain"])
def test_without_a_right_certificate_no_byte_is_read(farm, folder, strangers, tmp_path, which):
    for port in ports(farm, folder):
        send(port, evil_bytes(tmp_path / "evil"), strangers[which])
    assert one(farm, jobs.length, ("abc",)) == Answer(3)  # what was sent before is read by now
    assert not (tmp_path / "evil").exists()


def test_the_same_bytes_act_with_a_right_certificate(farm, folder, tmp_path):
    """Otherwise the test above would prove nothing."""
    for number, port in enumerate(ports(farm, folder)):
        file = tmp_path / f"evil{number}"
        send(port, evil_bytes(file), pair(folder, "client"))
        end = time.monotonic() + 10
        while time.monotonic() < end and not file.exists():
            time.sleep(0.01)
        assert file.exists()


def family(pid):
    """A process and what it started."""
    pids = [str(pid)]
    for each in pids:
        pids += Path(f"/proc/{each}/task/{each}/children").read_text().split()
    return pids


def listening(pid):
    """The ports at which a process, or what it started, listens."""
    inodes = set()
    for each in family(pid):
        for file in Path(f"/proc/{each}/fd").iterdir():
            try:
                inodes.add(os.readlink(file).removeprefix("socket:[").rstrip("]"))
            except OSError:
                continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes]


def test_no_other_port_is_open(farm, folder):
    """Dask would start a server for HTTP, which asks nobody who they are."""
    scheduler, worker = farm.scheduler.pid, farm.workers[0].pid
    assert listening(scheduler) == [farm.address.port]
    known = {int(w.address.rpartition(":")[2]) for w in farm.client.status().workers}
    assert len(listening(worker)) == 1
    assert set(listening(worker)) <= known


def test_another_vdla_is_refused_by_name(farm, folder, monkeypatch):
    ours, other = dask.identity(), Identity("0.2.0", "0123456789ab", "3.99", "2030.1")
    monkeypatch.setattr(dask, "identity", lambda: other)
    for role, join in (
        ("client", lambda proof: Farm(farm.address, proof)),
        ("worker", lambda proof: dask.work(farm.address, proof, 1, [], "", print)),
    ):
        with pytest.raises(FarmError) as caught:
            join(credentials(folder, role))
        assert str(caught.value) == (
            f"{farm.address}: expected {ours}, as the farm has, found {other} here; install the "
            "same on both"
        )


def test_a_port_that_is_taken(farm, folder):
    with pytest.raises(FarmError) as caught:
        dask.serve(farm.address, credentials(folder, "scheduler"), False, print)
    assert str(caught.value) == (
        f"{farm.address}: expected a free port, found it taken; choose another with --port"
    )


def test_an_address_of_another_machine(folder):
    address = Address("tls", "192.0.2.1", 8786)
    with pytest.raises(FarmError) as caught:
        dask.serve(address, credentials(folder, "scheduler"), False, print)
    assert str(caught.value) == (
        f"{address}: expected an address of this machine to listen at, found: Cannot assign "
        "requested address"
    )


# Losses -------------------------------------------------------------------------------------------


def kill_the_worker():
    """Ends the process that the pool's processes descend from."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    worker = next(line for line in status.splitlines() if line.startswith("PPid:"))
    os.kill(int(worker.split()[1]), 9)
    time.sleep(60)


@pytest.mark.long
def test_a_job_that_takes_workers_down_is_a_crash_and_the_rest_goes_on():
    with LocalFarm((), ()) as farm:
        work = [Job(kill_the_worker), *(Job(jobs.sleep, (0.02,)) for _ in range(100))]
        answers = dict(farm.client.run(work))
        assert answers[0] == Answer(None, CRASH, "it took down its worker 4 times")
        assert [answers[n] for n in range(1, 101)] == [Answer(0.02)] * 100


@pytest.mark.long
def test_a_lost_board_is_left_out_and_the_other_has_its_jobs():
    options = [("--resource", f"{BOARD}=/dev/{name}") for name in "ab"]
    with LocalFarm(*options) as farm:
        work = [Job(jobs.fragile, (BOARD, ("/dev/a",)), needs=(BOARD,))] * 20
        assert [a.value for _, a in farm.client.run(work)] == ["/dev/b"] * 20
        work = [Job(jobs.fragile, (BOARD, ("/dev/b",)), needs=(BOARD,))]
        with pytest.raises(FarmError) as caught:
            list(farm.client.run(work))
        assert str(caught.value).startswith(
            f"job: expected a worker with {BOARD}, found no resources on the farm's 2 workers ("
        )


@pytest.mark.long
def test_jobs_wait_while_the_scheduler_is_started_again():
    with LocalFarm((), ()) as farm:
        said = []
        farm.client._say = said.append
        numbers = [farm.client.submit(Job(jobs.sleep, (0.1,))) for _ in range(60)]
        answers = farm.client.answers()
        some = [next(answers) for _ in range(5)]
        farm.kill_scheduler()
        rest = list(answers)
        assert sorted(number for number, _ in some + rest) == numbers
        assert all(answer == Answer(0.1) for _, answer in some + rest)
        assert said[0].startswith(f"{farm.address}: the scheduler is gone; ")
        assert said[-1] == f"{farm.address}: the scheduler is back"


@pytest.mark.long
def test_nothing_is_left_of_a_worker_whose_parent_is_killed():
    """Not even the process of a job that hangs."""
    with LocalFarm(()) as farm:
        farm.client.submit(Job(jobs.sleep, (300,)))
        time.sleep(2)
        pids = family(farm.workers[0].pid)
        assert len(pids) >= 4  # the parent, Dask's worker, a process that forks, the job's
        farm.workers[0].kill()
        farm.workers[0].wait()
        end = time.monotonic() + 20
        while time.monotonic() < end and any(map(is_running, pids)):
            time.sleep(0.1)
        assert not any(map(is_running, pids))
        while time.monotonic() < end and farm.client.status().workers:
            time.sleep(0.1)  # the scheduler hears of it a little later
        assert farm.client.status().workers == ()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
