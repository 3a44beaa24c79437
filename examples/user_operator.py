"""A user's operator joined to a network: digits, its pixels thresholded on the accelerator."""

from tempfile import NamedTemporaryFile

import numpy as np
import onnx

import vdla
from vdla import te
from vdla.compiler import models


def threshold(image, least):  # int8 pixels of at least `least`, by way of int32 and a scale of one
    wide = te.compute(image.shape, lambda *i: image[i].astype("int32") + 0, "wide")
    bounded = te.compute(image.shape, lambda *i: te.max(wide[i], least), "bounded")
    one = te.compute((4,), lambda l: te.const(te.scale_word(1, 0)), "one")
    return te.compute(image.shape, lambda n, c, y, x: te.requantize(
        bounded[n, c, y, x], one[x % 4]).astype("int8"), "out")  # fmt: skip


def schedule(s, out, inputs, ins):  # vectors of config tiny have 4 lanes
    for name in "wide", "bounded", "one":
        s[name].set_scope(vdla.ACC)
    for stage in s["wide"], s["bounded"], s["one"], s[out]:
        stage.tensorize(stage.split(stage.axis[-1], factor=4)[1], ins)


vdla.register_operator("mine::Threshold", threshold, schedule)
model, pixels = onnx.load(models.model_path("digits")), "image_QuantizeLinear_Output"
for node in model.graph.node:
    node.input[:] = ["bright" if name == pixels else name for name in node.input]
mine = onnx.helper.make_node("Threshold", [pixels], ["bright"], domain="mine", least=-100)
model.graph.node.insert(4, mine)  # behind QuantizeLinear
model.opset_import.append(onnx.helper.make_opsetid("mine", 1))
with NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    module, x = vdla.compile(file.name, "tiny"), {"image": np.ones((1, 1, 8, 8), np.float32) / 2}
    result, host = vdla.run(module, x), vdla.run(file.name, x, device="cpu")
assert np.array_equal(result.outputs["logits"], host.outputs["logits"])
print(result.cycles, *(f"{row['op']}:{row['device']}" for row in module.metadata["placement"]))
