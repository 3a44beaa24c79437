// Threads that share the parallel loops of functions, where the system has POSIX's.
//
// What they do is in runtime/pool/pool.c, which comes with the functions; runtime/threads.py does
// this in Python. The caller of vdla_run is one of them. The others look for work while a run goes
// on, and sleep otherwise. They are pinned to other processors than the one that starts them: a
// system may wake a thread on the processor of its waker, where it waits behind the waker.
//
// Headers of the C library differ between systems, so what is called of it is declared here.

#include "inner.h"

enum { MASK_WORDS = 1024 / (8 * sizeof(unsigned long)), WORD_BITS = 8 * sizeof(unsigned long) };

struct mask {
  _Alignas(16) unsigned long words[MASK_WORDS];  // cpu_set_t
};

int pthread_create(size_t *thread, const void *attributes, void *(*start)(void *), void *context);
int pthread_join(size_t thread, void **result);
int pthread_setaffinity_np(size_t thread, size_t bytes, const struct mask *mask);
int sched_getaffinity(int process, size_t bytes, struct mask *mask);
int sched_getcpu(void);

static void *work(void *context) {
  struct vdla *net = context;
  net->code->work(net->pool);
  return NULL;
}

// Pins the threads to other processors than the caller's.
static void pin(struct vdla *net) {
  struct mask mask;
  int cpu = sched_getcpu();
  if (cpu < 0 || sched_getaffinity(0, sizeof mask, &mask)) return;
  mask.words[(size_t)cpu / WORD_BITS] &= ~(1ul << (size_t)cpu % WORD_BITS);
  unsigned long others = 0;
  for (int n = 0; n < (int)MASK_WORDS; n++) others |= mask.words[n];
  for (uint32_t n = 0; others && n < net->threads; n++)
    pthread_setaffinity_np(net->thread_ids[n], sizeof mask, &mask);
}

int vdla_start(struct vdla *net, uint32_t threads) {
  if (net->pool || threads < 1 || threads > MOST_THREADS)
    return fail(net, VDLA_BAD_NUMBER, "threads", "1 to 64, started once", threads);
  if (threads == 1 || net->code == NULL || net->code->begin == NULL) return VDLA_OK;
  uintptr_t memory = (uintptr_t)net->pool_memory;
  net->pool = net->pool_memory + (ALIGN - memory % ALIGN) % ALIGN;
  net->code->begin(net->pool);
  while (net->threads < threads - 1) {
    if (pthread_create(&net->thread_ids[net->threads], NULL, work, net)) break;
    net->threads += 1;
  }
  pin(net);
  return VDLA_OK;
}

void vdla_close(struct vdla *net) {
  if (net == NULL || net->pool == NULL) return;
  net->code->set(net->pool, POOL_OVER);
  for (uint32_t n = 0; n < net->threads; n++) pthread_join(net->thread_ids[n], NULL);
  net->threads = 0;
  net->pool = NULL;
}
