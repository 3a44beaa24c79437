"""Boards behind runtime/c/boards: a Zynq whose core is RTL, ports with boards at their other end,
and networks in C that reach them."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
import tty
from contextlib import suppress
from pathlib import Path

import numpy as np
from in_c import network

from vdla.boards.virtual import VirtualAxiBoard
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.isa.registers import START, register
from vdla.packaging.forms import FORMS
from vdla.packaging.objects import Packaged
from vdla.runtime.board import link
from vdla.runtime.board.mapped import BOTH_WAYS, TO_DEVICE
from vdla.runtime.rtl.bench import DRAM_BASE

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "runtime/c"
SOCKET = "VDLA_TEST_SOCKET"
GCC = ("gcc",)
ZIG = (sys.executable, "-m", "ziglang", "cc")
ACCESS = f'-DVDLA_UIO_ACCESS="{HERE / "uio_access.h"}"'
STATUS = register("STATUS")
DONE = STATUS.field("DONE").mask
CLOCKS = 1000  # that pass while the host looks at STATUS
READ, WRITE = range(2)  # the third request says that the cache was synchronized


def compiled(command, *args) -> str:
    """What a compiler says."""
    done = subprocess.run([*command, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def program(module, folder: Path, name="digits", flags=("-O1",)) -> Path:
    """The example program of a module's package."""
    for path, data in FORMS["static"].make(Packaged(name, module, NATIVE), "1").items():
        folder.joinpath(path).write_bytes(data)
    return built(folder, name, (*GCC, *flags))


def built(folder: Path, name: str, command=GCC) -> Path:
    """The example program of a package in a folder, with registers behind a socket."""
    files = [folder / f"{each}.c" for each in ("on_board", "boards", "uio", "serial")]
    library = folder / f"lib{name}.a"
    compiled(command, ACCESS, "-o", folder / "run", *files, library, "-lm", "-lpthread")
    return folder / "run"


def shown(text):
    """Cycles and counters as the program prints them."""
    first, *lines = (line.split() for line in text.splitlines())
    causes = {
        engine: {
            cause.lower(): int(count) for cause, count in zip(rest[::2], rest[1::2], strict=True)
        }
        for engine, *rest in lines
    }
    return int(first[1]), causes


# A Zynq -------------------------------------------------------------------------------------------


class Zynq:
    """Files of Linux for a core, whose registers are served over ``socket``.

    Its cache is the worst: what the host has written, and not flushed, it writes back while the
    core is at work, and what the core has written the host sees as other bytes until a flush.
    ``answer`` may change what STATUS reads.
    """

    def __init__(self, config, root: Path, memory_bytes=1 << 20, errors=(0, 0)):
        self.root, self.answer = root, lambda status: status
        self.log = []  # writes of registers
        self._before = None  # the DRAM that the core's program found
        self.board = VirtualAxiBoard("zynq", config, memory_bytes, errors)
        self.board.allocate(memory_bytes)
        self.settings = root / "sys/class/u-dma-buf/udmabuf0"
        for folder in ("sys/class/uio/uio3", "sys/class/u-dma-buf/udmabuf0", "dev"):
            (root / folder).mkdir(parents=True)
        (root / "sys/class/uio/uio3/name").write_text("vdla@40000000\n")
        (root / "dev/uio3").write_bytes(bytes(4096))
        names = ("offset", "size", "direction", "for_cpu", "for_device")
        values = {"size": memory_bytes, "phys_addr": hex(DRAM_BASE)}
        for name, value in {**values, **{f"sync_{name}": 0 for name in names}}.items():
            (self.settings / name).write_text(f"{value}\n")
        old = np.random.default_rng(0).integers(0, 256, memory_bytes, np.uint8)
        (root / "dev/udmabuf0").write_bytes(old.tobytes())
        self.host = np.memmap(root / "dev/udmabuf0", np.uint8, "r+")
        self.board.dram[:] = old
        self.clean = old  # the host's bytes that its cache need not write back
        self._own, self.socket = socket.socketpair()
        os.environ[SOCKET] = str(self.socket.fileno())
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def run(self, program, *args, before=()):
        """Runs a program of this board's processor."""
        command = [*before, program, "--root", self.root, "uio", *args]
        return subprocess.run(
            [*map(str, command)], capture_output=True, text=True, check=False,
            pass_fds=(self.socket.fileno(),), env={SOCKET: str(self.socket.fileno())},
        )  # fmt: skip

    def close(self):
        self.socket.close()
        self._thread.join()

    def _serve(self):
        while request := self._own.recv(12, socket.MSG_WAITALL):
            what, offset, value = np.frombuffer(request, "<u4").tolist()
            result = 0
            if what == READ:
                result = self._read(offset)
            elif what == WRITE:
                self.log.append((offset, value))
                if (offset, value) == (register("CONTROL").offset, START):
                    self._before = self.board.dram.copy()
                self.board.write(offset, value)
            else:
                self._sync()
            self._own.sendall(np.uint32(result).tobytes())
        self._own.close()
        self.board.close()

    def _read(self, offset):
        if offset != STATUS.offset:
            return self.board.read(offset)[0]
        self.board.bench.advance(CLOCKS)
        value = self.board.bench.read_at(offset)
        if self._before is not None:
            self._write_back(slice(None))
        if value & DONE and self._before is not None:
            changed = self.board.dram != self._before
            self._before = None
            self.host[changed] ^= 0xFF
            self.clean[changed] = self.host[changed]
        return self.answer(value)

    def _sync(self):
        values = {path.name: path.read_text() for path in self.settings.glob("sync_*")}
        start, size, direction = (int(values[f"sync_{n}"]) for n in ("offset", "size", "direction"))
        part = slice(start, start + size)
        cpu, device = (int(values[f"sync_for_{name}"]) for name in ("cpu", "device"))
        assert (direction, cpu, device) in {(0, 0, 1), (1, 0, 1), (2, 1, 0)}
        for name in ("cpu", "device"):
            (self.settings / f"sync_for_{name}").write_text("0")
        if direction == BOTH_WAYS:
            self._write_back(part)
        elif direction == TO_DEVICE:
            self.board.dram[part] = self.clean[part] = self.host[part]
        else:
            self.host[part] = self.clean[part] = self.board.dram[part]

    def _write_back(self, part):
        dirty = self.host[part] != self.clean[part]
        self.board.dram[part][dirty] = self.host[part][dirty]
        self.clean[part] = self.host[part]


# Ports --------------------------------------------------------------------------------------------


class Port:
    """A pseudo-terminal, ``path``, with a line as of fake_board.FakeLine at its other end."""

    def __init__(self, line):
        self.line = line
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.path = os.ttyname(self._theirs)
        self._ends, end = os.pipe()
        self._end = end
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        os.write(self._end, b"x")
        self._thread.join()
        for file in (self._ours, self._theirs, self._ends, self._end):
            os.close(file)

    def _serve(self):
        while True:
            ready, _, _ = select.select([self._ours, self._ends], [], [], link.QUIET)
            if self._ends in ready:
                return
            if not ready:
                self.line.arrived.clear()  # half a frame is forgotten
                continue
            self.line.write(os.read(self._ours, 4096))
            if reply := self.line.read(1 << 16):
                os.write(self._ours, reply)


class Between(Port):
    """A pseudo-terminal before another one, ``far``; ``spoil`` changes what passes, both ways."""

    def __init__(self, far, spoil):
        self._far = os.open(far, os.O_RDWR | os.O_NOCTTY)
        self.spoil = spoil
        super().__init__(None)

    def close(self):
        super().close()
        os.close(self._far)

    def _serve(self):
        others = {self._ours: self._far, self._far: self._ours}
        while True:
            ready, _, _ = select.select([*others, self._ends], [], [])
            if self._ends in ready:
                return
            for file in ready:
                with suppress(BlockingIOError):
                    os.write(others[file], self.spoil(os.read(file, 4096)))


# Networks in C, in this process -------------------------------------------------------------------


class _Way(ctypes.Structure):
    """The first members of ``struct vdla_way``."""

    _fields_ = (
        ("error", ctypes.c_char * 256), ("name", ctypes.c_char * 64), ("memory", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t), ("taken", ctypes.c_size_t), ("address", ctypes.c_uint32),
        ("run_us", ctypes.c_uint32), ("began_us", ctypes.c_uint64),
    )  # fmt: skip


class _Serial(ctypes.Structure):
    """The first members of ``struct vdla_serial``."""

    _fields_ = (
        ("way", _Way), ("port", ctypes.c_int), ("answer_us", ctypes.c_uint32),
        ("sent_again", ctypes.c_uint32), ("rest", ctypes.c_uint8 * 2048),
    )  # fmt: skip


class Ways:
    """runtime/c/boards as a library; without ``access`` registers are words of a file."""

    def __init__(self, folder: Path, access=(ACCESS,)) -> None:
        files = [SOURCES / "boards" / f"{name}.c" for name in ("boards", "uio", "serial")]
        path = folder / "ways.so"
        flags = (
            "-shared",
            "-fPIC",
            "-I",
            SOURCES,
            *access,
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
        )
        compiled(GCC, "-g", *flags, "-o", path, *files)
        self.library = ctypes.CDLL(str(path))

    def uio(self, root: Path) -> Reached:
        """A board by UIO."""
        return Reached(self.library, "uio", os.fsencode(root))

    def serial(self, port: str, memory_bytes=1 << 20) -> Reached:
        """A board at a port."""
        size = ctypes.c_size_t(memory_bytes)
        return Reached(self.library, "serial", os.fsencode(port), size)


class Reached:
    """A board that C has opened, if ``is_open``; otherwise ``error`` says why not."""

    def __init__(self, library, kind, *args):
        self.library, self.kind = library, kind
        self.board, self.callbacks = _Serial(), (ctypes.c_void_p * 6)()
        opened = getattr(library, f"vdla_{kind}_open")
        self.is_open = opened(ctypes.byref(self.board), *args, ctypes.byref(self.callbacks)) == 0

    @property
    def error(self):
        """What went wrong."""
        return self.board.way.error.decode()

    def open(self, module, folder: Path, name="net"):
        """A network on it."""
        folder = folder / name
        folder.mkdir()
        package = network(module, folder, name)
        place = ctypes.byref(self.callbacks)

        class OnBoard(package.Network):
            def _open(self):
                memory = (ctypes.c_uint8 * len(self._memory)).from_buffer(self._memory)
                size = ctypes.c_size_t(len(self._memory))
                opened = getattr(package._library(), f"{name}_open")
                return opened(ctypes.byref(memory), size, place, ctypes.byref(self._net))

            def counters(self, count):
                """Cycles of the last run, and the counters."""
                cycles, values = ctypes.c_uint64(), (ctypes.c_uint32 * count)()
                get = package._library().vdla_counters
                self._check(get(self._net, ctypes.byref(cycles), values, ctypes.c_uint32(count)))
                return cycles.value, list(values)

        return OnBoard(1)

    def close(self):
        """Lets it go."""
        getattr(self.library, f"vdla_{self.kind}_close")(ctypes.byref(self.board))
