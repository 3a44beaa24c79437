"""The loop-level IR and what reads and runs it; `ir` opens with the grammar."""

from vdla.compiler.tir.arith import affine, bounds, simplify
from vdla.compiler.tir.interp import InterpError, evaluate, run
from vdla.compiler.tir.intrin import Param, TensorIntrin, expand_intrinsics
from vdla.compiler.tir.ir import (
    Alloc,
    Barrier,
    Binary,
    Block,
    BlockIter,
    Buffer,
    BufferRef,
    BufferRegion,
    Call,
    Cast,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    IRError,
    Load,
    Not,
    Prefetch,
    PrimFunc,
    Select,
    Seq,
    Stmt,
    Store,
    Token,
    Var,
    seq,
)
from vdla.compiler.tir.lower import flatten_blocks, simplify_stmt
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.verify import verify
from vdla.compiler.tir.visitor import (
    blocks,
    map_expr,
    map_stmt,
    rewrite,
    rewrite_expr,
    substitute,
    substitute_expr,
    walk,
    walk_expr,
)

__all__ = [
    "Alloc", "Barrier", "Binary", "Block", "BlockIter", "Buffer", "BufferRef", "BufferRegion",
    "Call", "Cast", "Const", "Evaluate", "Expr", "For", "IRError", "If", "InterpError",
    "IntrinCall", "Load", "Not", "Param", "Prefetch", "PrimFunc", "Select", "Seq", "Stmt", "Store",
    "TensorIntrin", "Token", "Var", "affine", "blocks", "bounds", "evaluate",
    "expand_intrinsics", "flatten_blocks", "map_expr", "map_stmt", "rewrite", "rewrite_expr",
    "run", "seq", "show", "simplify", "simplify_stmt", "substitute", "substitute_expr", "verify",
    "walk", "walk_expr",
]
