"""Random legal configs: odd blocks, small and odd buffers, queues of one and of a thousand, tables.

``random_settings`` gives them as the command line takes them, ``KEY=VALUE`` over config ``tiny``.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from vdla.isa.config import PAGE_BYTES, Config, engine_options, load_config
from vdla.isa.parameters import ConfigError

WIDEST = 256  # lanes of a vector, at most
WIDE = 4096  # bytes of a weight tile: larger ones take long to simulate and to build


def random_config(rng: Random) -> Config:
    """A legal config."""
    return load_config("tiny", random_settings(rng))


def random_settings(rng: Random) -> list[str]:
    """Overrides of ``tiny`` that describe a machine that can exist."""
    port = rng.choice((4, 4, 4, 8, 8, 16, 32))
    block_in, block_out = _blocks(rng, port)
    entries = {"inp": block_in, "wgt": block_in * block_out, "acc": 4 * block_out}
    burst = rng.choice((1, 2, 3, 5, 16, 97, 251, 255, 256, rng.randint(1, 256)))
    burst = min(burst, PAGE_BYTES // port)
    settings = {
        "port_bytes": port,
        "block_in": block_in,
        "block_out": block_out,
        **{f"{b}_bytes": _bytes(rng, entry) for b, entry in entries.items()},
        "command_queue": rng.choice((2, 2, 3, 16, 1000)),
        "token_queue": rng.choice((1, 1, 2, 5, 64, 1000)),
        "burst_beats": burst,
        "reads_in_flight": rng.choice((1, 2, 32, 512)),
        "read_buffer_beats": burst + rng.choice((0, 0, 1, 7, 256)),
        "writes_in_flight": rng.choice((1, 2, 16, 512)),
        "memory.latency": rng.choice((0, 1, 2, 64, rng.randint(0, 5000), 5000)),
        "memory.bytes_per_cycle": rng.choice((1, 3, port, 2 * port)),
    }
    texts = [f"{key}={value}" for key, value in settings.items()] + [_uop_bytes(rng, settings)]
    tables = rng.choice((0, 0, 0, 1, 2, 3, 4, 255, 256))
    return [*texts, f"table_bytes={512 * tables}"] if tables else texts


def random_options(rng: Random, settings: Iterable[str]) -> list[str]:
    """The settings with forwarding, a window, a fourth engine, reciprocal units, lanes in the
    fabric, multipliers for fewer lanes than there are and weights of 4 bits, as far as the blocks
    allow."""
    config = load_config("tiny", settings)
    beats, most = config.block_in // config.port_bytes, config.block_in // 2
    taps = rng.choice((0, 2, most, rng.randint(2, most), most // 2))
    taps = taps if taps >= 2 else 0
    rows = rng.choice((1, 2, 2)) if 2 <= taps <= most // 2 else 1
    forwarding = 0 if beats & (beats - 1) else rng.randrange(2)
    options = {"forwarding": forwarding, "window_taps": taps, "window_rows": rows}
    if fourth := rng.choice(("", *engine_options())):
        options[fourth] = 1
    most = config.block_out & -config.block_out  # the greatest power of two that divides it
    options["reciprocal_units"] = rng.choice((0, 1, most, 1 << rng.randrange(most.bit_length())))
    options["fabric_lanes"] = 2 * rng.choice((0, 0, 1, rng.randint(0, config.block_out // 2)))
    divisors = [n for n in range(1, config.block_out + 1) if config.block_out % n == 0]
    options["alu_groups"] = rng.choice((1, 1, rng.choice(divisors)))
    options["store_groups"] = rng.choice((1, 1, 2, 4))
    options["weights4"] = rng.randrange(2)
    return [*settings, *(f"{key}={value}" for key, value in options.items())]


def _blocks(rng: Random, port: int) -> tuple[int, int]:
    """Blocks of whole beats, one of which divides the other; a power of two is no rule."""
    while True:
        low = port * rng.choice((1, 1, 1, 2, 3, 5, 7))
        any_ratio = rng.randint(1, max(WIDEST // low, 1))
        high = low * rng.choice((1, 1, 1, 2, 3, 4, 5, 8, 16, any_ratio))
        if high <= WIDEST and low * high <= WIDE:
            return (low, high) if rng.random() < 0.5 else (high, low)


def _bytes(rng: Random, entry: int) -> int:
    """Two entries at least, often few and odd, and now and then some bytes that hold none."""
    few = rng.choice((2, 3, 5, rng.randint(4, 40)))
    entries = rng.choice((few, rng.randint(40, 300), rng.randint(100, 400), 512, 1023))
    return entries * entry + rng.choice((0, 0, entry - 1))


def _uop_bytes(rng: Random, settings: dict[str, int]) -> str:
    """A micro-op takes as many bytes as the other buffers ask for."""
    others = [f"{key}={value}" for key, value in settings.items()]
    entry = load_config("tiny", [*others, f"uop_bytes={1 << 20}"]).entry("uop")
    return f"uop_bytes={_bytes(rng, entry)}"


def smaller_settings(settings: Iterable[str]) -> Iterable[list[str]]:
    """The settings with one left at what ``tiny`` has, where that still is a legal config."""
    settings = list(settings)
    for i in range(len(settings)):
        fewer = [*settings[:i], *settings[i + 1 :]]
        try:
            load_config("tiny", fewer)
        except ConfigError:
            continue
        yield fewer
