"""Functions as a module's file keeps them beside their code: text, for other processors.

The text is ``tir.printer``'s, of functions that are scheduled for one processor. Any other one runs
them, too: LLVM splits vectors that are too wide, and products of bytes are multiplications where
the processor has no instruction of the same lanes for them.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable

from vdla.compiler.targets.processor.description.intrinsics import dot4, tile_product
from vdla.compiler.targets.processor.description.processor import ON_ANY, Processor
from vdla.compiler.targets.processor.passes import without_tiles
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.printer import show
from vdla.runtime.errors import ModuleError

DOT = re.compile(r"\bdot4x(\d{1,3})\(")  # a call of products of bytes, in so many lanes
TILES = re.compile(r"\btiles([1-9]\d?)x([12])x([1-9]\d{0,5})\(")  # the same in tile registers
MOST_BYTES = 1 << 28  # of a text


def to_source(functions: Iterable[PrimFunc]) -> bytes:
    """The text of functions, compressed."""
    texts = [show(function) for function in functions]
    return lzma.compress(json.dumps(texts).encode()) if texts else b""


def from_source(source: bytes, processor: Processor) -> list[PrimFunc]:
    """The functions of a text, to be compiled for a processor.

    Raises:
        ModuleError: it is no such text.
        ParseError: a function calls an intrinsic of a user's.
    """
    try:
        reader = lzma.LZMADecompressor()
        texts = json.loads(reader.decompress(source, MOST_BYTES))
    except (lzma.LZMAError, ValueError) as error:
        raise ModuleError(f"functions: expected their text, found {error}") from None
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise ModuleError("functions: expected a list of texts, found something else")
    funcs = [parse(text, _intrinsics(text, processor), bounds=False) for text in texts]
    return funcs if processor.vectors.tiles else [without_tiles(func) for func in funcs]


def _intrinsics(text: str, processor: Processor) -> list[TensorIntrin]:
    """Products of bytes that a text calls, by what the processor has for so many lanes."""
    vectors, lanes = processor.vectors, sorted({int(n) for n in DOT.findall(text)})
    tiles = sorted({tuple(map(int, sizes)) for sizes in TILES.findall(text)})
    dots = [dot4(vectors.dot4 if n <= vectors.lanes else ON_ANY, n) for n in lanes if n]
    return [*dots, *(tile_product(*sizes) for sizes in tiles)]
