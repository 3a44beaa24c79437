// A program around host functions, for Linux and for a bare Cortex-M: see bare_programs.py.

#include <stddef.h>
#include <stdint.h>

#define MISSING(name) \
  __attribute__((weak)) void name(void) { __builtin_trap(); }

static unsigned char image[];
#include "calls.h"

static _Alignas(64) unsigned char image[IMAGE_BYTES];
static _Alignas(64) unsigned char arena[ARENA_BYTES];
static uint32_t used, peak;

void *malloc(size_t size) {
  void *result = arena + used;
  used += (size + 15) / 16 * 16;
  if (used > ARENA_BYTES) __builtin_trap();
  if (used > peak) peak = used;
  return result;
}

void free(void *memory) { used = (uint32_t)((unsigned char *)memory - arena); }

// What the compiler's library has not of libm; it would be another one's in the next libm anyway.
static double nearest(double x) {
  const double whole = __builtin_copysign(0x1p52, x);
  return __builtin_copysign(__builtin_fabs(x) < 0x1p52 ? x + whole - whole : x, x);
}
double rint(double x) { return nearest(x); }
float rintf(float x) { return (float)nearest(x); }
MISSING(acos) MISSING(acosf) MISSING(acosh) MISSING(acoshf) MISSING(asin) MISSING(asinf)
MISSING(asinh) MISSING(asinhf) MISSING(atan) MISSING(atanf) MISSING(atanh) MISSING(atanhf)
MISSING(cosh) MISSING(coshf) MISSING(erf) MISSING(pow) MISSING(powf) MISSING(sinh)
MISSING(sinhf) MISSING(tanh)

#ifdef __ARM_PCS_VFP  // libgcc's, which take and give a float32's bits
unsigned __gnu_h2f_ieee(unsigned short half) {
  unsigned size = half & 0x7fff, bits = size << 13;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  x *= 0x1p112f;
  __builtin_memcpy(&bits, &x, sizeof x);
  return (size < 0x7c00 ? bits : size << 13 | 0x7f800000) | (half & 0x8000u) << 16;
}
unsigned short __gnu_f2h_ieee(unsigned bits) {
  unsigned size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;
  if (size >= 0x38800000) return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  float x;
  __builtin_memcpy(&x, &size, sizeof x);
  x += 0.5f;
  __builtin_memcpy(&size, &x, sizeof x);
  return sign | (size - 0x3f000000);
}
#endif

#ifdef LINUX
int clock_gettime(int clock, void *time) { return clock * 0 + (time == NULL); }
int sched_yield(void) { return 0; }
int pthread_cond_broadcast(void *c) { return c == NULL; }
int pthread_cond_init(void *c, const void *a) { return c == a; }
int pthread_cond_wait(void *c, void *m) { return c == m; }
int pthread_mutex_init(void *m, const void *a) { return m == a; }
int pthread_mutex_lock(void *m) { return m == NULL; }
int pthread_mutex_unlock(void *m) { return m == NULL; }

#if defined __riscv
enum { OPENAT = 56, READ = 63, WRITE = 64, EXIT = 93 };
static long call(long number, long a, long b, long c, long d) {
  register long a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
  register long a3 __asm__("a3") = d, a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a7) : "memory");
  return a0;
}
#elif defined __aarch64__
enum { OPENAT = 56, READ = 63, WRITE = 64, EXIT = 93 };
static long call(long number, long a, long b, long c, long d) {
  register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d, x8 __asm__("x8") = number;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x8) : "memory");
  return x0;
}
#else
enum { OPENAT = 322, READ = 3, WRITE = 4, EXIT = 1 };
static long call(long number, long a, long b, long c, long d) {
  register long r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c;
  register long r3 __asm__("r3") = d, r7 __asm__("r7") = number;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3), "r"(r7) : "memory");
  return r0;
}
#endif

enum { HERE = -100, MODE = 0644, CREATE = 0101 | 01000 };  // of Linux: AT_FDCWD, O_WRONLY …
static long opened(const char *name, int writes) {
  return call(OPENAT, HERE, (long)name, writes ? CREATE : 0, MODE);
}
static void moved(long number, long file, void *memory, size_t size) {
  for (size_t done = 0; done < size;) {
    long count = call(number, file, (long)memory + done, size - done, 0);
    if (count <= 0) __builtin_trap();
    done += count;
  }
}
static void read_all(long file, void *memory, size_t size) { moved(READ, file, memory, size); }
static void write_all(long file, void *memory, size_t size) { moved(WRITE, file, memory, size); }
static void leave(void) { call(EXIT, 0, 0, 0, 0); }
#else  // ARM's semihosting: what the emulator does for a program without a system
enum { OPEN = 1, WRITE = 5, READ = 6, EXIT = 0x18, STOPPED = 0x20026 };
static long call(long number, const void *arguments) {
  register long r0 __asm__("r0") = number;
  register const void *r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static long opened(const char *name, int writes) {
  long length = 0;
  while (name[length]) length++;
  const long arguments[] = {(long)name, writes ? 5 : 1, length};
  return call(OPEN, arguments);
}
static void moved(long number, long file, void *memory, size_t size) {
  const long arguments[] = {file, (long)memory, (long)size};
  if (call(number, arguments)) __builtin_trap();
}
static void read_all(long file, void *memory, size_t size) { moved(READ, file, memory, size); }
static void write_all(long file, void *memory, size_t size) { moved(WRITE, file, memory, size); }
static void leave(void) { call(EXIT, (void *)STOPPED); }

extern unsigned char stack_end[];
void _start(void);
static void fault(void) {
  const long failed[] = {1};
  call(0x20, failed);  // an exit with a code
  while (1) continue;
}
__attribute__((section(".vectors"), used)) static void *const vectors[] = {
    stack_end, _start, fault, fault, fault, fault, fault};
#endif

void _start(void) {
#ifndef LINUX
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;  // CPACR: the floating-point unit is on
  __asm__ volatile("dsb\n isb");
#endif
  read_all(opened("before", 0), image, IMAGE_BYTES);
  calls();
  long file = opened("after", 1);
  write_all(file, image, IMAGE_BYTES);
  write_all(file, &peak, sizeof peak);
  leave();
  while (1) continue;
}
