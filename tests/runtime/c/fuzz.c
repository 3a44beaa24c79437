// Opens and runs modules with bytes changed, under sanitizers: whatever the bytes are, the runtime
// ends with a status, and functions, copies and boards touch nothing but the memory that is theirs.
//
//     fuzz SEED MUTATIONS MODULE...     prints how many were opened and how many ran
//
// A module's functions are stand-ins: each reads all bytes of its buffers, and writes its result's.
// So is the board: its memory is as large as it was asked for, its answers are random. Half of the
// changes are in the table, and checksums are made right again, or nothing would come further.

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "runtime.c"

enum { FUNCTIONS_AT_MOST = 64, MOST_BUFFERS = 512, MOST_MEMORY = 1 << 24, MOST_MILLISECONDS = 40 };

static uint64_t state;

static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return below ? (uint32_t)(state >> 33) % below : 0;
}

// Functions ---------------------------------------------------------------------------------------

static struct vdla_function functions[FUNCTIONS_AT_MOST];
static size_t sizes[FUNCTIONS_AT_MOST][MOST_BUFFERS];
static volatile unsigned char sink;

static void touch(int number, void **buffers) {
  const struct vdla_function *own = &functions[number];
  for (size_t n = 0; n < own->buffers; n++) {
    unsigned char *bytes = buffers[n], sum = 0;
    for (size_t at = 0; at < own->bytes[n]; at++) sum += bytes[at];
    sink = sum;
  }
  if (own->buffers == 0) return;
  size_t last = own->buffers - 1;
  memset(buffers[last], (int)draw(3), own->bytes[last]);
  if (own->bytes[last]) ((unsigned char *)buffers[last])[draw((uint32_t)own->bytes[last])] ^= 1;
}

#define STAND_IN(n) \
  static void stand_in_##n(void **buffers) { touch(0##n, buffers); }
#define NAME(n) stand_in_##n,
#define EIGHT(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7)
#define ALL(of) \
  EIGHT(of, 0)  \
  EIGHT(of, 1) EIGHT(of, 2) EIGHT(of, 3) EIGHT(of, 4) EIGHT(of, 5) EIGHT(of, 6) EIGHT(of, 7)
ALL(STAND_IN)  // numbered in octal
static void (*const stand_ins[])(void **) = {ALL(NAME)};

// The functions that a sound module names, with the bytes that its steps give them.
static struct vdla_code code_of(const unsigned char *bytes, size_t size) {
  static struct vdla net;
  memset(&net, 0, sizeof net);
  net.bytes = bytes;
  if (read_module(&net, size)) {
    fprintf(stderr, "a seed: %s\n", net.error);
    exit(2);
  }
  uint32_t count = net.lists[FUNCTIONS].count;
  if (count > FUNCTIONS_AT_MOST) exit(2);
  for (uint32_t n = 0; n < count; n++)
    functions[n] =
        (struct vdla_function){text(&net, word(&net, FUNCTIONS, n)), stand_ins[n], sizes[n], 0};
  for (uint32_t step = 0; step < net.lists[STEPS].count; step++) {
    if (step_word(&net, step, STEP_KIND) != STEP_IS_HOST) continue;
    uint32_t function = step_x(&net, step, 0), args = step_word(&net, step, STEP_ARGS);
    if (args > MOST_BUFFERS) exit(2);
    functions[function].buffers = args;
    for (uint32_t arg = 0; arg < args; arg++)
      sizes[function][arg] = tensor_bytes(&net, step_arg(&net, step, arg));
  }
  return (struct vdla_code){.functions = functions, .count = count};
}

// A board -----------------------------------------------------------------------------------------

static int steady;  // the board never fails

static int fails(uint32_t one_in) { return !steady && draw(one_in) == 0; }

static unsigned char *shared;
static size_t shared_bytes;

static int read_registers(void *context, uint32_t offset, uint32_t *values, uint32_t count) {
  const struct vdla *net = *(struct vdla **)context;
  const uint32_t identity[4] = {CORE_IDENTITY, CORE_VERSION, net->isa, net->config};
  for (uint32_t n = 0; n < count; n++)
    values[n] = offset == 0 && n < 4 && !fails(50) ? identity[n]
                : fails(8)                         ? draw(16)
                                                   : STATUS_DONE;
  return fails(200);
}

static int write_one(void *context, uint32_t offset, uint32_t value) {
  (void)context, (void)offset, (void)value;
  return fails(500);
}

static int map(void *context, size_t bytes, void **memory, uint32_t *address) {
  (void)context;
  if (bytes > MOST_MEMORY || bytes % PAGE) return 1;
  free(shared);
  *memory = shared = aligned_alloc(ALIGN, bytes ? bytes : ALIGN);
  shared_bytes = bytes;
  *address = 0;
  return fails(50);
}

static int flush_bytes(void *context, const void *first, size_t bytes,
                       enum vdla_direction direction) {
  (void)context;
  size_t start = (size_t)((const unsigned char *)first - shared);
  for (size_t n = start; n < start + bytes; n++) {
    if (direction != VDLA_FROM_BOARD) sink = shared[n];
    if (direction == VDLA_FROM_BOARD) shared[n] = (unsigned char)draw(256);
  }
  return fails(300);
}

static int wait_for(void *context, enum vdla_awaited awaited, uint32_t looks) {
  (void)context, (void)awaited;
  return looks > 5;
}

// Mutations ---------------------------------------------------------------------------------------

static void put_word(unsigned char *at, uint32_t value) {
  for (int n = 0; n < 4; n++) at[n] = (unsigned char)(value >> 8 * n);
}

static uint32_t interesting(uint32_t old) {
  static const uint32_t VALUES[] = {0,     1,      2,          63,         64,         0xFF,
                                    0x100, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF};
  switch (draw(5)) {
    case 0: return VALUES[draw(sizeof VALUES / sizeof *VALUES)];
    case 1: return old + 1;
    case 2: return old - 1;
    case 3: return old ^ 1u << draw(32);
    default: return draw(40);
  }
}

static void mutate(unsigned char *bytes, size_t size) {
  size_t table = 20 + word_at(bytes + 12), length = word_at(bytes + table);
  for (uint32_t left = 1 + draw(3); left > 0; left--) {
    if (draw(4)) {
      unsigned char *at = bytes + table + 4 * (size_t)draw((uint32_t)length / 4);
      put_word(at, interesting(word_at(at)));
    } else {
      bytes[draw((uint32_t)size)] ^= (unsigned char)(1 << draw(8));
    }
  }
}

// Makes the checksums right, as far as the parts can still be found.
static void seal(unsigned char *bytes, size_t size) {
  size_t header = word_at(bytes + 12);
  if (header > size - 20 - 64) return;
  put_word(bytes + 16, crc32(bytes + 20, header));
  unsigned char *table = bytes + 20 + header;
  size_t length = word_at(table), left = size - 20 - header;
  if (length < 64 || length > left) return;
  struct vdla net = {.bytes = bytes};
  if (find_lists(&net, table, length) == VDLA_OK) {
    const unsigned char *data = table + length;
    for (uint32_t n = 0; n < net.lists[SECTIONS].count; n++) {
      unsigned char *section = (unsigned char *)entry(&net, SECTIONS, n, SECTION_WORDS);
      size_t own = size_at(section + 4);
      if (own > (size_t)(bytes + size - data)) break;
      put_word(section + 12, crc32(data, own));
      data += own;
    }
  }
  put_word(table + 4, crc32(table + 8, length - 8));
}

// Runs --------------------------------------------------------------------------------------------

static sigjmp_buf too_long;

static void on_alarm(int signal) {
  (void)signal;
  siglongjmp(too_long, 1);
}

static void set_alarm(int milliseconds) {
  struct itimerval timer = {.it_value = {0, 1000 * milliseconds}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void look_at(struct vdla *net) {
  struct vdla_description all;
  struct vdla_tensor tensor;
  void *data;
  size_t bytes;
  vdla_describe(net, &all);
  vdla_state(net, &data, &bytes);
  for (uint32_t n = 0; vdla_input(net, n, &tensor) == VDLA_OK; n++)
    memset(tensor.data, (int)draw(3), tensor.bytes);
  for (uint32_t n = 0; vdla_output(net, n, &tensor) == VDLA_OK; n++)
    for (size_t at = 0; tensor.data && at < tensor.bytes; at++)
      sink = ((unsigned char *)tensor.data)[at];
}

// Whether it was opened, plus whether it ran.
static int try_once(const unsigned char *bytes, size_t size, const struct vdla_code *code) {
  struct vdla *net = NULL;
  struct vdla_board board = {&net, read_registers, write_one, map, flush_bytes, wait_for};
  const struct vdla_board *used = steady || draw(4) ? &board : NULL;
  size_t memory_bytes = VDLA_OWN_BYTES;
  unsigned char *memory = aligned_alloc(ALIGN, memory_bytes);
  int status = vdla_open(memory, memory_bytes, bytes, size, code, used, &net);
  size_t needs = vdla_memory(net);
  if (status == VDLA_BAD_MEMORY && needs > memory_bytes && needs < MOST_MEMORY) {
    free(memory);
    memory = aligned_alloc(ALIGN, VDLA_ALIGNED(needs));
    status = vdla_open(memory, needs, bytes, size, code, used, &net);
  }
  if (strlen(vdla_error(net)) >= ERROR_BYTES) abort();
  int result = status == VDLA_OK;
  if (status == VDLA_OK) {
    look_at(net);
    if (sigsetjmp(too_long, 1) == 0) {
      set_alarm(MOST_MILLISECONDS);
      result += vdla_run(net) == VDLA_OK;
      set_alarm(0);
      look_at(net);
    }
  }
  free(memory);
  return result;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  uint64_t seed = strtoull(argv[1], NULL, 10);
  long mutations = atol(argv[2]), opened = 0, ran = 0;
  signal(SIGALRM, on_alarm);
  for (int file = 3; file < argc; file++) {
    FILE *stream = fopen(argv[file], "rb");
    if (stream == NULL) return 2;
    static unsigned char seed_bytes[1 << 22];
    size_t size = fread(seed_bytes, 1, sizeof seed_bytes, stream);
    fclose(stream);
    struct vdla_code code = code_of(seed_bytes, size);
    state = seed ^ (uint64_t)file << 40;
    steady = 1;
    if (try_once(seed_bytes, size, &code) == 0) fprintf(stderr, "%s: not opened\n", argv[file]);
    steady = 0;
    for (long n = 0; n < mutations; n++) {
      state = seed ^ (uint64_t)file << 40 ^ (uint64_t)n * 2654435761u;
      size_t cut = draw(40) ? size : draw((uint32_t)size);
      unsigned char *bytes = aligned_alloc(ALIGN, VDLA_ALIGNED(cut + 1));  // ASan sees beyond cut
      unsigned char *exact =
          draw(2) || cut % ALIGN ? malloc(cut ? cut : 1) : aligned_alloc(ALIGN, cut);
      memcpy(bytes, seed_bytes, cut);
      if (cut == size) {
        mutate(bytes, size);
        if (draw(20)) seal(bytes, size);
      }
      memcpy(exact, bytes, cut);
      free(bytes);
      int result = try_once(exact, cut, &code);
      opened += result > 0;
      ran += result > 1;
      free(exact);
    }
  }
  free(shared);
  printf("%ld modules, %ld opened, %ld ran\n", mutations * (argc - 3), opened, ran);
  return 0;
}
