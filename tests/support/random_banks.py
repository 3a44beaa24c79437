"""Random memories with banks: few and many, short rows, short and long waits."""

from __future__ import annotations

from random import Random

from vdla.isa.config import Config
from vdla.isa.memory import Banks, Memory


def random_memory(rng: Random, config: Config) -> Memory:
    """A memory with banks that the port of a config may have behind it."""
    port = config.port_bytes
    banks = Banks(
        count=rng.choice((1, 2, 4, 8, 16)),
        row_bytes=rng.choice((max(port, 16), 64, 1024)),
        requests=rng.choice((1, 2)),
        read_cycles=rng.randint(1, 9),
        write_cycles=rng.randint(1, 9),
        activate=rng.randint(1, 5),
        precharge=rng.randint(1, 5),
        row_open=rng.randint(1, 9),
        row_cycle=rng.randint(1, 12),
        other_row=rng.randint(1, 4),
        read_recovery=rng.randint(1, 5),
        write_recovery=rng.randint(1, 5),
        read_to_write=rng.randint(1, 8),
        write_to_read=rng.randint(1, 8),
        refresh_interval=rng.randint(60, 500),
        refresh_cycles=rng.randint(1, 20),
        refreshes_put_off=rng.randint(0, 7),
        start_cycles=rng.randint(1, 30),
    )
    return Memory(rng.choice((0, 0, 3, 20)), rng.choice((port, port // 2, port // 4)), banks)
