"""Figures of others stand beside the model and the machine that they are of, and no other."""

from dataclasses import replace

import pytest

from vdla import api
from vdla.analysis.published import OSDI, published
from vdla.analysis.report.page import report_page
from vdla.compiler.models import model_paths
from vdla.isa.config import load_config

PAPER = load_config("paper")


def test_the_layers_of_the_papers_table():
    found = published("resnet18-convs", PAPER)
    assert found.hiding[0] is OSDI
    assert set(found.vta) == {f"C{i}" for i in range(1, 13)} - {"C1", "C3"}
    macs = 56 * 56 * 64 * 64 * 9  # C2: 5.7 ms of 51.2 GOPS
    assert found.vta["C2"] == pytest.approx(2 * macs / 5.7e-3 / 51.2e9)


@pytest.mark.parametrize(
    ("model", "config"), [("resnet18", "paper"), ("C2", "paper"), ("resnet18-convs", "tiny")]
)
def test_no_other_model_or_array(model, config):
    assert published(model, load_config(config)) is None


def test_a_model_of_the_users_own():
    """Whatever its layers are called."""
    path = model_paths("resnet18-convs")["C2"]
    found = api.compare(path, "paper", [1])
    assert found.published is None
    assert [layer.macs for layer in found.layers] == [56 * 56 * 64 * 64 * 9]
    page = report_page("C2", found, found.layers[0])
    assert OSDI.name not in page
    others = replace(found, published=published("resnet18-convs", PAPER))
    assert OSDI.name in report_page("C2", others, others.layers[0])
