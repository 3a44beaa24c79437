"""The table of networks: its figures, and that the README has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import load_script

from vdla.isa.config import load_config

ROOT = Path(__file__).parents[2]
networks = load_script("benchmarks/networks.py")
PLUS = load_config("paper-plus")


def readme_rows() -> dict[str, list[str]]:
    """The cells of the README's table, by network."""
    page = (ROOT / "docs" / "results.md").read_text()
    table = page.partition(networks.MARK)[2].partition(networks.END)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[0] == list(networks.HEADS)
    return {row[0]: row for row in rows[2:]}


@pytest.mark.parametrize(
    "network", ["scenes", "dqn", *(pytest.param(n, marks=pytest.mark.long) for n in ("unet",))]
)
def test_the_readme_has_the_figures(network):
    """Cycles and shares are exact; onnxruntime's floats may round otherwise on another machine."""
    row = networks.figures(network, PLUS)
    cells = networks.cells(row)
    exact = slice(0, networks.HEADS.index("layer"))
    assert cells[exact] == readme_rows()[network][exact]
    assert row.host == 0
    assert row.largest <= 1
    assert row.cosine > 0.999


def test_every_network_is_in_the_readme():
    assert {n: row[1] for n, row in readme_rows().items()} == networks.CONFIGS


def test_depthwise_layers_are_known():
    work = networks.find_workload(networks.model_files("mobilenet"), PLUS)
    depthwise = [name for name, op in work.operators if networks.is_depthwise(op)]
    assert depthwise == [f"dw{number}" for number in range(1, 14)]


def test_a_page_keeps_what_stands_around_the_table():
    row = networks.Row("one", "tiny", 1234, 0.5, 0.9, 0.85, 0, 1, 1e-5, 0.999, 0.998, 0.9999)
    page = f"before\n{networks.MARK}old\n{networks.END}\nafter\n"
    new = networks.with_table(page, [row])
    assert new.startswith(f"before\n{networks.MARK}| network |")
    assert new.endswith(
        "| one | tiny | 1,234 | 50.0 % | 90.0 % | 85.0 % | 0 | 1 | 0.0010 % | 99.9 % | 99.8 % "
        "| 0.9999 |\n"
        f"{networks.END}\nafter\n"
    )
