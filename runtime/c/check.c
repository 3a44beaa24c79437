// Checks that what a module says fits together, as runtime/checks.py does: tensors lie in the
// image, steps name what is there, functions get as many bytes as they take, jumps lead forward and loops
// end. Whatever run.c does afterwards stays within the image.

#include "inner.h"

uint32_t type_bytes(uint32_t type) {
  static const uint8_t BYTES[TYPES] = TYPE_SIZES;
  return BYTES[type];
}

static int wrong(struct vdla *net, const char *where, const char *expected, size_t found) {
  return fail(net, VDLA_BAD_MODULE, where, expected, found);
}

static int is_known(const struct vdla *net, uint32_t tensor) {
  return tensor < net->lists[TENSORS].count;
}

static int is_text(const struct vdla *net, uint32_t place) {
  return place < net->lists[TEXTS].count;
}

// Whether a tensor is one element of a type.
static int is_single(const struct vdla *net, uint32_t tensor, uint32_t type) {
  return is_known(net, tensor) && tensor_type(net, tensor) == type &&
         tensor_bytes(net, tensor) == type_bytes(type);
}

static int check_tensor(struct vdla *net, uint32_t tensor) {
  size_t offset = tensor_offset(net, tensor), bytes = tensor_bytes(net, tensor);
  if (offset > net->dram_bytes || bytes > net->dram_bytes - offset)
    return wrong(net, "a tensor", "an offset and bytes within the image", offset);
  uint32_t type = tensor_type(net, tensor), rank = tensor_rank(net, tensor);
  uint32_t first = tensor_word(net, tensor, TENSOR_FIRST), sizes = net->lists[SIZES].count;
  if (type >= TYPES) return wrong(net, "a tensor", "a known type", type);
  if (first > sizes || rank > sizes - first)
    return fail_with(net, VDLA_BAD_MODULE, "a tensor", "known sizes", "others");
  if (!is_text(net, tensor_word(net, tensor, TENSOR_NAME)))
    return wrong(net, "a tensor", "a known name", tensor);
  size_t each = type_bytes(type);
  int is_empty = 0;
  for (uint32_t axis = 0; axis < rank; axis++) is_empty |= tensor_size(net, tensor, axis) == 0;
  for (uint32_t axis = 0; axis < rank && !is_empty; axis++) {
    uint32_t size = tensor_size(net, tensor, axis);
    if (each > SIZE_MAX / size) return wrong(net, "a tensor", "a shape of this machine", size);
    each *= size;
  }
  if (bytes != (is_empty ? 0 : each)) return wrong(net, "a tensor", "bytes as by its shape", bytes);
  return VDLA_OK;
}

static int check_shown(struct vdla *net, uint32_t tensor) {
  if (!is_known(net, tensor)) return wrong(net, "an input or output", "a known tensor", tensor);
  if (tensor_rank(net, tensor) > VDLA_AXES)
    return wrong(net, "an input or output", "at most 8 axes", tensor_rank(net, tensor));
  return VDLA_OK;
}

static int check_input(struct vdla *net, uint32_t number) {
  uint32_t tensor = word(net, INPUTS, INPUT_WORDS * number + INPUT_TENSOR);
  int status = check_shown(net, tensor);
  if (status || word(net, INPUTS, INPUT_WORDS * number + INPUT_INDICES) == 0) return status;
  uint32_t type = tensor_type(net, tensor);
  int is_integer = type >= VDLA_INT8 && type <= VDLA_UINT64;
  return is_integer ? VDLA_OK
                    : fail_with(net, VDLA_BAD_MODULE, "an input", "integers as indices", "others");
}

static int check_output(struct vdla *net, uint32_t number) {
  const uint8_t *output = entry(net, OUTPUTS, number, OUTPUT_WORDS);
  uint32_t kind = word_at(output + WORD * OUTPUT_KIND);
  uint32_t tensor = word_at(output + WORD * OUTPUT_TENSOR);
  uint32_t count = word_at(output + WORD * OUTPUT_COUNT);
  uint32_t sizes = word_at(output + WORD * OUTPUT_SIZES);
  uint32_t condition = word_at(output + WORD * OUTPUT_CONDITION);
  if (kind > OUTPUT_IS_LIST) return wrong(net, "an output", "a known kind", kind);
  if (!is_text(net, word_at(output + WORD * OUTPUT_NAME)))
    return wrong(net, "an output", "a known name", number);
  if (condition != NONE && !is_single(net, condition, VDLA_BOOL))
    return wrong(net, "an output", "a condition of one bool", condition);
  if (kind >= OUTPUT_IS_ABSENT) return VDLA_OK;
  int status = check_shown(net, tensor);
  if (status || kind == OUTPUT_IS_TENSOR) return status;
  if (tensor_rank(net, tensor) == 0) return wrong(net, "an output", "rows", 0);
  if (!is_single(net, count, VDLA_INT64))
    return wrong(net, "an output", "a number of rows of one int64", count);
  if (kind == OUTPUT_IS_ROWS || sizes == NONE) return VDLA_OK;
  size_t rows = tensor_size(net, tensor, 0), axes = tensor_rank(net, tensor) - 1;
  int fits = is_known(net, sizes) && tensor_type(net, sizes) == VDLA_INT64 &&
             tensor_bytes(net, sizes) / sizeof(int64_t) == rows * axes;
  return fits ? VDLA_OK : wrong(net, "an output", "sizes of all its rows", sizes);
}

static int check_host(struct vdla *net, uint32_t step) {
  uint32_t function = step_x(net, step, 0), args = step_word(net, step, STEP_ARGS);
  if (function >= net->lists[FUNCTIONS].count)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "a function of the module", "another");
  const struct vdla_function *code = &net->code->functions[function];
  int fits = code->buffers == args;
  for (uint32_t arg = 0; fits && arg < args; arg++)
    fits = code->bytes[arg] == tensor_bytes(net, step_arg(net, step, arg));
  if (!fits)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "tensors of its function's bytes", "others");
  if (args > net->most_args) net->most_args = args;
  return VDLA_OK;
}

// Where the stream of a program's container is: isa/program.py.
static int check_program(struct vdla *net, uint32_t step) {
  uint32_t section = step_x(net, step, 0), sections = net->lists[SECTIONS].count;
  const char *expected = "a program of the module";
  if (section >= sections || word(net, SECTIONS, SECTION_WORDS * section) != SECTION_IS_PROGRAM)
    return fail_at_step(net, VDLA_BAD_MODULE, step, expected, "none");
  static const uint8_t MAGIC[8] = PROGRAM_MAGIC;
  size_t bytes;
  const uint8_t *data = section_data(net, section, &bytes);
  for (size_t n = 0; n < sizeof MAGIC; n++)
    if (bytes < PROGRAM_HEADER || data[n] != MAGIC[n])
      return fail_at_step(net, VDLA_BAD_MODULE, step, expected, "other bytes");
  uint32_t each = instruction_bytes(data);
  size_t base = program_base(data), count = program_length(data);
  if ((data[8] | data[9] << 8) != PROGRAM_VERSION || each == 0 ||
      count > (bytes - PROGRAM_HEADER) / each)
    return fail_at_step(net, VDLA_BAD_MODULE, step, expected, "one that is cut or another version");
  if (base > net->dram_bytes || count * each > net->dram_bytes - base)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "a program within the image", "one beyond it");
  uint32_t isa = (uint32_t)data[12] << 24 | data[13] << 16 | data[14] << 8 | data[15];
  uint32_t config = (uint32_t)data[16] << 24 | data[17] << 16 | data[18] << 8 | data[19];
  if (isa != net->isa || config != net->config)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "a program for the module's config", "another");
  uint32_t first = step_x(net, step, 1), ranges = net->lists[RANGES].count;
  uint32_t given = step_x(net, step, 2), wanted = step_x(net, step, 3);
  if (first > ranges || given > ranges - first || wanted > ranges - first - given)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "known ranges", "others");
  net->programs += 1;
  return VDLA_OK;
}

static int check_copy(struct vdla *net, uint32_t step) {
  uint32_t way = step_x(net, step, 0), turn = step_x(net, step, 1);
  if (step_word(net, step, STEP_ARGS) != 2 || way > PUT ||
      (way != WHOLE && !is_single(net, turn, VDLA_INT64)))
    return fail_at_step(net, VDLA_BAD_MODULE, step, "two tensors, and a way to copy", "others");
  uint32_t source = step_arg(net, step, 0), target = step_arg(net, step, 1);
  size_t from = way == TAKE ? element_bytes(net, source) : tensor_bytes(net, source);
  size_t to = way == PUT ? element_bytes(net, target) : tensor_bytes(net, target);
  if (from != to)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "tensors of as many bytes to copy", "others");
  return VDLA_OK;
}

static int check_call(struct vdla *net, uint32_t step) {
  size_t saved = WORD;
  for (uint32_t arg = 0; arg < step_word(net, step, STEP_ARGS); arg++) {
    size_t bytes = tensor_bytes(net, step_arg(net, step, arg));
    if (bytes > SIZE_MAX / MOST_CALLS - saved)
      return fail_at_step(net, VDLA_BAD_MODULE, step, "a frame of this machine", "a larger one");
    saved += bytes;
  }
  if (saved > net->most_saved) net->most_saved = saved;
  return VDLA_OK;
}

static int check_jump(struct vdla *net, uint32_t step, uint32_t kind) {
  uint32_t to = step_x(net, step, 0), steps = net->lists[STEPS].count;
  uint32_t named = step_x(net, step, 1);
  if (to > steps) return fail_at_step(net, VDLA_BAD_MODULE, step, "a step to go on with", "none");
  if (kind == STEP_IS_CALL) return check_call(net, step);
  if (kind == STEP_IS_JUMP && to <= step)
    return fail_at_step(net, VDLA_BAD_MODULE, step, "a jump to a step behind it", "one before it");
  if (kind == STEP_IS_JUMP && named != NONE && !is_single(net, named, VDLA_BOOL))
    return fail_at_step(net, VDLA_BAD_MODULE, step, "a condition of one bool", "another");
  if (kind == STEP_IS_NEXT &&
      (!is_single(net, named, VDLA_INT64) || to > step || step_x(net, step, 2) == 0))
    return fail_at_step(net, VDLA_BAD_MODULE, step, "turns from a step before", "others");
  return VDLA_OK;
}

static int check_step(struct vdla *net, uint32_t step) {
  uint32_t kind = step_word(net, step, STEP_KIND), all = net->lists[ARGS].count;
  uint32_t first = step_word(net, step, STEP_FIRST), args = step_word(net, step, STEP_ARGS);
  if (!is_text(net, step_word(net, step, STEP_NAME)))
    return wrong(net, "a step", "a known name", step);
  if (first > all || args > all - first) return wrong(net, "a step", "known tensors", args);
  for (uint32_t arg = 0; arg < args; arg++)
    if (!is_known(net, step_arg(net, step, arg)))
      return fail_at_step(net, VDLA_BAD_MODULE, step, "known tensors", "another");
  switch (kind) {
    case STEP_IS_HOST: return check_host(net, step);
    case STEP_IS_VDLA: return check_program(net, step);
    case STEP_IS_COPY: return check_copy(net, step);
    case STEP_IS_CLEAR:
      return args == 1 ? VDLA_OK : fail_at_step(net, VDLA_BAD_MODULE, step, "one tensor", "others");
    case STEP_IS_JUMP:
    case STEP_IS_NEXT:
    case STEP_IS_CALL: return check_jump(net, step, kind);
    case STEP_IS_RETURN: return VDLA_OK;
    case STEP_IS_GPU:
      return fail_at_step(net, VDLA_BAD_DEVICE, step, "steps of a processor or the accelerator",
                          "one for a GPU; compile without it");
    case STEP_IS_ONNXRUNTIME:
    case STEP_IS_OUTPUTS:
      return fail_at_step(net, VDLA_BAD_DEVICE, step, "steps of a processor or the accelerator",
                          "one for onnxruntime");
    default:
      return fail_at_step(net, VDLA_BAD_DEVICE, step, "steps of a processor or the accelerator",
                          "one of another package's target");
  }
}

// Checks that the functions that are linked are those that the module names.
static int check_functions(struct vdla *net) {
  uint32_t count = net->lists[FUNCTIONS].count;
  if (net->code == NULL && count == 0) return VDLA_OK;
  if (net->code == NULL || net->code->count != count)
    return fail(net, VDLA_BAD_CODE, "code", "as many functions as the module names",
                net->code ? net->code->count : 0);
  if (net->code->is_for_this_processor && !net->code->is_for_this_processor()) {
    struct words words;
    begin_error(net, &words);
    put(&words,
        "code: expected code for this processor, found code that needs instructions that "
        "it lacks; package for an older one (--target)");
    return VDLA_BAD_CODE;
  }
  for (uint32_t n = 0; n < count; n++) {
    uint32_t place = word(net, FUNCTIONS, n);
    if (!is_text(net, place)) return wrong(net, "a function", "a known name", n);
    const char *name = text(net, place), *own = net->code->functions[n].name;
    while (*name && *name == *own) name++, own++;
    if (*name != *own)
      return fail_with(net, VDLA_BAD_CODE, "code", "the module's functions", "others");
  }
  return VDLA_OK;
}

static int check_ranges(struct vdla *net) {
  for (uint32_t n = 0; n < net->lists[RANGES].count; n++) {
    const uint8_t *range = entry(net, RANGES, n, RANGE_WORDS);
    size_t from = size_at(range + WORD * RANGE_FROM), to = size_at(range + WORD * RANGE_TO);
    if (from > to || to > net->dram_bytes) return wrong(net, "a range", "bytes of the image", to);
  }
  return VDLA_OK;
}

typedef int check_function(struct vdla *net, uint32_t number);

static int check_each(struct vdla *net, int list, check_function *check) {
  for (uint32_t n = 0; n < net->lists[list].count; n++) {
    int status = check(net, n);
    if (status) return status;
  }
  return VDLA_OK;
}

int check_module(struct vdla *net) {
  if (net->dram_bytes > SIZE_MAX / 2 || net->constant_bytes > net->dram_bytes)
    return wrong(net, "module", "an image of this machine that holds the constants",
                 net->dram_bytes);
  int status = check_functions(net);
  if (!status) status = check_each(net, TENSORS, check_tensor);
  if (!status) status = check_each(net, INPUTS, check_input);
  if (!status) status = check_each(net, OUTPUTS, check_output);
  if (!status) status = check_ranges(net);
  if (!status) status = check_each(net, STEPS, check_step);
  return status;
}
