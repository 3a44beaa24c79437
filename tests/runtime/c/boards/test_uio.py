"""uio.c on a Zynq whose core is RTL and whose cache is the worst, here and on processors of ARM."""

import os
import shutil

import numpy as np
import pytest
from c_boards import DONE, SOCKET, ZIG, Ways, built, program, shown

from vdla import api
from vdla.boards.virtual import VirtualAxiBoard
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY, START, VERSION, register
from vdla.isa.ring import numbered
from vdla.runtime.board.mapped import FROM_DEVICE
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.executor import Executor
from vdla.runtime.rtl.bench import DRAM_BASE

TINY = load_config("tiny")


@pytest.fixture(scope="module")
def by_python(digits):
    """Outputs, cycles and counters by Python's driver on the same board."""
    device = BoardDevice(TINY, VirtualAxiBoard("zynq", TINY, 1 << 20))
    result = Executor(digits.module, device).run(digits.inputs)
    counters = device.driver.counters(numbered(TINY)).causes
    device.transport.close()
    return result.outputs["logits"].tobytes(), (result.cycles, counters)


def assert_same(zynq, command, digits, by_python, folder, before=()):
    (folder / "in").write_bytes(digits.inputs["image"].tobytes())
    done = zynq.run(command, folder / "in", folder / "out", before=before)
    assert (done.returncode, done.stderr) == (0, "")
    assert ((folder / "out").read_bytes(), shown(done.stdout)) == by_python


def test_outputs_cycles_and_counters_are_those_of_pythons_driver(zynq, digits, by_python, tmp_path):
    assert_same(zynq, program(digits.module, tmp_path), digits, by_python, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("processor", "gnu", "qemu"), [
    ("cortex-a9", "arm-linux-musleabihf", "qemu-arm"),
    ("cortex-a53", "aarch64-linux-musl", "qemu-aarch64"),
])  # fmt: skip
def test_on_the_boards_processor(processor, gnu, qemu, zynq, digits, by_python, tmp_path):
    if shutil.which(qemu) is None:
        pytest.skip(f"no {qemu}: see `make qemu`")
    made = api.package("digits", config="tiny", device="sim", target=processor, out=tmp_path)
    cpu = f"-mcpu={processor.replace('-', '_')}"
    command = built(made.files[0].parent, "digits", (*ZIG, "-target", gnu, cpu))
    before = (qemu, "-cpu", processor)
    assert_same(zynq, command, digits, by_python, tmp_path, before)


def test_runs_again_and_again(uio, digits, tmp_path):
    net = uio.open(digits.module, tmp_path)
    for seed in range(3):
        inputs = api.random_inputs(digits.module, seed=seed)
        (logits,) = net.run(**inputs).values()
        assert np.array_equal(logits, api.run(digits.module, inputs, "sim").outputs["logits"])


def test_registers_are_words_of_the_device(zynq, digits, tmp_path):
    """A file in its place keeps what was written; its STATUS says that all is done."""
    words = np.memmap(zynq.root / "dev/uio3", "<u4", "r+")
    own = {"ID": IDENTITY, "VERSION": VERSION, "STATUS": DONE, "CYCLES_LOW": 7, "CYCLES_HIGH": 1}
    own |= zip(("ISA_HASH", "CONFIG_HASH"), Identity.of(TINY).words, strict=True)
    for name, value in own.items():
        words[register(name).offset // 4] = value
    reached = Ways(tmp_path, access=()).uio(zynq.root)
    os.environ.pop(SOCKET)
    net = reached.open(digits.module, tmp_path)
    net.run(**digits.inputs)
    assert net.counters(0) == (7 + (1 << 32), [])
    expected = {"DRAM_BASE": DRAM_BASE, "CONTROL": START, "PROGRAM_CONFIG": own["CONFIG_HASH"]}
    assert {name: words[register(name).offset // 4] for name in expected} == expected
    assert (zynq.settings / "sync_direction").read_text() == str(FROM_DEVICE)
    assert (zynq.settings / "sync_for_cpu").read_text() == "1"
    reached.close()


def test_what_is_missing(ways, zynq):
    root = zynq.root

    def error():
        reached = ways.uio(root)
        assert not reached.is_open
        return reached.error

    (zynq.settings / "phys_addr").write_text("0x100000000\n")
    assert error() == ("udmabuf0: expected memory below 4 GiB, found 1048576 bytes at 0x100000000")
    (zynq.settings / "size").write_text("much")
    assert error() == f"{zynq.settings}/size: expected a number, found much"
    (zynq.settings / "size").unlink()
    assert error() == f"{zynq.settings}/size: expected to open it, found No such file or directory"
    shutil.rmtree(root / "sys/class/u-dma-buf")
    assert error() == "udmabuf0: expected a u-dma-buf, found none; load its module with a size"
    (root / "dev/uio3").unlink()
    assert error() == f"{root}/dev/uio3: expected to open it, found No such file or directory"
    (root / "sys/class/uio/uio3/name").write_text("fan\n")
    assert error() == (
        "uio: expected a device called vdla, found fan; is the device-tree overlay loaded?"
    )
    shutil.rmtree(root / "sys")
    assert error() == (
        "uio: expected a device called vdla, found no UIO device; "
        "is the device-tree overlay loaded?"
    )


def test_the_program_says_what_it_takes(zynq, digits, tmp_path):
    command = program(digits.module, tmp_path)
    (tmp_path / "in").write_bytes(bytes(7))
    found = []
    for args in ((), (tmp_path / "in", tmp_path / "out")):
        done = zynq.run(command, *args)
        found.append((done.returncode, done.stdout, done.stderr))
    usage = "on_board: expected [--root FOLDER] [--seconds NUMBER] uio|serial PORT IN OUT\n"
    short = "on_board: expected a file IN of the inputs' bytes, found another\n"
    assert found == [(2, "", usage), (2, "", short)]
