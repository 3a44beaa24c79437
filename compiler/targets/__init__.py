"""Targets, which run a graph's operators: a folder for each target, all of one shape."""
