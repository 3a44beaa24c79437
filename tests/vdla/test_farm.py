"""vdla farm and vdla worker: what they print, what they refuse, and how they end."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from schemas import check

pytest.importorskip("distributed")

from vdla.farm import address, certificates, dask
from vdla.farm.address import Address
from vdla.farm.certificates import complete, credentials
from vdla.farm.client import Farm
from vdla.farm.identity import Identity
from vdla.farm.work import Answer, Job

VDLA = str(Path(sys.executable).with_name("vdla"))
WITHOUT = """
import sys
sys.modules["distributed"] = None
from vdla.commands.cli import main
main()
"""


def start(*args, **how):
    return subprocess.Popen(
        [*map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


@pytest.fixture
def started():
    """Starts processes that are gone when the test is over, however it ends."""
    processes = []

    def begin(*args):
        processes.append(start(*args))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()  # what it started ends with it
        process.communicate()


def end(process, by=signal.SIGTERM):
    process.send_signal(by)
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err


@dataclass
class Up:
    """A farm that ``vdla farm up`` runs, and the lines that it printed."""

    process: subprocess.Popen[str]
    folder: Path
    lines: list[str]

    @property
    def join(self):
        """The command that was printed."""
        return shlex.split(self.lines[1].removeprefix("to join it: "))

    @property
    def address(self):
        return self.join[2]


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("farm") / "certificates"
    process = start(VDLA, "farm", "up", "--port", 0, "--folder", folder)
    yield Up(process, folder, [process.stdout.readline().strip() for _ in range(3)])
    if process.poll() is None:
        assert end(process) == (0, "", "")


def line(done):
    """The one line of a command that ends with exit code 2."""
    assert done.code == 2
    assert done.out == ""
    (text,) = done.err.splitlines()
    return text


def joined(vdla, address, folder):
    """Waits until a worker has joined; what status says."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        status = vdla("farm", "status", address, "--folder", folder, "--json").json
        if status["workers"]:
            return status
        time.sleep(0.2)
    raise AssertionError("expected a worker to join, found none")


def test_without_encryption_one_must_insist_on_both_sides(vdla, started):
    process = started(VDLA, "farm", "up", "--port", 0, "--without-encryption", "--json")
    text = process.stdout.readline()
    check("farm-up", text)
    printed = json.loads(text)
    where = printed["address"]
    assert where.startswith("tcp://127.0.0.1:")
    assert printed["folder"] is None
    assert printed["join"].endswith(f"vdla worker {where} --without-encryption")
    assert line(vdla("farm", "status", where)) == (
        f"vdla: {where}: expected tls://, found tcp://, on which anyone who reaches a machine of "
        "the farm can run code there; --without-encryption insists"
    )
    assert vdla("farm", "status", where, "--without-encryption", "--json").json["workers"] == []
    assert end(process, signal.SIGINT) == (0, "", "")


def test_a_plain_worker_of_an_encrypted_farm(vdla, farm, monkeypatch):
    monkeypatch.setattr(address, "PATIENCE", 0.5)
    port = farm.address.rpartition(":")[2]
    assert line(vdla("worker", f"tcp://127.0.0.1:{port}", "--without-encryption")) == (
        f"vdla: tcp://127.0.0.1:{port}: expected the scheduler of a farm, found something that "
        "says nothing; is it tls://?"
    )


@pytest.mark.parametrize("command", [("farm", "status"), ("farm", "down"), ("worker",)])
def test_no_scheduler_is_there(vdla, farm, command):
    with socket.create_server(("127.0.0.1", 0)) as free:
        where = f"tls://127.0.0.1:{free.getsockname()[1]}"
    assert line(vdla(*command, where, "--folder", farm.folder)) == (
        f"vdla: {where}: expected the scheduler of a farm, found none (Connection refused); "
        "`vdla farm up` starts one"
    )


def test_the_port_is_taken(vdla, farm):
    port = farm.address.rpartition(":")[2]
    assert line(vdla("farm", "up", "--port", port, "--folder", farm.folder)) == (
        f"vdla: tls://127.0.0.1:{port}: expected a free port, found it taken; choose another with "
        "--port"
    )


def test_a_certificate_is_missing_or_expired(vdla, farm, tmp_path):
    for name in ("ca.pem", "ca-key.pem"):
        shutil.copy2(farm.folder / name, tmp_path)
    assert line(vdla("worker", farm.address, "--folder", tmp_path)) == (
        f"vdla: {tmp_path}/worker.pem: expected a file of the farm's, found none; `vdla farm up` "
        "makes it, and says which files to copy to other machines"
    )
    certificates._write_pair(tmp_path, "worker", -1)
    assert line(vdla("worker", farm.address, "--folder", tmp_path)).startswith(
        f"vdla: {tmp_path}/worker.pem: expected a valid certificate, found one that expired on 20"
    )


def test_a_certificate_of_another_farm(vdla, farm, tmp_path):
    complete(tmp_path)
    text = line(vdla("worker", farm.address, "--folder", tmp_path))
    assert text.startswith(f"vdla: {farm.address}: expected a scheduler of the farm ")
    assert text.endswith(", found one of another farm")


def test_a_worker_of_another_version(vdla, farm, monkeypatch):
    ours, other = dask.identity(), Identity("9.9.9", "0123456789ab", "3.99", "1.0")
    monkeypatch.setattr(dask, "identity", lambda: other)
    assert line(vdla("worker", farm.address, "--folder", farm.folder)) == (
        f"vdla: {farm.address}: expected {ours}, as the farm has, found {other} here; install the "
        "same on both"
    )


def test_a_resource_that_is_none(vdla, farm):
    done = vdla("worker", farm.address, "--folder", farm.folder, "--resource", "=x")
    assert line(done) == "vdla: --resource: expected NAME or NAME=VALUE, found '=x'"


def test_without_dask_it_says_what_to_install(started, tmp_path):
    process = started(sys.executable, "-c", WITHOUT, "farm", "up", "--folder", tmp_path)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert re.fullmatch(
        "vdla: a farm: expected the package distributed, found none; install it with: "
        r"pip install .*'\S*\[farm\]'\n",
        err,
    )


def test_the_dashboard_needs_a_package(vdla, tmp_path):
    if find_spec("bokeh"):
        pytest.skip("bokeh is installed")
    done = vdla("farm", "up", "--port", 0, "--folder", tmp_path, "--dashboard")
    assert line(done) == (
        "vdla: --dashboard: expected the package bokeh, found none; pip install bokeh"
    )


def test_a_full_disk(vdla, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(certificates.os, "chmod", full)
    assert line(vdla("farm", "up", "--port", 0, "--folder", tmp_path)) == (
        f"vdla: {tmp_path}/ca-key.pem: expected a file that can be used, found No space left on "
        "device"
    )


def test_up_says_what_it_is_and_how_to_join_it(farm):
    first, _, third = farm.lines
    assert re.fullmatch(
        rf"farm [0-9a-f]{{8}} at {farm.address}; its certificates expire on \d{{4}}-\d\d-\d\d",
        first,
    )
    assert farm.join[1:] == ["worker", farm.address, "--folder", str(farm.folder)]
    assert third == (
        "on another machine: copy ca.pem, worker.pem and worker-key.pem to a folder there first, "
        "and give that as --folder"
    )


def test_what_up_prints_joins_when_pasted_and_down_ends_all(vdla, farm, started):
    """In between a worker is seen, and works. It is the last test with this farm."""
    options = ["--processes", "3", "--resource", "board:a=/dev/x", "--resource", "rtl"]
    worker = started(*farm.join, *options)
    status = joined(vdla, farm.address, farm.folder)
    assert list(status) == ["address", "workers", "queued", "running", "done", "jobs_per_second"]
    assert status["workers"][0]["processes"] == 3
    assert status["workers"][0]["resources"] == [["board:a", "/dev/x"], ["rtl", ""]]
    with Farm(Address.read(farm.address), credentials(farm.folder, "client")) as client:
        assert dict(client.run([Job(len, ("abc",))])) == {0: Answer(3)}
    text = vdla("farm", "status", farm.address, "--folder", farm.folder).out
    assert "board:a=/dev/x, rtl" in text
    assert re.search(r"jobs: 0 wait, 0 run, 1 are done, \d\.\d per second", text)
    done = vdla("farm", "down", farm.address, "--folder", farm.folder)
    assert (done.code, done.out, done.err) == (0, "", f"{farm.address}: the farm is down\n")
    _, err = farm.process.communicate(timeout=20)
    assert (farm.process.returncode, err) == (
        0, f"farm at {farm.address}: the farm was taken down\n"
    )  # fmt: skip
    _, err = worker.communicate(timeout=20)
    assert (worker.returncode, err) == (
        0, f"worker of {farm.address}: the farm was taken down\n"
    )  # fmt: skip
