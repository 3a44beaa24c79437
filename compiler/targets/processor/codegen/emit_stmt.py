"""LLVM instructions for statements: the control flow and the memory of one function."""

from __future__ import annotations

from llvmlite import ir as ll

from vdla.compiler.targets.lanes import MOST_LANES
from vdla.compiler.targets.processor.codegen.builtins import PARALLEL
from vdla.compiler.targets.processor.codegen.emit_dot import emit_dot
from vdla.compiler.targets.processor.codegen.emit_expr import Expressions, divides
from vdla.compiler.targets.processor.codegen.emit_memory import (
    I32,
    POINTER,
    SIZES,
    STACK_BYTES,
    memory_type,
    temporary_bytes,
)
from vdla.compiler.targets.processor.codegen.emit_parallel import (
    free_names,
    internal_function,
    member,
    task_function,
    value_name,
)
from vdla.compiler.targets.processor.codegen.emit_tiles import emit_tiles
from vdla.compiler.targets.processor.description.intrinsics import Dot, Tiles
from vdla.compiler.tir.arith import linear
from vdla.compiler.tir.ir import (
    Alloc,
    Binary,
    Buffer,
    BufferRegion,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Load,
    Prefetch,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.partition import conjuncts
from vdla.compiler.tir.visitor import direct_exprs, loads, uses, walk, walk_expr
from vdla.support.numbers import ceil_div

UNROLL_LIMIT = 64  # copies of a body that unrolled loops may make
SHORT = 16  # steps of an innermost loop that is unrolled without being asked
FUSED = ("float32", "float64")  # what processors multiply and add at once
LINE_BYTES = 64  # what one prefetch brings


class Emitter:
    """Emits the instructions of one function into ``function``.

    ``size`` is the target's ``size_t``, the type of indices; ``pool`` is a pointer to the threads
    that share parallel loops, which run serially where there is none. ``masks``: the target reads
    and writes some lanes of a vector at once.
    """

    def __init__(
        self,
        module: ll.Module,
        function: ll.Function,
        pointers: dict[Buffer, ll.Value],
        size: ll.IntType,
        pool: ll.Value = None,
        masks: bool = False,
    ) -> None:
        self.name, self.module, self.size, self.pool = function.name, module, size, pool
        self.entry = function.append_basic_block("entry")
        self.start = function.append_basic_block("start")
        self.builder = ll.IRBuilder(self.start)
        self.exprs = Expressions(module, self.builder, pointers, size, masks)
        self.copies = 1

    def function(self, body: Stmt) -> None:
        """Emits the whole body of the function, with its return."""
        self._stmt(body)
        self.builder.ret_void()
        ll.IRBuilder(self.entry).branch(self.start)

    def _stmt(self, stmt: Stmt) -> None:
        """Emits one statement, whatever it is."""
        match stmt:
            case For():
                self._loop(stmt)
            case Alloc():
                self._alloc(stmt)
            case Store(buffer, indices, value):
                self.exprs.store(buffer, indices, self._stored(stmt, value))
            case If():
                self._branch(stmt)
            case Seq(stmts):
                for inner in stmts:
                    self._stmt(inner)
            case Prefetch(region):
                self._prefetch(region)
            case Evaluate(call) if isinstance(call.intrin.lowering, Tiles):
                self._tiles(call, call.intrin.lowering)
            case Evaluate(call):
                self._dot(call)
            case _:
                raise TypeError(f"no native code for {type(stmt).__name__}")

    def _stored(self, stmt: Store, value: Expr) -> ll.Value:
        """Value that a statement stores; a product that is added to what is there in one
        instruction.
        """
        match value:
            case Binary("add", Load(buffer, at) as sum_, Binary("mul", x, y)) if (
                buffer is stmt.buffer and at == stmt.indices and value.dtype in FUSED
            ):
                product = (self.exprs.value(x), self.exprs.value(y))
                return self.exprs.multiply_add(*product, self.exprs.value(sum_))
        return self.exprs.value(value)

    def _loop(self, loop: For) -> None:
        """A counting loop; an unrolled one as copies of its body, up to UNROLL_LIMIT of them."""
        self.exprs.ranges[loop.var] = (0, loop.extent - 1)
        if loop.kind == "vectorized" and self._as_vector(loop):
            with self.exprs.vectorized(loop.var, loop.extent):
                self._stmt(loop.body)
            return
        unrolled = loop.kind == "unrolled" or _is_short(loop)
        if unrolled and self.copies * loop.extent <= UNROLL_LIMIT:
            self.copies *= loop.extent
            for i in range(loop.extent):
                self.exprs.values[loop.var] = self.size(i)
                self.exprs.ranges[loop.var] = (i, i)
                self._stmt(loop.body)
            self.copies //= loop.extent
            return
        if loop.kind == "parallel" and self.pool is not None and not self.exprs.vector:
            self._parallel(loop)
            return
        b = self.builder
        before = b.block
        name = value_name(loop.var.name)
        head = b.append_basic_block(name)
        after = b.append_basic_block(f"{name}.end")
        b.branch(head)
        b.position_at_end(head)
        counter = b.phi(self.size, name)
        counter.add_incoming(self.size(0), before)
        self.exprs.values[loop.var] = counter
        self._stmt(loop.body)
        following = b.add(counter, self.size(1), flags=("nuw", "nsw"))
        counter.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, self.size(loop.extent)), head, after)
        b.position_at_end(after)

    def _parallel(self, loop: For) -> None:
        """Functions for a step and for a task, and a call that has threads run the tasks."""
        buffers, variables = free_names(loop.body, loop.var)
        step = self._step(loop, buffers, variables)
        outer = [self.exprs.pointers[x] for x in buffers] + [
            self.exprs.values[v] for v in variables
        ]
        shared = ll.LiteralStructType([x.type for x in outer])
        context = ll.IRBuilder(self.entry).alloca(shared)
        context.type = POINTER
        for n, value in enumerate(outer):
            self.builder.store(value, member(self.builder, context, shared, n))
        task, tasks = task_function(step, shared, loop.extent)
        start = self.exprs.library(PARALLEL, ll.VoidType(), [POINTER, POINTER, POINTER, I32])
        self.builder.call(start, [self.pool, task, context, I32(tasks)])

    def _step(self, loop: For, buffers: list[Buffer], variables: list[Var]) -> ll.Function:
        """One step of a loop as a function of the buffers and variables around it, and its own."""
        counters = [*variables, loop.var]
        name = self.module.get_unique_name(value_name(f"{self.name}.{loop.var.name}"))
        step = internal_function(self.module, name, buffers, [self.size] * len(counters))
        pointers = dict(zip(buffers, step.args, strict=False))
        emitter = Emitter(self.module, step, pointers, self.size, masks=self.exprs.masks)
        emitter.exprs.values.update(zip(counters, step.args[len(buffers) :], strict=True))
        emitter.exprs.ranges.update(self.exprs.ranges)
        emitter.function(loop.body)
        return step

    def _as_vector(self, loop: For) -> bool:
        """Whether all steps can be computed at once: as many as registers hold, on one path."""
        lanes = loop.extent
        if self.exprs.vector or lanes > MOST_LANES or lanes & (lanes - 1) or lanes < 2:
            return False
        with self.exprs.vectorized(loop.var, lanes):
            return all(self._on_one_path(inner, loop.var) for inner in walk(loop.body))

    def _on_one_path(self, stmt: Stmt, lane: Var) -> bool:
        """Whether a statement does the same in all lanes, or nothing in some."""
        if isinstance(stmt, Alloc):
            return False
        if isinstance(stmt, If) and uses(stmt.cond, {lane}) and not self._maskable(stmt, lane):
            return False
        if isinstance(stmt, For):
            self.exprs.ranges[stmt.var] = (0, stmt.extent - 1)
        parts = (e for expr in direct_exprs(stmt) for e in walk_expr(expr))
        return not any(self._branches(e, {lane}) for e in parts)

    def _maskable(self, guard: If, lane: Var) -> bool:
        """Whether a guard can be which lanes compute: the first ones, which read and write elements
        side by side, or all the same one."""
        if not self.exprs.masks or guard.orelse is not None:
            return False
        if not all(_shuts_last(cond, lane) for cond in conjuncts(guard.cond)):
            return False
        inside = list(walk(guard.then))
        stores = [stmt for stmt in inside if isinstance(stmt, Store)]
        only = all(isinstance(stmt, Store | Seq) for stmt in inside)
        return only and all(map(self._in_lanes, stores))

    def _in_lanes(self, stmt: Store) -> bool:
        """Whether a statement writes elements side by side, and reads such or the same for all, and
        computes nothing of the others' that could end the program."""
        x = self.exprs
        read = [load for expr in direct_exprs(stmt) for load in loads(expr)]
        steps = {x.lane_step(load.buffer, load.indices) for load in read}
        in_place = x.lane_step(stmt.buffer, stmt.indices) == 1
        return in_place and steps <= {0, 1} and not any(map(divides, direct_exprs(stmt)))

    def _branches(self, expr: Expr, lane: set[Var]) -> bool:
        """Whether lanes would go different ways."""
        if not isinstance(expr, Select) or not uses(expr.cond, lane):
            return False
        if self.exprs.safe(expr.a) and self.exprs.safe(expr.b):
            return False
        return not (
            self.exprs.masks and self.exprs.maskable(expr.a) and self.exprs.maskable(expr.b)
        )

    def _alloc(self, stmt: Alloc) -> None:
        """A temporary for ``stmt.body``: on the stack if it is small, else from ``malloc``. Where
        that has none, the program ends: it would write to where it may not.
        """
        buffer = stmt.buffer
        size = temporary_bytes(buffer)
        if size <= STACK_BYTES:
            kind = ll.ArrayType(memory_type(buffer), buffer.span)
            slot = ll.IRBuilder(self.entry).alloca(kind)
            slot.type = POINTER  # llvmlite's own type would allow elements alone, no vectors
            slot.align = 64
            self.exprs.pointers[buffer] = slot
            self.exprs.own.add(buffer)
            self._stmt(stmt.body)
            return
        malloc = self.exprs.library("malloc", ll.PointerType(), [self.size])
        memory = self.builder.call(malloc, [self.size(size)])
        memory.name = value_name(buffer.name)
        self._trap_if(self.builder.icmp_unsigned("==", memory, POINTER(None)))
        self.exprs.pointers[buffer] = memory
        self._stmt(stmt.body)
        self.builder.call(self.exprs.library("free", ll.VoidType(), [ll.PointerType()]), [memory])

    def _trap_if(self, condition: ll.Value) -> None:
        """Ends the program where a condition holds."""
        with self.builder.if_then(condition):
            self.builder.call(self.exprs.library("llvm.trap", ll.VoidType(), []), [])
            self.builder.unreachable()

    def _dot(self, call: IntrinCall) -> None:
        """Products of bytes, added to the int32 of every lane."""
        b, x, dot = self.builder, self.exprs, call.intrin.lowering
        assert isinstance(dot, Dot)
        data, weight, sums = (call.operand(n) for n in (dot.data, dot.weight, "acc"))
        lanes = ll.VectorType(I32, call.intrin.output.shape[0])
        where = x.address(sums.buffer, sums.indices)
        word = b.load(x.address(data.buffer, data.indices), typ=I32, align=1)
        factors = b.load(x.address(weight.buffer, weight.indices), typ=lanes, align=1)
        total = b.load(where, typ=lanes, align=4)
        b.store(emit_dot(b, x.library, dot.instruction, total, word, factors), where, align=4)

    def _tiles(self, call: IntrinCall, tiles: Tiles) -> None:
        """Products of bytes, added to the int32 of every lane, in tile registers."""
        sums, data, weights = (call.operand(name) for name in ("acc", "x", "w"))
        rows = (sums, -3), (data, -3), (weights, -4)  # and which dimension numbers them
        strides = [op.buffer.strides[dim] * SIZES[op.buffer.dtype] for op, dim in rows]
        starts = [self.exprs.address(op.buffer, op.indices) for op, _ in rows]
        emit_tiles(self.builder, self.exprs.library, tiles, starts, strides)

    def _prefetch(self, region: BufferRegion) -> None:
        """Every line of every row of the region, by loops around one instruction."""
        buffer = region.buffer
        steps = [1] * (len(buffer.shape) - 1) + [max(1, LINE_BYTES // SIZES[buffer.dtype])]
        indices: list[Expr] = []
        loops: list[tuple[Var, int]] = []
        for (low, extent), step in zip(region.ranges, steps, strict=False):
            count = ceil_div(extent, step)
            if count > 1:
                var = Var("line")
                loops.append((var, count))
                low = low + var * step
            indices.append(low)
        if loops:
            one: Stmt = Prefetch(BufferRegion(buffer, tuple((i, 1) for i in indices)))
            for var, count in reversed(loops):
                one = For(var, count, "serial", one)
            self._stmt(one)
            return
        fetch = self.exprs.library("llvm.prefetch.p0", ll.VoidType(), [POINTER, I32, I32, I32])
        where = self.exprs.address(buffer, tuple(indices), inbounds=False)
        read, keep, data = I32(0), I32(3), I32(1)
        self.builder.call(fetch, [where, read, keep, data])

    def _mask(self, stmt: If) -> None:
        """A guard that shuts a vector's last lanes: nothing happens where it shuts the first."""
        b, x = self.builder, self.exprs
        with x.one_lane(0):
            first = x.value(stmt.cond)
        with b.if_then(first):
            mask = x.value(stmt.cond)
            with x.masked(mask):
                self._stmt(stmt.then)

    def _branch(self, stmt: If) -> None:
        if self.exprs.vector is not None and uses(stmt.cond, {self.exprs.vector[0]}):
            self._mask(stmt)
            return
        cond = self.exprs.value(stmt.cond)
        if stmt.orelse is None:
            with self.builder.if_then(cond):
                self._stmt(stmt.then)
            return
        with self.builder.if_else(cond) as (then, orelse):
            with then:
                self._stmt(stmt.then)
            with orelse:
                self._stmt(stmt.orelse)


def _shuts_last(cond: Expr, lane: Var) -> bool:
    """Whether a condition holds in a vector's first lanes, however many, and not in the others."""
    match cond:
        case Binary("lt", index, Const()):
            terms = linear(index).terms
            others = any(uses(atom, {lane}) for atom in terms if atom is not lane)
            return not others and terms.get(lane, 0) >= 0
    return not uses(cond, {lane})


def _is_short(loop: For) -> bool:
    """Whether a loop is one statement a few times over, which costs less without the loop."""
    plain = loop.kind in ("serial", "vectorized") and isinstance(loop.body, Store)
    return plain and loop.extent <= SHORT
