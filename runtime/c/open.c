// Opens a module: reads and checks it, and lays out the memory that it is given.
//
//     memory   struct vdla | image | buffers of a function and its pool | frames of calls
//
// The image is DRAM's, from byte ``first`` on. Constants stay in the module, and DRAM begins behind
// them, where nothing writes to them and they are aligned. Where there is a board, the whole image
// lies in memory that it shares.

#include "inner.h"

_Static_assert(VDLA_OWN_BYTES == VDLA_ALIGNED(sizeof(struct vdla)), "vdla.h has its bytes");

// Whether a tensor that is written, or begins within the constants and ends beyond, is among them.
static int is_in_constants(const struct vdla *net, uint32_t tensor, int is_written) {
  size_t offset = tensor_offset(net, tensor);
  int ends_beyond = offset + tensor_bytes(net, tensor) > net->constant_bytes;
  return offset < net->constant_bytes && (is_written || ends_beyond);
}

// Whether a step writes one of the constants. Of a call all that it saves is written.
static int writes_constants(const struct vdla *net, uint32_t step) {
  uint32_t kind = step_word(net, step, STEP_KIND), args = step_word(net, step, STEP_ARGS);
  if (kind == STEP_IS_NEXT) return is_in_constants(net, step_x(net, step, 1), 1);
  for (uint32_t arg = kind == STEP_IS_CALL || args == 0 ? 0 : args - 1; arg < args; arg++)
    if (is_in_constants(net, step_arg(net, step, arg), 1)) return 1;
  return 0;
}

static int constants_can_stay(const struct vdla *net) {
  if (net->board || (uintptr_t)net->sections % ALIGN) return 0;
  for (uint32_t n = 0; n < net->lists[TENSORS].count; n++)
    if (is_in_constants(net, n, 0)) return 0;
  for (uint32_t n = 0; n < net->lists[INPUTS].count; n++)
    if (is_in_constants(net, word(net, INPUTS, INPUT_WORDS * n + INPUT_TENSOR), 1)) return 0;
  for (uint32_t n = 0; n < net->lists[STEPS].count; n++)
    if (writes_constants(net, n)) return 0;
  return 1;
}

// Gives each part its place, and the image its constants.
static int lay_out(struct vdla *net, size_t memory_bytes) {
  int stay = constants_can_stay(net);
  net->constants = stay ? net->sections : NULL;
  net->first = stay ? net->constant_bytes / ALIGN * ALIGN : 0;
  size_t image = net->board ? 0 : net->dram_bytes - net->first;
  size_t most = SIZE_MAX / 2 - VDLA_MEMORY(0, net->most_args, net->most_saved);
  if (image > most) return fail(net, VDLA_BAD_MEMORY, "module", "an image of this machine", image);
  net->memory_bytes = VDLA_MEMORY(image, net->most_args, net->most_saved);
  if (memory_bytes < net->memory_bytes) {
    struct words words;
    begin_error(net, &words);
    put(&words, "memory: expected ");
    put_number(&words, net->memory_bytes);
    put(&words, " bytes, found ");
    put_number(&words, memory_bytes);
    return VDLA_BAD_MEMORY;
  }
  uint8_t *memory = (uint8_t *)net + VDLA_OWN_BYTES;
  net->buffers = (void **)(void *)(memory + VDLA_ALIGNED(image));
  net->frames = (uint8_t *)net->buffers + VDLA_ALIGNED((net->most_args + 1) * sizeof(void *));
  if (net->board) return open_board(net);
  net->image = memory;
  __builtin_memset(memory, 0, image);
  if (!stay) __builtin_memcpy(memory, net->sections, net->constant_bytes);
  return VDLA_OK;
}

int vdla_open(void *memory, size_t memory_bytes, const void *module, size_t module_bytes,
              const struct vdla_code *code, const struct vdla_board *board, struct vdla **opened) {
  *opened = NULL;
  if (memory == NULL || (uintptr_t)memory % ALIGN || memory_bytes < VDLA_OWN_BYTES)
    return VDLA_BAD_MEMORY;
  struct vdla *net = *opened = memory;
  __builtin_memset(net, 0, sizeof *net);
  net->bytes = module;
  net->code = code;
  int status = read_module(net, module_bytes);
  if (!status) status = check_module(net);
  if (status) return status;
  if (net->programs && board == NULL)
    return fail_with(net, VDLA_BAD_DEVICE, "device", "a board for the accelerator's programs",
                     "none");
  net->board = net->programs ? board : NULL;
  return lay_out(net, memory_bytes);
}

size_t vdla_memory(const struct vdla *net) { return net ? net->memory_bytes : VDLA_OWN_BYTES; }

const char *vdla_error(const struct vdla *net) {
  return net ? net->error : "memory: expected some, aligned to 64 bytes, found less or none";
}

int vdla_describe(const struct vdla *net, struct vdla_description *description) {
  description->inputs = net->lists[INPUTS].count;
  description->outputs = net->lists[OUTPUTS].count;
  description->functions = net->lists[FUNCTIONS].count;
  description->programs = net->programs;
  description->isa = net->isa;
  description->config = net->config;
  return VDLA_OK;
}

// A tensor of the module as callers see it.
static void show(const struct vdla *net, uint32_t tensor, struct vdla_tensor *shown) {
  shown->data = tensor_data(net, tensor);
  shown->bytes = tensor_bytes(net, tensor);
  shown->type = tensor_type(net, tensor);
  shown->rank = tensor_rank(net, tensor);
  for (uint32_t axis = 0; axis < shown->rank; axis++)
    shown->shape[axis] = tensor_size(net, tensor, axis);
}

int vdla_input(struct vdla *net, uint32_t number, struct vdla_tensor *tensor) {
  if (number >= net->lists[INPUTS].count)
    return fail(net, VDLA_BAD_NUMBER, "input", "a number below that of inputs", number);
  __builtin_memset(tensor, 0, sizeof *tensor);
  uint32_t own = word(net, INPUTS, INPUT_WORDS * number + INPUT_TENSOR);
  show(net, own, tensor);
  tensor->name = text(net, tensor_word(net, own, TENSOR_NAME));
  return VDLA_OK;
}

// The value of a tensor that is one int64, between 0 and ``most``.
static size_t count_of(const struct vdla *net, uint32_t tensor, size_t most) {
  const uint8_t *at = tensor_data(net, tensor);
  size_t count = size_at(at);
  if (at[7] & 0x80) return 0;  // less than 0
  return count < most ? count : most;
}

int vdla_output(struct vdla *net, uint32_t number, struct vdla_tensor *tensor) {
  if (number >= net->lists[OUTPUTS].count)
    return fail(net, VDLA_BAD_NUMBER, "output", "a number below that of outputs", number);
  const uint8_t *output = entry(net, OUTPUTS, number, OUTPUT_WORDS);
  uint32_t kind = word_at(output + WORD * OUTPUT_KIND);
  uint32_t condition = word_at(output + WORD * OUTPUT_CONDITION);
  uint32_t sizes = word_at(output + WORD * OUTPUT_SIZES);
  __builtin_memset(tensor, 0, sizeof *tensor);
  tensor->name = text(net, word_at(output + WORD * OUTPUT_NAME));
  if (condition != NONE && *tensor_data(net, condition) == 0) return VDLA_OK;
  tensor->is_list = kind == OUTPUT_IS_LIST;
  if (kind >= OUTPUT_IS_ABSENT) return VDLA_OK;
  show(net, word_at(output + WORD * OUTPUT_TENSOR), tensor);
  if (kind == OUTPUT_IS_TENSOR) return VDLA_OK;
  size_t most = tensor->shape[0], each = tensor->bytes / (most ? most : 1);
  tensor->shape[0] = count_of(net, word_at(output + WORD * OUTPUT_COUNT), most);
  tensor->bytes = each * tensor->shape[0];
  tensor->is_list = kind == OUTPUT_IS_EACH;
  if (tensor->is_list && sizes != NONE)
    tensor->sizes = (const int64_t *)(const void *)tensor_data(net, sizes);
  return VDLA_OK;
}

int vdla_state(struct vdla *net, void **data, size_t *bytes) {
  *data = net->image;
  *bytes = net->dram_bytes - net->first;
  return VDLA_OK;
}
