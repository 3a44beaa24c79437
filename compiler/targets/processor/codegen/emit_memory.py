"""LLVM instructions for memory: addresses of elements, what is read there and written.

In a vectorized loop the lanes' elements are read and written at once where they lie side by side,
and one by one elsewhere.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir as ll

from vdla.compiler.targets.lanes import (
    constant,
    element,
    lane,
    per_lane,
    shaped,
    together,
)
from vdla.compiler.tir.arith import Linear, bounds, is_index, joined, linear
from vdla.compiler.tir.ir import Binary, Buffer, Const, Expr, Var
from vdla.compiler.tir.visitor import uses

POINTER = ll.PointerType()
I1, I8, I32, I64 = (ll.IntType(n) for n in (1, 8, 32, 64))
TYPES = {
    "bool": I1,
    "int8": I8,
    "uint8": I8,
    "int16": ll.IntType(16),
    "uint16": ll.IntType(16),
    "int32": I32,
    "uint32": I32,
    "int64": I64,
    "uint64": I64,
    "float16": ll.HalfType(),
    "float32": ll.FloatType(),
    "float64": ll.DoubleType(),
}
SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}
FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
}
ELEMENTS = {
    "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "half": "f16", "float": "f32",
    "double": "f64",
}  # fmt: skip
STACK_BYTES = 1 << 14  # larger temporaries come from malloc
Flat = tuple[int, tuple[tuple[Expr, int], ...]]


def memory_type(buffer: Buffer) -> ll.Type:
    """An element as it lies in memory: a bool takes a byte."""
    return I8 if buffer.dtype == "bool" else TYPES[buffer.dtype]


def temporary_bytes(buffer: Buffer) -> int:
    """Bytes of a temporary; those above STACK_BYTES come from ``malloc``."""
    return buffer.span * SIZES[buffer.dtype]


class Memory(ABC):
    """Reads and writes the buffers of one function at the builder's place.

    Attributes:
        module: what the function is in.
        builder: whoever emits statements moves it.
        pointers: where the elements of each buffer begin.
        size: the target's ``size_t``, the type of indices.
        masks: whether the target reads and writes some lanes of a vector at once.
        values: the value of each loop variable, in that type.
        vector: the variable of the vectorized loop that is emitted, and its lanes.
        mask: which of these lanes compute; None where all do.
        own: temporaries that no other thread reads or writes.
        ranges: the least and the greatest value of each loop variable.
        flats: the addresses in linear form, each with the indices that it is of.
        sums: what is computed of addresses, by basic block and factors.
    """

    def __init__(
        self,
        module: ll.Module,
        builder: ll.IRBuilder,
        pointers: dict[Buffer, ll.Value],
        size: ll.IntType,
        masks: bool = False,
    ) -> None:
        self.module = module
        self.builder = builder
        self.pointers = pointers
        self.size = size
        self.masks = masks
        self.values: dict[Var, ll.Value] = {}
        self.vector: tuple[Var, int] | None = None
        self.mask: ll.Value = None
        self.own: set[Buffer] = set()
        self.ranges: dict[Var, tuple[int, int]] = {}
        self.flats: dict[tuple[Buffer, int], tuple[tuple[Expr, ...], Flat]] = {}
        self.sums: dict[tuple[object, ...], ll.Value] = {}

    @abstractmethod
    def value(self, expr: Expr) -> ll.Value:
        """The value of an expression."""

    @abstractmethod
    def library(self, name: str, result: ll.Value, args: list[ll.Value]) -> ll.Value:
        """A function of the C library or an intrinsic of LLVM, declared once per module."""

    @contextmanager
    def vectorized(self, var: Var, lanes: int) -> Iterator[None]:
        """Has all that is emitted meanwhile compute all steps of the loop over ``var`` at once."""
        self.values[var] = ll.Constant(ll.VectorType(self.size, lanes), list(range(lanes)))
        self.vector = (var, lanes)
        yield
        self.vector = None

    @contextmanager
    def masked(self, mask: ll.Value) -> Iterator[None]:
        """Has all that is emitted meanwhile read and write in some lanes alone, of those that do
        so far."""
        kept = self.mask
        self.mask = mask if kept is None else self.builder.and_(kept, mask)
        yield
        self.mask = kept

    @contextmanager
    def one_lane(self, index: int) -> Iterator[None]:
        """Has all that is emitted meanwhile compute one step of the vectorized loop alone."""
        kept = self.vector
        assert kept is not None
        var, _ = kept
        every = self.values[var]
        self.vector, self.values[var] = None, self.size(index)
        yield
        self.vector, self.values[var] = kept, every

    def load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> ll.Value:
        """An element, or one for each lane."""
        step = self.lane_step(buffer, indices)
        if step == 0 or self.vector is None:
            return self._read(buffer, indices, memory_type(buffer))
        lanes = self.vector[1]
        if step == 1:
            inside = self.mask is None or self._all_in_bounds(buffer, indices)
            with self.one_lane(0):
                return self._read(
                    buffer, indices, ll.VectorType(memory_type(buffer), lanes), inside
                )

        def one(index: int) -> ll.Value:
            with self.one_lane(index):
                return self._read(buffer, indices, memory_type(buffer))

        return per_lane(self.builder, lanes, one)

    def _read(
        self, buffer: Buffer, indices: tuple[Expr, ...], kind: ll.Type, inside: bool = True
    ) -> ll.Value:
        """Value that lies from an element on, as ``kind``; a bool lies in memory as a byte. Where
        not all lanes are ``inside`` the buffer, those that don't compute read nothing."""
        where, align = self.address(buffer, indices), SIZES[buffer.dtype]
        if inside:
            value = self.builder.load(where, typ=kind, align=align)
        else:
            args = [where, I32(align), self.mask, constant(kind, 0)]
            value = self._with_mask("load", kind, kind, args)
        if buffer.dtype != "bool":
            return value
        return self.builder.icmp_unsigned("!=", value, constant(value.type, 0))

    def store(self, buffer: Buffer, indices: tuple[Expr, ...], value: ll.Value) -> None:
        """Writes an element, or one for each lane."""
        b = self.builder
        if buffer.dtype == "bool":
            value = b.zext(value, shaped(I8, value))
        step = self.lane_step(buffer, indices)
        if step == 1 and self.vector is not None:
            (value, _) = together(b, value, self.values[self.vector[0]])
            over = buffer in self.own and self._all_in_bounds(buffer, indices)
            with self.one_lane(0):
                self._write(self.address(buffer, indices), value, SIZES[buffer.dtype], over)
            return
        lanes = self.vector[1] if self.vector is not None else 1
        for i in range(lanes - 1 if step == 0 else 0, lanes):  # of one element, the last lane's
            b.store(
                lane(b, value, i), self._lane_address(buffer, indices, i),
                align=SIZES[buffer.dtype],
            )  # fmt: skip

    def _write(self, where: ll.Value, value: ll.Value, align: int, over: bool) -> None:
        """Writes a vector; lanes that don't compute keep what is there, and where it may be written
        ``over`` meanwhile, that is read first."""
        b = self.builder
        if self.mask is None or over:
            kept = None if self.mask is None else b.load(where, typ=value.type, align=align)
            b.store(value if kept is None else b.select(self.mask, value, kept), where, align=align)
            return
        self._with_mask("store", ll.VoidType(), value.type, [value, where, I32(align), self.mask])

    def _with_mask(
        self, name: str, result: ll.Type, kind: ll.VectorType, args: list[ll.Value]
    ) -> ll.Value:
        """A call of LLVM's reads and writes of a vector's lanes that a mask has."""
        code = f"llvm.masked.{name}.v{kind.count}{ELEMENTS[str(kind.element)]}.p0"
        return self.builder.call(self.library(code, result, [a.type for a in args]), args)

    def _all_in_bounds(self, buffer: Buffer, indices: tuple[Expr, ...]) -> bool:
        """Whether an access stays in its buffer in all lanes, those that don't compute, too."""
        return all(
            self._in_bounds(index, size) for index, size in zip(indices, buffer.shape, strict=True)
        )

    def _lane_address(self, buffer: Buffer, indices: tuple[Expr, ...], index: int) -> ll.Value:
        """A pointer to the element of one lane."""
        if self.vector is None:
            return self.address(buffer, indices)
        with self.one_lane(index):
            return self.address(buffer, indices)

    def lane_step(self, buffer: Buffer, indices: tuple[Expr, ...]) -> int | None:
        """Number of elements from one lane's to the next one's; None where that varies."""
        if self.vector is None:
            return 0
        var, total = self.vector[0], Linear(0, {})
        for index, stride in zip(indices, buffer.strides, strict=True):
            if uses(index, {var}):
                total = total.plus(linear(index, self.ranges), stride)
        total = joined(total)
        if any(atom is not var and uses(atom, {var}) for atom in total.terms):
            return None
        return total.terms.get(var, 0)

    def address(self, buffer: Buffer, indices: tuple[Expr, ...], inbounds: bool = True) -> ll.Value:
        """A pointer to an element. ``inbounds`` promises LLVM that it lies in the buffer.

        Sums of the same variables are computed once in a basic block; what is left is a constant.
        """
        b, (offset, terms) = self.builder, self._flat(buffer, indices)
        factors: list[tuple[ll.Value, int]] = []
        for atom, stride in terms:
            value = self._index(atom)
            if isinstance(value, ll.Constant):
                offset += value.constant * stride
            else:
                factors.append((value, stride))
        flat: ll.Value = self.size(offset)
        if factors:
            start = self._sum(factors)
            flat = b.add(start, flat, flags=("nsw",)) if offset else start
        return b.gep(
            self.pointers[buffer], [flat], inbounds=inbounds, source_etype=memory_type(buffer)
        )

    def _flat(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Flat:
        """Number of elements before an element: a constant, and index expressions with their
        strides."""
        key = buffer, id(indices)
        if key not in self.flats:
            total = Linear(0, {})
            for index, size, stride in zip(indices, buffer.shape, buffer.strides, strict=True):
                if size == 1 and self._in_bounds(index, 1):
                    continue
                whole = is_index(index)
                total = total.plus(linear(index) if whole else Linear(0, {index: 1}), stride)
            self.flats[key] = indices, (total.constant, tuple(total.terms.items()))
        return self.flats[key][1]

    def _sum(self, factors: list[tuple[ll.Value, int]]) -> ll.Value:
        """A sum of values times numbers, where it is in this basic block already or is now."""
        b = self.builder
        key = b.block, *((id(value), stride) for value, stride in factors)
        if key not in self.sums:
            total: ll.Value = None
            for value, stride in factors:
                step = b.mul(value, self.size(stride), flags=("nsw",)) if stride != 1 else value
                total = step if total is None else b.add(total, step, flags=("nsw",))
            self.sums[key] = total
        return self.sums[key]

    def _in_bounds(self, index: Expr, size: int) -> bool:
        """Whether an index provably stays in 0 to ``size - 1``."""
        limits = bounds(index, self.ranges)
        return limits is not None and limits[0] >= 0 and limits[1] < size

    def _index(self, expr: Expr) -> ll.Value:
        """An index expression in the width of pointers, without overflow."""
        b = self.builder
        match expr:
            case Const(value, _):
                return self.size(int(value))
            case Var() if expr in self.values:
                return self.values[expr]
            case Binary("add" | "sub" | "mul", x, y) if is_index(expr):
                left, right = self._index(x), self._index(y)
                if _is_number(left) and _is_number(right):
                    return self.size(FOLDED[expr.op](left.constant, right.constant))
                build = {"add": b.add, "sub": b.sub, "mul": b.mul}[expr.op]
                return build(*together(b, left, right), flags=("nsw",))
            case Binary("floordiv" | "floormod", x, Const(c, _)) if is_index(expr) and c > 0:
                plain, left = self._never_negative(x), self._index(x)
                if _is_number(left):
                    return self.size(FOLDED[expr.op](left.constant, int(c)))
                return self._divide(expr.op, left, self.size(int(c)), plain)
        return resized(b, self.value(expr), self.size)

    def _never_negative(self, expr: Expr) -> bool:
        """Whether an index is provably at least 0, so that it can be divided without a sign."""
        limits = bounds(expr, self.ranges)
        return limits is not None and limits[0] >= 0

    def _divide(self, op: str, x: ll.Value, y: ll.Value, plain: bool) -> ll.Value:
        """Quotient or remainder, rounded towards minus infinity."""
        b = self.builder
        x, y = together(b, x, y)
        if plain:
            return b.udiv(x, y) if op == "floordiv" else b.urem(x, y)
        rest = b.srem(x, y)
        zero = constant(x.type, 0)
        wrong = b.and_(b.icmp_signed("!=", rest, zero), b.icmp_signed("<", b.xor(rest, y), zero))
        if op == "floormod":
            return b.select(wrong, b.add(rest, y), rest)
        return b.sub(b.sdiv(x, y), b.zext(wrong, x.type))


def is_unsigned(dtype: str) -> bool:
    """Whether an integer type is extended and compared without a sign; bool is."""
    return dtype.startswith("uint") or dtype == "bool"


def resized(b: ll.IRBuilder, value: ll.Value, kind: ll.IntType) -> ll.Value:
    """A signed integer in another width."""
    width = element(value).width
    if width == kind.width:
        return value
    return (b.sext if width < kind.width else b.trunc)(value, shaped(kind, value))


def _is_number(value: ll.Value) -> bool:
    """Whether a value is one constant, and not a vector of some."""
    return isinstance(value, ll.Constant) and isinstance(value.type, ll.IntType)
