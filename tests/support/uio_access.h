// Registers of a core that another process has, for uio.c under test: requests of 12 bytes over a
// socket, each answered by 4. tests/support/c_boards.py is the other end.

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint32_t ask(uint32_t what, uint32_t offset, uint32_t value) {
  uint32_t request[3] = {what, offset, value}, answer = 0;
  int socket = atoi(getenv("VDLA_TEST_SOCKET"));
  if (write(socket, request, sizeof request) != sizeof request ||
      read(socket, &answer, sizeof answer) != sizeof answer)
    abort();
  return answer;
}

static uint32_t read_word(struct vdla_uio *board, uint32_t offset) {
  (void)board;
  return ask(0, offset, 0);
}

static void write_word(struct vdla_uio *board, uint32_t offset, uint32_t value) {
  (void)board;
  ask(1, offset, value);
}

static void synced(struct vdla_uio *board) {
  (void)board;
  ask(2, 0, 0);
}
