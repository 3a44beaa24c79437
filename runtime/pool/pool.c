// Threads that share the steps of parallel loops, and functions in a row: every object of host code
// brings this along, as LLVM's text (pool64.ll, pool32.ll) that `python -m vdla.runtime.pool.generate`
// makes. The threads themselves are Python's (runtime/threads.py).
//
//     vdla_call(calls, count, times)                  functions in a row, the time after each
//     vdla_parallel(pool, function, context, tasks)   a job, from its beginning to its end
//     vdla_begin(pool)                                makes 64-byte aligned memory a closed pool
//     vdla_work(pool)                                 what a thread does until the pool is over
//     vdla_set(pool, state)                           opens, closes or ends a pool
//
// A parallel loop is a job: a function, the context that the function reads, and a number of tasks,
// each some steps of the loop. Tasks are cut without asking how many threads there are, so any
// number of threads computes the same.
//
// Protocol. One caller at a time begins jobs in a pool, and goes on when its job has ended.
//
//     begin   the caller writes done = 0, function and context, then claim = (tasks, 0): release
//     claim   any thread, the caller too, reads claim and adds to its next task by compare-and-swap:
//             acquire. It takes an eighth of the tasks that are left, at least one: one at a time
//             would pass the cache line to and fro for each, and all at once would leave others idle
//     run     the thread reads function and context, and runs the tasks that it claimed
//     count   the thread adds their number to done: release
//     end     the caller reads done until it is the number of tasks: acquire
//
// Invariants.
//
//  1. A task is run once: whoever changes claim from (tasks, n) to (tasks, n + k) has tasks n to
//     n + k - 1, and of two threads that read the same claim one alone can change it.
//  2. function and context change only while no task is left to claim and none is claimed but not
//     counted. A thread reads them between its claim and its count, when they are those of the job.
//  3. A claim needs no number of its job. A thread that read (tasks, n) in an earlier job, and finds
//     the same in claim again, claims tasks of the present job; what these are it reads afterwards.
//  4. What tasks wrote is seen by the caller: each count is a release, and later counts only add to
//     the same release sequence, so that reading the sum acquires them all.
//  5. No wake is lost: state changes under the mutex, which a thread holds from reading CLOSED to
//     waiting. A thread that is awake needs no wake: it looks at claim, and now and then at state.
//
// tests/runtime/pool/test_races.py runs this under ThreadSanitizer, and with faults planted in it.
// The sources of the C library differ between systems; what is called of it is declared here, with
// void * for types that differ.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPEN, CLOSED, OVER };  // a pool's states: a run goes on, threads sleep, threads end
enum {
  TASKS = 256,       // that a job has at most
  SHIFT = 16,        // claim: the number of tasks, shifted, plus the next task
  LINGER = 2048,     // looks of a thread after a run, for the next one, until it sleeps: some 50 µs
  LINE_BYTES = 64,   // of a cache line
  POSIX_BYTES = 64,  // that a mutex or a condition has at most, on any system
};

typedef void host_function(void **buffers);
typedef void task_function(void *context, int32_t task);

struct call {
  host_function *function;
  void **buffers;
};

struct pool {
  _Alignas(LINE_BYTES) _Atomic uint32_t claim;
  _Alignas(LINE_BYTES) _Atomic uint32_t done;
  _Alignas(LINE_BYTES) _Atomic int32_t state;
  task_function *function;
  void *context;
  _Alignas(LINE_BYTES) char mutex[POSIX_BYTES];
  _Alignas(LINE_BYTES) char condition[POSIX_BYTES];
};

_Static_assert(TASKS < 1 << SHIFT, "a job's tasks fit in a claim");

extern const int vdla_clock;  // the system's CLOCK_MONOTONIC
void vdla_pause(void);        // the processor's instruction for loops that wait, if it has one

int clock_gettime(int clock, void *time);
int pthread_cond_broadcast(void *condition);
int pthread_cond_init(void *condition, const void *attributes);
int pthread_cond_wait(void *condition, void *mutex);
int pthread_mutex_init(void *mutex, const void *attributes);
int pthread_mutex_lock(void *mutex);
int pthread_mutex_unlock(void *mutex);
int sched_yield(void);

void vdla_call(const struct call *calls, uint32_t count, long times[][2]) {
  for (uint32_t n = 0; n < count; n++) {
    calls[n].function(calls[n].buffers);
    clock_gettime(vdla_clock, times[n]);  // seconds and nanoseconds, of which each is a long
  }
}

// Waits for a moment; every 256th time other processes get the processor.
static void rest(uint32_t *times) {
  vdla_pause();
  if (++*times % 256 == 0) sched_yield();
}

// Claims tasks and runs them, until none is left to claim.
static void take(struct pool *pool) {
  uint32_t claim = atomic_load_explicit(&pool->claim, memory_order_relaxed);
  while (true) {
    uint32_t tasks = claim >> SHIFT, task = claim % (1 << SHIFT);
    if (task == tasks) return;
    uint32_t count = (tasks - task) / 8 | 1;
    if (!atomic_compare_exchange_weak_explicit(&pool->claim, &claim, claim + count,
                                               memory_order_acquire, memory_order_relaxed))
      continue;  // with the claim as it is now
    task_function *function = pool->function;
    void *context = pool->context;
    for (uint32_t end = task + count; task < end; task++) function(context, (int32_t)task);
    atomic_fetch_add_explicit(&pool->done, count, memory_order_release);
    claim = atomic_load_explicit(&pool->claim, memory_order_relaxed);
  }
}

void vdla_parallel(struct pool *pool, task_function *function, void *context, uint32_t tasks) {
  if (pool == NULL || tasks == 1) {
    for (uint32_t task = 0; task < tasks; task++) function(context, (int32_t)task);
    return;
  }
  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
  pool->function = function;
  pool->context = context;
  atomic_store_explicit(&pool->claim, tasks << SHIFT, memory_order_release);
  take(pool);
  uint32_t times = 0;
  while (atomic_load_explicit(&pool->done, memory_order_acquire) != tasks) rest(&times);
}

void vdla_begin(struct pool *pool) {
  pthread_mutex_init(pool->mutex, NULL);
  pthread_cond_init(pool->condition, NULL);
  atomic_init(&pool->claim, 0);
  atomic_init(&pool->done, 0);
  atomic_init(&pool->state, CLOSED);
}

void vdla_set(struct pool *pool, int64_t state) {
  pthread_mutex_lock(pool->mutex);
  atomic_store_explicit(&pool->state, (int32_t)state, memory_order_relaxed);
  pthread_mutex_unlock(pool->mutex);
  if (state != CLOSED) pthread_cond_broadcast(pool->condition);
}

// Sleeps while the pool is closed; the state after that, OPEN or OVER.
static int32_t sleep_while_closed(struct pool *pool) {
  int32_t state;
  pthread_mutex_lock(pool->mutex);
  while ((state = atomic_load_explicit(&pool->state, memory_order_relaxed)) == CLOSED)
    pthread_cond_wait(pool->condition, pool->mutex);
  pthread_mutex_unlock(pool->mutex);
  return state;
}

void vdla_work(struct pool *pool) {
  uint32_t times = 0;
  while (sleep_while_closed(pool) != OVER) {
    for (uint32_t idle = 0; idle <= LINGER; rest(&times)) {
      take(pool);
      bool open = atomic_load_explicit(&pool->state, memory_order_relaxed) == OPEN;
      idle = open ? 0 : idle + 1;
    }
  }
}
