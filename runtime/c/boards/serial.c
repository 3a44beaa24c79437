// A board behind a serial port: frames and rules are those of runtime/board/link.py, and what is
// sent again when is as in runtime/board/serial.py.
//
// The board's memory has its twin here, in which hosts' steps work; flush moves whole granules.

#define _DEFAULT_SOURCE  // flock, and speeds beyond POSIX's

#include "boards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

enum {
  WORD = 4,
  MOST_BYTES = VDLA_MOST_WORDS * WORD,
  FRAME_BYTES = VDLA_REQUEST_HEADER + MOST_BYTES + VDLA_CHECKSUM,
  REPLY_BYTES = VDLA_REPLY_HEADER + MOST_BYTES + VDLA_CHECKSUM,
};

// What an attempt ends with.
enum outcome { ANSWERED, SILENT, CUT, NOISE, DAMAGED, DAMAGED_THERE, BROKEN };

struct request {
  uint8_t op;
  uint32_t address, count;  // of words
  uint8_t *words;           // that are read
};

static uint32_t checksum(const uint8_t *data, size_t bytes) {
  uint32_t crc = UINT32_MAX;
  for (size_t n = 0; n < bytes; n++) {
    crc ^= data[n];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

static void put_word(uint8_t *at, uint32_t value) {
  for (int n = 0; n < WORD; n++) at[n] = (uint8_t)(value >> 8 * n);
}

static uint32_t word_at(const uint8_t *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

// The port ----------------------------------------------------------------------------------------

// Waits until the port can be read or written; 0 where it can't until a time.
static int can(struct vdla_serial *board, short event, uint64_t until) {
  struct pollfd watched = {board->port, event, 0};
  uint64_t now = vdla_now_us(), left = until > now ? (until - now + 999) / 1000 : 0;
  int count = poll(&watched, 1, left < INT32_MAX ? (int)left : INT32_MAX);
  return count > 0 || (count < 0 && errno == EINTR);
}

static enum outcome send_all(struct vdla_serial *board, const uint8_t *data, size_t bytes) {
  uint64_t until = vdla_now_us() + board->answer_us;
  while (bytes) {
    ssize_t count = write(board->port, data, bytes);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return BROKEN;
    if (count < 0 && !can(board, POLLOUT, until)) return SILENT;
    if (count < 0) continue;
    data += count;
    bytes -= (size_t)count;
  }
  return ANSWERED;
}

static enum outcome take(struct vdla_serial *board, uint8_t *data, size_t bytes) {
  uint64_t until = vdla_now_us() + board->answer_us;
  for (size_t n = 0; n < bytes; n++) {
    while (board->first == board->end) {
      ssize_t count = read(board->port, board->came, sizeof board->came);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return BROKEN;
      if (count > 0) {
        board->first = 0;
        board->end = (size_t)count;
      } else if (!can(board, POLLIN, until)) {
        board->got = n;
        board->awaited = bytes;
        return n ? CUT : SILENT;
      } else if (count == 0) {
        vdla_sleep_us(VDLA_FIRST_POLL_US);  // a terminal whose other end is closed
        if (vdla_now_us() > until) return SILENT;
      }
    }
    data[n] = board->came[board->first++];
  }
  return ANSWERED;
}

// Frames ------------------------------------------------------------------------------------------

// The next four bytes that begin as a reply does.
static enum outcome take_header(struct vdla_serial *board, uint8_t *head) {
  for (size_t skipped = 0; skipped <= 2 * (size_t)MOST_BYTES; skipped++) {
    enum outcome outcome = take(board, head, 1);
    if (outcome) return outcome;
    if (head[0] == VDLA_REPLY_SYNC) return take(board, head + 1, VDLA_REPLY_HEADER - 1);
  }
  return NOISE;
}

// The reply to the latest request; others are passed over.
static enum outcome take_reply(struct vdla_serial *board, const struct request *asked,
                               int *status) {
  uint8_t reply[REPLY_BYTES];
  size_t carries = asked->words ? WORD * (size_t)asked->count : 0;
  for (;;) {
    enum outcome outcome = take_header(board, reply);
    if (outcome) return outcome;
    size_t bytes = VDLA_REPLY_HEADER + (reply[2] == VDLA_STATUS_OK ? carries : 0);
    outcome = take(board, reply + VDLA_REPLY_HEADER, bytes - VDLA_REPLY_HEADER + VDLA_CHECKSUM);
    if (outcome) return outcome;
    if (checksum(reply, bytes) != word_at(reply + bytes)) return DAMAGED;
    if (reply[1] != board->tag) continue;
    *status = reply[2];
    if (*status == VDLA_STATUS_BAD_CHECKSUM) return DAMAGED_THERE;
    if (reply[3] != asked->count - 1 || *status > VDLA_STATUS_BAD_ADDRESS) continue;
    if (*status == VDLA_STATUS_OK && carries)
      memcpy(asked->words, reply + VDLA_REPLY_HEADER, carries);
    return ANSWERED;
  }
}

static int no_answer(struct vdla_serial *board, enum outcome outcome) {
  char found[64] = "nothing";
  if (outcome == CUT) snprintf(found, sizeof found, "%zu bytes of %zu", board->got, board->awaited);
  if (outcome == NOISE)
    snprintf(found, sizeof found, "bytes that are no reply: is it another device, or baud rate?");
  if (outcome == DAMAGED) snprintf(found, sizeof found, "damaged replies");
  if (outcome == DAMAGED_THERE) snprintf(found, sizeof found, "that requests arrive damaged");
  return vdla_way_fail(&board->way, "%s: expected an answer within %g s, tried %d times, found %s",
                       board->way.name, board->answer_us / 1e6, VDLA_RETRIES, found);
}

static int refused(struct vdla_serial *board, const struct request *asked, int status) {
  static const char *const OPS[] = VDLA_OPS, *const STATUSES[] = VDLA_STATUSES;
  return vdla_way_fail(&board->way, "%s: expected to do %s of %u words at %#x, found %s",
                       board->way.name, OPS[asked->op], (unsigned)asked->count,
                       (unsigned)asked->address, STATUSES[status]);
}

// Throws away what has come, half a frame of the board's included: by then it has forgotten it.
static void calm_down(struct vdla_serial *board) {
  vdla_sleep_us(VDLA_QUIET_US * 3 / 2);
  tcflush(board->port, TCIFLUSH);
  board->first = board->end = 0;
  board->sent_again += 1;
}

// Sends a request until it is answered; words are those to write, or null.
static int ask(struct vdla_serial *board, const struct request *asked, const uint8_t *words) {
  uint8_t frame[FRAME_BYTES] = {VDLA_REQUEST_SYNC, ++board->tag, asked->op,
                                (uint8_t)(asked->count - 1)};
  size_t bytes = VDLA_REQUEST_HEADER + (words ? WORD * (size_t)asked->count : 0);
  put_word(frame + 4, asked->address);
  if (words) memcpy(frame + VDLA_REQUEST_HEADER, words, bytes - VDLA_REQUEST_HEADER);
  put_word(frame + bytes, checksum(frame, bytes));
  enum outcome outcome = SILENT;
  for (int attempt = 0; attempt < VDLA_RETRIES; attempt++) {
    int status = VDLA_STATUS_OK;
    if (attempt) calm_down(board);
    outcome = send_all(board, frame, bytes + VDLA_CHECKSUM);
    if (!outcome) outcome = take_reply(board, asked, &status);
    if (outcome == BROKEN)
      return vdla_way_fail(&board->way, "%s: expected an answer, found %s", board->way.name,
                           strerror(errno));
    if (outcome == ANSWERED) return status == VDLA_STATUS_OK ? 0 : refused(board, asked, status);
  }
  return no_answer(board, outcome);
}

// The callbacks -----------------------------------------------------------------------------------

static int read_registers(void *context, uint32_t offset, uint32_t *values, uint32_t count) {
  uint8_t words[MOST_BYTES];
  struct request asked = {VDLA_READ_REGISTERS, offset, count, words};
  if (ask(context, &asked, NULL)) return -1;
  for (uint32_t n = 0; n < count; n++) values[n] = word_at(words + WORD * n);
  return 0;
}

static int write_register(void *context, uint32_t offset, uint32_t value) {
  uint8_t word[WORD];
  struct request asked = {VDLA_WRITE_REGISTERS, offset, 1, NULL};
  put_word(word, value);
  return ask(context, &asked, word);
}

// Moves bytes, and what shares a granule with them.
static int flush(void *context, const void *first, size_t bytes, enum vdla_direction direction) {
  struct vdla_serial *board = context;
  size_t at = (size_t)((const uint8_t *)first - board->way.memory), end = at + bytes;
  if (direction == VDLA_FOR_BOARD) return 0;
  at = at / VDLA_GRANULE * VDLA_GRANULE;
  end = (end + VDLA_GRANULE - 1) / VDLA_GRANULE * VDLA_GRANULE;
  for (size_t size; at < end; at += size) {
    uint8_t *here = board->way.memory + at;
    size = end - at < MOST_BYTES ? end - at : MOST_BYTES;
    struct request asked = {VDLA_WRITE_MEMORY, (uint32_t)at, (uint32_t)(size / WORD), NULL};
    if (direction == VDLA_FROM_BOARD) {
      asked.op = VDLA_READ_MEMORY;
      asked.words = here;
    }
    if (ask(board, &asked, asked.words ? NULL : here)) return -1;
  }
  return 0;
}

// Opening -----------------------------------------------------------------------------------------

// Bytes as they are, at the link's speed, for this process alone.
static int set_up(int port) {
  struct termios line;
  if (flock(port, LOCK_EX | LOCK_NB) || tcgetattr(port, &line)) return -1;
  line.c_iflag = 0;
  line.c_oflag = 0;
  line.c_lflag = 0;
  line.c_cflag = CS8 | CREAD | CLOCAL;
  line.c_cc[VMIN] = 1;
  line.c_cc[VTIME] = 0;
  if (cfsetispeed(&line, VDLA_SPEED) || cfsetospeed(&line, VDLA_SPEED)) return -1;
  return tcsetattr(port, TCSANOW, &line) || tcflush(port, TCIFLUSH);
}

int vdla_serial_open(struct vdla_serial *board, const char *port, size_t bytes,
                     struct vdla_board *reached) {
  const struct vdla_board own = {board,        read_registers, write_register,
                                 vdla_way_map, flush,          vdla_way_wait};
  *reached = own;
  memset(board, 0, sizeof *board);
  vdla_way_begin(&board->way, "board at ", port);
  board->answer_us = VDLA_ANSWER_US;
  board->tag = (uint8_t)(vdla_now_us() ^ (uint64_t)getpid());  // another than the board saw last
  board->port = open(port, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (board->port < 0 || set_up(board->port)) {
    const char *found = errno == EWOULDBLOCK ? "one that another program has" : strerror(errno);
    vdla_way_fail(&board->way, "port %s: expected a serial port, found: %s", port, found);
    vdla_serial_close(board);
    return -1;
  }
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    vdla_way_fail(&board->way, "port %s: expected %zu bytes of memory, found: %s", port, bytes,
                  strerror(errno));
    vdla_serial_close(board);
    return -1;
  }
  board->way.memory = memory;
  board->way.bytes = bytes;
  return 0;
}

void vdla_serial_close(struct vdla_serial *board) {
  if (board->port >= 0) close(board->port);
  if (board->way.memory) munmap(board->way.memory, board->way.bytes);
  board->port = -1;
  board->way.memory = NULL;
}
