"""The pool's numbers, as ``pool.c`` has them."""

# From pool.c by python -m vdla.runtime.pool.generate
# ziglang 0.17.1, SHA-256 791e067b3f9729d9d184ee6265217898b750ed0d6fa82860f3f0ede9bb25197c

POOL_BYTES = 320
ALIGNMENT_BYTES = 64  # where a pool may begin
OPEN = 0  # a pool's states
CLOSED = 1
OVER = 2
TASKS = 256  # that a job has at most
