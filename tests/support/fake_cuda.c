/* A driver of CUDA's for tests. It keeps memory on the host, refuses what a driver would refuse, and
 * runs two kernels that it knows by their names. Where NVIDIA's cuda.h is at hand, the C compiler
 * holds every function and number here against it. */

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#undef cuEventElapsedTime /* of today's programs; the driver has the old one, too */
#define HAS_HEADER
#endif
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAS_HEADER
typedef int CUresult, CUdevice, CUdevice_attribute, CUjit_option;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent;
typedef unsigned long long CUdeviceptr;
enum {
  CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201, CUDA_ERROR_INVALID_PTX = 218, CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500, CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};
#endif

enum { MOST = 64, TOTAL = 1 << 20, LINE = 512 };

static struct { char *base; size_t size; } memories[MOST];
static struct module { char *text; } modules[MOST];
static struct function { struct module *module; char name[64]; } functions[MOST];
static struct event { int live, recorded, synced; float at; } events[MOST];
static int contexts[2];
static struct { const char *name; int status; } failing;
static int started, devices = 2;
static float now; /* in milliseconds; each thing that is queued takes one */
static char records[1 << 16];
static __thread void *stack[4]; /* of contexts, the current one last */
static __thread int depth;

/* for the tests */

void fake_fail(const char *name, int status) {
  failing.name = strdup(name);
  failing.status = status;
}

void fake_devices(int count) { devices = count; }

int fake_depth(void) { return depth; }

const char *fake_records(void) { return records; }

int fake_live(void) {
  int count = 0;
  for (int n = 0; n < MOST; n++)
    count += (memories[n].base != 0) + (modules[n].text != 0) + events[n].live;
  return count;
}

/* inside */

static CUresult begin(const char *name, int in_context) {
  if (failing.name && strcmp(failing.name, name) == 0) return (CUresult)failing.status;
  if (!started) return CUDA_ERROR_NOT_INITIALIZED;
  return in_context && !depth ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

#define BEGIN(in_context) \
  do { \
    CUresult status_ = begin(__func__, in_context); \
    if (status_ != CUDA_SUCCESS) return status_; \
  } while (0)

static int is_inside(CUdeviceptr place, size_t size) {
  for (int n = 0; n < MOST; n++) {
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)memories[n].base;
    if (base && place >= base && place + size <= base + memories[n].size) return 1;
  }
  return 0;
}

static const char *entry_of(const struct module *module, const char *name) {
  char wanted[128];
  snprintf(wanted, sizeof wanted, ".entry %s(", name);
  return strstr(module->text, wanted);
}

static int parameters_of(const struct function *function) {
  const char *at = entry_of(function->module, function->name), *end = strchr(at, ')');
  int count = 0;
  while ((at = strstr(at, ".param")) && at < end) count++, at++;
  return count;
}

static void run(const char *name, char *memory, const uint64_t *offsets, unsigned threads) {
  float *x = (float *)(memory + offsets[0]), *y = (float *)(memory + offsets[1]);
  for (unsigned n = 0; n < threads; n++) {
    if (strcmp(name, "twice") == 0) y[n] = 2 * x[n];
    if (strcmp(name, "more") == 0) y[n] = x[n] + 1;
  }
}

/* the driver */

CUresult cuInit(unsigned int flags) {
  if (failing.name && strcmp(failing.name, __func__) == 0) return (CUresult)failing.status;
  started = flags == 0;
  return started ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
          : error == CUDA_ERROR_INVALID_PTX   ? "CUDA_ERROR_INVALID_PTX"
                                              : 0;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_NO_DEVICE         ? "no CUDA-capable device is detected"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
          : error == CUDA_ERROR_INVALID_PTX     ? "a PTX JIT compilation failed"
                                                : 0;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
  BEGIN(0);
  *count = devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  BEGIN(0);
  *device = 10 + ordinal; /* a handle, which needn't be the number */
  return ordinal < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  BEGIN(0);
  snprintf(name, length, "%s", device == 10 ? "Fake 80" : "Fake 90");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  BEGIN(0);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 512; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = device == 10 ? 8 : 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  BEGIN(0);
  *bytes = TOTAL;
  return device >= 10 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  BEGIN(0);
  *context = (CUcontext)&contexts[device - 10];
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  BEGIN(0);
  if (depth == 4 || !context) return CUDA_ERROR_INVALID_CONTEXT;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  BEGIN(1);
  *context = stack[--depth];
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  BEGIN(1);
  for (int n = 0; n < MOST; n++) events[n].synced = events[n].recorded;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values) {
  BEGIN(1);
  if (strstr(image, "bogus")) {
    char *log = 0;
    size_t size = 0;
    for (unsigned int n = 0; n < count; n++) {
      if (options[n] == CU_JIT_ERROR_LOG_BUFFER) log = values[n];
      if (options[n] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = (uintptr_t)values[n];
    }
    if (log && !strstr(image, "silent"))
      snprintf(log, size, "ptxas application ptx input, line 3; error   : Unknown bogus\n\n"
                          "ptxas fatal   : Ptx assembly aborted due to errors\n");
    return CUDA_ERROR_INVALID_PTX;
  }
  int n = 0;
  while (modules[n].text) n++;
  modules[n].text = strdup(image);
  *module = (CUmodule)&modules[n];
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  BEGIN(1);
  free(((struct module *)module)->text);
  ((struct module *)module)->text = 0;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  BEGIN(1);
  if (!entry_of((struct module *)module, name)) return CUDA_ERROR_NOT_FOUND;
  int n = 0;
  while (functions[n].module) n++;
  functions[n].module = (struct module *)module;
  snprintf(functions[n].name, sizeof functions[n].name, "%s", name);
  *function = (CUfunction)&functions[n];
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *place, size_t size) {
  BEGIN(1);
  size_t taken = 0;
  int n = 0;
  for (int m = 0; m < MOST; m++) taken += memories[m].base ? memories[m].size : 0;
  if (taken + size > TOTAL) return CUDA_ERROR_OUT_OF_MEMORY;
  while (memories[n].base) n++;
  memories[n].base = malloc(size);
  memories[n].size = size;
  *place = (CUdeviceptr)(uintptr_t)memories[n].base;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr place) {
  BEGIN(1);
  for (int n = 0; n < MOST; n++) {
    if ((CUdeviceptr)(uintptr_t)memories[n].base != place) continue;
    free(memories[n].base);
    memories[n].base = 0;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  BEGIN(1);
  if (!is_inside(to, size)) return CUDA_ERROR_INVALID_VALUE;
  memcpy((void *)(uintptr_t)to, from, size);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  BEGIN(1);
  if (!is_inside(from, size)) return CUDA_ERROR_INVALID_VALUE;
  memcpy(to, (void *)(uintptr_t)from, size);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int x, unsigned int y, unsigned int z,
                        unsigned int shared, CUstream stream, void **parameters, void **extra) {
  BEGIN(1);
  const struct function *function = (const struct function *)handle;
  if (!function->module->text || stream || extra) return CUDA_ERROR_INVALID_HANDLE;
  char *end = records + strlen(records);
  if (end + LINE > records + sizeof records) return CUDA_ERROR_NOT_READY; /* ask it of less */
  end += sprintf(end, "%s grid %u %u %u group %u %u %u shared %u at", function->name, grid_x, grid_y,
                 grid_z, x, y, z, shared);
  uint64_t offsets[16];
  int count = parameters_of(function) - 1;
  for (int n = 0; n < count; n++) {
    offsets[n] = *(uint64_t *)parameters[n + 1];
    end += sprintf(end, " %llu", (unsigned long long)offsets[n]);
  }
  sprintf(end, "\n");
  CUdeviceptr memory = *(CUdeviceptr *)parameters[0];
  if (!is_inside(memory, 1)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  run(function->name, (char *)(uintptr_t)memory, offsets, grid_x * x);
  now += 1;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  BEGIN(1);
  int n = 0;
  while (events[n].live) n++;
  events[n] = (struct event){1, 0, 0, 0};
  *event = (CUevent)&events[n];
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  BEGIN(1);
  struct event *event = (struct event *)handle;
  if (!event->live || stream) return CUDA_ERROR_INVALID_HANDLE;
  event->recorded = 1;
  event->at = now;
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent last) {
  BEGIN(1);
  const struct event *a = (const struct event *)first, *b = (const struct event *)last;
  if (!a->recorded || !b->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!b->synced) return CUDA_ERROR_NOT_READY;
  *milliseconds = b->at - a->at;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  BEGIN(1);
  ((struct event *)event)->live = 0;
  return CUDA_SUCCESS;
}
