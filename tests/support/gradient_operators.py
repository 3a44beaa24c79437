"""ONNX operators that have gradients, each in forms that networks have: ``CASES``.

Operands of floats are the inputs of a case's model; those of other types, and settings, constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 21}
NEWER = {"RMSNormalization": 23, "CumProd": 26}  # the opsets that have them
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """An operator with its operands: shapes of floats between ``low`` and ``high``, and arrays."""

    op: str
    operands: tuple[Shape | np.ndarray, ...]
    fields: dict[str, object] = field(default_factory=dict)
    low: float = -0.95
    high: float = 0.95

    @property
    def name(self) -> str:
        """The operator and its attributes."""
        return f"{self.op}({', '.join(f'{n}={v}' for n, v in self.fields.items())})"

    @property
    def floats(self) -> dict[str, Shape]:
        """The shapes of the operands of floats, by their names."""
        return {f"x{n}": x for n, x in enumerate(self.operands) if isinstance(x, tuple)}

    def numbers(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Operands of floats: no two alike, and none near 0 or where a slope may jump."""
        rng, result = np.random.default_rng(seed), {}
        sizes = {name: int(np.prod(shape)) for name, shape in self.floats.items()}
        total = sum(sizes.values())
        places = (rng.permutation(total) + rng.uniform(0.3, 0.4)) / total
        values = (self.low + (self.high - self.low) * places).astype(np.float32)
        for name, shape in self.floats.items():
            result[name], values = values[: sizes[name]].reshape(shape), values[sizes[name] :]
        return result

    def model(self) -> onnx.ModelProto:
        """The model of the one node, whose result is ``y``."""
        known = {
            f"x{n}": x
            for n, x in enumerate(self.operands)
            if isinstance(x, np.ndarray) and x.dtype != object
        }
        names = [n if n in known or n in self.floats else "" for n in self._names()]
        node = helper.make_node(self.op, names, self._results(), name="it", **self.fields)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in self.floats.items()
        ]
        constants = [numpy_helper.from_array(value, name) for name, value in known.items()]
        outputs = [onnx.ValueInfoProto(name="y")]
        graph = helper.make_graph([node], "g", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", NEWER.get(self.op, OPSETS[""]))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _names(self) -> list[str]:
        return [f"x{n}" for n in range(len(self.operands))]

    def _results(self) -> list[str]:
        """The results; of several the first one that has a gradient."""
        return {"Split": ["other", "y"], "TopK": ["y", "places"]}.get(self.op, ["y"])


def ints(*values: object) -> np.ndarray:
    """An operand of indices, sizes or axes."""
    return np.array(values, np.int64)


AXIS = np.array(1, np.int64)
NONE = np.array(None, object)  # an operand that is left out
SMALL, IMAGE = (2, 3), (1, 2, 5, 6)
ELEMENTS = [
    *(Case(op, (SMALL,)) for op in (
        "Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
        "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg", "Relu", "Selu",
        "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh", "Dropout",
    )),
    Case("Gelu", (SMALL,), {"approximate": "tanh"}),
    Case("HardSwish", (SMALL,), low=-4, high=4), Case("HardSigmoid", (SMALL,), low=-4, high=4),
    *(Case(op, (SMALL,), low=0.2, high=2) for op in ("Log", "Reciprocal", "Sqrt")),
    Case("Acosh", (SMALL,), low=1.2, high=3),
    Case("ThresholdedRelu", (SMALL,), {"alpha": 0.43}),
    Case("Shrink", (SMALL,), {"lambd": 0.23, "bias": 0.1}),
    Case("Clip", (SMALL, np.array(-0.41, np.float32), np.array(0.52, np.float32))),
    Case("Clip", (SMALL, NONE, np.array(0.52, np.float32))),
    Case("Cast", (SMALL,), {"to": TensorProto.DOUBLE}),
]  # fmt: skip
SEVERAL = [
    *(Case(op, shapes) for op in ("Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum")
      for shapes in ((SMALL, SMALL), ((4, 1), (1, 3)))),
    *(Case(op, (SMALL, SMALL, (3,))) for op in ("Max", "Mean", "Sum")),
    *(Case(op, ((4, 1), (1, 3)), low=0.2, high=2) for op in ("Div", "Pow")),
    Case("PRelu", ((2, 3, 4), (3, 1))),
    Case("Where", (np.array([[True], [False]]), SMALL, (3,))),
]  # fmt: skip
PRODUCTS = [
    *(Case("MatMul", shapes)
      for shapes in ((SMALL, (3, 4)), ((2, 1, 2, 3), (3, 3, 2)), ((3,), (3, 2)))),
    Case("Gemm", (SMALL, (3, 4), (4,))),
    Case("Gemm", ((3, 2), (4, 3), (2, 1)), {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    *(Case("Einsum", shapes, {"equation": text}) for text, shapes in (
        ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))), ("ij,jk,kl->il", (SMALL, (3, 2), (2, 4))),
        ("...ij->...i", ((2, 2, 3),)), ("i,i->", ((4,), (4,))),
    )),
    Case("Conv", (IMAGE, (4, 2, 3, 3), (4,)), {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
    Case("Conv", ((1, 4, 5, 5), (6, 2, 2, 3)), {"group": 2, "dilations": [2, 1]}),
    Case("Conv", ((2, 2, 7), (3, 2, 3), (3,)), {"strides": [2]}),
    Case("Conv", ((1, 2, 3, 4, 4), (2, 2, 2, 2, 2))),
    Case("ConvTranspose", (IMAGE, (2, 3, 3, 3), (3,)), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("ConvTranspose", ((1, 4, 3, 3), (4, 2, 2, 2)), {"group": 2, "output_padding": [1, 0],
                                                         "strides": [3, 2]}),
    Case("ConvTranspose", ((1, 2, 4), (2, 3, 3))),
]  # fmt: skip
POOLS = [
    *(Case(op, (IMAGE,), {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]} | more)
      for op in ("MaxPool", "AveragePool")
      for more in ({}, {"dilations": [2, 1]}, {"ceil_mode": 1})),
    Case("AveragePool", (IMAGE,), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1],
                                    "count_include_pad": 1}),
    Case("MaxPool", ((1, 2, 7),), {"kernel_shape": [3]}),
    Case("AveragePool", ((1, 2, 4, 4, 4),), {"kernel_shape": [2, 2, 2]}),
    *(Case(op, (IMAGE,)) for op in ("GlobalAveragePool", "GlobalMaxPool")),
    Case("LpPool", (IMAGE,), {"kernel_shape": [2, 2], "p": 2}),
]  # fmt: skip
NORMALIZED = [
    Case("BatchNormalization", (IMAGE, (2,), (2,), np.array([0.1, -0.2], np.float32),
                                np.array([0.5, 2], np.float32))),
    Case("InstanceNormalization", (IMAGE, (2,), (2,))),
    Case("LayerNormalization", ((2, 3, 4), (4,), (4,))),
    Case("LayerNormalization", ((2, 3, 4), (3, 4)), {"axis": 1}),
    Case("GroupNormalization", ((2, 4, 3), (4,), (4,)), {"num_groups": 2}),
    Case("RMSNormalization", ((2, 3, 4), (4,))),
    *(Case("LpNormalization", (SMALL,), {"p": p}) for p in (1, 2)),
    Case("MeanVarianceNormalization", (IMAGE,)),
    Case("LRN", ((1, 5, 2, 2),), {"size": 3, "alpha": 0.3}),
    *(Case(op, ((2, 3, 4),), {"axis": axis}) for op in ("Softmax", "LogSoftmax")
      for axis in (1, -1)),
    *(Case("SoftmaxCrossEntropyLoss", ((3, 4), ints(0, 3, 1), *weights), {"reduction": how})
      for how, weights in (("mean", ()), ("sum", ((4,),)), ("none", ()))),
    Case("NegativeLogLikelihoodLoss", ((3, 4), ints(0, 3, 1))),
]  # fmt: skip
REDUCED = [
    *(Case(op, ((2, 3, 4), ints(*axes)), {"keepdims": keep}, low, 0.95) for op, low in (
        ("ReduceSum", -0.95), ("ReduceMean", -0.95), ("ReduceMax", -0.95), ("ReduceMin", -0.95),
        ("ReduceProd", 0.3), ("ReduceL1", -0.95), ("ReduceL2", -0.95), ("ReduceSumSquare", -0.95),
        ("ReduceLogSum", 0.2), ("ReduceLogSumExp", -0.95),
    ) for axes, keep in (((1,), 0), ((0, 2), 1))),
    *(Case("CumSum", ((2, 4), AXIS), {"exclusive": e, "reverse": r})
      for e in (0, 1) for r in (0, 1)),
    *(Case("CumProd", ((2, 4), AXIS), {"exclusive": e, "reverse": r}, 0.3)
      for e in (0, 1) for r in (0, 1)),
    *(Case("TopK", ((2, 5), ints(3)), {"largest": largest}) for largest in (0, 1)),
]  # fmt: skip
MOVES = [
    Case("Reshape", (SMALL, ints(3, -1))), Case("Flatten", ((2, 3, 2),)),
    Case("Squeeze", ((2, 1, 3), ints(1))), Case("Unsqueeze", (SMALL, ints(0, 2))),
    Case("Transpose", ((2, 3, 4),), {"perm": [2, 0, 1]}), Case("Tile", (SMALL, ints(2, 3))),
    Case("Concat", (SMALL, (2, 1), (2, 2)), {"axis": 1}), Case("Expand", ((3, 1), ints(2, 3, 4))),
    Case("Split", ((5, 2), ints(2, 3))),
    Case("Slice", ((5, 4), ints(-1, 1), ints(-9, 4), ints(0, 1), ints(-2, 1))),
    *(Case("Pad", ((3, 4), ints(1, 0, 2, 1)), {"mode": mode})
      for mode in ("constant", "reflect", "edge", "wrap")),
    Case("Pad", ((3, 4), ints(-1, 0, 2, 1))),
    Case("Gather", ((3, 4), ints([0, 2], [2, -1])), {"axis": 1}),
    Case("GatherElements", ((3, 4), ints([0, 2, 0], [2, -1, 0])), {"axis": 0}),
    Case("GatherND", ((3, 4), ints([0, 1], [2, 3], [0, 1]))),
    Case("GatherND", ((2, 3, 4), ints([[1], [1]], [[0], [2]])), {"batch_dims": 1}),
    *(Case("ScatterElements", ((3, 4), ints([0, 2, 0], [2, 1, 1]), (2, 3)),
           {"axis": 0, "reduction": how}, *ends)
      for how, *ends in (("add",), ("mul", 0.3), ("max",), ("min",))),
    Case("ScatterElements", ((3, 4), ints([0, 2, 1], [2, 1, 0]), (2, 3)), {"axis": 0}),
    *(Case("ScatterND", ((4, 3), ints([3], [0], [3]), (3, 3)), {"reduction": how}, *ends)
      for how, *ends in (("add",), ("mul", 0.3), ("max",), ("min",))),
    Case("ScatterND", ((4, 3), ints([3], [0]), (2, 3))),
    *(Case("DepthToSpace", ((1, 8, 2, 3),), {"blocksize": 2, "mode": mode})
      for mode in ("DCR", "CRD")),
    Case("SpaceToDepth", ((1, 2, 4, 6),), {"blocksize": 2}),
    *(Case("Resize", (IMAGE, NONE, np.array([1, 1, 2, 1.5], np.float32)), {"mode": mode})
      for mode in ("nearest", "linear", "cubic")),
    *(Case("Resize", (IMAGE, NONE, NONE, ints(1, 2, 3, 4)),
           {"mode": "linear", "coordinate_transformation_mode": how})
      for how in ("align_corners", "asymmetric")),
    Case("Trilu", ((3, 4), AXIS), {"upper": 0}),
    Case("ReverseSequence", ((4, 3), ints(2, 4, 1)), {"time_axis": 0, "batch_axis": 1}),
    Case("CenterCropPad", ((4, 5), ints(6, 3))),
    Case("DFT", ((1, 6, 1),), {}), Case("DFT", ((1, 4, 2),), {"inverse": 1}),
]  # fmt: skip
RECURRENT = [
    *(Case(op, ((3, 2, 4), (2, g * 3, 4), (2, g * 3, 3), (2, 2 * g * 3)),
           {"hidden_size": 3, "direction": "bidirectional"})
      for op, g in (("RNN", 1), ("GRU", 3), ("LSTM", 4))),
    Case("GRU", ((3, 2, 4), (1, 9, 4), (1, 9, 3), (1, 18), NONE, (1, 2, 3)),
         {"hidden_size": 3, "linear_before_reset": 1}),
    Case("LSTM", ((2, 1, 2), (1, 8, 2), (1, 8, 2), (1, 16), NONE, (1, 1, 2), (1, 1, 2), (1, 6)),
         {"hidden_size": 2}),
]  # fmt: skip
CASES = [*ELEMENTS, *SEVERAL, *PRODUCTS, *POOLS, *NORMALIZED, *REDUCED, *MOVES, *RECURRENT]
OPERATORS = sorted({case.op for case in CASES})
