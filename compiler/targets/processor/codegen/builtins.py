"""The code that every object brings along: it calls functions, and hands the steps of their
``parallel`` loops to threads.

    vdla_call(calls, count, times)                  functions in a row, each with its buffers
    vdla_parallel(pool, function, context, tasks)   a job, from its beginning to its end
    vdla_begin(pool)                                makes the pool's memory a closed pool
    vdla_work(pool)                                 what a thread does until the pool is over
    vdla_set(pool, state)                           opens, closes or ends a pool

``calls`` has a function and its buffers for each call; ``times`` gets the time after each.

A function gets the pool behind its buffers, or null. A parallel loop is a job: a function,
what it reads, and how many tasks there are, each some steps of the loop. Whoever is free takes the
next tasks, an eighth of those that are left, the calling thread too, which goes on when all are
done. The pool's ``claim`` says which task is next and of which job: 40 bits count the jobs, 12 are
the number of tasks, 12 the next task. Whoever adds to it while it is still what was read has those
tasks. The function and the context are read after that: until the tasks are done, their job can't
end and no other one can begin. Threads that find nothing to take look again, and leave the
processor to others after a while. When the pool is closed, between runs, they sleep: the system
wakes them, and no interpreter is asked.

Any number of threads computes the same: tasks are made without asking how many there are.
"""

from __future__ import annotations

from vdla.compiler.targets.processor.description.processor import Processor

PARALLEL = "vdla_parallel"
TASKS = 256  # that a job has at most; what ``claim`` has bits for is more
PAUSES = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
    "arm": "call void @llvm.arm.hint(i32 1)",
}

OPEN, CLOSED, OVER = 0, 1, 2  # a pool's states, also in ``runtime.threads``
LINGER = 2048  # looks of a thread after a run, for the next one, until it sleeps: some 50 µs

# pool: the next task; the tasks that are done; the state, function, context; POSIX's mutex and
# condition. Each of the first two has a cache line, the last two are at most that long anywhere:
# ``runtime.threads.POOL_BYTES`` in all.
CODE = """
%pool = type {{ i64, [56 x i8], i64, [56 x i8], i64, ptr, ptr, [40 x i8], [64 x i8], [64 x i8] }}

declare i32 @sched_yield()
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
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
  %at.function = getelementptr %pool, ptr %pool, i32 0, i32 5
  store ptr %function, ptr %at.function
  %at.context = getelementptr %pool, ptr %pool, i32 0, i32 6
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
  %at.state = getelementptr %pool, ptr %pool, i32 0, i32 4
  %mutex = getelementptr %pool, ptr %pool, i32 0, i32 8
  %condition = getelementptr %pool, ptr %pool, i32 0, i32 9
  br label %sleep
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %asleep
asleep:
  %state = load atomic i64, ptr %at.state acquire, align 8
  %closed = icmp eq i64 %state, {closed}
  br i1 %closed, label %wait, label %awake
wait:
  %woken = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %asleep
awake:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  %over = icmp eq i64 %state, {over}
  br i1 %over, label %end, label %look
look:
  %times = phi i32 [ 0, %awake ], [ %longer, %rest ]
  %looks = phi i32 [ 0, %awake ], [ %idle, %rest ]
  call void @vdla.take(ptr %pool)
  %now = load atomic i64, ptr %at.state acquire, align 8
  %open = icmp eq i64 %now, {open}
  %more = add i32 %looks, 1
  %idle = select i1 %open, i32 0, i32 %more
  %tired = icmp ugt i32 %idle, {linger}
  br i1 %tired, label %sleep, label %rest
rest:
  %longer = call i32 @vdla.rest(i32 %times)
  br label %look
end:
  ret void
}}

define void @vdla_begin(ptr %pool) nounwind {{
  %mutex = getelementptr %pool, ptr %pool, i32 0, i32 8
  %made = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %condition = getelementptr %pool, ptr %pool, i32 0, i32 9
  %waited = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %at.state = getelementptr %pool, ptr %pool, i32 0, i32 4
  store atomic i64 {closed}, ptr %at.state release, align 8
  ret void
}}

define void @vdla_set(ptr %pool, i64 %state) nounwind {{
  %mutex = getelementptr %pool, ptr %pool, i32 0, i32 8
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %at.state = getelementptr %pool, ptr %pool, i32 0, i32 4
  store atomic i64 %state, ptr %at.state release, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  %closed = icmp eq i64 %state, {closed}
  br i1 %closed, label %end, label %wake
wake:
  %condition = getelementptr %pool, ptr %pool, i32 0, i32 9
  %woken = call i32 @pthread_cond_broadcast(ptr %condition)
  br label %end
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
  %rest = sub i64 %tasks, %task
  %eighth = lshr i64 %rest, 3
  %some = or i64 %eighth, 1
  %following = add i64 %claim, %some
  %pair = cmpxchg ptr %pool, i64 %claim, i64 %following acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %begin, label %look
begin:
  %at.function = getelementptr %pool, ptr %pool, i32 0, i32 5
  %function = load ptr, ptr %at.function
  %at.context = getelementptr %pool, ptr %pool, i32 0, i32 6
  %context = load ptr, ptr %at.context
  %end = add i64 %task, %some
  br label %run
run:
  %each = phi i64 [ %task, %begin ], [ %next, %run ]
  %number = trunc i64 %each to i32
  call void %function(ptr %context, i32 %number)
  %next = add i64 %each, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %run, label %finished
finished:
  %before = atomicrmw add ptr %done, i64 %some acq_rel
  br label %look
none:
  ret void
}}
"""


def builtins_ir(processor: Processor) -> str:
    """The code for a target, as LLVM's text."""
    pause = PAUSES.get(processor.machine, "")
    declared = pause.replace("call", "declare").replace(" 1", "")
    clock = 6 if "darwin" in processor.system else 1  # CLOCK_MONOTONIC
    return CODE.format(
        pause=pause, declared=declared, long=f"i{processor.size_bits}", clock=clock,
        open=OPEN, closed=CLOSED, over=OVER, linger=LINGER,
    )  # fmt: skip
