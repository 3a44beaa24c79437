"""Whether a stream runs to its end in the queues of its config, and which sizes it would need.

What a queue of tokens or of commands holds decides whether a stream stands still. A larger queue
never makes one stand still that ran with a smaller one, so the size that a stream needs is found by
halving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from vdla.isa.config import Config
from vdla.isa.instructions import Instruction
from vdla.sim.checker.tokens import make_queues, run_tokens
from vdla.sim.checker.words import describe_tokens
from vdla.sim.stream import Rows, Stream
from vdla.support.errors import CheckError, UserError


class QueueError(UserError):
    """A config whose queues are too small for a stream."""


def prove_progress(config: Config, instructions: Sequence[Instruction]) -> None:
    """Proves that a stream which ends with FINISH can't stand still on a config's machine.

    Raises:
        QueueError: it does, and larger queues would mend it; names them, and what they must hold.
        CheckError: it does, whatever the queues hold.
    """
    stream = Stream.of(config, instructions)
    started = _started(stream, config)
    if _ends(stream, started):
        return
    text = describe_tokens(stream, started)[0].text
    remedies = _remedies(stream)
    if not remedies:
        raise CheckError(text)
    raise QueueError(
        f"config {config.name}: expected {' or '.join(remedies)}, found "
        f"token_queue = {config.token_queue}, command_queue = {config.command_queue}: {text}"
    )


def _started(stream: Stream, config: Config) -> Rows:
    """Per engine, the instructions that start in the queues of a config."""
    queues = make_queues(stream, config)
    run_tokens(queues)
    return queues.started


def _ends(stream: Stream, started: Rows) -> bool:
    return int(started.sum()) == len(stream.instructions) - 1


def _remedies(stream: Stream) -> list[str]:
    """Remedies that let a stream end: a larger queue of either kind, else both; else none."""
    tokens, commands = stream.config.token_queue, stream.config.command_queue
    most = max(tokens, commands, len(stream.instructions))

    def runs(tokens: int, commands: int) -> bool:
        sizes = replace(stream.config, token_queue=tokens, command_queue=commands)
        return _ends(stream, _started(stream, sizes))

    remedies = []
    if runs(most, commands):
        least = _least(tokens, most, lambda n: runs(n, commands))
        remedies.append(f"token_queue ≥ {least}")
    if runs(tokens, most):
        least = _least(commands, most, lambda n: runs(tokens, n))
        remedies.append(f"command_queue ≥ {least}")
    if not remedies and runs(most, most):
        tokens = _least(tokens, most, lambda n: runs(n, most))
        commands = _least(commands, most, lambda n: runs(tokens, n))
        remedies.append(f"token_queue ≥ {tokens} and command_queue ≥ {commands}")
    return remedies


def _least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least number from ``low`` to ``high`` that holds; so do ``high`` and all above it."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
