// Texts of errors, written without a C library.

#include "inner.h"

void begin_error(struct vdla *net, struct words *words) {
  net->error[0] = 0;
  words->at = net->error;
  words->end = net->error + ERROR_BYTES - 1;
}

void put(struct words *words, const char *text) {
  while (*text && words->at < words->end) *words->at++ = *text++;
  *words->at = 0;
}

void put_number(struct words *words, size_t number) {
  _Alignas(16) char digits[24];
  char *at = digits + sizeof digits - 1;
  *at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  put(words, at);
}

void put_hex(struct words *words, uint32_t number) {
  char digits[9];
  for (int n = 0; n < 8; n++) digits[n] = "0123456789abcdef"[number >> (28 - 4 * n) & 15];
  digits[8] = 0;
  put(words, digits);
}

static void put_place(struct vdla *net, struct words *words, const char *where,
                      const char *expected) {
  begin_error(net, words);
  put(words, where);
  put(words, ": expected ");
  put(words, expected);
  put(words, ", found ");
}

int fail(struct vdla *net, int status, const char *where, const char *expected, size_t number) {
  struct words words;
  put_place(net, &words, where, expected);
  put_number(&words, number);
  return status;
}

int fail_with(struct vdla *net, int status, const char *where, const char *expected,
              const char *found) {
  struct words words;
  put_place(net, &words, where, expected);
  put(&words, found);
  return status;
}

int fail_at_step(struct vdla *net, int status, uint32_t step, const char *expected,
                 const char *found) {
  struct words words;
  begin_error(net, &words);
  put(&words, "step ");
  put_number(&words, step);
  const char *name = text(net, step_word(net, step, STEP_NAME));
  if (*name) {
    put(&words, " (");
    put(&words, name);
    put(&words, ")");
  }
  put(&words, ": expected ");
  put(&words, expected);
  put(&words, ", found ");
  put(&words, found);
  return status;
}
