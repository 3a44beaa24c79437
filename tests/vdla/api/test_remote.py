"""Models that a worker of a farm runs: the same results as here, sent once, refused in a line."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("distributed")

from control_models import model, op
from desk import DeskBoard
from farms import LocalFarm

import vdla as package
from vdla import api
from vdla.api import kept, remote
from vdla.api.modules import random_inputs
from vdla.api.remote import Remote
from vdla.boards import find_board
from vdla.boards.served import Order
from vdla.commands.run import write_outputs
from vdla.farm.processes import ProcessPool
from vdla.farm.status import Status, WorkerStatus
from vdla.farm.work import CRASH, Answer, FarmError
from vdla.isa.config import load_config
from vdla.names.configs import resolve_on
from vdla.options import Run
from vdla.options.spelling import UsageError
from vdla.runtime.errors import DeviceError, InputError, ModuleError

TINY = load_config("tiny")
BEHIND = resolve_on("ulx3s", "tiny")  # behind the memory of the board
BOARD, V3 = "board:ulx3s", "cpu:x86-64-v3"
HAS = f"{BOARD}, {V3}, rtl on the farm's one worker"


@pytest.fixture(scope="module")
def farm():
    """A farm with a worker that has a board, the RTL, and a processor by its name."""
    board = DeskBoard(BEHIND)
    has = [("--resource", each) for each in (f"{BOARD}={board.port}", "rtl", V3)]
    with LocalFarm([word for pair in has for word in pair]) as opened:
        opened.board = board
        yield opened
    if opened.board:  # it wasn't unplugged
        board.close()


@pytest.fixture
def typed(farm):
    """The options of a command that name the farm."""
    return "--farm", farm.address, "--folder", farm.folder.name


@pytest.fixture
def run(farm):
    """``vdla.run`` on the farm."""
    return partial(api.run, farm=str(farm.address), folder=Path(farm.folder.name))


@pytest.fixture
def sent(monkeypatch):
    """Bytes of modules, of each time that a worker is asked."""
    sizes, whole = [], Remote._once

    def once(self, work, data):
        sizes.append(len(data))
        return whole(self, work, data)

    monkeypatch.setattr(Remote, "_once", once)
    return sizes


def refused(done):
    assert (done.code, done.out) == (2, ""), done
    (line,) = done.err.strip().splitlines()
    return line.removeprefix("vdla: ")


def equal(ours, theirs):
    """Whether two results are the same, to the bit."""
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    same = (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    return same and ours.tobytes() == theirs.tobytes()


# The same as here --------------------------------------------------------------------------------


def test_a_board_runs_a_bundled_model(vdla, tmp_path, farm, typed):
    here, there = tmp_path / "here.npz", tmp_path / "there.npz"
    case = ("run", "digits", "-c", "tiny", "--images", 1, "--json")
    own = vdla(*case, "--output", here)
    done = vdla(*case, "--output", there, "--resource", BOARD, *typed)
    assert done.code == 0, done
    assert done.json["worker"].endswith(f", {BOARD}={farm.board.port}")
    assert done.json["device"] == "board"
    assert done.json["cycles"] == vdla(*case, "--board", "ulx3s").json["cycles"]
    assert done.json["outputs"] == own.json["outputs"]
    assert done.json["end_to_end"]["host"] == done.json["worker"]
    assert "worker" not in own.json
    assert here.read_bytes() == there.read_bytes()


def test_a_board_brings_its_counters(run):
    result = run("digits", config="tiny", resource=BOARD)
    (device,) = (step.device for step in result.steps if step.device)
    assert device.cycles == result.cycles
    assert device.extra["causes"]
    assert all(sum(own.values()) <= device.cycles for own in device.extra["causes"].values())
    assert all(step.seconds >= 0 for step in result.steps)


def test_the_rtl_takes_the_same_cycles(vdla, tmp_path, typed):
    trace = tmp_path / "trace.json"
    done = vdla("run", "digits", "-c", "tiny", "--images", 2, "--resource", "rtl", "--trace", trace,
                *typed)  # fmt: skip
    assert done.code == 0, done
    assert "2 inputs, 25,438 cycles on tiny" in done.out
    assert "on device rtl of " in done.out
    assert "where each engine's cycles went" in done.out
    assert "accuracy over 2 test images: 100.00 %" in done.out
    assert trace.stat().st_size > 1000


def test_a_simulation_there_counts_energy(vdla, typed):
    case = ("run", "digits", "-c", "tiny", "--images", 1, "--energy", "aladdin-45nm", "--json")
    own, done = vdla(*case).json, vdla(*case, *typed).json
    for key in ("cycles", "energy_uj", "outputs", "programs"):
        assert done[key] == own[key], key


def lists():
    """A list of arrays as an input, and one as an output."""
    inputs = {"s": [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)]}
    nodes = [op("ConcatFromSequence", "s", "c", axis=0), op("SplitToSequence", "c", "y", axis=0)]
    return model(nodes, inputs, ["l y"]), inputs


def floats():
    rng = np.random.default_rng(3)
    inputs = {"x": rng.standard_normal((1, 3, 12, 12)).astype(np.float32)}
    weight = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [op("Conv", "x w", "c", pads=[1] * 4), op("Tanh", "c", "y")]
    return model(nodes, inputs, ["f y"], w=weight), inputs


def recurrent():
    rng = np.random.default_rng(4)
    inputs = {"x": rng.standard_normal((6, 1, 5)).astype(np.float32)}
    constants = {"W": (1, 16, 5), "R": (1, 16, 4)}
    weights = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in constants.items()}
    return model(
        [op("LSTM", "x W R", "y h c", hidden_size=4)], inputs, ["f y", "f h"], **weights
    ), (inputs)


@pytest.mark.parametrize("resource", ["cpu", V3])
@pytest.mark.parametrize("strange", [lists, floats, recurrent])
def test_strangers_are_equal_to_the_bit(tmp_path, run, strange, resource):
    proto, inputs = strange()
    onnx.save(proto, tmp_path / "m.onnx")
    target = None if resource == "cpu" else "x86-64-v3"
    own = api.run(tmp_path / "m.onnx", inputs, device="cpu", target=target)
    result = run(tmp_path / "m.onnx", inputs, resource=resource, threads=2)
    assert own.outputs.keys() == result.outputs.keys()
    for name, value in own.outputs.items():
        assert equal(value, result.outputs[name]), name


def test_lists_in_files(vdla, tmp_path, typed):
    proto, inputs = lists()
    onnx.save(proto, tmp_path / "m.onnx")
    write_outputs(tmp_path / "x.npz", inputs)
    done = vdla("run", tmp_path / "m.onnx", "--input", tmp_path / "x.npz", "--output",
                tmp_path / "y.npz", "--resource", "cpu", *typed)  # fmt: skip
    assert done.code == 0, done
    with np.load(tmp_path / "y.npz") as file:
        assert sorted(file.files) == ["y[0]", "y[1]", "y[2]"]


def test_the_profile_is_the_workers(vdla, typed):
    case = ("run", "digits", "-c", "tiny", "--profile")
    done = vdla(*case, "--resource", BOARD, "--threads", 1, "--json", *typed).json
    assert BOARD in done["worker"]
    assert done["threads"] == 1
    (step,) = (step for step in done["steps"] if step["device"] == "vdla")
    assert step["cycles"] > 10_000
    assert step["seconds"] > 0
    text = vdla(*case, "--resource", "rtl", *typed).out
    assert text.startswith("time on ")
    assert ", the shortest of some runs" in text


def test_a_notebook_runs_there_too(farm):
    """Whose cells run in an event loop; and a folder may be a text."""

    async def cell():
        return api.run("digits", resource="cpu", farm=str(farm.address), folder=farm.folder.name)

    assert equal(
        asyncio.run(cell()).outputs["logits"], api.run("digits", device="cpu").outputs["logits"]
    )


# Modules -----------------------------------------------------------------------------------------


def test_a_module_is_sent_once(run, sent):
    module = api.compile("digits", TINY, vthreads=1)
    first, *others = (run(module, resource=BOARD) for _ in range(3))
    assert sent == [len(module.to_bytes()), 0, 0]
    assert all(equal(first.outputs["logits"], each.outputs["logits"]) for each in others)


def test_a_module_that_a_worker_has_lost_is_sent_again(run, sent):
    module = api.compile("digits", TINY, vthreads=1, records="none")
    remote._sent.add((str(run.keywords["farm"]), ("rtl",), remote.digest_of(module.to_bytes())))
    assert run(module, resource="rtl").cycles
    assert sent == [0, len(module.to_bytes())]


def test_the_workers_error_is_the_same_line(vdla, tmp_path, typed):
    module = api.compile("digits", TINY)
    strange = replace(module, host=replace(module.host, features="+avx99"))
    strange.save(tmp_path / "m.vdla")
    own = vdla("run", tmp_path / "m.vdla")
    assert "that needs avx99" in refused(own)
    assert vdla("run", tmp_path / "m.vdla", "--resource", "rtl", *typed) == own
    module.save(tmp_path / "m.vdla")
    done = vdla("run", tmp_path / "m.vdla", "--resource", "cpu", *typed)
    assert refused(done) == (
        "device cpu: expected a module with host steps only, found 1 for the accelerator"
    )


def test_errors_have_their_classes(run):
    module = api.compile("digits", TINY)
    with pytest.raises(DeviceError):
        run(module, resource="cpu")
    with pytest.raises(ModuleError):
        run(replace(module, host=replace(module.host, triple="riscv64-linux")), resource="rtl")
    with pytest.raises(InputError, match=r"^inputs: expected image, found x$"):
        run(module, {"x": np.zeros(3)}, resource="rtl")


def test_a_board_of_another_config(vdla, farm, typed):
    assert refused(vdla("run", "digits", "--resource", BOARD, *typed)) == (
        f"board ulx3s at {farm.board.port}: expected a bitstream for config "
        f"{load_config('ulx3s').hash} (ulx3s), found one for {TINY.hash}; name the board's config, "
        "or load a bitstream of this one"
    )


# What can't be ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--resource", "gpu"], f"job: expected a worker with gpu, found {HAS}"),
        (["--device", "gpu"], f"job: expected a worker with gpu, found {HAS}"),
        (["--resource", "board:pynq-z1"],
         f"job: expected a worker with board:pynq-z1, found {HAS}"),
        (["--resource", "cpu:cortex-a9"],
         f"job: expected a worker with cpu:cortex-a9, found {HAS}"),
        (["--resource", "lab", "--device", "cpu"],
         f"job: expected a worker with lab, found {HAS}"),
    ],
)  # fmt: skip
def test_nobody_has_the_resource_and_nothing_is_compiled(vdla, typed, monkeypatch, options, text):
    monkeypatch.setattr(kept, "_kept", lambda place: pytest.fail("it was compiled"))
    assert refused(vdla("run", "digits", *options, *typed)) == text


FARM = ("--farm", "tls://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--resource", "rtl"], "--resource: expected --farm, found none"),
        (["--folder", "f"], "--folder: expected --farm, found none"),
        ([*FARM, "--check"], "--farm: expected no --check, found both"),
        ([*FARM, "--resource", BOARD, "--port", "/dev/a"],
         "--port: expected no --farm, found both"),
        ([*FARM, "--resource", BOARD, "--virtual"], "--virtual: expected no --farm, found both"),
        ([*FARM, "--resource", BOARD, "--board", "pynq-z1"],
         f"--board: expected ulx3s, as --resource {BOARD} says, found pynq-z1"),
        ([*FARM, "--resource", BOARD, "--device", "rtl"],
         f"--device: expected board, as --resource {BOARD} says, found rtl"),
        ([*FARM, "--resource", V3, "--device", "gpu"],
         f"--device: expected cpu, as --resource {V3} says, found gpu"),
        ([*FARM, "--resource", BOARD, "--energy", "aladdin-45nm"],
         "--energy: expected --device sim, found board"),
        ([*FARM, "--resource", "cpu", "--strict"],
         "--strict: expected --device sim or rtl or board, found cpu"),
        ([*FARM, "--resource", "gpu", "--board", "ulx3s"],
         "--board: expected --device board or sim or rtl, found gpu"),
        ([*FARM, "--resource", "rtl", "--trace", "w.fst"],
         "--trace w.fst: expected no --farm for waves, found both"),
        ([*FARM, "--device", "board"], "--device board: expected --board B, found none"),
        ([*FARM, "--resource", f"{BOARD}=/dev/a"],
         "--resource: expected a name that a worker announces, as board:ulx3s, found "
         "'board:ulx3s=/dev/a'; `vdla farm status` lists them"),
        ([*FARM, "--resource", ""],
         "--resource: expected a name that a worker announces, as board:ulx3s, found ''; "
         "`vdla farm status` lists them"),
        ([*FARM, "--resource", "board:ulx4s"],
         "board: expected one of ulx3s, colorlight-i9, tang-nano-20k, pynq-z1, pynq-z2, "
         "arty-z7-20, ultra96-v2, found ulx4s; "
         "docs/my-board.md says what another takes"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(vdla, tmp_path, monkeypatch, options, text):
    monkeypatch.chdir(tmp_path)
    assert refused(vdla("run", "digits", *options)) == text


def test_what_is_no_address_and_no_resource():
    with pytest.raises(UsageError, match=r"^farm: expected an address, as tls://.*, found int$"):
        api.run("digits", farm=8786)
    with pytest.raises(UsageError, match=r"^--resource: expected a name .*, found 3; `vdla farm"):
        api.run("digits", farm="tls://127.0.0.1", resource=3)
    with pytest.raises(UsageError, match=r"^--farm: expected no --check, found both$"):
        api.check("digits", farm="tls://127.0.0.1")
    with pytest.raises(UsageError, match=r"^--farm: expected a model that is run or profiled"):
        api.prepare("digits", Run(farm="tls://127.0.0.1"))


def test_a_farm_without_workers(vdla):
    with LocalFarm() as empty:
        done = vdla("run", "digits", "--resource", "cpu", "--farm", empty.address, "--folder",
                    empty.folder.name)  # fmt: skip
    *_, line = done.err.splitlines()
    assert (done.code, line) == (
        2,
        f"vdla: {empty.address}: expected a worker to run the module, found none on the farm; "
        f"`vdla worker {empty.address}` joins",
    )


def test_a_process_that_dies():
    class Dying(ProcessPool):
        def run(self, jobs):
            yield 0, Answer(None, CRASH, "it took down its worker 4 times")

    module = api.compile("digits", TINY)
    with Dying(0) as pool, pytest.raises(FarmError) as error:
        Remote(module, Order("", "sim", TINY), pool, "tls://desk:8786").run([random_inputs(module)])
    assert str(error.value) == (
        "tls://desk:8786: expected a worker to run the module, found crash: it took down its "
        "worker 4 times"
    )


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        (Run(), ()),
        (Run(device="cpu"), ()),
        (Run(resource="cpu"), ()),
        (Run(resource=V3), (V3,)),
        (Run(device="rtl"), ("rtl",)),
        (Run(device="board", board="ulx3s"), (BOARD,)),
        (Run(resource="rtl", host="gpu"), ("rtl", "gpu")),
        (Run(device="gpu"), ("gpu",)),
        (Run(resource="lab"), ("lab",)),
    ],
)
def test_what_a_worker_must_have(options, needs):
    assert remote._needs(options) == needs


@pytest.mark.parametrize(
    ("places", "target"), [(["", "virtual"], "cortex-a9"), (["virtual"], None)]
)
def test_code_is_for_the_boards_processor_unless_the_board_is_virtual(places, target):
    board = find_board("pynq-z1")
    held = tuple(("board:pynq-z1", place) for place in places)
    status = Status((WorkerStatus("desk", "tls://desk:1", 1, held, {}, 0),), 0, 0, 0, 0.0)
    chosen = remote._for_worker("digits", Run(resource="board:pynq-z1"), board, status)
    assert chosen.target == target
    own = Run(resource="board:pynq-z1", target="native")
    assert remote._for_worker("digits", own, board, status) == own
    module = package.compile("digits", "tiny")
    assert remote._for_worker(module, chosen, board, status) == chosen


def test_the_last_board_is_unplugged(vdla, farm, typed):
    """It is the last test with this farm."""
    farm.board.close()
    farm.board = None
    case = ("run", "digits", "-c", "tiny", "--images", 1, "--resource", BOARD, *typed)
    texts = [refused(vdla(*case)) for _ in range(3)]
    assert any(text.startswith(f"job: expected a worker with {BOARD}, found ") for text in texts)
    assert texts[-1].startswith(f"job: expected a worker with {BOARD}, found {V3}, rtl on the farm")
    assert vdla("run", "digits", "--images", 1, "--resource", "cpu", *typed).code == 0
