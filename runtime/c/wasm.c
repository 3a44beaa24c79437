// Memory for whoever calls a module of WebAssembly, and for its functions: behind all that is
// linked, a stack of blocks, which grows. A block that is given back is free again when all that
// came after it is.

#include <stddef.h>
#include <stdint.h>

enum { ALIGN = 64, PAGE = 65536 };

extern unsigned char __heap_base;  // the linker's

struct block {  // before each block's bytes
  struct block *before;
  uint32_t is_free;
};

static struct block *last;
static uintptr_t end;  // of the last block

void *malloc(size_t bytes) {
  uintptr_t begin = end ? end : (uintptr_t)&__heap_base;
  begin = (begin + sizeof(struct block) + ALIGN - 1) / ALIGN * ALIGN;
  if (bytes > UINT32_MAX - begin) return NULL;
  uintptr_t has = __builtin_wasm_memory_size(0) * (uintptr_t)PAGE;
  uintptr_t needs = begin + bytes;
  if (needs > has && __builtin_wasm_memory_grow(0, (needs - has + PAGE - 1) / PAGE) == SIZE_MAX)
    return NULL;
  struct block *block = (struct block *)(void *)begin - 1;
  block->before = last;
  block->is_free = 0;
  last = block;
  end = needs;
  return (void *)begin;
}

void free(void *memory) {
  if (memory == NULL) return;
  ((struct block *)memory - 1)->is_free = 1;
  while (last && last->is_free) {
    end = (uintptr_t)last;
    last = last->before;
  }
}
