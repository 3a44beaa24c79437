"""Names of the registers of the timing model.

Every register is one int64 in the array ``s``, every ring buffer one row of ``q``; a name is its
index. The order in which the units step within a cycle makes most writes visible in the next cycle
only. Where no order can, registers come in pairs: everybody reads the plain name, and ``…_NEXT``
collects what becomes visible in the next cycle.
"""

from __future__ import annotations

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes
from vdla.isa.registers import Cause, Fault

RING = 1024  # slots of each ring; a power of two above everything that can be in flight

# Parameters of the config and the memory; whether COMPUTE may pass over the middle of a GEMM, and
# the clock over idle cycles; the cycle to stop in; the DRAM's pages and the bytes of it that bear
# errors.
(
    PORT,
    LATENCY,
    INTERVAL,
    BURST,
    READS,
    BUFFER,
    WRITES,
    QUEUE,
    TOKENS,
    BEATS_PER_INSTRUCTION,
    FETCH_BUFFER,
    OUT_BEATS,
    ACC_BEATS,
    BULK,
    SKIP,
    STOP,
    PAGES,
    ERROR_FROM,
    ERROR_TO,
    UOP_DEPTH,
    PARAMETERS,
) = range(21)

# A fault of this cycle (0: none), and the row of the instruction it belongs to.
FAULT, FAULT_ROW, FAULT_END = range(PARAMETERS, PARAMETERS + 3)

# Memory: accepted reads, the data bus, write responses.
(
    READ_HEAD,
    READ_TAIL,
    READ_LEFT,
    BUS_FREE,
    SERVED_WRITE,
    RESPONSE_HEAD,
    RESPONSE_TAIL,
    MEMORY_END,
) = range(FAULT_END, FAULT_END + 8)

# Fetch: what is still to request, beats requested and arrived, instructions dispatched.
(
    F_ADDRESS,
    F_LEFT,
    F_REQUESTED,
    F_ARRIVED,
    F_DISPATCHED,
    F_TOTAL,
    FETCH_END,
) = range(MEMORY_END, MEMORY_END + 7)

# Per engine (LOAD, COMPUTE, STORE): instructions issued to its queue, started, retired.
ISSUED, ISSUED_NEXT, STARTED, RETIRED, CAUSE = range(FETCH_END, FETCH_END + 15, 3)
ENGINES_END = FETCH_END + 15

# Tokens: engine e pops queue 2e (from its prev) and 2e + 1 (from its next).
AVAILABLE, AVAILABLE_NEXT, FREE, FREE_NEXT = range(ENGINES_END, ENGINES_END + 24, 6)
TOKENS_END = ENGINES_END + 24

# LOAD: the request side (L_A…), beats in flight, the write side (L_W…).
(
    L_A_ROW,
    L_A_Z,
    L_A_Y,
    L_A_X,
    L_A_ADDRESS,
    L_A_LEFT,
    L_BURSTS,
    L_REQUESTED,
    L_ARRIVED,
    L_CONSUMED,
    L_W_Z,
    L_W_Y,
    L_W_X,
    L_W_BEAT,
    L_W_ENTRY,
    LOAD_END,
) = range(TOKENS_END, TOKENS_END + 16)

# COMPUTE: the loop nest, the two stages of the front end, port use by the back end.
(
    C_ROW,
    C_I0,
    C_I1,
    C_I2,
    C_U,
    C_INDEX,
    C_BULK_AT,
    C_BULK_FROM,
    C_BULK_END,
    C_LAST_DST,
    C_LAST_READ_AT,
    C_LATE_MASK,
    C_WRITE_MASK,
    C_RETIRE_HEAD,
    C_RETIRE_TAIL,
    C_CHECKED,
    COMPUTE_END,
) = range(LOAD_END, LOAD_END + 17)

# The greatest fields of any micro-op loaded so far: what a loop nest can reach at most.
U_MOST = COMPUTE_END  # its first, its dst, its src, its wgt
MOST_END = COMPUTE_END + 4

# A micro-op in a front-end stage: its row (-1: none), its addresses, its marks.
U_ROW, U_DST, U_SRC, U_FIRST, U_LAST, U_NULL, U_BEYOND, U_FIELDS = range(8)
C_F1 = MOST_END
C_READ = C_F1 + U_FIELDS
UOPS_END = C_READ + U_FIELDS

# STORE: the reader (ST_R…), the requantizer, the write buffer, the burst side (ST_W…).
(
    ST_R_ROW,
    ST_R_SCALE_DUE,
    ST_R_Z,
    ST_R_Y,
    ST_R_X,
    ST_R_NEXT,
    ST_CREDIT,
    ST_EMIT_HEAD,
    ST_EMIT_TAIL,
    ST_EMIT_LEFT,
    ST_LEVEL,
    ST_W_DONE,
    ST_W_Z,
    ST_W_Y,
    ST_W_X,
    ST_W_ADDRESS,
    ST_W_RUN_LEFT,
    ST_W_BURST_LEFT,
    ST_W_BAD,
    ST_BURSTS,
    ST_RESPONDED,
    REGISTERS,
) = range(UOPS_END, UOPS_END + 22)

# Rings.
(
    Q_READ_WHO,
    Q_READ_BEATS,
    Q_READ_READY,
    Q_READ_ADDRESS,
    Q_RESPONSE_AT,
    Q_RESPONSE_BAD,
    Q_RETIRE_AT,
    Q_RETIRE_ROW,
    Q_EMIT_AT,
    Q_EMIT_BEATS,
    Q_STORE_TARGET,
    RINGS,
) = range(12)

LOADS_IN_FLIGHT = 8  # LOAD instructions started and not finished
STORES_IN_FLIGHT = 8  # STORE instructions started and not finished
FETCH_INSTRUCTIONS = 16  # instructions the prefetch buffer holds
WRITE_BUFFER_VECTORS = 4  # raw ACC vectors the write buffer holds

# Pipeline distances, in cycles: docs/timing.md, sections 5 and 6.
LATE_READ = 5  # from a micro-op's operand read to its accumulator read
WRITE_BACK = 7  # from a micro-op's operand read to its write
STORE_PIPELINE = 8  # from an ACC read to the first beat entering the write buffer

# Causes, in the order of the columns of a breakdown.
CAUSES = tuple(cause.name.lower() for cause in Cause)
BUSY, TOKEN, MEMORY, BANK, FETCH_WAIT, DRAIN = (int(cause) for cause in Cause)
ILLEGAL, BEYOND, BUS_ERROR = int(Fault.ILLEGAL), int(Fault.ADDRESS), int(Fault.BUS)


def parameters(config: Config) -> dict[int, int]:
    """The parameter registers for a config."""
    port = config.port_bytes
    per_instruction = instruction_bytes(config) // port
    return {
        PORT: port,
        LATENCY: config.memory.latency,
        INTERVAL: -(-port // config.memory.bytes_per_cycle),
        BURST: config.burst_beats,
        READS: config.reads_in_flight,
        BUFFER: config.read_buffer_beats,
        WRITES: config.writes_in_flight,
        QUEUE: config.command_queue,
        TOKENS: config.token_queue,
        BEATS_PER_INSTRUCTION: per_instruction,
        FETCH_BUFFER: max(FETCH_INSTRUCTIONS * per_instruction, config.burst_beats),
        OUT_BEATS: config.out_entry // port,
        ACC_BEATS: config.acc_entry // port,
        BULK: 1,
        SKIP: 1,
        STOP: np.iinfo(np.int64).max,
        UOP_DEPTH: config.uop_depth,
    }
