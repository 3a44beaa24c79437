// A compiled network without Python: C's interface, and that of whoever binds to it.
//
//     vdla_open      reads a module, checks it, and gives it a place in memory
//     vdla_memory    the bytes of memory that it takes
//     vdla_describe  how many inputs and outputs there are, and what it runs on
//     vdla_input     an input: its name, type and shape, and where to write it
//     vdla_output    an output, and where to read it
//     vdla_state     the memory that runs write, to be kept or copied
//     vdla_run       one inference
//     vdla_counters  what the accelerator counted
//     vdla_error     what went wrong, in words
//     vdla_start     starts threads that share the work, where the system has any
//     vdla_close     ends them
//
// vdla package writes a header NAME.h beside this one, with NAME_open and the bytes of memory:
//
//     static _Alignas(64) unsigned char memory[DIGITS_MEMORY];
//     struct vdla *net;
//     struct vdla_tensor image, logits;
//     if (digits_open(memory, sizeof memory, NULL, &net)) puts(vdla_error(net));
//     vdla_input(net, 0, &image);    // and image.bytes bytes to image.data
//     if (vdla_run(net)) puts(vdla_error(net));
//     vdla_output(net, 0, &logits);  // logits.bytes bytes at logits.data
//
// Rules.
//
//  1. Nothing is allocated: a network lives in the memory that vdla_open is given, whose first byte
//     is aligned to 64, until the caller uses that memory for something else.
//  2. Inputs and outputs may share bytes: write every input before each run, and read the outputs
//     before the next input is written.
//  3. A function that fails returns why, as one of enum vdla_status, and vdla_error has the words.
//     No bytes that are given for a module lead beyond them or beyond the memory.
//  4. Threads may use several networks at once, and one network in turns.
//  5. Processor and bytes are little-endian.

#ifndef VDLA_H
#define VDLA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vdla;  // a network that was opened

enum vdla_status {
  VDLA_OK,
  VDLA_BAD_MODULE,  // the bytes are none, are damaged, or of another version
  VDLA_BAD_CODE,    // the functions aren't those of the module, or not for this processor
  VDLA_BAD_DEVICE,  // steps need what isn't here: a board, a GPU, onnxruntime
  VDLA_BAD_MEMORY,  // too little, or not aligned
  VDLA_BAD_INPUT,   // an index leads beyond what it is of
  VDLA_BAD_NUMBER,  // there is no such input, output or counter
  VDLA_NO_END,      // a loop that was to end goes on, or functions call each other without end
  VDLA_NO_ANSWER,   // the board is silent, or is none
  VDLA_FAULT        // the accelerator stopped at a fault
};

enum vdla_type {  // of elements; those of fewer than 8 bits take a byte each
  VDLA_BOOL, VDLA_INT8, VDLA_UINT8, VDLA_INT16, VDLA_UINT16, VDLA_INT32, VDLA_UINT32, VDLA_INT64,
  VDLA_UINT64, VDLA_FLOAT16, VDLA_FLOAT32, VDLA_FLOAT64, VDLA_BFLOAT16, VDLA_FLOAT8_E4M3FN,
  VDLA_FLOAT8_E4M3FNUZ, VDLA_FLOAT8_E5M2, VDLA_FLOAT8_E5M2FNUZ, VDLA_FLOAT8_E8M0FNU,
  VDLA_FLOAT4_E2M1FN, VDLA_INT4, VDLA_UINT4, VDLA_INT2, VDLA_UINT2
};

enum { VDLA_AXES = 8 };  // of an input or output, at most

// Bytes of memory that a network takes: its own, those of its image, as many as its functions have
// buffers, and what its deepest calls save.
#define VDLA_OWN_BYTES (sizeof(void *) == 8 ? 1472 : 1088)
#define VDLA_ALIGNED(bytes) (((size_t)(bytes) + 63) / 64 * 64)
#define VDLA_MEMORY(image, buffers, saved)            \
  (VDLA_OWN_BYTES + VDLA_ALIGNED(image) +             \
   VDLA_ALIGNED(((buffers) + 1) * sizeof(void *)) + (size_t)(saved) * 1000)

struct vdla_tensor {
  const char *name;
  void *data;     // row-major; null where an optional output isn't there, or stands for a list
                  // as a whole, whose elements follow under its name: y[0], y[1] …
  size_t bytes;   // of data
  uint32_t type;  // enum vdla_type
  uint32_t rank;
  size_t shape[VDLA_AXES];
  // Where an output is a list, shape[0] is its length, and of element n the first sizes[n * m] …
  // of its m axes count; null where all do.
  const int64_t *sizes;
  uint32_t is_list;
};

struct vdla_description {
  uint32_t inputs, outputs;
  uint32_t functions;  // of the processor
  uint32_t programs;   // runs of the accelerator, which take a board
  uint32_t isa, config;  // hashes of the instruction set and the config that programs are for
};

// What is linked beside a module -----------------------------------------------------------------

struct vdla_function {
  const char *name;
  void (*call)(void **buffers);
  const size_t *bytes;  // of each of its buffers
  size_t buffers;
};

struct vdla_code {
  const struct vdla_function *functions;  // sorted by name
  size_t count;
  int (*is_for_this_processor)(void);  // or null
  void (*begin)(void *pool);           // threads' part, vdla_begin, vdla_work and vdla_set of
  void (*work)(void *pool);            // runtime/pool; null where the system has no threads
  void (*set)(void *pool, int64_t state);
};

// How a board is reached: five functions, which return 0 where all is well ------------------------

enum vdla_awaited { VDLA_PROGRAM, VDLA_REST };  // a program's end; a core that was told to stop
enum vdla_direction {
  VDLA_TO_BOARD,    // the board sees what the host wrote
  VDLA_FROM_BOARD,  // the host sees what the board wrote
  VDLA_FOR_BOARD    // the board may write here: no cache of the host writes back to it later
};

struct vdla_board {
  void *context;  // the first argument of each

  // Reads or writes registers of 32 bits, by the first one's offset.
  int (*read)(void *context, uint32_t offset, uint32_t *values, uint32_t count);
  int (*write)(void *context, uint32_t offset, uint32_t value);

  // Memory of so many bytes, whole pages, that the host works in, and the address that it has for
  // the core. Each network that is opened asks once, and keeps it.
  int (*map)(void *context, size_t bytes, void **memory, uint32_t *address);

  // Keeps both sides in step about some bytes, from one on that lies in memory of map.
  int (*flush)(void *context, const void *first, size_t bytes, enum vdla_direction direction);

  // Called after each look at a core that is at work, with the number of looks so far; it may
  // sleep. Where it returns something else than 0, that took too long.
  int (*wait)(void *context, enum vdla_awaited awaited, uint32_t looks);
};

// Functions --------------------------------------------------------------------------------------

// Opens a module in memory. The bytes of the module have to stay where they are. Also where this
// fails, *opened is for vdla_error and vdla_memory; null if there is no memory for that.
int vdla_open(void *memory, size_t memory_bytes, const void *module, size_t module_bytes,
              const struct vdla_code *code, const struct vdla_board *board, struct vdla **opened);

// Bytes of memory that the module takes; known, too, if vdla_open found too little.
size_t vdla_memory(const struct vdla *net);

int vdla_describe(const struct vdla *net, struct vdla_description *description);
int vdla_input(struct vdla *net, uint32_t number, struct vdla_tensor *tensor);
int vdla_output(struct vdla *net, uint32_t number, struct vdla_tensor *tensor);
int vdla_state(struct vdla *net, void **data, size_t *bytes);
int vdla_run(struct vdla *net);

// Cycles of the last run's programs, and count of the last program's counters, as docs/timing.md
// has them: six for each engine.
int vdla_counters(struct vdla *net, uint64_t *cycles, uint32_t *counters, uint32_t count);

const char *vdla_error(const struct vdla *net);

// Starts threads, the caller's among them; without a call there is one. Only where the system has
// threads: elsewhere these two are not there.
int vdla_start(struct vdla *net, uint32_t threads);
void vdla_close(struct vdla *net);

#ifdef __cplusplus
}
#endif

#endif
