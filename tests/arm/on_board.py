"""Runs modules as a board's processor would: under Debian's Python for ARM, inside qemu-user.

A request is a line of JSON on stdin, answered by lines on stdout. The accelerator's part is done at
the other end: the DRAM image is a file that both map, as processor and fabric share a board's.
"""

import json
import sys

import numpy as np

import vdla.runtime.board.mapped
import vdla.runtime.devices.board  # noqa: F401  docs/pynq.md imports both
from vdla.isa.config import parse_config
from vdla.isa.identity import Identity
from vdla.runtime import Executor, Module, ModuleError
from vdla.runtime.devices import CpuDevice, DeviceResult


def say(**answer):
    print(json.dumps(answer), flush=True)


class Fabric:
    """Asks for the accelerator's programs to be run, by their number, and waits."""

    name = "fabric"

    def __init__(self, config, path):
        self.identity, self.path = Identity.of(config), path
        self.loaded = 0

    def allocate(self, size, constants):
        dram = np.memmap(self.path, np.uint8, "w+", shape=(size,))
        dram[: len(constants)] = np.frombuffer(constants, np.uint8)
        return dram

    def load(self, program, dram, given=(), wanted=()):
        number, self.loaded = self.loaded, self.loaded + 1

        def run():
            say(run=number)
            return DeviceResult(json.loads(sys.stdin.readline())["cycles"])

        return run


def serve(request):
    module = Module.load(request["module"])
    with np.load(request["inputs"]) as file:
        inputs = dict(file)
    device = CpuDevice()
    if module.accelerated:
        config = parse_config(module.config, "config", "module header")
        device = Fabric(config, request["dram"])
    np.savez(request["outputs"], **Executor(module, device).run(inputs).outputs)


assert not {"llvmlite", "numba"} & set(sys.modules)
for line in sys.stdin:
    try:
        serve(json.loads(line))
    except ModuleError as error:
        say(error=str(error))
    else:
        say(done=True)
