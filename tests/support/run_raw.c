// Runs a packaged network once: its inputs' bytes come from stdin, in order, its outputs' go to
// stdout. Compiled with -DNAME_H='"digits.h"' -DNAME_OPEN=digits_open -DNAME_MEMORY=DIGITS_MEMORY.

#include <stdio.h>
#include NAME_H

static _Alignas(64) unsigned char memory[NAME_MEMORY];

int main(int argc, char **argv) {
  struct vdla *net;
  struct vdla_tensor tensor;
  int status = NAME_OPEN(memory, sizeof memory, NULL, &net);
  (void)argv;
#ifdef THREADS
  if (status == VDLA_OK) status = vdla_start(net, THREADS);
#endif
  for (uint32_t n = 0; status == VDLA_OK && vdla_input(net, n, &tensor) == VDLA_OK; n++)
    if (fread(tensor.data, 1, tensor.bytes, stdin) != tensor.bytes) return 3;
  for (int runs = argc; status == VDLA_OK && runs > 0; runs--) status = vdla_run(net);
  if (status != VDLA_OK) {
    fprintf(stderr, "%s\n", vdla_error(net));
    return status;
  }
  for (uint32_t n = 0; vdla_output(net, n, &tensor) == VDLA_OK; n++)
    fwrite(tensor.data, 1, tensor.bytes, stdout);
#ifdef THREADS
  vdla_close(net);
#endif
  return 0;
}
