"""Pairs of option values that meet in a config, on which simulator, RTL and host are compared.

    python tools/option_pairs.py [--seed S] [--programs N] [--first K] [--rows R] [--json]

The configs are a covering array (tests/support/covering_array.py): every legal pair of parameters'
extreme and odd values meets in one of them. On each run N random programs in lockstep and a network
of each kind, on simulator and RTL; a config of more than 1,024 multipliers runs on the simulator
alone. ``--first`` and ``--rows`` choose a part of the array; ``--rows 0`` only says what it covers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from array_runs import Runs, run_row
from covering_array import Array, reason_of


def impossible(array: Array) -> Counter[str]:
    """Number of pairs that are impossible, for each reason."""
    return Counter(reason_of(pair) for pair in array.impossible)


def run(array: Array, programs: int, first: int, rows: int | None) -> Runs:
    """Runs a part of the array, and says how far it is."""
    runs, chosen = Runs(), array.rows[first:][:rows]
    for row in chosen:
        run_row(runs, row, programs, array.seed)
        print(f"{runs.configs} of {len(chosen)}: {runs}", file=sys.stderr, flush=True)
    return runs


def main() -> None:
    """Prints the figures, or JSON; exit code 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    array = Array(arguments.seed)
    runs = run(array, arguments.programs, arguments.first, arguments.rows)
    if arguments.json:
        print(json.dumps({
            "pairs": len(array.pairs), "impossible": impossible(array),
            "configs": len(array.rows), "ran": runs.configs, "with_rtl": runs.with_rtl,
            "programs": runs.programs, "networks": runs.networks, "refused": runs.refused,
            "share": runs.share(array), "differences": runs.differences,
        }))  # fmt: skip
        raise SystemExit(bool(runs.differences))
    table = Table("impossible pairs", "reason")
    for reason, count in impossible(array).most_common():
        table.add_row(str(count), reason)
    Console(width=140).print(table)
    print(f"seed {array.seed}: {len(array.pairs):,} pairs in {len(array.rows)} configs; {runs}")
    for text in (*runs.refused, *runs.differences):
        print(text)
    share, count = runs.share(array), len(runs.differences)
    print(
        f"pairs of option values covered by lockstep and networks: {share:.1%}, {count} differences"
    )
    raise SystemExit(bool(runs.differences))


if __name__ == "__main__":
    main()
