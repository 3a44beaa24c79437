// Drives the accelerator's registers, as runtime/board/driver.py does: docs/timing.md has what they
// do, numbers.h where they are.

#include "inner.h"

static int silent(struct vdla *net) {
  struct words words;
  begin_error(net, &words);
  put(&words, "board: expected an answer, found none");
  return VDLA_NO_ANSWER;
}

static int other(struct vdla *net, int status, const char *what, uint32_t expected,
                 uint32_t found) {
  struct words words;
  begin_error(net, &words);
  put(&words, "board: expected ");
  put(&words, what);
  put(&words, " ");
  put_hex(&words, expected);
  put(&words, ", found ");
  put_hex(&words, found);
  return status;
}

// Bytes of the image in the board's memory.
static size_t whole_pages(const struct vdla *net) {
  return (net->dram_bytes + PAGE - 1) / PAGE * PAGE;
}

static int identify(struct vdla *net) {
  _Alignas(16) uint32_t own[4];
  if (net->board->read(net->board->context, REGISTER_ID, own, 4)) return silent(net);
  if (own[0] != CORE_IDENTITY)
    return other(net, VDLA_NO_ANSWER, "a core, ID", CORE_IDENTITY, own[0]);
  if (own[1] >> 16 != CORE_VERSION >> 16)
    return other(net, VDLA_NO_ANSWER, "register map", CORE_VERSION >> 16, own[1] >> 16);
  if (own[2] != net->isa)
    return other(net, VDLA_BAD_DEVICE, "a bitstream of instruction set", net->isa, own[2]);
  if (own[3] != net->config)
    return other(net, VDLA_BAD_DEVICE, "a bitstream for config", net->config, own[3]);
  return VDLA_OK;
}

static int flush(struct vdla *net, size_t from, size_t to, enum vdla_direction direction) {
  const struct vdla_board *board = net->board;
  if (from >= to) return VDLA_OK;
  int silence = board->flush(board->context, net->image + from, to - from, direction);
  return silence ? silent(net) : VDLA_OK;
}

// What is no constant: a program may write there, also where neither side reads what it wrote.
static int flush_for_board(struct vdla *net) {
  return flush(net, net->constant_bytes, net->dram_bytes, VDLA_FOR_BOARD);
}

// Copies the streams to where they belong in DRAM, and has the board see them.
static int place_program(struct vdla *net, uint32_t step) {
  size_t bytes;
  const uint8_t *program = section_data(net, step_x(net, step, 0), &bytes);
  size_t base = program_base(program);
  size_t size = (size_t)instruction_bytes(program) * program_length(program);
  __builtin_memcpy(net->image + base, program + PROGRAM_HEADER, size);
  return flush(net, base, base + size, VDLA_TO_BOARD);
}

int open_board(struct vdla *net) {
  const struct vdla_board *board = net->board;
  int status = identify(net);
  if (status) return status;
  size_t bytes = whole_pages(net);
  void *memory = NULL;
  if (board->map(board->context, bytes, &memory, &net->address) || memory == NULL)
    return fail_with(net, VDLA_NO_ANSWER, "board", "memory for the module's image", "less or none");
  net->image = memory;
  __builtin_memset(net->image, 0, bytes);
  __builtin_memcpy(net->image, net->sections, net->constant_bytes);
  status = flush(net, 0, net->constant_bytes, VDLA_TO_BOARD);
  if (status) return status;
  for (uint32_t step = 0; step < net->lists[STEPS].count; step++) {
    if (step_word(net, step, STEP_KIND) == STEP_IS_VDLA) status = place_program(net, step);
    if (status) return status;
  }
  return VDLA_OK;
}

// Waits until the core neither runs nor stops; *rests is 0 where that takes too long.
static int await(struct vdla *net, enum vdla_awaited awaited, int *rests) {
  const struct vdla_board *board = net->board;
  uint32_t status;
  for (uint32_t looks = 1;; looks++) {
    if (board->read(board->context, REGISTER_STATUS, &status, 1)) return silent(net);
    *rests = (status & STATUS_BUSY) == 0;
    if (*rests || board->wait(board->context, awaited, looks)) return VDLA_OK;
  }
}

static int write_register(struct vdla *net, uint32_t offset, uint32_t value) {
  return net->board->write(net->board->context, offset, value) ? silent(net) : VDLA_OK;
}

// Brings the core to rest, whatever it does.
static int stop(struct vdla *net) {
  uint32_t busy;
  if (net->board->read(net->board->context, REGISTER_STATUS, &busy, 1)) return silent(net);
  if (busy == 0) return VDLA_OK;
  int rests = 0, status = write_register(net, REGISTER_CONTROL, CONTROL_RESET);
  if (!status) status = await(net, VDLA_REST, &rests);
  if (status || rests) return status;
  struct words words;
  begin_error(net, &words);
  put(&words,
      "board: expected the core to stop, found a transfer that doesn't end; reload the "
      "bitstream");
  return VDLA_NO_ANSWER;
}

static int start(struct vdla *net, const uint8_t *program) {
  _Alignas(16) const uint32_t values[][2] = {
      {REGISTER_PROGRAM_ISA, net->isa},
      {REGISTER_PROGRAM_CONFIG, net->config},
      {REGISTER_PROGRAM_BASE, program_base(program)},
      {REGISTER_PROGRAM_LENGTH, program_length(program)},
      {REGISTER_DRAM_BASE, net->address},
      {REGISTER_DRAM_SIZE, (uint32_t)whole_pages(net)},
      {REGISTER_INTERRUPT_STATUS, EVENTS},
      {REGISTER_CONTROL, CONTROL_START},
  };
  for (size_t n = 0; n < sizeof values / sizeof *values; n++) {
    int status = write_register(net, values[n][0], values[n][1]);
    if (status) return status;
  }
  return VDLA_OK;
}

static int check_end(struct vdla *net, uint32_t step) {
  const struct vdla_board *board = net->board;
  static const char *const FAULTS[] = FAULT_NAMES;
  uint32_t status, cause = 0, at = 0;
  if (board->read(board->context, REGISTER_STATUS, &status, 1)) return silent(net);
  if (status & STATUS_FAULT) {
    if (board->read(board->context, REGISTER_FAULT_CAUSE, &cause, 1) ||
        board->read(board->context, REGISTER_FAULT_INSTRUCTION, &at, 1))
      return silent(net);
    cause = cause < sizeof FAULTS / sizeof *FAULTS ? cause : 0;
    fail_at_step(net, VDLA_FAULT, step, "a program that ends", "fault ");
    struct words words = {net->error, net->error + ERROR_BYTES - 1};
    while (*words.at) words.at++;
    put(&words, FAULTS[cause]);
    put(&words, " at the instruction at byte ");
    put_hex(&words, at);
    return VDLA_FAULT;
  }
  if (status & STATUS_DONE) return VDLA_OK;
  return fail_at_step(net, VDLA_FAULT, step, "DONE", "neither DONE nor FAULT: the core was reset");
}

// Has one side see what the other wrote: some of the module's ranges.
static int flush_ranges(struct vdla *net, uint32_t first, uint32_t count,
                        enum vdla_direction direction) {
  for (uint32_t n = first; n < first + count; n++) {
    const uint8_t *range = entry(net, RANGES, n, RANGE_WORDS);
    size_t from = size_at(range + WORD * RANGE_FROM), to = size_at(range + WORD * RANGE_TO);
    int status = flush(net, from, to, direction);
    if (status) return status;
  }
  return VDLA_OK;
}

static int add_cycles(struct vdla *net) {
  uint32_t halves[2];
  if (net->board->read(net->board->context, REGISTER_CYCLES_LOW, halves, 2)) return silent(net);
  net->cycles_low += halves[0];
  net->cycles_high += halves[1] + (net->cycles_low < halves[0]);
  return VDLA_OK;
}

int run_program(struct vdla *net, uint32_t step) {
  uint32_t first = step_x(net, step, 1), given = step_x(net, step, 2),
           wanted = step_x(net, step, 3);
  size_t bytes;
  const uint8_t *program = section_data(net, step_x(net, step, 0), &bytes);
  int rests = 0, status = flush_ranges(net, first, given, VDLA_TO_BOARD);
  if (!status) status = flush_for_board(net);
  if (!status) status = stop(net);  // whatever ran before
  if (!status) status = start(net, program);
  if (!status) status = await(net, VDLA_PROGRAM, &rests);
  if (!status && !rests) {
    status = stop(net);
    if (status) return status;
    return fail_at_step(net, VDLA_FAULT, step, "a program that ends in time",
                        "it still running; the core was reset");
  }
  if (!status) status = check_end(net, step);
  if (!status) status = add_cycles(net);
  if (!status) status = flush_ranges(net, first + given, wanted, VDLA_FROM_BOARD);
  return status;
}

int vdla_counters(struct vdla *net, uint64_t *cycles, uint32_t *counters, uint32_t count) {
  *cycles = (uint64_t)net->cycles_high << 32 | net->cycles_low;
  if (count == 0) return VDLA_OK;
  if (net->board == NULL || count > MOST_COUNTERS)
    return fail(net, VDLA_BAD_NUMBER, "counters", "those of a board's engines", count);
  int silence = net->board->read(net->board->context, REGISTER_COUNTERS, counters, count);
  return silence ? silent(net) : VDLA_OK;
}
