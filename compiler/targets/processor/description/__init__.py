"""A processor as schedules see it: its vectors, and its instructions as tensor intrinsics."""
