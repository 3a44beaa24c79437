// What the ways to a board have in common: texts of errors, parts of its memory, and waiting.

#define _POSIX_C_SOURCE 200809L

#include "boards.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void vdla_way_begin(struct vdla_way *way, const char *kind, const char *place) {
  memset(way, 0, sizeof *way);
  snprintf(way->name, sizeof way->name, "%s%s", kind, place);
  way->run_us = VDLA_RUN_US;
}

int vdla_way_fail(struct vdla_way *way, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(way->error, sizeof way->error, format, values);
  va_end(values);
  return -1;
}

int vdla_way_map(void *context, size_t bytes, void **memory, uint32_t *address) {
  struct vdla_way *way = context;
  if (bytes > way->bytes - way->taken)
    return vdla_way_fail(way,
                         "%s: expected a module of at most %zu bytes of DRAM, found one of %zu",
                         way->name, way->bytes - way->taken, bytes);
  *memory = way->memory + way->taken;
  *address = way->address + (uint32_t)way->taken;
  way->taken += bytes;
  return 0;
}

uint64_t vdla_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void vdla_sleep_us(uint32_t microseconds) {
  struct timespec pause;
  pause.tv_sec = microseconds / 1000000;
  pause.tv_nsec = microseconds % 1000000 * 1000;
  nanosleep(&pause, NULL);
}

// Sleeps twice as long after each look, up to a limit.
int vdla_way_wait(void *context, enum vdla_awaited awaited, uint32_t looks) {
  struct vdla_way *way = context;
  uint32_t limit = awaited == VDLA_PROGRAM ? way->run_us : VDLA_REST_US, pause = VDLA_FIRST_POLL_US;
  if (looks == 1) way->began_us = vdla_now_us();
  if (vdla_now_us() - way->began_us > limit) return 1;
  for (uint32_t n = 1; n < looks && pause < VDLA_LONGEST_POLL_US; n++) pause *= 2;
  vdla_sleep_us(pause < VDLA_LONGEST_POLL_US ? pause : VDLA_LONGEST_POLL_US);
  return 0;
}
