"""LLVM instructions for one kernel's statements.

Rules:

- On a GPU, memory is in address space 1, and what a group shares in address space 3: one variable
  of the module for each such buffer. What a thread has itself is on its stack, and LLVM keeps it in
  registers where all indices are known: loops over it are unrolled.
- A loop that an instruction of a warp does (``passes.lanes``) is that instruction on a GPU, and a
  loop on a host.
- On a host, which is for tests, a kernel takes the numbers of its block and thread as arguments
  behind the offsets, and does one thread's work. Whoever calls it has ``HOST_BARRIER`` wait for a
  group's other threads, and runs one group at a time, as there is one shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir as ll

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.codegen.emit_mma import emit_product
from vdla.compiler.targets.gpu.codegen.kernel import Kernel
from vdla.compiler.targets.gpu.codegen.values import I8, I32, I64, Values, memory_type
from vdla.compiler.targets.gpu.mma import MMA
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    LOCAL,
    SHARED,
    THREAD_TAGS,
    Alloc,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
    Prefetch,
    Seq,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.visitor import direct_exprs, loads, uses, walk

GLOBAL_SPACE, SHARED_SPACE = 1, 3
ALIGNMENT = 16  # bytes: the most that one instruction moves
UNROLLED = 64  # steps at most of a loop over what a thread has itself
TAGS = (*BLOCK_TAGS, *THREAD_TAGS)
REGISTERS = {"blockIdx": "ctaid", "threadIdx": "tid"}
HOST_BARRIER = "vdla_gpu_barrier"


def emit_kernel(module: ll.Module, kernel: Kernel, *, on_host: bool = False) -> None:
    """Adds a kernel to a module.

    Raises:
        NoCodeError: it has a buffer that an int doesn't count, or a function that needs a library.
    """
    _Emitter(module, kernel, on_host).run()


class _Emitter:
    """Emits one kernel."""

    def __init__(self, module: ll.Module, kernel: Kernel, on_host: bool) -> None:
        self.module, self.kernel, self.on_host = module, kernel, on_host
        offsets = [I64] * len(kernel.buffers)
        numbers = [I32] * len(TAGS) if on_host else []
        takes = [self.pointer(GLOBAL_SPACE), *offsets, *numbers]
        self.entry_function = ll.Function(
            module, ll.FunctionType(ll.VoidType(), takes), kernel.name
        )
        self.entry = self.entry_function.append_basic_block("entry")
        self.builder = ll.IRBuilder(self.entry_function.append_basic_block("start"))
        self.values = Values(kernel.name, module, self.builder)
        self.lane = Var("lane")

    def pointer(self, space: int) -> ll.Value:
        """A pointer into one of a GPU's memories; a host has but one."""
        return ll.PointerType(None, 0 if self.on_host else space)

    def run(self) -> None:
        """Emits the whole kernel."""
        self.kernel.check_sizes()
        memory, *places = self.entry_function.args
        for buffer, place in zip(self.kernel.buffers, places, strict=False):
            self.values.pointers[buffer] = self.builder.gep(memory, [place], source_etype=I8)
        self.statement(self.kernel.body)
        self.builder.ret_void()
        ll.IRBuilder(self.entry).branch(self.builder.function.blocks[1])
        if not self.on_host:
            self.mark()

    def mark(self) -> None:
        """Tells LLVM that it is a kernel, and of how many threads."""
        self.entry_function.calling_convention = "ptx_kernel"
        bound = (s for s in walk(self.kernel.body) if isinstance(s, For))
        extents = {loop.thread_tag: loop.extent for loop in bound}
        for tag in THREAD_TAGS:
            size = [self.entry_function, f"reqntid{tag[-1]}", I32(extents.get(tag, 1))]
            self.module.add_named_metadata("nvvm.annotations", size)

    # --- statements ---

    def statement(self, stmt: Stmt) -> None:
        """Emits one statement."""
        match stmt:
            case For():
                self.loop(stmt)
            case Alloc(buffer, body):
                self.values.pointers[buffer] = self.place(buffer)
                self.statement(body)
            case Store(buffer, indices, value):
                self.values.store(buffer, indices, value)
            case If():
                self.branch(stmt)
            case Seq(stmts):
                for inner in stmts:
                    self.statement(inner)
            case Barrier():
                self.barrier()
            case Prefetch():
                pass
            case _:
                raise NoCodeError(f"{self.kernel.name}: no PTX for {type(stmt).__name__}")

    def place(self, buffer: Buffer) -> ll.Value:
        """The memory of a buffer that is made in the kernel."""
        kind = ll.ArrayType(memory_type(buffer), buffer.span)
        if buffer.scope == SHARED:
            return self.shared(buffer, kind)
        place = ll.IRBuilder(self.entry).alloca(kind)
        place.type = ll.PointerType()
        return place

    def shared(self, buffer: Buffer, kind: ll.Type) -> ll.Value:
        """The memory of a buffer that a group shares."""
        space = 0 if self.on_host else SHARED_SPACE
        name = self.module.get_unique_name(f"{self.kernel.name}_{buffer.name}")
        place = ll.GlobalVariable(self.module, kind, name, addrspace=space)
        place.linkage = "" if self.on_host else "internal"
        place.initializer = ll.Constant(kind, ll.Undefined)
        place.align = ALIGNMENT
        place.type = self.pointer(SHARED_SPACE)  # llvmlite's own type would allow arrays alone
        return place

    def branch(self, stmt: If) -> None:
        """A statement or another, or none."""
        cond = self.values.value(stmt.cond)
        if stmt.orelse is None:
            with self.builder.if_then(cond):
                self.statement(stmt.then)
            return
        with self.builder.if_else(cond) as (then, orelse):
            with then:
                self.statement(stmt.then)
            with orelse:
                self.statement(stmt.orelse)

    def barrier(self) -> None:
        """All threads of the group wait for one another."""
        if self.on_host:
            self.builder.call(self.values.function(HOST_BARRIER, ll.VoidType(), []), [])
            return
        name = "llvm.nvvm.barrier.cta.sync.aligned.all"
        self.builder.call(self.values.function(name, ll.VoidType(), [I32]), [I32(0)])

    # --- loops ---

    def loop(self, loop: For) -> None:
        """A loop; one over threads gives its variable the thread's number."""
        self.values.ranges[loop.var] = (0, loop.extent - 1)
        if loop.kind == "thread":
            self.values.variables[loop.var] = self.number(loop)
            if loop.thread_tag == THREAD_TAGS[0]:
                self.lane = loop.var
            self.statement(loop.body)
        elif MMA in dict(loop.annotations) and not self.on_host:
            emit_product(self.values, loop, self.lane)
        elif loop.extent == 1:
            self.values.variables[loop.var] = I32(0)
            self.statement(loop.body)
        else:
            self.steps(loop)

    def number(self, loop: For) -> ll.Value:
        """The number of this thread, or of its group."""
        if self.on_host:
            return self.entry_function.args[TAGS.index(loop.thread_tag) - len(TAGS)]
        what, axis = loop.thread_tag.split(".")
        name = f"llvm.nvvm.read.ptx.sreg.{REGISTERS[what]}.{axis}"
        number = self.builder.call(self.values.function(name, I32, []), [])
        number.set_metadata("range", self.module.add_metadata([I32(0), I32(loop.extent)]))
        return number

    def steps(self, loop: For) -> None:
        """A loop of several steps, one behind the other."""
        b = self.builder
        before, head = b.block, b.append_basic_block(loop.var.name)
        after = b.append_basic_block(f"{loop.var.name}.end")
        b.branch(head)
        b.position_at_end(head)
        counter = b.phi(I32, loop.var.name)
        counter.add_incoming(I32(0), before)
        self.values.variables[loop.var] = counter
        self.statement(loop.body)
        following = b.add(counter, I32(1), flags=("nuw", "nsw"))
        counter.add_incoming(following, b.block)
        back = b.cbranch(b.icmp_unsigned("<", following, I32(loop.extent)), head, after)
        if _is_unrolled(loop):
            back.set_metadata("llvm.loop", self.full_unrolling())
        b.position_at_end(after)

    def full_unrolling(self) -> ll.Value:
        """A loop's own note that it is to be unrolled; it names itself first, so no two are one."""
        node = ll.values.MDValue(self.module, [], name=str(len(self.module.metadata)))
        node.operands = (node, self.module.add_metadata(["llvm.loop.unroll.full"]))
        return node


def _is_unrolled(loop: For) -> bool:
    """Whether a loop is to be unrolled: the schedule says so, or it runs over what a thread has
    itself, which registers hold where indices are known."""
    if loop.kind in ("unrolled", "vectorized"):
        return True
    return loop.extent <= UNROLLED and any(
        uses(index, {loop.var})
        for buffer, indices in _accesses(loop.body)
        if buffer.scope == LOCAL
        for index in indices
    )


def _accesses(stmt: Stmt) -> Iterator[tuple[Buffer, tuple[Expr, ...]]]:
    """The elements that statements read and write."""
    for inner in walk(stmt):
        if isinstance(inner, Store):
            yield inner.buffer, inner.indices
        for e in direct_exprs(inner):
            for load in loads(e):
                yield load.buffer, load.indices
