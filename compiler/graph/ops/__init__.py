"""The graph's operators: a file each, all found by being here.

A file holds the node (or the float node and its int8 counterpart), with its typing rule, its
meaning in numpy, its plain expression and, for float nodes, what a quantized island around
it becomes. ONNX's names for them are the frontend's, accelerator's schedules ``operators``'.
"""

from importlib import import_module
from pkgutil import iter_modules

from vdla.compiler.graph.ops.add import Add, QAdd
from vdla.compiler.graph.ops.batch_norm import BatchNorm, QBatchNorm
from vdla.compiler.graph.ops.blocks import Pack, Unpack
from vdla.compiler.graph.ops.clip import Clip, QClip, Relu
from vdla.compiler.graph.ops.concat import Concat, QConcat
from vdla.compiler.graph.ops.control import Call, Control, If, Loop, Scan, While
from vdla.compiler.graph.ops.conv2d import Conv2d, QConv2d
from vdla.compiler.graph.ops.dense import Dense, QDense
from vdla.compiler.graph.ops.elementwise import Binary, Cast, Unary, Where
from vdla.compiler.graph.ops.epilogue import AddStep, Step, TableStep
from vdla.compiler.graph.ops.foreign import Custom, External, Foreign, Open
from vdla.compiler.graph.ops.fused import Fused
from vdla.compiler.graph.ops.gather import Gather, GatherElements, GatherND
from vdla.compiler.graph.ops.im2col import Im2col
from vdla.compiler.graph.ops.interleave import Interleave, QInterleave
from vdla.compiler.graph.ops.interpolate import Interpolate, QInterpolate
from vdla.compiler.graph.ops.matmul import Einsum, MatMul
from vdla.compiler.graph.ops.matmul_integer import MatMulInteger
from vdla.compiler.graph.ops.pool import AvgPool, MaxPool, QAvgPool, QMaxPool
from vdla.compiler.graph.ops.quantize import Dequantize, FlipSign, Quantize
from vdla.compiler.graph.ops.reduce import ArgReduce, Reduce
from vdla.compiler.graph.ops.reshape import QReshape, Reshape
from vdla.compiler.graph.ops.scan import Cumulate, TopK
from vdla.compiler.graph.ops.scatter import ScatterElements, ScatterND
from vdla.compiler.graph.ops.softmax import Softmax
from vdla.compiler.graph.ops.storage import Decode, Encode
from vdla.compiler.graph.ops.table import QTable
from vdla.compiler.graph.ops.take import QTake, Take
from vdla.compiler.graph.ops.transpose import QTranspose, Transpose
from vdla.compiler.graph.ops.views import ByAddresses, QConcatView, QTakeView, QView
from vdla.compiler.graph.ops.window import Windowed

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

# Those that passes, frontend or schedules know by name; the others are in the table of operators.
__all__ = [
    "Add",
    "AddStep",
    "ArgReduce",
    "AvgPool",
    "BatchNorm",
    "Binary",
    "ByAddresses",
    "Call",
    "Cast",
    "Clip",
    "Concat",
    "Control",
    "Conv2d",
    "Cumulate",
    "Custom",
    "Decode",
    "Dense",
    "Dequantize",
    "Einsum",
    "Encode",
    "External",
    "FlipSign",
    "Foreign",
    "Fused",
    "Gather",
    "GatherElements",
    "GatherND",
    "If",
    "Im2col",
    "Interleave",
    "Interpolate",
    "Loop",
    "MatMul",
    "MatMulInteger",
    "MaxPool",
    "Open",
    "Pack",
    "QAdd",
    "QAvgPool",
    "QBatchNorm",
    "QClip",
    "QConcat",
    "QConcatView",
    "QConv2d",
    "QDense",
    "QInterleave",
    "QInterpolate",
    "QMaxPool",
    "QReshape",
    "QTable",
    "QTake",
    "QTakeView",
    "QTranspose",
    "QView",
    "Quantize",
    "Reduce",
    "Relu",
    "Reshape",
    "Scan",
    "ScatterElements",
    "ScatterND",
    "Softmax",
    "Step",
    "TableStep",
    "Take",
    "TopK",
    "Transpose",
    "Unary",
    "Unpack",
    "Where",
    "While",
    "Windowed",
]
