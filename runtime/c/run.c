// Walks a module's steps, as runtime/executor.py does: functions, programs, copies and jumps.

#include "inner.h"

// The lower half of an int64 that counts turns.
static uint32_t turn_of(const struct vdla *net, uint32_t tensor) {
  return word_at(tensor_data(net, tensor));
}

static void set_turn(struct vdla *net, uint32_t tensor, uint32_t turn) {
  uint8_t *at = tensor_data(net, tensor);
  for (int n = 0; n < WORD; n++) at[n] = (uint8_t)(turn >> 8 * n);
}

static void call_function(struct vdla *net, uint32_t step) {
  uint32_t args = step_word(net, step, STEP_ARGS);
  for (uint32_t arg = 0; arg < args; arg++)
    net->buffers[arg] = tensor_data(net, step_arg(net, step, arg));
  net->buffers[args] = net->pool;
  net->code->functions[step_x(net, step, 0)].call(net->buffers);
}

static int copy(struct vdla *net, uint32_t step) {
  uint32_t way = step_x(net, step, 0);
  uint32_t source = step_arg(net, step, 0), target = step_arg(net, step, 1);
  const uint8_t *from = tensor_data(net, source);
  uint8_t *to = tensor_data(net, target);
  size_t bytes = way == TAKE ? tensor_bytes(net, target) : tensor_bytes(net, source);
  if (way != WHOLE) {
    uint32_t turn = turn_of(net, step_x(net, step, 1)), whole = way == TAKE ? source : target;
    uint32_t count = tensor_rank(net, whole) ? tensor_size(net, whole, 0) : 1;
    if (turn >= count)
      return fail_at_step(net, VDLA_NO_END, step, "turns as many as there are rows", "more");
    if (way == TAKE) from += bytes * turn;
    if (way == PUT) to += bytes * turn;
  }
  __builtin_memmove(to, from, bytes);
  return VDLA_OK;
}

static uint32_t jump(const struct vdla *net, uint32_t step) {
  uint32_t condition = step_x(net, step, 1);
  int holds =
      condition == NONE || (*tensor_data(net, condition) != 0) == (step_x(net, step, 2) != 0);
  return holds ? step_x(net, step, 0) : step + 1;
}

// Counts a turn; the number of the step that comes next.
static int next(struct vdla *net, uint32_t *step) {
  uint32_t tensor = step_x(net, *step, 1), turn = turn_of(net, tensor) + 1;
  set_turn(net, tensor, turn);
  if (turn < step_x(net, *step, 2)) {
    *step = step_x(net, *step, 0);
    return VDLA_OK;
  }
  if (step_x(net, *step, 3))
    return fail_at_step(net, VDLA_NO_END, *step, "an end after at most its turns",
                        "none; compile with more, --turns, if it is to go on");
  *step += 1;
  return VDLA_OK;
}

// A frame is what a call saves, and its step's number behind it.
static int call(struct vdla *net, uint32_t *step) {
  uint8_t *at = net->frames + net->frames_used;
  if (net->calls == MOST_CALLS)
    return fail_at_step(net, VDLA_NO_END, *step, "at most 1000 calls inside one another", "more");
  for (uint32_t arg = 0; arg < step_word(net, *step, STEP_ARGS); arg++) {
    uint32_t tensor = step_arg(net, *step, arg);
    __builtin_memcpy(at, tensor_data(net, tensor), tensor_bytes(net, tensor));
    at += tensor_bytes(net, tensor);
  }
  for (int n = 0; n < WORD; n++) *at++ = (uint8_t)(*step >> 8 * n);
  net->frames_used = (size_t)(at - net->frames);
  net->calls += 1;
  *step = step_x(net, *step, 0);
  return VDLA_OK;
}

// Restores what the last call saved; the step behind it, or the plan's end where there is none.
static uint32_t come_back(struct vdla *net) {
  if (net->calls == 0) return net->lists[STEPS].count;
  uint8_t *at = net->frames + net->frames_used - WORD;
  uint32_t step = word_at(at);
  for (uint32_t arg = step_word(net, step, STEP_ARGS); arg-- > 0;) {
    uint32_t tensor = step_arg(net, step, arg);
    at -= tensor_bytes(net, tensor);
    __builtin_memcpy(tensor_data(net, tensor), at, tensor_bytes(net, tensor));
  }
  net->frames_used = (size_t)(at - net->frames);
  net->calls -= 1;
  return step + 1;
}

// Does a step; its number becomes that of the next one.
static int do_step(struct vdla *net, uint32_t *step) {
  int status = VDLA_OK;
  uint32_t kind = step_word(net, *step, STEP_KIND), target;
  switch (kind) {
    case STEP_IS_JUMP: *step = jump(net, *step); return VDLA_OK;
    case STEP_IS_NEXT: return next(net, step);
    case STEP_IS_CALL: return call(net, step);
    case STEP_IS_RETURN: *step = come_back(net); return VDLA_OK;
    case STEP_IS_HOST: call_function(net, *step); break;
    case STEP_IS_VDLA: status = run_program(net, *step); break;
    case STEP_IS_COPY: status = copy(net, *step); break;
    default:
      target = step_arg(net, *step, 0);
      __builtin_memset(tensor_data(net, target), 0, tensor_bytes(net, target));
  }
  *step += 1;
  return status;
}

// Whether an integer at a place, little-endian, lies in -size to size - 1.
static int is_index(const uint8_t *at, uint32_t bytes, int is_signed, uint32_t size) {
  int negative = is_signed && at[bytes - 1] & 0x80;
  uint64_t value = negative ? ~(uint64_t)0 : 0;
  for (uint32_t n = bytes; n-- > 0;) value = value << 8 | at[n];
  return negative ? ~value < size : value < size;
}

static int check_indices(struct vdla *net, uint32_t number) {
  uint32_t tensor = word(net, INPUTS, INPUT_WORDS * number + INPUT_TENSOR);
  uint32_t size = word(net, INPUTS, INPUT_WORDS * number + INPUT_INDICES);
  uint32_t type = tensor_type(net, tensor), bytes = type_bytes(type);
  int is_signed = (type - VDLA_INT8) % 2 == 0;
  const uint8_t *at = tensor_data(net, tensor), *end = at + tensor_bytes(net, tensor);
  for (; size && at < end; at += bytes) {
    if (is_index(at, bytes, is_signed, size)) continue;
    struct words words;
    begin_error(net, &words);
    put(&words, "input ");
    put(&words, text(net, tensor_word(net, tensor, TENSOR_NAME)));
    put(&words, ": expected indices from -");
    put_number(&words, size);
    put(&words, " to ");
    put_number(&words, size - 1);
    put(&words, ", found another");
    return VDLA_BAD_INPUT;
  }
  return VDLA_OK;
}

static int run_steps(struct vdla *net) {
  uint32_t step = 0;
  while (step < net->lists[STEPS].count) {
    int status = do_step(net, &step);
    if (status) return status;
  }
  return VDLA_OK;
}

int vdla_run(struct vdla *net) {
  for (uint32_t n = 0; n < net->lists[INPUTS].count; n++) {
    int status = check_indices(net, n);
    if (status) return status;
  }
  net->calls = 0;
  net->frames_used = 0;
  net->cycles_low = net->cycles_high = 0;
  net->error[0] = 0;
  if (net->pool) net->code->set(net->pool, POOL_OPEN);
  int status = run_steps(net);
  if (net->pool) net->code->set(net->pool, POOL_CLOSED);
  return status;
}
