// What the files of the runtime share: the struct behind a network, a module's lists, and texts.
//
// Rules.
//
//  1. A word of a module is read through word() and its kin alone, and check.c has checked it:
//     lists lie within the table, and what an entry refers to is there.
//  2. No structure has a member of 64 bits: its place differs between processors of 32 bits.
//  3. Of the C library nothing is called: copies are the compiler's own memcpy and memset.

#ifndef VDLA_INNER_H
#define VDLA_INNER_H

#include "numbers.h"
#include "vdla.h"

enum {
  WORD = 4,
  ALIGN = 64,
  PAGE = 4096,
  ERROR_BYTES = 224,
  MOST_CALLS = 1000,  // of functions inside one another
  MOST_THREADS = 64,
  TYPES = VDLA_UINT2 + 1,  // of elements
};

#define NONE UINT32_MAX

// Lists of a table, in the order in which their counts and they themselves come.
enum { TENSORS, SIZES, INPUTS, OUTPUTS, STEPS, ARGS, FUNCTIONS, RANGES, SECTIONS, TEXTS, LISTS };

// Words of the entries of each list.
enum {
  TENSOR_OFFSET = 0, TENSOR_BYTES = 2, TENSOR_KIND = 4, TENSOR_FIRST, TENSOR_NAME, TENSOR_WORDS,
  INPUT_TENSOR = 0, INPUT_INDICES, INPUT_WORDS,
  OUTPUT_NAME = 0, OUTPUT_KIND, OUTPUT_TENSOR, OUTPUT_COUNT, OUTPUT_SIZES, OUTPUT_CONDITION,
  OUTPUT_WORDS,
  STEP_KIND = 0, STEP_NAME, STEP_FIRST, STEP_ARGS, STEP_X, STEP_WORDS = STEP_X + 4,
  RANGE_FROM = 0, RANGE_TO = 2, RANGE_WORDS = 4,
  SECTION_KIND = 0, SECTION_BYTES, SECTION_CRC = 3, SECTION_WORDS,
};
enum { WHOLE, TAKE, PUT };                                             // ways of a copy
enum { OUTPUT_IS_TENSOR, OUTPUT_IS_ROWS, OUTPUT_IS_EACH, OUTPUT_IS_ABSENT, OUTPUT_IS_LIST };
enum { SECTION_IS_CONSTANTS, SECTION_IS_HOST, SECTION_IS_PROGRAM, SECTION_IS_OTHER };

struct list {
  const uint8_t *first;
  uint32_t count;
};

struct vdla {
  char error[ERROR_BYTES];
  const uint8_t *bytes;     // of the module
  struct list lists[LISTS];
  const uint8_t *sections;  // the first one's first byte
  size_t dram_bytes, constant_bytes;
  uint32_t isa, config;
  const struct vdla_code *code;
  const struct vdla_board *board;
  const uint8_t *constants;  // where they stay in the module; null if they are in the image
  uint8_t *image;            // from byte first of DRAM on
  size_t first;
  size_t memory_bytes;
  void **buffers;            // of the function that is called
  uint8_t *frames;           // of calls: their steps' numbers and what they save
  size_t frames_used;
  uint32_t calls;
  uint32_t programs, most_args;
  size_t most_saved;         // bytes of a call's frame, at most
  uint32_t address;          // of the image, for the core
  uint32_t cycles_low, cycles_high;
  void *pool;                // of threads, or null
  uint32_t threads;          // beside the caller
  size_t thread_ids[MOST_THREADS];
  uint8_t pool_memory[POOL_BYTES + ALIGN];
};

// Words -------------------------------------------------------------------------------------------

static inline uint32_t word_at(const uint8_t *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint32_t word(const struct vdla *net, int list, uint32_t index) {
  return word_at(net->lists[list].first + (size_t)WORD * index);
}

// A number of two words; SIZE_MAX where this processor has none as large.
static inline size_t size_at(const uint8_t *at) {
  uint32_t low = word_at(at), high = word_at(at + WORD);
  if (sizeof(size_t) == sizeof(uint32_t)) return high ? SIZE_MAX : low;
  return (size_t)((uint64_t)high << 32 | low);
}

static inline const char *text(const struct vdla *net, uint32_t place) {
  return (const char *)net->lists[TEXTS].first + place;
}

// Entries -----------------------------------------------------------------------------------------

static inline const uint8_t *entry(const struct vdla *net, int list, uint32_t number, int words) {
  return net->lists[list].first + (size_t)WORD * (size_t)words * number;
}

static inline size_t tensor_offset(const struct vdla *net, uint32_t tensor) {
  return size_at(entry(net, TENSORS, tensor, TENSOR_WORDS) + WORD * TENSOR_OFFSET);
}

static inline size_t tensor_bytes(const struct vdla *net, uint32_t tensor) {
  return size_at(entry(net, TENSORS, tensor, TENSOR_WORDS) + WORD * TENSOR_BYTES);
}

static inline uint32_t tensor_word(const struct vdla *net, uint32_t tensor, int which) {
  return word_at(entry(net, TENSORS, tensor, TENSOR_WORDS) + WORD * which);
}

static inline uint32_t tensor_type(const struct vdla *net, uint32_t tensor) {
  return tensor_word(net, tensor, TENSOR_KIND) & 0xFF;
}

static inline uint32_t tensor_rank(const struct vdla *net, uint32_t tensor) {
  return tensor_word(net, tensor, TENSOR_KIND) >> 8;
}

static inline uint32_t tensor_size(const struct vdla *net, uint32_t tensor, uint32_t axis) {
  return word(net, SIZES, tensor_word(net, tensor, TENSOR_FIRST) + axis);
}

// Bytes of one element along the first axis.
static inline size_t element_bytes(const struct vdla *net, uint32_t tensor) {
  uint32_t count = tensor_rank(net, tensor) ? tensor_size(net, tensor, 0) : 1;
  return tensor_bytes(net, tensor) / (count ? count : 1);
}

// Where a tensor lies.
static inline uint8_t *tensor_data(const struct vdla *net, uint32_t tensor) {
  size_t offset = tensor_offset(net, tensor);
  if (net->constants && offset + tensor_bytes(net, tensor) <= net->constant_bytes)
    return (uint8_t *)(uintptr_t)net->constants + offset;
  return net->image + (offset - net->first);
}

static inline uint32_t step_word(const struct vdla *net, uint32_t step, int which) {
  return word_at(entry(net, STEPS, step, STEP_WORDS) + WORD * which);
}

static inline uint32_t step_x(const struct vdla *net, uint32_t step, int which) {
  return step_word(net, step, STEP_X + which);
}

static inline uint32_t step_arg(const struct vdla *net, uint32_t step, uint32_t arg) {
  return word(net, ARGS, step_word(net, step, STEP_FIRST) + arg);
}

// Of a program's container, isa/program.py: its instructions' bytes, the stream's place, its length.
static inline uint32_t instruction_bytes(const uint8_t *program) {
  return program[10] | (uint32_t)program[11] << 8;
}

static inline uint32_t program_base(const uint8_t *program) { return word_at(program + 20); }
static inline uint32_t program_length(const uint8_t *program) { return word_at(program + 24); }

uint32_t type_bytes(uint32_t type);  // of an element of a type below TYPES

// A section's bytes, and how many they are.
const uint8_t *section_data(const struct vdla *net, uint32_t section, size_t *bytes);

// Texts of errors: "expected EXPECTED, found FOUND" behind where it is ----------------------------

struct words {  // a text that is being written
  char *at, *end;
};

void begin_error(struct vdla *net, struct words *words);
void put(struct words *words, const char *text);
void put_number(struct words *words, size_t number);
void put_hex(struct words *words, uint32_t number);
int fail(struct vdla *net, int status, const char *where, const char *expected, size_t number);
int fail_with(struct vdla *net, int status, const char *where, const char *expected,
              const char *found);
int fail_at_step(struct vdla *net, int status, uint32_t step, const char *expected,
                 const char *found);

// Parts of the runtime ----------------------------------------------------------------------------

uint32_t crc32(const uint8_t *data, size_t bytes);
int read_module(struct vdla *net, size_t bytes);  // finds the lists
int check_module(struct vdla *net);               // what they say fits together
int open_board(struct vdla *net);
int run_program(struct vdla *net, uint32_t step);

#endif
