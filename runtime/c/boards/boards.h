// Two ways from Linux to a board, for vdla_open: UIO on a Zynq's own processor, and a serial port.
//
//     struct vdla_uio board;
//     struct vdla_board reached;
//     if (vdla_uio_open(&board, NULL, &reached)) puts(board.way.error);
//     if (digits_open(memory, sizeof memory, &reached, &net)) puts(vdla_error(net));
//     ...
//     vdla_uio_close(&board);
//
// boards.c is compiled beside uio.c or serial.c: C99, POSIX, and what Linux has for devices.
//
// Rules.
//
//  1. Both structs stay where they are as long as a network that was opened with them is used.
//  2. A function that fails returns something else than 0, and way.error has the words; also where a
//     network ends with VDLA_NO_ANSWER or VDLA_FAULT, and it isn't empty.
//  3. Several networks may share a board, in turns: each takes a part of the board's memory when it
//     is opened. way.taken = 0 gives all parts back, after which none of these networks is run.
//     vdla_counters counts whichever program the board ran last.
//  4. A program may take way.run_us microseconds; whoever has longer ones writes it.

#ifndef VDLA_BOARDS_H
#define VDLA_BOARDS_H

#include "link.h"
#include "vdla.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VDLA_ULX3S_BYTES = 32 << 20 };  // of the memory of a ULX3S

struct vdla_way {  // what both ways have
  char error[256];
  char name[64];      // of the board, in errors
  uint8_t *memory;    // of the host: the board's own, or as much
  size_t bytes;       // of that memory
  size_t taken;       // of these, by networks
  uint32_t address;   // that the core has it at
  uint32_t run_us;    // that a program may take
  uint64_t began_us;  // when the core began to be waited for
};

// UIO and u-dma-buf ------------------------------------------------------------------------------

struct vdla_uio {
  struct vdla_way way;
  volatile uint32_t *registers;
  char settings[192];  // folder of the u-dma-buf in sysfs
};

// Finds the device called vdla, and udmabuf0. root is the folder that has sys and dev, for tests;
// NULL is the system's.
int vdla_uio_open(struct vdla_uio *board, const char *root, struct vdla_board *reached);
void vdla_uio_close(struct vdla_uio *board);

// A serial port ----------------------------------------------------------------------------------

struct vdla_serial {
  struct vdla_way way;
  int port;
  uint32_t answer_us;   // until an answer is given up
  uint32_t sent_again;  // requests
  uint8_t tag;          // of the latest request
  size_t got, awaited;  // bytes of an answer that was cut
  size_t first, end;    // of what came and wasn't read
  uint8_t came[1024];
};

// Opens a port for this process alone, at the link's speed. bytes is the board's memory.
int vdla_serial_open(struct vdla_serial *board, const char *port, size_t bytes,
                     struct vdla_board *reached);
void vdla_serial_close(struct vdla_serial *board);

// Parts of both, in boards.c: their context is a struct that begins with a way --------------------

void vdla_way_begin(struct vdla_way *way, const char *kind, const char *place);
int vdla_way_fail(struct vdla_way *way, const char *format, ...);
int vdla_way_map(void *context, size_t bytes, void **memory, uint32_t *address);
int vdla_way_wait(void *context, enum vdla_awaited awaited, uint32_t looks);
uint64_t vdla_now_us(void);
void vdla_sleep_us(uint32_t microseconds);

#ifdef __cplusplus
}
#endif

#endif
