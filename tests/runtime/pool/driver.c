// Stresses the pool: callers with workers, many runs, jobs and tasks, checked against what each
// must have written.
//
//     driver POOLS SECONDS [CALLERS]
//
// Each caller makes POOLS pools, one after the other. Exit codes: 0 all is as expected, 2 something
// else was computed, 3 nothing went on for SECONDS. Compiled with -fsanitize=thread, 66: a race.
//
// What is shared between threads here is either plain, so that ThreadSanitizer sees whether the pool
// orders it, or atomic and relaxed, so that it orders nothing that the pool must.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 3
#define RUNS 6
#define JOBS 12
#define MOST_TASKS 256

enum { OPEN, CLOSED, OVER };
struct pool;
typedef void task_function(void *context, int32_t task);
struct call {
  void (*function)(void **buffers);
  void **buffers;
};

uint32_t vdla_call(const struct call *calls, uint32_t count, long times[][2]);
void vdla_parallel(struct pool *pool, task_function *function, void *context, uint32_t tasks);
void vdla_begin(struct pool *pool);
void vdla_work(struct pool *pool);
void vdla_set(struct pool *pool, int64_t state);

_Static_assert(sizeof(pthread_mutex_t) <= 64, "a mutex has its place in a pool");
_Static_assert(sizeof(pthread_cond_t) <= 64, "a condition has its place in a pool");

const int vdla_clock = CLOCK_MONOTONIC;
static _Atomic uint64_t progress;

void vdla_pause(void) { sched_yield(); }
uint64_t vdla_flush(void) { return 0; }
void vdla_restore(uint64_t before) { (void)before; }

static void nap(unsigned microseconds) {
  struct timespec time = {0, 1000L * microseconds};
  nanosleep(&time, NULL);
}

// Stands for pthread_cond_wait in pool.c: a thread that has read CLOSED takes its time until it
// waits, so that a state that is set without the mutex is missed.
int late_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  nap(300);
  return pthread_cond_wait(condition, mutex);
}

static void expect(bool condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "expected: %s\n", what);
  _exit(2);
}

// What a job reads and writes: plain memory, which the caller uses again as soon as the job is over.
struct job {
  uint32_t *counts, tasks, step;
  _Atomic uint32_t *arrived;
};

static void add(void *context, int32_t task) {
  struct job *job = context;
  if (task % 7 == 0) sched_yield();
  job->counts[task] += job->step;
}

static void nested(void *context, int32_t task) {
  uint32_t inner[5] = {0};
  struct job job = {.counts = inner, .step = 2};
  vdla_parallel(NULL, add, &job, 5);
  for (int n = 0; n < 5; n++) expect(inner[n] == 2, "a serial job inside a task runs all its tasks");
  add(context, task);
}

// Goes on when all tasks of the job have begun: each needs a thread of its own.
static void meet(void *context, int32_t task) {
  struct job *job = context;
  atomic_fetch_add_explicit(job->arrived, 1, memory_order_relaxed);
  while (atomic_load_explicit(job->arrived, memory_order_relaxed) < job->tasks) sched_yield();
  add(context, task);
}

static void run_job(struct pool *pool, task_function *function, uint32_t tasks, uint32_t step) {
  static _Thread_local uint32_t counts[MOST_TASKS];
  _Atomic uint32_t arrived = 0;
  struct job job = {.counts = counts, .tasks = tasks, .step = step, .arrived = &arrived};
  memset(counts, 0, sizeof counts);
  vdla_parallel(pool, function, &job, tasks);
  for (uint32_t n = 0; n < MOST_TASKS; n++)
    expect(counts[n] == (n < tasks ? step : 0), "each task runs once");
  memset(&job, 0xff, sizeof job);
  atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
}

static void host_function(void **buffers) {
  uint32_t *seed = buffers[0];
  static const uint32_t SIZES[] = {2, 8, 8, 8, 9, 64, 255, 256};
  uint32_t tasks = SIZES[rand_r(seed) % 8];
  run_job(buffers[1], rand_r(seed) % 2 ? add : nested, tasks, 1 + rand_r(seed) % 99);
}

static void *work(void *pool) {
  vdla_work(pool);
  return NULL;
}

static void one_pool(uint32_t *seed) {
  pthread_t workers[WORKERS];
  struct pool *pool = aligned_alloc(64, POOL_BYTES);
  for (int n = 0; n < POOL_BYTES; n++) ((unsigned char *)pool)[n] = (unsigned char)(n + 1);
  vdla_begin(pool);
  for (int n = 0; n < WORKERS; n++) pthread_create(&workers[n], NULL, work, pool);
  for (int run = rand_r(seed) % (RUNS + 1); run < RUNS; run++) {
    if (rand_r(seed) % 2) nap(rand_r(seed) % 900);
    vdla_set(pool, OPEN);
    run_job(pool, meet, WORKERS + 1, 5);
    run_job(pool, add, 1, 3);
    run_job(NULL, add, 9, 4);
    void *buffers[] = {seed, pool};
    struct call calls[JOBS];
    long times[JOBS + 1][2] = {{0}};
    for (int n = 0; n < JOBS; n++) calls[n] = (struct call){host_function, buffers};
    expect(vdla_call(calls, JOBS, times) == JOBS, "all are called");
    for (int n = 0; n < JOBS; n++) expect(times[n][0] + times[n][1] > 0, "each call is timed");
    expect(times[JOBS][0] + times[JOBS][1] == 0, "nothing else is timed");
    vdla_set(pool, CLOSED);
    if (rand_r(seed) % 4 == 0) nap(20000);  // the workers fall asleep
  }
  if (rand_r(seed) % 2) nap(900);
  vdla_set(pool, OVER);
  for (int n = 0; n < WORKERS; n++) pthread_join(workers[n], NULL);
  free(pool);
  atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
}

static int pools;

static void *caller(void *number) {
  uint32_t seed = (uint32_t)(uintptr_t)number;
  for (int n = 0; n < pools; n++) one_pool(&seed);
  return NULL;
}

// Ends the process when nothing goes on.
static void *watch(void *seconds) {
  uint64_t before = 0;
  while (true) {
    sleep((unsigned)(uintptr_t)seconds);
    uint64_t now = atomic_load_explicit(&progress, memory_order_relaxed);
    if (now == before) {
      fprintf(stderr, "expected: jobs and pools end\n");
      _exit(3);
    }
    before = now;
  }
}

int main(int count, char **arguments) {
  pthread_t watcher, callers[8];
  expect(count > 2, "driver POOLS SECONDS [CALLERS]");
  pools = atoi(arguments[1]);
  int callers_count = count > 3 ? atoi(arguments[3]) : 2;
  pthread_create(&watcher, NULL, watch, (void *)(uintptr_t)atoi(arguments[2]));
  for (int n = 0; n < callers_count; n++)
    pthread_create(&callers[n], NULL, caller, (void *)(uintptr_t)(n + 1));
  for (int n = 0; n < callers_count; n++) pthread_join(callers[n], NULL);
  _exit(0);
}
