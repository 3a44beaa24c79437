"""Loop passes: each rewrites a tensorized function into another, for all operators alike."""
