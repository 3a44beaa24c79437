// Runs digits on a board, on bytes of a file, and prints what the accelerator counted.
//
//     on_board uio IN OUT                     on the board itself
//     on_board serial /dev/ttyUSB0 IN OUT     from the PC
//
// IN holds the inputs' bytes, one input behind the other, as digits.h lists them, row-major; OUT
// gets the outputs'. Before the way to a board may stand
//
//     --root FOLDER      that has uio's sys and dev
//     --seconds NUMBER   that an answer and a program may take: virtual boards take their time
//
// Compiled on the board, of the files of a package:
//
//     cc -O2 -o on_board on_board.c boards.c uio.c serial.c libdigits.a -lm -lpthread

#include "boards.h"
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, CAUSES = sizeof(const char *[]) VDLA_CAUSES / sizeof(const char *) };

static union {  // whichever way it is
  struct vdla_way way;
  struct vdla_uio uio;
  struct vdla_serial serial;
} board;

static unsigned char memory[DIGITS_MEMORY + ALIGN];

static int fail(const char *text) {
  fprintf(stderr, "on_board: %s\n", text);
  if (*board.way.error && text != board.way.error) fprintf(stderr, "  %s\n", board.way.error);
  return 2;
}

static int usage(void) {
  return fail("expected [--root FOLDER] [--seconds NUMBER] uio|serial PORT IN OUT");
}

static int read_inputs(struct vdla *net, const char *path) {
  struct vdla_tensor input;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return -1;
  int is_short = 0;
  for (uint32_t n = 0; !is_short && vdla_input(net, n, &input) == VDLA_OK; n++)
    is_short = fread(input.data, 1, input.bytes, file) != input.bytes;
  int is_long = !is_short && fgetc(file) != EOF;
  fclose(file);
  return is_short || is_long;
}

static int write_outputs(struct vdla *net, const char *path) {
  struct vdla_tensor output;
  FILE *file = fopen(path, "wb");
  if (file == NULL) return -1;
  int is_short = 0;
  for (uint32_t n = 0; !is_short && vdla_output(net, n, &output) == VDLA_OK; n++)
    is_short = output.data && fwrite(output.data, 1, output.bytes, file) != output.bytes;
  return fclose(file) || is_short;
}

// A line for each engine: its cycles by what they went to.
static int print_counters(struct vdla *net) {
  static const char *const ENGINES[] = DIGITS_ENGINES, *const NAMES[] = VDLA_CAUSES;
  uint32_t counters[DIGITS_COUNTERS];
  uint64_t cycles;
  if (vdla_counters(net, &cycles, counters, DIGITS_COUNTERS)) return -1;
  printf("cycles %llu\n", (unsigned long long)cycles);
  for (int n = 0; n < DIGITS_COUNTERS; n++) {
    if (n % CAUSES == 0) printf("%s", ENGINES[n / CAUSES]);
    printf(" %s %lu%s", NAMES[n % CAUSES], (unsigned long)counters[n],
           n % CAUSES == CAUSES - 1 ? "\n" : "");
  }
  return 0;
}

static int run(const struct vdla_board *reached, const char *in, const char *out) {
  struct vdla *net;
  unsigned char *aligned = memory + (ALIGN - (uintptr_t)memory % ALIGN) % ALIGN;
  if (digits_open(aligned, DIGITS_MEMORY, reached, &net)) return fail(vdla_error(net));
  if (read_inputs(net, in)) return fail("expected a file IN of the inputs' bytes, found another");
  if (vdla_run(net)) return fail(vdla_error(net));
  if (print_counters(net)) return fail(vdla_error(net));
  return write_outputs(net, out) ? fail("expected to write OUT, found no way to") : 0;
}

int main(int count, char **words) {
  const char *root = NULL;
  double seconds = 0;
  struct vdla_board reached;
  for (words++; count > 2 && strncmp(*words, "--", 2) == 0; words += 2, count -= 2) {
    if (strcmp(*words, "--root") == 0)
      root = words[1];
    else if (strcmp(*words, "--seconds") == 0)
      seconds = atof(words[1]);
    else
      return usage();
  }
  int is_uio = count == 4 && strcmp(*words, "uio") == 0;
  if (!is_uio && (count != 5 || strcmp(*words, "serial"))) return usage();
  int status = is_uio ? vdla_uio_open(&board.uio, root, &reached)
                      : vdla_serial_open(&board.serial, words[1], VDLA_ULX3S_BYTES, &reached);
  if (status) return fail(board.way.error);
  if (seconds > 0) {
    board.way.run_us = (uint32_t)(1e6 * seconds);
    if (!is_uio) board.serial.answer_us = board.way.run_us;
  }
  status = run(&reached, words[count - 3], words[count - 2]);
  if (is_uio)
    vdla_uio_close(&board.uio);
  else
    vdla_serial_close(&board.serial);
  return status;
}
