"""The pool's numbers, as ``pool.c`` has them."""

# From pool.c by python -m vdla.runtime.pool.generate
# ziglang 0.17.1, SHA-256 abfe9df242bca92cc4dda527b2bd3be4486f1524e34beae53c91f91ca506c1ef

POOL_BYTES = 320
ALIGNMENT_BYTES = 64  # where a pool may begin
OPEN = 0  # a pool's states
CLOSED = 1
OVER = 2
TASKS = 256  # that a job has at most
