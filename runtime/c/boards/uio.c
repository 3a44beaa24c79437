// A Zynq whose processor runs this program: registers by UIO, memory by u-dma-buf, as open_uio of
// runtime/board/mapped.py has them.
//
// A build with -DVDLA_UIO_ACCESS='"FILE"' takes from that file how words of registers are read and
// written, and what follows a change of the cache: so tests put a model of the core behind it.

#define _POSIX_C_SOURCE 200809L

#include "boards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef VDLA_UIO_ACCESS
#include VDLA_UIO_ACCESS
#else
static uint32_t read_word(struct vdla_uio *board, uint32_t offset) {
  return board->registers[offset / 4];
}

static void write_word(struct vdla_uio *board, uint32_t offset, uint32_t value) {
  board->registers[offset / 4] = value;
}

static void synced(struct vdla_uio *board) { (void)board; }
#endif

enum { PATH_BYTES = 320, NAME_BYTES = 64 };

static int no_file(struct vdla_uio *board, const char *path) {
  return vdla_way_fail(&board->way, "%s: expected to open it, found %s", path, strerror(errno));
}

// The first word of a file.
static int read_text(const char *path, char *text, size_t bytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t count = read(file, text, bytes - 1);
  close(file);
  text[count > 0 ? count : 0] = 0;
  text[strcspn(text, " \r\n")] = 0;
  return count < 0 ? -1 : 0;
}

static int read_setting(struct vdla_uio *board, const char *name, unsigned long long *value) {
  char path[PATH_BYTES], text[NAME_BYTES], *end;
  snprintf(path, sizeof path, "%s/%s", board->settings, name);
  if (read_text(path, text, sizeof text)) return no_file(board, path);
  *value = strtoull(text, &end, 0);
  if (*text && *end == 0) return 0;
  return vdla_way_fail(&board->way, "%s: expected a number, found %s", path, text);
}

static int write_setting(struct vdla_uio *board, const char *name, size_t value) {
  char path[PATH_BYTES], text[NAME_BYTES];
  snprintf(path, sizeof path, "%s/%s", board->settings, name);
  int length = snprintf(text, sizeof text, "%zu", value);
  int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0) return no_file(board, path);
  ssize_t count = write(file, text, (size_t)length);
  int status = count == length ? 0 : no_file(board, path);
  close(file);
  return status;
}

static void *map_file(const char *path, size_t bytes) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return NULL;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

// The callbacks -----------------------------------------------------------------------------------

static int read_registers(void *context, uint32_t offset, uint32_t *values, uint32_t count) {
  for (uint32_t n = 0; n < count; n++) values[n] = read_word(context, offset + 4 * n);
  return 0;
}

static int write_register(void *context, uint32_t offset, uint32_t value) {
  write_word(context, offset, value);
  return 0;
}

// What is for the board is written back, too: otherwise the cache might do it later.
static int flush(void *context, const void *first, size_t bytes, enum vdla_direction direction) {
  struct vdla_uio *board = context;
  static const uint8_t DIRECTIONS[] = {VDLA_TO_DEVICE, VDLA_FROM_DEVICE, VDLA_BOTH_WAYS};
  const char *way = direction == VDLA_FROM_BOARD ? "sync_for_cpu" : "sync_for_device";
  size_t start = (size_t)((const uint8_t *)first - board->way.memory);
  int status = write_setting(board, "sync_offset", start);
  if (!status) status = write_setting(board, "sync_size", bytes);
  if (!status) status = write_setting(board, "sync_direction", DIRECTIONS[direction]);
  if (!status) status = write_setting(board, way, 1);
  if (!status) synced(board);
  return status;
}

// Opening -----------------------------------------------------------------------------------------

// Puts the first device called vdla into device, and the names of all into known.
static void find_device(const char *root, char device[NAME_BYTES], char known[NAME_BYTES]) {
  char path[PATH_BYTES], name[NAME_BYTES];
  snprintf(path, sizeof path, "%s/sys/class/uio", root);
  DIR *folder = opendir(path);
  struct dirent *entry;
  while (folder && (entry = readdir(folder))) {
    snprintf(path, sizeof path, "%s/sys/class/uio/%.32s/name", root, entry->d_name);
    if (strncmp(entry->d_name, "uio", 3) || read_text(path, name, sizeof name)) continue;
    size_t used = strlen(known);
    snprintf(known + used, NAME_BYTES - used, "%s%.40s", used ? ", " : "", name);
    name[strcspn(name, "@")] = 0;
    if (strcmp(name, VDLA_UIO_NAME)) continue;
    if (*device && strcmp(device, entry->d_name) < 0) continue;
    snprintf(device, NAME_BYTES, "%.32s", entry->d_name);
  }
  if (folder) closedir(folder);
}

static int open_memory(struct vdla_uio *board, const char *root) {
  char path[PATH_BYTES];
  struct stat about;
  unsigned long long bytes, address;
  snprintf(board->settings, sizeof board->settings, "%s/sys/class/u-dma-buf/udmabuf0", root);
  if (stat(board->settings, &about))
    return vdla_way_fail(&board->way,
                         "udmabuf0: expected a u-dma-buf, found none; "
                         "load its module with a size");
  if (read_setting(board, "size", &bytes) || read_setting(board, "phys_addr", &address)) return -1;
  if (bytes > UINT32_MAX || address > UINT32_MAX - bytes)
    return vdla_way_fail(&board->way,
                         "udmabuf0: expected memory below 4 GiB, found %llu bytes at "
                         "%#llx",
                         bytes, address);
  snprintf(path, sizeof path, "%s/dev/udmabuf0", root);
  board->way.memory = map_file(path, (size_t)bytes);
  if (board->way.memory == NULL) return no_file(board, path);
  board->way.bytes = (size_t)bytes;
  board->way.address = (uint32_t)address;
  return 0;
}

int vdla_uio_open(struct vdla_uio *board, const char *root, struct vdla_board *reached) {
  char path[PATH_BYTES], device[NAME_BYTES] = "", known[NAME_BYTES] = "";
  const struct vdla_board own = {board,        read_registers, write_register,
                                 vdla_way_map, flush,          vdla_way_wait};
  *reached = own;
  root = root ? root : "";
  find_device(root, device, known);
  vdla_way_begin(&board->way, "board at ", device);
  board->registers = NULL;
  if (strlen(root) > sizeof board->settings / 2)
    return vdla_way_fail(&board->way, "root: expected a shorter path, found %.96s…", root);
  if (*device == 0)
    return vdla_way_fail(&board->way,
                         "uio: expected a device called " VDLA_UIO_NAME
                         ", found %s; "
                         "is the device-tree overlay loaded?",
                         *known ? known : "no UIO device");
  snprintf(path, sizeof path, "%s/dev/%s", root, device);
  board->registers = map_file(path, VDLA_REGISTERS_BYTES);
  int status = board->registers ? open_memory(board, root) : no_file(board, path);
  if (status) vdla_uio_close(board);
  return status;
}

void vdla_uio_close(struct vdla_uio *board) {
  if (board->registers) munmap((void *)(uintptr_t)board->registers, VDLA_REGISTERS_BYTES);
  if (board->way.memory) munmap(board->way.memory, board->way.bytes);
  board->registers = NULL;
  board->way.memory = NULL;
}
