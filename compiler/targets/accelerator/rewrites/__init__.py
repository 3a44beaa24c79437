"""Rewrites of a graph that the accelerator shares with a processor."""
