"""The search for the cheapest recipe: in the order of cost, until the score is good enough."""

from __future__ import annotations

from math import inf

import onnx
import pytest
from onnx import TensorProto, helper

from vdla.compiler.models.frontier import Point, Search, chosen, wide_tensors
from vdla.compiler.models.recipe import Recipe


def model_of(recipe, wide=0):
    """A model that says which recipe it is of, with so many tensors of 16 bits."""
    zero = helper.make_tensor("z", TensorProto.INT16, (), [0])
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], [f"y{n}"]) for n in range(wide)]
    graph = helper.make_graph(nodes, str(recipe), [], [], [zero])
    return helper.make_model(graph)


class Bench:
    """A network whose score and cycles a recipe decides; counts what was compiled."""

    def __init__(self, scores):
        self.scores, self.compiled = scores, 0

    def quantized(self, recipe):
        wide = int(min(recipe.bits16_below or 0, 90) / 10)
        self.recipe = recipe
        return model_of(recipe, wide)

    def score(self, model):
        return self.scores(self.recipe)

    def cost(self, model):
        self.compiled += 1
        return 100 + 10 * wide_tensors(model), 7

    def run(self, wanted):
        return Search(self.quantized, self.score, self.cost, wanted).run(Recipe())


def test_the_first_that_is_good_enough_ends_it():
    assert [p.name for p in Bench(lambda recipe: 40.0).run(30)] == ["as given"]


def test_repairs_are_kept_where_they_help():
    def score(recipe):
        return 20.0 + 3 * recipe.gptq - 5 * recipe.equalize + 4 * recipe.correct_bias

    points = Bench(score).run(26.5)
    assert [p.name for p in points[:3]] == ["as given", "GPTQ", "GPTQ, equalized"]
    assert points[-1].name == "GPTQ, biases corrected"
    assert points[-1].recipe == Recipe(gptq=True, correct_bias=True)


def test_sixteen_bits_come_behind_what_is_free_and_grow():
    def score(recipe):
        return recipe.bits16_below or 0.0

    bench = Bench(score)
    points = bench.run(33)
    assert [p.wide for p in points if p.wide] == [2, 2, 3, 3]
    assert (points[-1].recipe.bits16_below, points[-1].cycles) == (35.0, 130)
    assert bench.compiled == 3  # without 16 bits once, and with 2 and 3 tensors


def test_floats_come_last():
    points = Bench(lambda recipe: recipe.floats_below or 0.0).run(35)
    assert [p.recipe.floats_below for p in points[-2:]] == [25.0, 35.0]
    assert points[-1].recipe.bits16_below == inf


def test_the_best_where_none_is_good_enough():
    points = Bench(lambda recipe: 9.0 if recipe.equalize else 5.0).run(30)
    assert chosen(points, 30).recipe.equalize


@pytest.mark.parametrize(("cycles", "which"), [((100, 90), 1), ((90, 100), 0)])
def test_the_cheapest_of_the_good(cycles, which):
    points = [Point(str(n), Recipe(), 31.0, c, 1, 0, model_of(n)) for n, c in enumerate(cycles)]
    assert chosen(points, 30) is points[which]


def test_sixteen_bits_are_counted_by_zero_points():
    assert wide_tensors(model_of("x", 3)) == 3
    assert wide_tensors(onnx.ModelProto()) == 0
