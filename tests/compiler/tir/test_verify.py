"""The verifier says what is wrong, and where."""

from __future__ import annotations

import pytest

from vdla.compiler import te
from vdla.compiler.tir import (
    Alloc,
    Barrier,
    Block,
    BlockIter,
    Buffer,
    BufferRef,
    BufferRegion,
    Evaluate,
    For,
    If,
    IntrinCall,
    IRError,
    Load,
    Prefetch,
    PrimFunc,
    Seq,
    Store,
    Var,
    verify,
)
from vdla.compiler.tir.ir import const, point

A = Buffer("A", (8,), "int32")
B = Buffer("B", (8,), "int32")
I, V = Var("i"), Var("v")
T, U = Var("t"), Var("u")


def func(body):
    return PrimFunc("f", (A, B), body)


def loop(body, var=I, extent=8, kind="serial"):
    return For(var, extent, kind, body)


def threads(body, var, tag="threadIdx.x", extent=8):
    return For(var, extent, "thread", body, tag)


def copy(index=V, reads=None, writes=None, binding=I, extent=8, kind="spatial", **rest):
    reads = (point(A, (index,)),) if reads is None else reads
    writes = (point(B, (index,)),) if writes is None else writes
    body = Store(B, (index,), Load(A, (index,)))
    return Block("copy", (BlockIter(V, extent, kind, binding),), reads, writes, body, **rest)


def intrinsic():
    src = te.placeholder((4,), "int32", "src")
    p = te.param("p")
    return te.decl_intrin("add4", te.compute((4,), lambda l: src[l] + p, "dst"), [p])


ADD4 = intrinsic()
REFS = (BufferRef(B, (const(0),)), BufferRef(A, (const(0),)))

BAD = {
    "prefetch of another's buffer": (
        Prefetch(point(Buffer("C", (8,), "int32"), (const(0),))),
        "f: buffer C is neither a parameter nor allocated here",
    ),
    "prefetch rank": (
        Prefetch(point(A, (const(0), const(0)))),
        "f: A: expected 1 indices, found 2",
    ),
    "prefetch variable": (
        Prefetch(point(A, (I,))),
        "f: variable i is used outside its loop or block",
    ),
    "unbound variable": (
        Store(A, (I,), const(0)),
        "f: variable i is used outside its loop or block",
    ),
    "wrong value": (
        loop(Store(A, (I,), const(0, "int8"))),
        "f / for i: store to A: expected int32, found int8",
    ),
    "arity": (loop(Store(A, (I, I), const(0))), "f / for i: A: expected 1 indices, found 2"),
    "float index": (
        Store(A, (const(0.0),), const(0)),
        "f: A: expected an integer index, found float32",
    ),
    "unknown buffer": (
        Store(Buffer("C", (1,), "int32"), (const(0),), const(0)),
        "f: buffer C is neither a parameter nor allocated here",
    ),
    "bound twice": (loop(loop(Store(A, (I,), I))), "f / for i / for i: variable i is bound twice"),
    "loop kind": (
        loop(Store(A, (I,), I), kind="fast"),
        "f / for i: expected a loop kind of serial, parallel, vectorized, unrolled, "
        "thread, vthread, found 'fast'",
    ),
    "thread tag": (
        threads(Seq(()), T, "threadIdx.w"),
        "f / for t: expected a tag of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
        "threadIdx.y, threadIdx.z, found 'threadIdx.w'",
    ),
    "no thread tag": (
        loop(Seq(()), kind="thread"),
        "f / for i: expected a tag of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
        "threadIdx.y, threadIdx.z, found ''",
    ),
    "barrier without threads": (
        threads(Barrier(), T, "blockIdx.x"),
        "f / for t: barrier: expected it inside a loop over threads, found none around it",
    ),
    "barrier under a condition": (
        threads(If(T < 4, Barrier()), T),
        "f / for t: barrier: expected all threads of a group to reach it, "
        "found it under a condition that may differ from thread to thread: t < 4",
    ),
    "barrier in the other case": (
        threads(loop(If(T < 4, Seq(()), Barrier())), T),
        "f / for t / for i: barrier: expected all threads of a group to reach it, "
        "found it under a condition that may differ from thread to thread: t < 4",
    ),
    "barrier under a condition of what is loaded": (
        threads(If(Load(A, (const(0),)) < 4, Barrier()), T),
        "f / for t: barrier: expected all threads of a group to reach it, "
        "found it under a condition that may differ from thread to thread: A[0] < 4",
    ),
    "barrier in threads under a condition": (
        threads(If(const(True), threads(Barrier(), U, "threadIdx.y")), T),
        "f / for t / for u: barrier: expected all threads of a group to reach it, "
        "found other statements between loops over threads",
    ),
    "barrier in a block": (
        threads(Block("wait", (), (), (), Barrier()), T),
        "f / for t: barrier: expected all threads of a group to reach it, found it in block wait",
    ),
    "barrier in a vectorized loop": (
        threads(loop(Barrier(), kind="vectorized"), T),
        "f / for t / for i: barrier: expected all threads of a group to reach it, "
        "found it in vectorized loop i",
    ),
    "barrier in a loop of virtual threads": (
        threads(loop(Barrier(), kind="vthread"), T),
        "f / for t / for i: barrier: expected all threads of a group to reach it, "
        "found it in vthread loop i",
    ),
    "barrier in groups of threads": (
        threads(threads(Barrier(), U, "blockIdx.x"), T),
        "f / for t / for u: barrier: expected all threads of a group to reach it, "
        "found loop u over groups inside one over threads",
    ),
    "barrier in threads of a loop's steps": (
        threads(loop(threads(Barrier(), U, "threadIdx.y")), T),
        "f / for t / for i / for u: barrier: expected all threads of a group to reach it, "
        "found loop i between loops over threads",
    ),
    "barrier in one of several nests in threads": (
        threads(Seq((threads(Barrier(), U, "threadIdx.y"), Seq(()))), T),
        "f / for t / for u: barrier: expected all threads of a group to reach it, "
        "found other statements between loops over threads",
    ),
    "a tag twice beside a barrier": (
        threads(Seq((Barrier(), threads(Store(A, (U,), const(0)), U))), T),
        "f / for t / for u: expected one loop of each tag around a statement, where a function "
        "has barriers, found two of threadIdx.x",
    ),
    "extent": (
        loop(Store(A, (I,), I), extent=0),
        "f / for i: expected an extent of at least 1, found 0",
    ),
    "loop dtype": (
        For(Var("z", "int64"), 8, "serial", Seq(())),
        "f / for z: expected an int32 loop variable, found int64",
    ),
    "allocated twice": (Alloc(A, Seq(())), "f: buffer A is allocated twice"),
    "binding": (
        loop(copy(binding=I + 8)),
        "f / for i / block copy: v: expected a binding in 0..7, found i + 8 in 8..15",
    ),
    "iter kind": (
        loop(copy(kind="scan")),
        "f / for i / block copy: v: expected kind spatial or reduce, found 'scan'",
    ),
    "uncovered read": (
        loop(copy(reads=())),
        "f / for i / block copy: reads A[v], which its declared regions don't cover",
    ),
    "uncovered write": (
        loop(copy(writes=(point(B, (V + 1,)),))),
        "f / for i / block copy: writes B[v], which its declared regions don't cover",
    ),
    "region arity": (
        loop(copy(reads=(BufferRegion(A, ((V, 1), (V, 1))),))),
        "f / for i / block copy: A: expected 1 indices, found 2",
    ),
    "predicate": (
        loop(copy(predicate=I)),
        "f / for i / block copy: expected a bool predicate, found int32",
    ),
    "operands": (
        Evaluate(IntrinCall(ADD4, REFS[:1], {"p": const(0)})),
        "f: add4: expected 2 operands, found 1",
    ),
    "params": (Evaluate(IntrinCall(ADD4, REFS, {})), "f: add4: expected params ['p'], found []"),
    "first": (
        Evaluate(IntrinCall(ADD4, REFS, {"p": const(0)}, const(True))),
        "f: add4: expected `first` exactly where there is an init",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_rejects(case):
    body, text = BAD[case]
    with pytest.raises(IRError) as error:
        verify(func(body))
    assert str(error.value) == text


def test_rejects_parameters_of_one_name():
    with pytest.raises(IRError, match="f: two parameters are named A"):
        verify(PrimFunc("f", (A, Buffer("A", (1,), "int8")), Seq(())))


def test_accepts():
    good = func(Seq((loop(copy()), Evaluate(IntrinCall(ADD4, REFS, {"p": const(0)})))))
    assert verify(good) is good


def test_accepts_barriers_that_all_threads_reach():
    steps = loop(loop(Barrier(), Var("j"), kind="unrolled"))
    inner = threads(Seq((steps, If(U < 4, Store(A, (U,), const(0))))), U, "threadIdx.y")
    own, shared = Buffer("own", (1,), "int32", "local"), Buffer("shared", (8,), "int32", "shared")
    nest = threads(Alloc(own, inner), T)
    second = threads(Barrier(), Var("s"))
    group = For(V, 2, "serial", threads(Alloc(shared, Seq((nest, second))), Var("b"), "blockIdx.x"))
    assert verify(func(group))


def test_accepts_barriers_under_conditions_of_a_whole_group():
    b, k = Var("b"), Var("k")
    body = For(k, 4, "serial", If(te.all(b < 1, k > 2), Barrier()))
    assert verify(func(threads(threads(body, T), b, "blockIdx.x", 2)))


def test_without_barriers_a_tag_may_come_again():
    assert verify(func(threads(threads(Store(A, (U,), T), U), T)))


def test_accepts_wider_regions():
    verify(func(loop(copy(reads=(BufferRegion(A, ((const(0), 8),)),)))))


def test_a_block_that_was_proved_is_proved_again_where_its_loops_are_others():
    four_from_i, three = BufferRegion(A, ((I, 4),)), const(3)
    block = copy(index=three, reads=(four_from_i,))
    covered = {}
    four = func(loop(block, extent=4))
    assert verify(four, covered) is four
    assert list(covered.values()) == [(block, {I: (0, 3)})]
    assert verify(four, covered) is four
    with pytest.raises(IRError, match=r"reads A\[3\], which its declared regions don't cover"):
        verify(func(loop(block, extent=8)), covered)
    with pytest.raises(IRError, match="expected a binding"):  # what else is wrong is still seen
        verify(
            func(loop(copy(binding=I + 8, index=three, reads=(four_from_i,)), extent=4)), covered
        )


def test_what_was_proved_of_one_block_says_nothing_of_another():
    block, other = copy(), copy(reads=())
    with pytest.raises(IRError, match="declared regions don't cover"):
        verify(func(loop(other)), {id(other): (block, {I: (0, 7)})})
