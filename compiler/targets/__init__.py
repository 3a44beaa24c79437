"""Targets, which run a graph's operators: a wing for each target, all of one shape."""
