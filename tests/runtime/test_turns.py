"""Python threads that share an executor, a kernel or a device take turns; others run at once."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import vdla
from vdla import te
from vdla.isa.identity import Identity
from vdla.runtime import Executor, Module, TensorInfo
from vdla.runtime.devices import DeviceResult
from vdla.runtime.dram import host_image
from vdla.runtime.plan import Accelerate
from vdla.runtime.turns import Turns

WAIT = 60  # seconds after which something hangs


def at_once(*users):
    """Runs functions in a thread each, and says what each gave."""
    found = [None] * len(users)

    def call(n):
        found[n] = users[n]()

    threads = [threading.Thread(target=call, args=(n,), daemon=True) for n in range(len(users))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive(), "a thread hangs"
    return found


class Meeting:
    """A device whose first run waits for a second one to begin, as long as nothing stops that."""

    name = "meeting"
    identity = Identity("15a", "c0ffee")

    def __init__(self):
        self.inside, self.both = 0, threading.Event()

    def allocate(self, size, constants):
        return host_image(size, constants)

    def load(self, program, dram, given=(), wanted=()):
        def run():
            self.inside += 1
            if self.inside == 2:
                self.both.set()
            self.both.wait(0.3)
            dram[:4] += 1
            self.inside -= 1
            return DeviceResult(cycles=1)

        return run


def module():
    return Module(
        tensors={"x": TensorInfo((4,), "uint8", 0)}, inputs=["x"], outputs=["x"], dram_bytes=64,
        steps=(Accelerate("p", ()),), programs={"p": b"p"}, identity=Meeting.identity,
    )  # fmt: skip


def run_of(executor, value):
    return lambda: int(executor.run({"x": np.full(4, value, np.uint8)}).outputs["x"][0])


def test_threads_that_share_an_executor_take_turns():
    """The image is one: a run that began amid another would overwrite its input."""
    device = Meeting()
    shared = Executor(module(), device)
    assert at_once(run_of(shared, 10), run_of(shared, 20)) == [11, 21]
    assert not device.both.is_set()


def test_executors_of_their_own_run_at_once():
    device = Meeting()
    first, second = Executor(module(), device), Executor(module(), device)
    assert at_once(run_of(first, 10), run_of(second, 20)) == [11, 21]
    assert device.both.is_set()


def test_an_error_ends_a_turn():
    device = Meeting()
    shared = Executor(module(), device)
    device.both = None
    with pytest.raises(AttributeError):
        run_of(shared, 1)()
    device.both = threading.Event()
    assert at_once(run_of(shared, 10)) == [11]


def network(path):
    """Two layers of some ten milliseconds in native code, which runs without the GIL."""
    from onnx import TensorProto, helper, numpy_helper, save

    weights = np.random.default_rng(0).standard_normal((32, 32, 3, 3)).astype(np.float32)
    kind = (TensorProto.FLOAT, [1, 32, 40, 40])
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], pads=[1] * 4),
             helper.make_node("Conv", ["t", "w"], ["y"], pads=[1] * 4)]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", *kind)],
        [helper.make_tensor_value_info("y", *kind)], [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("threads", [1, 2])
def test_native_code_gives_each_thread_its_own_answer(tmp_path, threads):
    compiled = vdla.compile(network(tmp_path / "n.onnx"), device="cpu")
    shared = Executor(compiled, threads=threads)
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((1, 32, 40, 40)).astype(np.float32) for _ in range(2)]
    wanted = [Executor(compiled).run({"x": x}).outputs["y"] for x in inputs]

    def wrong(n):
        found = (shared.run({"x": inputs[n]}).outputs["y"] for _ in range(100))
        return sum(y.tobytes() != wanted[n].tobytes() for y in found)

    assert at_once(lambda: wrong(0), lambda: wrong(1)) == [0, 0]


@pytest.mark.parametrize("target", ["cpu", "tiny"])
def test_threads_that_share_a_kernel_take_turns(target):
    shape = (64, 4)
    a = te.placeholder(shape, "int32", "a")
    b = te.compute(shape, lambda i, l: a[i, l] + 1, "b")
    s = te.create_schedule(b)
    if target == "cpu":
        s[b].parallel(b.axis[0])
    else:
        made = s.cache_write(b, vdla.ACC)
        for stage in (b, made, s.cache_read(a, vdla.ACC, [made])):
            s[stage].tensorize(s[stage].axis[1], vdla.intrinsics("tiny"))
    kernel = vdla.build(s, [a, b], target)

    def wrong(value):
        given, found = np.full(shape, value, np.int32), np.zeros(shape, np.int32)
        bad = 0
        for _ in range(30 if target == "tiny" else 300):
            kernel(given, found)
            bad += not (found == value + 1).all()
        return bad

    assert at_once(lambda: wrong(10), lambda: wrong(20)) == [0, 0]


def test_a_forked_process_finds_locks_open():
    """The thread that holds one isn't there to let it go."""
    turns = Turns()
    with turns:
        child = os.fork()
        if not child:
            with turns:
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
