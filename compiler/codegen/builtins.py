"""The code that every object brings along: it calls host functions, and hands the steps of their
``parallel`` loops to threads.

    vdla_call(calls, count, times)                  functions in a row, each with its buffers
    vdla_parallel(pool, function, context, tasks)   a job, from its beginning to its end
    vdla_work(pool)                                 a thread's part in jobs until the pool closes

``calls`` has a function and its buffers for each call; ``times`` gets the time after each.

A host function gets the pool behind its buffers, or null. A parallel loop is a job: a function,
what it reads, and how many tasks there are, each some steps of the loop. Whoever is free takes the
next task, the calling thread too, which goes on when all are done. The pool's ``claim`` says which
task is next and of which job: 40 bits count the jobs, 12 are the number of tasks, 12 the next task.
Whoever adds one to it while it is still what was read has that task. The function and the context
are read after that: until the task is done, its job can't end and no other one can begin. Threads
that find nothing to take look again, and leave the processor to others after a while; between runs
they sleep elsewhere (``runtime.threads``).

Any number of threads computes the same: tasks are made without asking how many there are.
"""

from __future__ import annotations

from vdla.compiler.codegen.target import Target

PARALLEL = "vdla_parallel"
TASKS = 256  # that a job has at most; what ``claim`` has bits for is more
PAUSES = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
    "arm": "call void @llvm.arm.hint(i32 1)",
}

# pool: the next task; the tasks that are done; whether the pool is closed; function, context. Each
# of the first three has a cache line.
CODE = """
%pool = type {{ i64, [56 x i8], i64, [56 x i8], i64, [56 x i8], ptr, ptr }}

declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
{declared}

define void @vdla_call(ptr %calls, i32 %count, ptr %times) nounwind {{
  br label %call
call:
  %n = phi i32 [ 0, %0 ], [ %following, %call ]
  %at.function = getelementptr [2 x ptr], ptr %calls, i32 %n, i32 0
  %at.buffers = getelementptr [2 x ptr], ptr %calls, i32 %n, i32 1
  %function = load ptr, ptr %at.function
  %buffers = load ptr, ptr %at.buffers
  call void %function(ptr %buffers)
  %time = getelementptr [2 x {long}], ptr %times, i32 %n
  %status = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %following = add i32 %n, 1
  %more = icmp ult i32 %following, %count
  br i1 %more, label %call, label %end
end:
  ret void
}}

define void @vdla_parallel(ptr %pool, ptr %function, ptr %context, i32 %tasks) nounwind {{
  %alone = icmp eq ptr %pool, null
  %single = icmp eq i32 %tasks, 1
  %serial = or i1 %alone, %single
  br i1 %serial, label %step, label %job
step:
  %task = phi i32 [ 0, %0 ], [ %following, %step ]
  call void %function(ptr %context, i32 %task)
  %following = add i32 %task, 1
  %more = icmp ult i32 %following, %tasks
  br i1 %more, label %step, label %end
job:
  %done = getelementptr %pool, ptr %pool, i32 0, i32 2
  store atomic i64 0, ptr %done monotonic, align 8
  %at.function = getelementptr %pool, ptr %pool, i32 0, i32 6
  store ptr %function, ptr %at.function
  %at.context = getelementptr %pool, ptr %pool, i32 0, i32 7
  store ptr %context, ptr %at.context
  %last = load atomic i64, ptr %pool monotonic, align 8
  %count = lshr i64 %last, 24
  %next = add i64 %count, 1
  %number = shl i64 %next, 24
  %wide = zext i32 %tasks to i64
  %many = shl i64 %wide, 12
  %first = or i64 %number, %many
  store atomic i64 %first, ptr %pool release, align 8
  call void @vdla.take(ptr %pool)
  br label %wait
wait:
  %times = phi i32 [ 0, %job ], [ %longer, %rest ]
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %finished, %wide
  br i1 %all, label %end, label %rest
rest:
  %longer = call i32 @vdla.rest(i32 %times)
  br label %wait
end:
  ret void
}}

define void @vdla_work(ptr %pool) nounwind {{
  br label %look
look:
  %times = phi i32 [ 0, %0 ], [ %longer, %rest ]
  call void @vdla.take(ptr %pool)
  %at.closed = getelementptr %pool, ptr %pool, i32 0, i32 4
  %closed = load atomic i64, ptr %at.closed acquire, align 8
  %over = icmp ne i64 %closed, 0
  br i1 %over, label %end, label %rest
rest:
  %longer = call i32 @vdla.rest(i32 %times)
  br label %look
end:
  ret void
}}

; Waits for a moment: longer, and for other processes, every 256th time.
define internal i32 @vdla.rest(i32 %times) nounwind {{
  {pause}
  %more = add i32 %times, 1
  %rest = urem i32 %more, 256
  %long = icmp eq i32 %rest, 0
  br i1 %long, label %yield, label %end
yield:
  call i32 @sched_yield()
  br label %end
end:
  ret i32 %more
}}

; Tasks, one after the other, until none is left.
define internal void @vdla.take(ptr %pool) nounwind {{
  %done = getelementptr %pool, ptr %pool, i32 0, i32 2
  br label %look
look:
  %claim = load atomic i64, ptr %pool acquire, align 8
  %task = and i64 %claim, 4095
  %shifted = lshr i64 %claim, 12
  %tasks = and i64 %shifted, 4095
  %left = icmp ult i64 %task, %tasks
  br i1 %left, label %claimed, label %none
claimed:
  %following = add i64 %claim, 1
  %pair = cmpxchg ptr %pool, i64 %claim, i64 %following acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %run, label %look
run:
  %at.function = getelementptr %pool, ptr %pool, i32 0, i32 6
  %function = load ptr, ptr %at.function
  %at.context = getelementptr %pool, ptr %pool, i32 0, i32 7
  %context = load ptr, ptr %at.context
  %number = trunc i64 %task to i32
  call void %function(ptr %context, i32 %number)
  %before = atomicrmw add ptr %done, i64 1 acq_rel
  br label %look
none:
  ret void
}}
"""


def builtins_ir(target: Target) -> str:
    """The code for a target, as LLVM's text."""
    pause = PAUSES.get(target.machine, "")
    declared = pause.replace("call", "declare").replace(" 1", "")
    clock = 6 if "darwin" in target.system else 1  # CLOCK_MONOTONIC
    return CODE.format(pause=pause, declared=declared, long=f"i{target.size_bits}", clock=clock)
