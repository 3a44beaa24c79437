"""Jobs that do what jobs shouldn't; other processes import them from here."""

from __future__ import annotations

import os
import signal
import time

from vdla.farm.work import ResourceLost, leased
from vdla.support.errors import UserError


def length(text):
    return len(text)


def fault():
    raise KeyError("a fault of ours")


def complaint():
    raise UserError("sizes: expected some, found none")


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(code):
    os._exit(code)


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def span(seconds):
    """When it began and ended to sleep, by a clock that processes share."""
    began = time.monotonic()
    time.sleep(seconds)
    return began, time.monotonic()


def memory(count):
    return len(bytes(count))


def closure():
    return lambda: None


def process():
    return os.getpid()


def made(value, *args):
    return value, args


def resource(name):
    return leased(name)


def lose_nothing():
    raise ResourceLost("nothing doesn't answer")


def fragile(name, broken):
    """What has the resource; one that is broken is lost."""
    if leased(name) in broken:
        raise ResourceLost(f"{leased(name)} doesn't answer")
    time.sleep(0.02)
    return leased(name)


class Counter:
    """How often it was made in a process."""

    made = 0

    def __init__(self, start):
        type(self).made += 1
        self.start = start

    def count(self, more):
        return self.made, self.start + more


def count(counter, more):
    return counter.count(more)


def slow_counter(start, seconds):
    time.sleep(seconds)
    return Counter(start)
