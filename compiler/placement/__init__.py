"""Which device runs each node, and what becomes of the graph when that is known."""
