"""First check of a board by its owner: identity, memory, programs and a network, and a report."""
