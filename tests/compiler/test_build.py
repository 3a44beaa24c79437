"""What the compiler places, and how it names the accelerator's layers."""

from __future__ import annotations

import pytest

from vdla.compiler.build import accelerator_layers, place_models
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.models import model_path, model_paths
from vdla.isa.config import load_config

PAPER = load_config("paper")


def test_layers_of_one_model_go_by_their_nodes_names():
    (digits,) = place_models(model_paths("digits"), PAPER).values()
    operators, placements = accelerator_layers(import_onnx(model_path("digits")), PAPER)
    assert digits.graphs[0].placements == placements
    assert [name for name, _ in digits.layers] == [op.node.name for op in operators]
    assert [op.template for _, op in digits.layers] == [op.template for op in operators]


def test_layers_of_several_models_go_by_their_models_names():
    paths = {name: model_paths("resnet18-convs")[name] for name in ("C1", "C8")}
    placed = place_models(paths, PAPER)
    assert {name: [n for n, _ in model.layers] for name, model in placed.items()} == {
        "C1": ["C1"],
        "C8": ["C8"],
    }
    for model in placed.values():
        assert {op.node.name for _, op in model.layers} <= {
            n.name for n in model.graphs[0].graph.nodes
        }


def test_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(ModelError):
        place_models({"empty": path}, PAPER)
