"""Section 12 of docs/timing.md, read line by line: an interpreter that shares nothing with the RTL.

It remembers the cycle of the latest command of each kind and compares, where the RTL counts down.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

NEVER = -(1 << 30)


@dataclass
class Read:
    at: int  # the cycle it is accepted in
    address: int
    beats: int


@dataclass
class Write:
    address: int
    beats: list[tuple[int, int]]  # from when on each is offered, and its value


@dataclass
class Request:
    write: bool
    address: int
    left: int
    state: str = "CHECK"


@dataclass
class Happened:
    """What is seen at the port: cycles, and the values of what was read."""

    beats: list[tuple[int, int]] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)  # a burst's address is taken
    taken: list[int] = field(default_factory=list)  # a write beat is
    answers: list[int] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)


class Interpreter:
    def __init__(self, banks, port_bytes, cycle_bytes, memory):
        self.b, self.port_bytes, self.memory = banks, port_bytes, memory
        self.beat_cycles = -(-port_bytes // cycle_bytes)
        self.open, self.latest = {}, {}
        self.now = self.next = self.address = self.beat = None
        self.due, self.on_its_way, self.closed, self.took_write = 0, False, False, True
        self.done = Happened()

    def place(self, address):
        b = self.b
        return address // b.row_bytes % b.count, address // (b.row_bytes * b.count)

    def since(self, t, wait, *command):
        """Whether a wait from the latest command of a kind is over."""
        return t >= self.latest.get(command, NEVER) + getattr(self.b, wait)

    def may_precharge(self, t, bank):
        return (
            self.since(t, "row_open", "ACTIVATE", bank)
            and self.since(t, "read_recovery", "READ", bank)
            and self.since(t, "write_recovery", "WRITE", bank)
        )

    def may_activate(self, t, bank):
        return (
            self.since(t, "precharge", "PRECHARGE", bank)
            and self.since(t, "row_cycle", "ACTIVATE", bank)
            and self.since(t, "refresh_cycles", "REFRESH")
            and self.since(t, "other_row", "ACTIVATE")
        )

    def may_move(self, t):
        now = self.now
        if now is None or now.state != "READY":
            return False
        turn = ("read_to_write", "READ") if now.write else ("write_to_read", "WRITE")
        return (
            self.since(t, "activate", "ACTIVATE", self.place(now.address)[0])
            and t >= self.latest.get(("COLUMN",), NEVER) + self.beat_cycles
            and self.since(t, *turn)
            and (not now.write or self.beat is not None)
        )

    def issue(self, t, name, bank=None):
        for key in ((name,), (name, bank)):
            self.latest[key] = t
        self.done.commands.append((t, name))

    def run(self, reads, writes):
        """All that happens until everything is answered."""
        queue, reads, writes = deque(), deque(reads), deque(writes)
        offered, t, busy = None, 0, True
        while busy or t < self.b.start_cycles + 4:
            beat_free, address_free = self.beat is None, self.address is None
            self.cycle(t, queue)
            if reads and reads[0].at == t:
                queue.append(reads.popleft())
            if offered is None and writes:
                offered = {"first": True, "address": False, "beat": False}
            if offered and writes[0].beats[0][0] <= t:
                self.offer(t, offered, writes[0], address_free, beat_free)
                if offered["beat"] and (offered["address"] or not offered["first"]):
                    writes[0].beats.pop(0)
                    offered = {"first": False, "address": False, "beat": False}
                    if not writes[0].beats:
                        writes.popleft()
                        offered = None
            busy = any((reads, writes, queue, self.now, self.next, self.address))
            t += 1
        return self.done

    def offer(self, t, offered, burst, address_free, beat_free):
        """The core offers a beat, and the address with a burst's first, until both are taken."""
        if offered["first"] and not offered["address"] and address_free:
            self.address = Request(True, burst.address, len(burst.beats))
            offered["address"] = True
            self.done.addresses.append(t)
        if not offered["beat"] and beat_free:
            self.beat = burst.beats[0][1]
            offered["beat"] = True
            self.done.taken.append(t)

    def cycle(self, t, queue):
        b, now, next_ = self.b, self.now, self.next
        started = t >= b.start_cycles
        on_its_way, refreshed = self.on_its_way, False
        if t and t % b.refresh_interval == 0:
            self.due = min(self.due + 1, 8)
        read_waits = bool(queue) and queue[0].at + 1 <= t
        write_waits = self.address is not None
        takes = next_ is None and (b.requests == 2 or now is None) and (read_waits or write_waits)
        idle = now is None and next_ is None and not (read_waits or write_waits)
        if started:
            checks = self.checks()
            last = self.command(t)
            if on_its_way and now is None:
                refreshed = self.refresh(t)
            for request, state in checks:
                if request.state == "CHECK":
                    request.state = state
            if self.left_row:
                for request in filter(None, (now, next_)):
                    request.state = "CHECK"
            if refreshed and next_:
                next_.state = "CHECK"
            if last:
                self.now = None
            if next_ and self.now is None and not on_its_way:
                self.now, self.next = next_, None
            if not on_its_way:
                self.on_its_way = self.due > b.refreshes_put_off or (self.due > 0 and idle)
        if takes:
            self.take(queue, read_waits, write_waits)

    def take(self, queue, read_waits, write_waits):
        if write_waits and (not read_waits or not self.took_write):
            self.next, self.address, self.took_write = self.address, None, True
        else:
            read = queue.popleft()
            self.next, self.took_write = Request(False, read.address, read.beats), False

    def checks(self):
        """What CHECK makes of each request that is in it, as things are now."""
        now, result = self.now, []
        for request in filter(None, (now, self.next)):
            bank, row = self.place(request.address)
            state = "OPEN" if bank not in self.open else "CLOSE"
            if self.open.get(bank) == row:
                state = "READY"
            if request is not now and now and self.place(now.address)[0] == bank:
                ready = now.state == "READY" and self.place(now.address)[1] == row
                state = "READY" if ready else "CHECK"
            if request.state == "CHECK":
                result.append((request, state))
        return result

    def command(self, t):
        """The command of this cycle; whether it was the last of the request at work."""
        now, self.left_row = self.now, False
        if self.may_move(t):
            bank, _ = self.place(now.address)
            self.issue(t, "WRITE" if now.write else "READ", bank)
            self.latest["COLUMN",] = t
            if now.write:
                self.memory[now.address], self.beat = self.beat, None
            else:
                value = self.memory.get(now.address, 0)
                self.done.beats.append((t + self.b.read_cycles, value))
            now.address, now.left = now.address + self.port_bytes, now.left - 1
            if now.left == 0:
                if now.write:
                    self.done.answers.append(t + self.b.write_cycles)
                return True
            self.left_row = now.address % self.b.row_bytes == 0
            return False
        rows = [now] if now and now.state in ("CLOSE", "OPEN") else []
        if not rows and self.next and self.next.state in ("CLOSE", "OPEN") and not self.on_its_way:
            rows = [self.next]
        for request in rows:
            bank, row = self.place(request.address)
            if request.state == "CLOSE" and self.may_precharge(t, bank):
                self.issue(t, "PRECHARGE", bank)
                del self.open[bank]
                request.state = "OPEN"
            elif request.state == "OPEN" and self.may_activate(t, bank):
                self.issue(t, "ACTIVATE", bank)
                self.open[bank] = row
                request.state = "READY"
        return False

    def refresh(self, t):
        """A step towards a refresh; whether this is its cycle."""
        every = range(self.b.count)
        if not self.closed:
            over = self.since(t, "refresh_cycles", "REFRESH")
            if over and all(self.may_precharge(t, bank) for bank in every):
                for bank in every:
                    self.latest["PRECHARGE", bank] = t
                self.done.commands.append((t, "PRECHARGE ALL"))
                self.open, self.closed = {}, True
        elif all(self.may_activate(t, bank) for bank in every):
            self.issue(t, "REFRESH")
            self.due, self.closed, self.on_its_way = self.due - 1, False, False
            return True
        return False
