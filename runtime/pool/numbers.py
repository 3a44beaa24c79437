"""The pool's numbers, as ``pool.c`` has them."""

# From pool.c by python -m vdla.runtime.pool.generate
# ziglang 0.17.1, SHA-256 8be76d88a5c270309fb327b84fa9a4de625b264470127989b36651f3304c8bcc

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
