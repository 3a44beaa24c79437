"""The pool's numbers, as ``pool.c`` has them."""

# From pool.c by python -m vdla.runtime.pool.generate
# ziglang 0.17.1, SHA-256 44175b68d5d611c0b9e0e89fb46cb78b4682b3ca9c312152e9c40bdfaa1d2c34

POOL_BYTES = 320
ALIGNMENT_BYTES = 64  # where a pool may begin
COPY = 0  # kinds of calls without a function
TAKE = 1
PUT = 2
CLEAR = 3
JUMP = 4
WHEN = 5
UNLESS = 6
NEXT = 7
OPEN = 0  # a pool's states
CLOSED = 1
OVER = 2
TASKS = 256  # that a job has at most
